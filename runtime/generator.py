"""`random.Generator`: random numbers from a state of one's own; and the stateless functions of a pair of seeds."""

from __future__ import annotations

import enum
import os
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.context import ctx, init_scope
from runtime.dtypes import DTypeLike
from runtime.ops.arrays.creation import zeros_like
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor, int_list
from runtime.ops.dispatch import call
from runtime.ops.random import philox, stateless, truncated
from runtime.ops.random.stateful import state_for
from runtime.ops.rules import dims, product
from runtime.tensor import Tensor
from runtime.variable import Variable

# TensorFlow's numbers of the algorithms; Philox is the only one here.
PHILOX = 1


def _words_of(seed: Any) -> np.ndarray:
    """The state that a seed starts: 64-bit words of an integer of any size, or of a sequence of them; three in all."""
    if isinstance(seed, int):
        parts = [seed >> shift & (1 << 64) - 1 for shift in (0, 64, 128)]
    else:
        parts = [int(part) & (1 << 64) - 1 for part in np.reshape(np.asarray(convert_to_tensor(seed)), -1)]
    return np.array([*parts[:3], 0, 0][:3], np.uint64).astype(np.int64)


class Generator:
    """A source of random numbers whose state is a variable: int64 [counter, counter, key] of a Philox
    stream, as in TensorFlow: the same seed gives TensorFlow's numbers.

    Make one with `from_seed`, `from_non_deterministic_state`, `from_state` or `split`. The same seed gives the same
    numbers, eager and staged. If it is made in the scope of a strategy with several replicas, each replica draws
    different numbers. Raises ValueError for another algorithm.
    """

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        if copy_from is not None:
            state = copy_from.state.read_value()
        elif state is None or alg is None:
            raise ValueError("Generator needs copy_from, or state and alg; use Generator.from_seed(seed)")
        _check_algorithm(alg)
        self._state = Variable(state, dtype=dtypes.int64, name="StateVar", trainable=False)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """A generator whose numbers are determined by `seed`."""
        _check_algorithm(alg)
        with init_scope():
            return cls(state=_words_of(seed), alg=PHILOX)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator that differs from run to run."""
        _check_algorithm(alg)
        return cls(state=_words_of(int.from_bytes(os.urandom(24), "little")), alg=PHILOX)

    @classmethod
    def from_state(cls, state: Any, alg: Any) -> Generator:
        """A generator that continues from a state, such as another generator's."""
        return cls(
            state=convert_to_tensor(state, None if isinstance(state, (Tensor, Variable)) else dtypes.int64), alg=alg
        )

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any) -> Generator:
        """A generator from its parts: the key, and the number of the next block as two words."""
        low, high = (int(c) for c in np.reshape(np.asarray(convert_to_tensor(counter)), -1))
        return cls(state=np.array([low, high, int(np.asarray(convert_to_tensor(key)))], np.int64), alg=alg)

    @property
    def state(self) -> Variable:
        return self._state

    @property
    def algorithm(self) -> int:
        return PHILOX

    @property
    def key(self) -> Tensor:
        return self._state.read_value()[2]

    def reset(self, state: Any) -> None:
        """Sets the state."""
        self._state.assign(state)

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Starts again, from a key and the number of the next block as two words."""
        self._state.assign(Generator.from_key_counter(key, counter, PHILOX)._state.numpy())

    def reset_from_seed(self, seed: Any) -> None:
        """Starts again, from a seed."""
        self._state.assign(Generator.from_seed(seed)._state.numpy())

    def skip(self, delta: Any) -> Tensor:
        """Advances as if `delta` numbers had been drawn; returns the state before."""
        before = self._state.read_value()
        low = before[0] + call("cast", convert_to_tensor(delta), dtype=dtypes.int64) * philox.BLOCKS
        # The words are unsigned: one overflows where its sign bit goes from 1 to 0.
        carry = call("cast", call("logical_and", before[0] < 0, low >= 0), dtype=dtypes.int64)
        self._state.assign(call("stack", low, before[1] + carry, before[2], axis=0))
        return before

    def split(self, count: int = 1) -> list[Generator]:
        """New generators whose numbers are independent of each other and of this one's."""
        with init_scope():
            # Keys of the new streams are drawn from this one.
            keys = np.asarray(self.uniform_full_int((count,), dtypes.int64))
            return [Generator(state=np.array([0, 0, key], np.int64), alg=PHILOX) for key in keys]

    def make_seeds(self, count: int = 1) -> Tensor:
        """Pairs of seeds for stateless functions, shape (2, count)."""
        first = self.uniform_full_int((count,), dtypes.int64)
        return call("stack", first, zeros_like(first), axis=0)

    def _use(self, shape: Any) -> Tensor:
        """The state to draw `shape` numbers from, which are then used up."""
        return self._own(self.skip(product(int_list(shape, "shape"))))

    def _own(self, state: Tensor) -> Tensor:
        """The state that a replica draws from. Generators that were made in a strategy's scope have a key for each
        replica, which follows from theirs as in TensorFlow."""
        if ctx.variant is None or getattr(self._state, "group_size", None) is None:
            return state
        _, replica = ctx.variant
        numbered = call("stack", convert_to_tensor(replica, dtypes.int64), zeros_like(state[0]), state[2], axis=0)
        key = stateless.uniform(numbered, [], None, None, dtypes.int64)
        return call("stack", state[0], state[1], key, axis=0)

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Normally distributed numbers."""
        return stateless.normal(self._use(shape), shape, mean, stddev, dtype)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Normally distributed numbers within two standard deviations of the mean."""
        return stateless.normal(self._use(shape), shape, mean, stddev, dtype, stateless.TRUNCATED)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Uniformly distributed numbers in [minval, maxval)."""
        return stateless.uniform(self._use(shape), shape, minval, maxval, dtype)

    def uniform_full_int(self, shape: Any, dtype: DTypeLike = dtypes.uint64, name: str | None = None) -> Tensor:
        """Integers from the whole range of the dtype."""
        return stateless.uniform(self._use(shape), shape, None, None, dtype)

    def binomial(
        self, shape: Any, counts: Any, probs: Any, dtype: DTypeLike = dtypes.int32, name: str | None = None
    ) -> Tensor:
        """How many of `counts` trials succeed, each with probability `probs`: both broadcast to `shape`."""
        trials, odds = (call("cast", convert_to_tensor(each), dtype=dtypes.float64) for each in (counts, probs))
        sizes = int_list(shape, "shape")
        own = known_rank(trials + zeros_like(odds), "binomial")
        # TensorFlow puts aside two hundred numbers for each four of a distribution, and some more.
        used = product(sizes[len(sizes) - own :]) * 200 * (product(sizes[: len(sizes) - own]) + 3) // 4
        return stateless.binomial(self._own(self.skip(used)), shape, trials, odds, dtype)

    def __deepcopy__(self, memo: dict) -> Generator:
        return Generator(copy_from=self, alg=PHILOX)


class Algorithm(enum.Enum):
    """TensorFlow's names of the algorithms; only Philox is implemented, which "auto" selects."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


