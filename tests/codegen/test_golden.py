"""The text of a few kernels, as people read it. `--update-golden` rewrites tests/golden/kernels.test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import runtime.ops.operators  # noqa: F401
from runtime.codegen.lower.lower_graph import lower
from runtime.dtypes import float32, int32
from runtime.graph.builder import emit_while, trace_region
from runtime.ops.dispatch import call
from tests.autodiff.graphs import integer
from tests.codegen.compare import build, typed

GOLDEN = Path(__file__).parents[1] / "golden" / "kernels.test"


def loop(names: list[str], test: Any, body: Any, init: list[Any]) -> Any:
    types = [t.type for t in init]
    return emit_while(
        trace_region("test", lambda *c: [test(*c)], types, names),
        trace_region("body", lambda *c: list(body(*c)), types, names),
        init,
    )


def logistic(x: Any, n: Any) -> Any:
    return loop(["i", "x"], lambda i, x: i < n, lambda i, x: (i + 1, 3.7 * x * (1.0 - x)), [integer(0), x])[1]


def chain(x: Any, scale: Any) -> Any:
    """A fused chain, a sum over rows of it, and the chain itself."""
    y = call("tanh", x * scale) * call("exp", -(x * x))
    return y, call("reduce_sum", y, axis=(1,), keepdims=False)


def rnn(xs: Any, h: Any, w: Any, u: Any) -> Any:
    """Steps over the first axis until it ends."""
    steps = call("dim", xs, axis=0)

    def body(t: Any, h: Any) -> Any:
        x = call("gather", xs, t, axis=0)
        total = [call("matmul", a, b, transpose_a=False, transpose_b=False) for a, b in ((x, w), (h, u))]
        return t + 1, call("tanh", total[0] + total[1])

    return loop(["t", "h"], lambda t, h: t < steps, body, [integer(0), h])[1]


def gcd(a: Any, b: Any) -> Any:
    return loop(["a", "b"], lambda a, b: call("not_equal", b, integer(0)), lambda a, b: (b, a % b), [a, b])[0]


def matrix(*shape: Any) -> Any:
    return typed(float32, *shape)


CASES = {
    "logistic map": (logistic, [matrix(), typed(int32)], ["x", "n"]),
    "greatest common divisor": (gcd, [typed(int32), typed(int32)], ["a", "b"]),
    "fused chain": (chain, [matrix(None, 4), matrix(4)], ["x", "scale"]),
    "small rnn": (rnn, [matrix(None, 8, 3), matrix(8, 5), matrix(3, 5), matrix(5, 5)], ["xs", "h", "w", "u"]),
}


def kernels() -> str:
    parts = []
    for title, (function, types, names) in CASES.items():
        source = lower(build(function, types, names))
        text = source.text[source.text.index("def kernel") :]
        parts.append(f"--- {title}: {source.signature}\n{text}")
    return "\n".join(parts)


def test_kernel_texts(request: Any) -> None:
    text = kernels()
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_the_text_does_not_depend_on_sizes() -> None:
    small = lower(build(rnn, [matrix(7, 8, 3), matrix(8, 5), matrix(3, 5), matrix(5, 5)], CASES["small rnn"][2]))
    large = lower(
        build(rnn, [matrix(90, 64, 30), matrix(64, 50), matrix(30, 50), matrix(50, 50)], CASES["small rnn"][2])
    )
    assert small.text == large.text
