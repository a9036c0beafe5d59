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
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor, fill_holes, shape_args, static_value
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise import elementary
from runtime.ops.elementwise.arithmetic import maximum
from runtime.ops.random import philox, philox_samplers
from runtime.ops.rules import dims, product, unbroadcast
from runtime.ops.table import OPS, OpDef, Sample, register
from runtime.tensor import Tensor
from runtime.types import TensorType


def _nothing(op: Any, *dy: Any) -> Sequence[Any]:
    return [None] * len(op.inputs)


def _infer_drawn(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(attrs["dtype"], attrs["shape"]),)


def stream_of(state: Any) -> tuple[int, int]:
    low, high, key = (int(word) & 0xFFFFFFFFFFFFFFFF for word in state)
    return key, low | high << 64


def _kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(state: Any, *holes: Any, shape: tuple[int | None, ...], dtype: DType) -> Any:
        full = fill_holes(shape, holes)
        if any(d < 0 for d in full):
            raise errors.InvalidArgumentError(f"Dimension {min(full)} must be >= 0")
        return function(*stream_of(state), int(np.prod(full, dtype=np.int64)), dtype._np).reshape(full)[()]

    return kernel


_STATE = np.array([5, 0, 77], np.int64)
_FLOATS = (dtypes.float32, dtypes.float64, dtypes.float16)


def _row(name: str, function: Callable[..., Any], doc: str, kinds: tuple[DType, ...] = _FLOATS, cost: int = 1) -> OpDef:
    return register(
        OpDef(
            name, _infer_drawn, _kernel(function), grad=_nothing, kinds="f" if kinds is _FLOATS else "iu", doc=doc,
            cost=cost, samples=tuple(
                Sample(((3,),), {"shape": shape, "dtype": dtype}, fixed={0: _STATE}, gradient=())
                for shape, dtype in zip([(3,), (2, 2), ()], kinds)
            ),
        )
    )  # fmt: skip


UNIFORM = _row("philox_uniform", philox.uniform, "Uniform numbers in [0, 1), drawn from a state.", cost=10)
NORMAL = _row("philox_normal", philox.normal, "Standard normal numbers, drawn from a state.", cost=10)
TRUNCATED = _row(
    "philox_truncated_normal",
    philox.truncated_normal,
    "Standard normal numbers within two deviations, drawn from a state.",
    cost=10,
)


def _integers_kernel(state: Any, low: Any, high: Any, *holes: Any, shape: tuple[int | None, ...], dtype: DType) -> Any:
    full = fill_holes(shape, holes)
    if low >= high:
        raise errors.InvalidArgumentError(f"Need minval < maxval, got {low} >= {high}")
    count = int(np.prod(full, dtype=np.int64))
    return philox.integers(*stream_of(state), count, int(low), int(high), dtype._np).reshape(full)[()]


INTEGERS = register(
    OpDef(
        "philox_integers", _infer_drawn, _integers_kernel, grad=_nothing, kinds="iu",
        doc="Random integers in [low, high), drawn from a state.",
        samples=(
            Sample(((3,), (), ()), {"shape": (4,), "dtype": dtypes.int32},
                   fixed={0: _STATE, 1: np.int32(2), 2: np.int32(9)}),
        ),
        cost=10,
    )
)  # fmt: skip


FULL_INTEGERS = _row(
    "philox_full_integers",
    lambda *stream: philox.full_integers(*stream).astype(stream[-1]),
    "Integers over the whole range of a dtype, drawn from a state.",
    (dtypes.int32, dtypes.uint64, dtypes.uint32),
    cost=10,
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
        "philox_state", _infer_state, _seeded_kernel, grad=_nothing, kinds="iu", doc="The initial state for two seeds.",
        samples=(Sample(((2,),)),),
    )
)  # fmt: skip


def state_of(seed: Any) -> Tensor:
    """The state that a pair of seeds stands for. Raises InvalidArgumentError for other than two integers."""
    pair = convert_to_tensor(seed)
    if pair.dtype.kind not in "iu" or pair._shape not in ((2,), (None,), None):
        raise errors.InvalidArgumentError(f"seed must be two integers, got shape {pair.shape} of {pair.dtype.name}")
    return apply(STATE_OF_SEED, (pair,))


# Distributions found by rejection: a row's parameters have the last dimensions of its result.