def create_rng_state(seed: Any, alg: Any) -> Tensor:
    """The state with which `Generator.from_seed(seed)` starts. Raises ValueError for another algorithm than Philox."""
    _check_algorithm(alg)
    return Generator.from_seed(seed).state.read_value()


def _check_algorithm(alg: Any) -> None:
    if alg not in (None, PHILOX, "philox", "auto_select", Algorithm.PHILOX, Algorithm.AUTO_SELECT):
        raise ValueError(f"Unsupported algorithm {alg!r}: only 'philox' (1) is implemented")


_global: list[Generator] = []


def get_global_generator() -> Generator:
    """The global generator; created at the first call."""
    if not _global:
        with init_scope():
            _global.append(Generator.from_non_deterministic_state())
    return _global[0]


def set_global_generator(generator: Generator) -> None:
    """Replaces the global generator."""
    _global[:] = [generator]


# --- stateless functions -------------------------------------------------------------------------------------------


def stateless_uniform(
    shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: DTypeLike = dtypes.float32,
    name: str | None = None, alg: Any = "auto_select",
) -> Tensor:  # fmt: skip
    """Uniform numbers that are a function of `seed`, two integers."""
    return stateless.uniform(stateless.state_of(seed), shape, minval, maxval, dtype)


def stateless_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: DTypeLike = dtypes.float32,
    name: str | None = None, alg: Any = "auto_select",
) -> Tensor:  # fmt: skip
    """Normal numbers that are a function of `seed`, two integers."""
    return stateless.normal(stateless.state_of(seed), shape, mean, stddev, dtype)


def stateless_truncated_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: DTypeLike = dtypes.float32,
    name: str | None = None, alg: Any = "auto_select",
) -> Tensor:  # fmt: skip
    """Normal numbers within two standard deviations, a function of `seed`, two integers."""
    return stateless.normal(stateless.state_of(seed), shape, mean, stddev, dtype, stateless.TRUNCATED)


