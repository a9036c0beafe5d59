"""Random numbers as functions of a state, and of seeds: the rows under `random.Generator` and `random.stateless_*`.

A state is an int64 vector of a Philox stream: the number of the next block in two words, the lower first, and the key.
The rows are pure: the same state gives the same numbers, eager, interpreted and compiled, and on any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DType, DTypeLike
from runtime.ops import elementwise, philox
from runtime.ops.array import known_rank
from runtime.ops.compare import where
from runtime.ops.convert import convert_to_tensor, fill_holes, shape_args
from runtime.ops.dispatch import apply, call
from runtime.ops.late import late
from runtime.ops.rules import dims
from runtime.ops.special import gamma_quantile, poisson_quantile
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor
from runtime.types import TensorType


def _nothing(op: Any, *dy: Any) -> Sequence[Any]:
    return [None] * len(op.inputs)


def _infer_drawn(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(attrs["dtype"], attrs["shape"]),)


def _stream(state: Any) -> tuple[int, int]:
    low, high, key = (int(word) & 0xFFFFFFFFFFFFFFFF for word in state)
    return key, low | high << 64


def _kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(state: Any, *holes: Any, shape: tuple[int | None, ...], dtype: DType) -> Any:
        full = fill_holes(shape, holes)
        if any(d < 0 for d in full):
            raise errors.InvalidArgumentError(f"Dimension {min(full)} must be >= 0")
        return function(*_stream(state), int(np.prod(full, dtype=np.int64)), dtype._np).reshape(full)[()]

    return kernel


_STATE = np.array([5, 0, 77], np.int64)
_FLOATS = (dtypes.float32, dtypes.float64, dtypes.float16)


def _row(name: str, function: Callable[..., Any], doc: str, kinds: tuple[DType, ...] = _FLOATS) -> OpDef:
    return register(
        OpDef(
            name, _infer_drawn, _kernel(function), grad=_nothing, kinds="f" if kinds is _FLOATS else "iu", doc=doc,
            samples=tuple(
                Sample(((3,),), {"shape": shape, "dtype": dtype}, fixed={0: _STATE}, gradient=())
                for shape, dtype in zip([(3,), (2, 2), ()], kinds)
            ),
        )
    )  # fmt: skip


UNIFORM = _row("philox_uniform", philox.uniform, "Uniform in [0, 1), of a state.")
NORMAL = _row("philox_normal", philox.normal, "Standard normal, of a state.")
TRUNCATED = _row(
    "philox_truncated_normal", philox.truncated_normal, "Standard normal within two deviations, of a state."
)


def _integers_kernel(state: Any, low: Any, high: Any, *holes: Any, shape: tuple[int | None, ...], dtype: DType) -> Any:
    full = fill_holes(shape, holes)
    if low >= high:
        raise errors.InvalidArgumentError(f"Need minval < maxval, got {low} >= {high}")
    count = int(np.prod(full, dtype=np.int64))
    return philox.integers(*_stream(state), count, int(low), int(high), dtype._np).reshape(full)[()]


INTEGERS = register(
    OpDef(
        "philox_integers", _infer_drawn, _integers_kernel, grad=_nothing, kinds="iu",
        doc="Integers in [low, high), of a state.",
        samples=(
            Sample(((3,), (), ()), {"shape": (4,), "dtype": dtypes.int32},
                   fixed={0: _STATE, 1: np.int32(2), 2: np.int32(9)}),
        ),
    )
)  # fmt: skip


FULL_INTEGERS = _row(
    "philox_full_integers",
    lambda *stream: philox.full_integers(*stream).astype(stream[-1]),
    "Integers of all bits, of a state.",
    (dtypes.int32, dtypes.uint64, dtypes.uint32),
)


def _seeded_kernel(seed: Any) -> Any:
    if seed.shape != (2,):
        raise ValueError(f"seed must have shape [2], got {list(seed.shape)}")
    key, counter = philox.stateless_start(int(seed[0]), int(seed[1]))
    return np.array([0, counter >> 64, key], np.uint64).astype(np.int64)


def _infer_state(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(dtypes.int64, (3,)),)


STATE_OF_SEED = register(
    OpDef(
        "philox_state", _infer_state, _seeded_kernel, grad=_nothing, kinds="iu", doc="The state that two seeds start.",
        samples=(Sample(((2,),)),),
    )
)  # fmt: skip


def state_of(seed: Any) -> Tensor:
    """The state that a pair of seeds stands for. Raises InvalidArgumentError for other than two integers."""
    pair = convert_to_tensor(seed)
    if pair.dtype.kind not in "iu" or pair._shape not in ((2,), (None,), None):
        raise errors.InvalidArgumentError(f"seed must be two integers, got shape {pair.shape} of {pair.dtype.name}")
    return apply(STATE_OF_SEED, (pair,))


def state_for(seed: Any) -> Tensor:
    """A state from the global stream, or that of an op's own seed; see `random.set_seed`."""
    low, high = convert_to_tensor(0, dtypes.int64), convert_to_tensor(2**62, dtypes.int64)
    own = None if seed is None else int(seed)
    return state_of(call("random_integers", low, high, shape=(2,), dtype=dtypes.int64, seed=own))