def _rejection_kernel(sample: Callable[..., np.ndarray]) -> Callable[..., Any]:
    def kernel(state: Any, parameters: Any, *holes: Any, shape: tuple[int | None, ...], dtype: DType) -> Any:
        full = fill_holes(shape, holes)
        if any(d < 0 for d in full):
            raise errors.InvalidArgumentError(f"Dimension {min(full)} must be >= 0")
        own = full[len(full) - parameters.ndim :] if parameters.ndim else ()
        each = np.broadcast_to(np.asarray(parameters, np.float64), own)
        count = int(np.prod(full[: len(full) - len(own)], dtype=np.int64))
        return sample(*stream_of(state), each, count, dtype).T.reshape(full).astype(dtype._np)[()]

    return kernel


def _gamma_sample(key: int, counter: int, alphas: np.ndarray, count: int, dtype: DType) -> np.ndarray:
    return philox_samplers.gamma(key, counter, alphas, count)


def _poisson_sample(key: int, counter: int, rates: np.ndarray, count: int, dtype: DType) -> np.ndarray:
    most = float(np.iinfo(dtype._np).max if dtype.is_integer else dtypes.finfo(dtype).max)
    found = philox_samplers.poisson(key, counter, rates, count, most)
    return np.nan_to_num(found) if dtype.is_integer else found


def gamma_slope(alpha: Tensor, x: Tensor) -> Tensor:
    """The derivative by alpha of a number x that was drawn from the gamma distribution with this shape."""
    above = apply(OPS["igamma_derivative"], [alpha, x], {"order": 1})
    return -above / elementary.exp((alpha - 1) * elementary.log(x) - x - apply(OPS["lgamma"], [alpha]))


def _grad_gamma(op: Any, dy: Any) -> Sequence[Any]:
    """By the implicit function theorem: the distribution function stays where it is (Figurnov et al., "Implicit
    reparameterization gradients", 2018)."""
    alpha, x = (call("cast", t, dtype=dtypes.float64) for t in (op.inputs[1], op.outputs[0]))
    slope = unbroadcast(call("cast", dy, dtype=dtypes.float64) * gamma_slope(alpha, x), alpha, x)
    return [None, call("cast", slope, dtype=op.inputs[1].dtype), *[None] * (len(op.inputs) - 2)]


GAMMA = register(
    OpDef(
        "philox_gamma", _infer_drawn, _rejection_kernel(_gamma_sample), grad=_grad_gamma, kinds="f",
        doc="Gamma-distributed numbers of shape alpha and scale 1, drawn from a state.",
        samples=tuple(
            Sample(((3,), own), {"shape": shape, "dtype": dtypes.float64}, fixed={0: _STATE}, low=1.5, high=4.0,
                   gradient=())
            for own, shape in [((), (3,)), ((2,), (4, 2)), ((2,), (2,))]
        ),
    )
)  # fmt: skip
POISSON = register(
    OpDef(
        "philox_poisson", _infer_drawn, _rejection_kernel(_poisson_sample), grad=_nothing, kinds="f",
        doc="Poisson-distributed numbers with given rates, drawn from a state.",
        samples=tuple(
            Sample(((3,), own), {"shape": shape, "dtype": dtype}, fixed={0: _STATE}, low=0.5, high=40.0, gradient=())
            for own, shape, dtype in [((), (3,), dtypes.int32), ((2,), (4, 2), dtypes.float32)]
        ),
    )
)  # fmt: skip


def _binomial_kernel(
    state: Any, trials: Any, odds: Any, *holes: Any, shape: tuple[int | None, ...], dtype: DType
) -> Any:
    full = fill_holes(shape, holes)
    if any(d < 0 for d in full):
        raise errors.InvalidArgumentError(f"Dimension {min(full)} must be >= 0")
    own = full[len(full) - trials.ndim :] if trials.ndim else ()
    count = int(np.prod(full[: len(full) - len(own)], dtype=np.int64))
    key, counter = stream_of(state)
    first, second = (np.broadcast_to(np.asarray(part, np.float64), own) for part in (trials, odds))
    found = philox_samplers.binomial(key, counter, first, second, count).T.reshape(full)
    return (np.nan_to_num(found) if dtype.is_integer else found).astype(dtype._np)[()]


BINOMIAL = register(
    OpDef(
        "philox_binomial", _infer_drawn, _binomial_kernel, grad=_nothing, kinds="f",
        doc="Binomially distributed numbers, drawn from a state, with given numbers of trials and probabilities.",
        samples=tuple(
            Sample(((3,), own, own), {"shape": shape, "dtype": dtype}, fixed={0: _STATE, 1: trials}, low=0.1, high=0.9,
                   gradient=())
            for own, shape, dtype, trials in [
                ((), (3,), dtypes.int32, np.float64(50)), ((2,), (4, 2), dtypes.float32, np.array([5.0, 200.0])),
            ]
        ),
    )
)  # fmt: skip