def stateless_parameterized_truncated_normal(
    shape: Any, seed: Any, means: Any = 0.0, stddevs: Any = 1.0, minvals: Any = -2.0, maxvals: Any = 2.0,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Normal numbers between bounds, a function of `seed`; means, deviations and bounds broadcast to `shape`.

    The dtype is that of the first of these that is a tensor, else float32.
    """
    given = (means, stddevs, minvals, maxvals)
    dtype = next((each.dtype for each in given if isinstance(each, (Tensor, Variable))), dtypes.float32)
    u = stateless.uniform(stateless.state_of(seed), shape, 0.0, 1.0, dtypes.float64)
    return call("cast", truncated.between(u, *[convert_to_tensor(each, dtype) for each in given]), dtype=dtype)


def stateless_gamma(
    shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Gamma-distributed numbers, a function of `seed`; `alpha` and `beta` broadcast to `shape`."""
    return stateless.gamma(stateless.state_of(seed), shape, alpha, beta, dtype)


def stateless_poisson(
    shape: Any, seed: Any, lam: Any, dtype: DTypeLike = dtypes.int32, name: str | None = None
) -> Tensor:
    """Poisson-distributed numbers, a function of `seed`; `lam` broadcasts to `shape`."""
    return stateless.poisson(stateless.state_of(seed), shape, lam, dtype)


def stateless_binomial(
    shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: DTypeLike = dtypes.int32, name: str | None = None
) -> Tensor:
    """How many of `counts` trials succeed, each with probability `probs`: a function of `seed`, two integers.

    `counts` and `probs` broadcast to the last dimensions of `shape`.
    """
    return stateless.binomial(stateless.state_of(seed), shape, counts, probs, output_dtype)


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: DTypeLike = dtypes.int64, name: str | None = None
) -> Tensor:
    """Classes drawn with the probabilities softmax(logits), a function of `seed`. Shape (rows, num_samples)."""
    return stateless.categorical(lambda count: stateless.state_of(seed), logits, num_samples, dtype)


def stateless_shuffle(value: Any, seed: Any, name: str | None = None, alg: Any = "auto_select") -> Tensor:
    """The rows of a tensor in an order that is a function of `seed`, two integers."""
    return stateless.shuffled(stateless.state_of(seed), value)


def split(seed: Any, num: int = 2, alg: Any = "auto_select") -> Tensor:
    """`num` new pairs of seeds from one, shape (num, 2)."""
    pair = convert_to_tensor(seed)
    return stateless.uniform(stateless.state_of(pair), [num, 2], None, None, pair.dtype)


def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """A new pair of seeds from a pair and a number; it has the number's dtype."""
    number = convert_to_tensor(data)
    first = stateless.uniform(stateless.state_of(seed), [], None, None, number.dtype)
    return call("stack", first, number, axis=0)


# --- with the global seed ------------------------------------------------------------------------------------------


def gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: DTypeLike = dtypes.float32, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Gamma-distributed numbers of shape `shape` + the shape of `alpha` and `beta`, differentiable with respect to
    both."""
    kind = dtypes.as_dtype(dtype)
    a, b = convert_to_tensor(alpha, kind), convert_to_tensor(1 if beta is None else beta, kind)
    full = [*int_list(shape, "shape"), *dims(a + zeros_like(b))]
    return stateless.gamma(state_for(product(full), f"gamma {kind.name}", seed), full, a, b, kind)


def poisson(
    shape: Any, lam: Any, dtype: DTypeLike = dtypes.float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Poisson-distributed numbers of shape `shape` + the shape of `lam`."""
    rate, kind = convert_to_tensor(lam), dtypes.as_dtype(dtype)
    full = [*int_list(shape, "shape"), *dims(rate)]
    state = state_for(product(full), f"poisson {rate.dtype.name} {kind.name}", seed)
    return stateless.poisson(state, full, rate, kind)


def categorical(
    logits: Any, num_samples: Any, dtype: DTypeLike = dtypes.int64, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Classes drawn with the probabilities softmax(logits). Shape (rows, num_samples)."""
    x, kind = convert_to_tensor(logits), dtypes.as_dtype(dtype or dtypes.int64)
    label = f"categorical {x.dtype.name} {kind.name}"
    return stateless.categorical(lambda count: state_for(count, label, seed), x, num_samples, kind)
