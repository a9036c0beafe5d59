"""What programs that open tapes themselves give in each way to run them: what they give eagerly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import autograph as ag

MODES: dict[str, Callable[[Any], Any]] = {
    "interpreted": lambda f: ag.function(f, jit_compile=False),
    "compiled": lambda f: ag.function(f, jit_compile=True),
    "from checkpoints": lambda f: ag.function(f, gradient_memory=2**12),
    "of unknown shape": lambda f: ag.function(f, input_signature=[ag.TensorSpec([None], ag.float64)]),
}


def assert_as_in_plain_python(program: Any, mode: str, x: Any) -> None:
    found, right = MODES[mode](program)(x), program(x)
    for one, other in zip(ag.nest.flatten(found), ag.nest.flatten(right), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