def _infer_categorical(inputs: Sequence[Any], attrs: dict) -> tuple:
    shape = inputs[1].shape
    return (TensorType(attrs["dtype"], (None if shape is None else shape[0], None)),)


def _categorical_kernel(state: Any, logits: Any, count: Any, dtype: DType) -> Any:
    if logits.shape[1] == 0 and count > 0:
        raise errors.InvalidArgumentError(f"num_classes should be positive, got {logits.shape[1]} [Op:Multinomial]")
    if count < 0:
        raise errors.InvalidArgumentError(f"num_samples should be nonnegative, got {count} [Op:Multinomial]")
    return philox_samplers.categorical(*stream_of(state), logits, int(count)).astype(dtype._np)


CATEGORICAL = register(
    OpDef(
        "philox_categorical", _infer_categorical, _categorical_kernel, grad=_nothing, kinds="f",
        doc="Classes with the probabilities softmax(logits), drawn from a state.",
        samples=(
            Sample(((3,), (2, 3), ()), {"dtype": dtypes.int64}, fixed={0: _STATE, 2: np.int32(4)}, gradient=()),
        ),
        cost=10,
    )
)  # fmt: skip
PERMUTATION = register(
    OpDef(
        "philox_permutation", lambda inputs, attrs: (TensorType(dtypes.int32, (None,)),),
        lambda state, count: philox.permutation(*stream_of(state), int(count)), grad=_nothing, kinds="iu",
        doc="The integers 0 .. count - 1 in random order, drawn from a state.",
        samples=(Sample(((3,), ()), fixed={0: _STATE, 1: np.int32(5)}),),
    )
)  # fmt: skip


# --- distributions, of a state -------------------------------------------------------------------------------------


@deferrable
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


@deferrable
def gamma(state: Tensor, shape: Any, alpha: Any, beta: Any, dtype: DTypeLike) -> Tensor:
    """`alpha` and `beta` broadcast to the last dimensions of `shape`."""
    kind = _float(dtype)
    a = convert_to_tensor(alpha, None if isinstance(alpha, Tensor) else kind)
    b = convert_to_tensor(1 if beta is None else beta, kind)
    numbers = drawn(GAMMA, state, shape, kind, a + call("zeros_like", b)) / b
    return maximum(numbers, convert_to_tensor(float(dtypes.finfo(kind).tiny), kind))


@deferrable
def poisson(state: Tensor, shape: Any, lam: Any, dtype: DTypeLike) -> Tensor:
    rate = call("cast", convert_to_tensor(lam), dtype=dtypes.float64)
    return drawn(POISSON, state, shape, dtypes.as_dtype(dtype), rate)


@deferrable
def binomial(state: Tensor, shape: Any, counts: Any, probs: Any, dtype: DTypeLike) -> Tensor:
    """`counts` and `probs` broadcast to the last dimensions of `shape`."""
    trials, odds = (call("cast", convert_to_tensor(each), dtype=dtypes.float64) for each in (counts, probs))
    trials, odds = trials + call("zeros_like", odds), odds + call("zeros_like", trials)
    return drawn(BINOMIAL, state, shape, dtypes.as_dtype(dtype), trials, odds)


@deferrable
def categorical(start: Callable[[Any], Tensor], logits: Any, num_samples: Any, dtype: DTypeLike) -> Tensor:
    """start: gives the state, from how many numbers of a stream are used up."""
    x = convert_to_tensor(logits)
    if known_rank(x, "categorical") != 2:
        raise errors.InvalidArgumentError(f"logits should be a matrix, got shape {x.shape} [Op:Multinomial]")
    count = convert_to_tensor(num_samples, dtypes.int32)
    # TensorFlow puts aside whole blocks, twice.
    state = start(product([dims(x)[0], (count + 3) // 4 * 8]))
    found = apply(CATEGORICAL, (state, x, count), {"dtype": dtypes.as_dtype(dtype)})
    known = static_value(count)
    if known is not None and found._shape != (x._shape[0], int(known)):  # type: ignore[index]
        found = call("ensure_shape", found, shape=(x._shape[0], int(known)))  # type: ignore[index]
    return found


@deferrable
def shuffled(state: Tensor, value: Any) -> Tensor:
    x = convert_to_tensor(value)
    known_rank(x, "shuffle")
    return call("gather", x, apply(PERMUTATION, (state, call("dim", x, axis=0))), axis=0)
