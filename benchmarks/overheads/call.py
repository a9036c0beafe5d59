"""What a call costs when there is next to nothing to compute: compiled functions of 0, 1, 8 and 50 float32 scalars and
of a nested structure, and an eager addition."""

from collections.abc import Callable
from typing import Any

import numpy as np

import autograph as ag
from benchmarks import build, peers
from benchmarks.harness import Call, Case


def constant_two(*_: Any) -> Any:
    return 2.0


def increment(x: Any) -> Any:
    return x + 1.0


def total(*given: Any) -> Any:
    return sum(given[1:], given[0])


def total_of_nested(parts: Any) -> Any:
    first, (second, third) = parts["a"], parts["b"]
    return first + second + third["c"]


def nested(x: Any) -> Any:
    return {"a": x, "b": (x, {"c": x})}


def ours(function: Callable[..., Any], make: Callable[[Any], tuple]) -> build.Build:
    def prepare(quick: bool) -> Call:
        compiled, given = build.compiled(function), make(ag.constant(1.0))
        return lambda: compiled(*given)

    return prepare


def numba(function: Callable[..., Any], make: Callable[[Any], tuple]) -> build.Build:
    def prepare(quick: bool) -> Call:
        compiled, given = peers.load("numba").njit(function), make(np.float32(1.0))
        return lambda: compiled(*given)

    return prepare


def jax(function: Callable[..., Any], make: Callable[[Any], tuple]) -> build.Build:
    def prepare(quick: bool) -> Call:
        library = peers.load("jax")
        compiled, given = library.jit(function), make(library.numpy.float32(1.0))
        return lambda: compiled(*given).block_until_ready()

    return prepare


def tensorflow(function: Callable[..., Any], make: Callable[[Any], tuple], xla: bool) -> build.Build:
    def prepare(quick: bool) -> Call:
        tf = peers.load("tensorflow")
        compiled, given = peers.tf_function(xla)(function), make(tf.constant(1.0))
        return lambda: compiled(*given)

    return prepare


def torch_compiled(function: Callable[..., Any], make: Callable[[Any], tuple]) -> build.Build:
    def prepare(quick: bool) -> Call:
        library = peers.load("torch")
        compiled, given = library.compile(function), make(library.tensor(1.0))
        return lambda: compiled(*given)

    return prepare


def _compiled(name: str, title: str, function: Callable[..., Any], make: Callable[[Any], tuple]) -> Case:
    implementations = {
        peers.AUTOGRAPH: ours(function, make),
        peers.NUMBA: numba(function, make),
        peers.JAX: jax(function, make),
        peers.TF: tensorflow(function, make, xla=False),
        peers.TF_XLA: tensorflow(function, make, xla=True),
        peers.TORCH_COMPILED: torch_compiled(function, make),
    }
    if name == "call-nested":
        del implementations[peers.NUMBA]  # it has no dictionaries of several kinds
    if name != "call-1":
        del implementations[peers.TORCH_COMPILED]  # seconds of compiling for each
    if name in ("call-8", "call-50"):
        implementations[peers.NUMBA] = numba(_unrolled(int(name[5:])), make)
    return Case(name, f"Call of a compiled function: {title}", implementations, kind=name)


def _unrolled(count: int) -> Callable[..., Any]:
    """x0 + x1 + ... as a function of `count` arguments: numba has no starred tuple of this length."""
    names = [f"x{i}" for i in range(count)]
    namespace: dict[str, Any] = {}
    exec(f"def total({', '.join(names)}):\n    return {' + '.join(names)}\n", namespace)
    function: Callable[..., Any] = namespace["total"]
    return function


def eager_ours(quick: bool) -> Call:
    x = ag.constant(1.0)
    return lambda: increment(x)


def eager_numpy(quick: bool) -> Call:
    x = np.array(1.0, np.float32)
    return lambda: increment(x)


def eager_jax(quick: bool) -> Call:
    x = peers.load("jax").numpy.float32(1.0)
    return lambda: increment(x).block_until_ready()


def eager_tensorflow(quick: bool) -> Call:
    x = peers.load("tensorflow").constant(1.0)
    return lambda: increment(x)


def eager_torch(quick: bool) -> Call:
    x = peers.load("torch").tensor(1.0)
    return lambda: increment(x)


def small_ops(m: Any, x: Any) -> Any:
    """Some ops that eager programs are made of, on 100 values."""
    y = m.reshape(x, [10, 10])
    y = m.exp(y * 0.5) + m.abs(y)
    return y[1:, 0] - y[0, 1:]


def _small(quick: bool) -> tuple[np.ndarray]:
    return (np.linspace(0.0, 1.0, 100, dtype=np.float32),)


def eager(module: str, given: Any) -> build.Build:
    def prepare(quick: bool) -> Call:
        library = peers.load(module)
        m = library.numpy if module == "jax" else library
        x = given(library, _small(quick)[0])
        return lambda: small_ops(m, x)

    return prepare


CASES = [
    _compiled("call-0", "no arguments", constant_two, lambda x: ()),
    _compiled("call-1", "1 scalar, adds 1", increment, lambda x: (x,)),
    _compiled("call-8", "sum of 8 scalars", total, lambda x: (x,) * 8),
    _compiled("call-50", "sum of 50 scalars", total, lambda x: (x,) * 50),
    _compiled(
        "call-nested", "sum of 3 scalars in nested dictionaries and tuples", total_of_nested, lambda x: (nested(x),)
    ),
    Case(
        "eager-add",
        "Eager addition of 1 to a scalar",
        {
            peers.AUTOGRAPH: eager_ours,
            peers.NUMPY: eager_numpy,
            "jax, eager": eager_jax,
            "tensorflow, eager": eager_tensorflow,
            peers.TORCH: eager_torch,
        },
        kind="eager add",
    ),
    Case(
        "eager-ops",
        "Eight eager ops on 100 values",
        {
            peers.AUTOGRAPH: eager("autograph", lambda library, x: library.constant(x)),
            peers.NUMPY: eager("numpy", lambda library, x: x),
            "jax, eager": eager("jax", lambda library, x: library.numpy.asarray(x)),
            "tensorflow, eager": eager("tensorflow", lambda library, x: library.constant(x)),
            peers.TORCH: eager("torch", lambda library, x: library.from_numpy(x)),
        },
    ),
]
