"""`tf.linalg`: the classes of operators."""

from __future__ import annotations

from typing import Any

from autograph.linear_operators import base, blocks, circulant, combinations, elementary, matrices

MODULES: dict[str, dict[str, Any]] = {
    "tensorflow.linalg": {
        name: value
        for module in (base, blocks, circulant, combinations, elementary, matrices)
        for name, value in vars(module).items()
        if name.startswith("LinearOperator") and name != "LinearOperatorSpec"
    }
}