# --- distributions, of a state -------------------------------------------------------------------------------------


@late
def drawn(row: OpDef, state: Tensor, shape: Any, dtype: DType, *bounds: Tensor) -> Tensor:
    attr, holes = shape_args(shape)
    return apply(row, (state, *bounds, *holes), {"shape": attr, "dtype": dtype})


def _float(dtype: DTypeLike) -> DType:
    kind = dtypes.as_dtype(dtype)
    if not kind.is_floating:
        raise ValueError(f"Argument `dtype` got invalid value {kind.name}: a float dtype is needed here")
    return kind


def uniform(state: Tensor, shape: Any, minval: Any, maxval: Any, dtype: DTypeLike) -> Tensor:
    kind = dtypes.as_dtype(dtype)
    if kind.is_integer:
        if maxval is None and minval is None:
            return drawn(FULL_INTEGERS, state, shape, kind)
        if maxval is None:
            raise ValueError(f"Must specify maxval for integer dtype {kind!r}")
        return drawn(INTEGERS, state, shape, kind, convert_to_tensor(minval, kind), convert_to_tensor(maxval, kind))
    numbers = drawn(UNIFORM, state, shape, _float(kind))
    low, high = convert_to_tensor(minval, kind), convert_to_tensor(1 if maxval is None else maxval, kind)
    return numbers * (high - low) + low


def normal(state: Tensor, shape: Any, mean: Any, stddev: Any, dtype: DTypeLike, row: OpDef = NORMAL) -> Tensor:
    kind = _float(dtype)
    return drawn(row, state, shape, kind) * convert_to_tensor(stddev, kind) + convert_to_tensor(mean, kind)


@late
def gamma(state: Tensor, shape: Any, alpha: Any, beta: Any, dtype: DTypeLike) -> Tensor:
    """By inverting the distribution function, so that each number takes one random word."""
    kind = _float(dtype)
    a = convert_to_tensor(alpha, None if isinstance(alpha, Tensor) else kind)
    u = drawn(UNIFORM, state, shape, dtypes.float64)
    wide = gamma_quantile(call("cast", a, dtype=dtypes.float64) + call("zeros_like", u), u)
    result = call("cast", wide, dtype=kind)
    return result if beta is None else result / convert_to_tensor(beta, kind)


@late
def poisson(state: Tensor, shape: Any, lam: Any, dtype: DTypeLike) -> Tensor:
    u = drawn(UNIFORM, state, shape, dtypes.float64)
    rate = call("cast", convert_to_tensor(lam), dtype=dtypes.float64) + call("zeros_like", u)
    return call("cast", poisson_quantile(u, rate), dtype=dtypes.as_dtype(dtype))


@late
def categorical(state: Tensor, logits: Any, num_samples: Any, dtype: DTypeLike) -> Tensor:
    """By the Gumbel-max trick: the largest of logits with Gumbel noise."""
    x = convert_to_tensor(logits)
    if known_rank(x, "categorical") != 2:
        raise errors.InvalidArgumentError(f"logits should be a matrix, got shape {x.shape} [Op:Multinomial]")
    rows, classes = dims(x)
    u = drawn(UNIFORM, state, [rows, num_samples, classes], dtypes.float64)
    noise = -elementwise.log(-elementwise.log(where(u > 0, u, convert_to_tensor(1e-300, dtypes.float64))))
    scores = call("expand_dims", call("cast", x, dtype=dtypes.float64), axis=(1,)) + noise
    return call("argmax", scores, axis=2, output_type=dtypes.as_dtype(dtype))


@late
def shuffled(state: Tensor, value: Any) -> Tensor:
    x = convert_to_tensor(value)
    keys = drawn(UNIFORM, state, [dims(x)[0]], dtypes.float64)
    return call("gather", x, call("argsort", keys, axis=0, descending=False), axis=0)
