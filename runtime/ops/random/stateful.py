"""Random tensors: `set_seed`, uniform, normal, truncated normal, shuffle.

Each random op draws from a Philox stream that two seeds stand for, the global one and the op's own. The rules are
TensorFlow's, and so are the numbers: without either seed they differ from run to run; with one, a program gives the
same numbers each run; calling `set_seed` starts all streams again. An op without a seed of its own gets one: eagerly
the next of a sequence that follows from the global seed, in a function its place among the function's. There each op
goes on with a stream of its own from call to call, so that another function, or a new trace, starts from the beginning.
The rows are effects: never merged, removed or reordered.

    random_uniform(*dims; shape, dtype, seed)   random_normal(...)   random_integers(low, high, *dims; ...)
    attr seed: the op's own seed, or None
    attr site: a `Site` in the graph of a function, see `number_draws`; absent eagerly
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import random
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.context import ctx
from runtime.dtypes import DType, DTypeLike
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor, fill_holes, shape_args, static_value
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.random import philox
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType

# TensorFlow's default for the global seed when only the op has one.
_DEFAULT_SEED = 87654321


# Seeds count modulo this, and it stands for the second of two seeds 0.
_SEEDS = 2**31 - 1
_WORD = (1 << 64) - 1


class Site:
    """A random op of a traced function: the seed that its place there gives it, and how far it has come.

    generation  which call of `set_seed` the counter belongs to
    is_own      whether a replica draws for itself: without a seed its numbers are nobody else's
    lock        held by whoever draws
    """

    __slots__ = ("place", "generation", "counter", "is_own", "lock")

    def __init__(self, place: int, is_own: bool = False) -> None:
        self.place = place
        self.is_own = is_own
        self.generation = self.counter = 0
        self.lock = threading.RLock()

    def __repr__(self) -> str:
        return str(self.place)


# The sites of functions as the iterator that produces an element now has moved them; None: none does.
_RESTARTED: contextvars.ContextVar[dict[Site, Site] | None] = contextvars.ContextVar("restarted sites", default=None)


class Restarted:
    """An iterator for whose elements the random ops of functions start from the beginning of their streams.

    So each iteration over a dataset draws the same numbers in the functions that are mapped over it, as TensorFlow's
    do, for the same seeds.
    """

    def __init__(self, source: Iterator[Any]) -> None:
        self._source = source
        self._sites: dict[Site, Site] = {}

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        before = _RESTARTED.set(self._sites)
        try:
            return next(self._source)
        finally:
            _RESTARTED.reset(before)


@contextlib.contextmanager
def drawn_apart() -> Iterator[None]:
    """A block in which functions draw random numbers without moving their streams on for later calls."""
    before = _RESTARTED.set({})
    try:
        yield
    finally:
        _RESTARTED.reset(before)


def _moving(site: Site) -> Site:
    """The object that counts a call site's draws: the site, or within restarted streams its stand-in."""
    restarted = _RESTARTED.get()
    return site if restarted is None else restarted.setdefault(site, Site(site.place, site.is_own))


class _Streams:
    """The state of all streams: per eager op with a seed the next block; those of functions are kept in their sites."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.global_seed: int | None = None
        self.own_seeds = random.Random()
        self.generation = 0
        self.fresh = int.from_bytes(os.urandom(24), "little")
        self.agreed: int | None = None  # in place of the global seed, where several processes draw the same numbers
        self.needs_seed = False  # where results are to be the same in each run
        self.counters: dict[tuple, int] = {}

    def set_seed(self, seed: int | None) -> None:
        with self.lock:
            self.global_seed = seed
            self.own_seeds = random.Random(seed)
            self.generation += 1
            self.counters.clear()

    def agree(self, seed: int) -> None:
        """Has ops without a seed draw what other processes draw that were told the same, but for those of replicas."""
        with self.lock:
            self.agreed = seed
            if self.global_seed is None:
                self.own_seeds = random.Random(seed)
                self.generation += 1

    def draw(self, kind: Any, seed: int | None, site: Site | None, used: int) -> tuple[int, int]:
        """Key and first of `used` blocks, which are then used up. Eager ops of another `kind` and the same seed don't
        share a stream."""
        with contextlib.nullcontext() if site is None else site.lock, self.lock:
            if self._is_unpredictable(seed, ctx.variant is not None if site is None else site.is_own):
                start, self.fresh = self.fresh, self.fresh + used
                return start >> 128, start & (1 << 128) - 1
            first = self._first(seed)
            if seed is None:
                # An eager op's stream is used once.
                seed = self.own_seeds.randint(0, _SEEDS) if site is None else site.place
                kind = None if site is None else kind
            first, second = _pair(first, seed)
            return first, second << 64 | self._counter(kind, first, second, site, used)

    def lend(self, seed: int | None, site: Site) -> tuple[int, int, int | None]:
        """Key and next block of a site's stream, and the generation that they belong to; None for a stream of its own,
        long enough for any number of draws. Whoever gives it back holds the site's lock meanwhile."""
        with self.lock:
            if self._is_unpredictable(seed, site.is_own):
                start, self.fresh = self.fresh, self.fresh + (1 << 80)
                return start >> 128 & _WORD, start & (1 << 128) - 1, None
            first, second = _pair(self._first(seed), site.place if seed is None else seed)
            return first, second << 64 | self._counter(None, first, second, site, 0), self.generation

    def give_back(self, site: Site, generation: int | None, used: int) -> None:
        """Says how many blocks of a stream were used."""
        with self.lock:
            moving = _moving(site)
            if moving.generation == generation:  # `set_seed` may have been called meanwhile
                moving.counter += used

    def _is_unpredictable(self, seed: int | None, is_own: bool) -> bool:
        if seed is not None or self.global_seed is not None:
            return False
        if self.needs_seed:
            raise RuntimeError(
                "random numbers without a seed differ from run to run, which enable_op_determinism doesn't allow: set "
                "one with ag.random.set_seed, or give the operation its own"
            )
        return is_own or self.agreed is None

    def _first(self, seed: int | None) -> int:
        """The first seed of an op with a seed of its own, or None."""
        if self.global_seed is not None:
            return self.global_seed
        return _DEFAULT_SEED if seed is not None or self.agreed is None else self.agreed

    def is_predictable(self, seed: int | None) -> bool:
        """Whether the seeds of something with this seed of its own are the same in each run."""
        with self.lock:
            return not self._is_unpredictable(seed, False)

    def seeds(self, seed: int | None) -> tuple[int, int]:
        """The two seeds of an object that has its own stream of random numbers, such as a dataset. seed: the seed that
        it was given, or None."""
        with self.lock:
            if self._is_unpredictable(seed, False):
                return random.SystemRandom().randrange(_SEEDS), random.SystemRandom().randrange(_SEEDS)
            return _pair(self._first(seed), self.own_seeds.randint(0, _SEEDS) if seed is None else seed)

    def _counter(self, kind: Any, first: int, second: int, site: Site | None, used: int) -> int:
        if site is not None:
            site = _moving(site)
            if site.generation != self.generation:
                site.generation, site.counter = self.generation, 0
            site.counter += used
            return site.counter - used
        if kind is None:
            return 0
        start = self.counters.get((kind, first, second), 0)
        self.counters[kind, first, second] = start + used
        return start


def _pair(first: int, second: int) -> tuple[int, int]:
    first, second = first % _SEEDS, second % _SEEDS
    return first, second if first or second else _SEEDS


STREAMS = _Streams()


class Borrowed:
    """The streams of random ops in one kernel, which moves them on itself: among its arguments for the length of a
    call, as uint64 [low half of the next block's number, high half, key] for each op."""

    def __init__(self) -> None:
        self._draws: list[tuple[int | None, Site]] = []
        self._places: dict[Site, int] = {}
        self._sites: list[Site] = []

    def add(self, node: Any) -> int:
        """The place of a node's stream among them: copies of a node draw from one."""
        site = node.attrs["site"]
        if site not in self._places:
            self._places[site] = len(self._draws)
            self._draws.append((node.attrs["seed"], site))
        return self._places[site]

    def lent(self) -> _Loan:
        """A context in which the states are lent. Where numbers follow from a seed, other threads that would draw from
        these streams wait."""
        if len(self._sites) != len(self._draws):
            self._sites = sorted((site for _, site in self._draws), key=id)  # all threads lock in one order
        return _Loan(self._draws, self._sites)


class _Loan:
    """See `Borrowed.lent`."""

    __slots__ = ("_draws", "_sites", "_streams", "_states")

    def __init__(self, draws: list[tuple[int | None, Site]], sites: list[Site]) -> None:
        self._draws = draws
        self._sites = sites

    def __enter__(self) -> np.ndarray:
        for site in self._sites:
            site.lock.acquire()
        try:
            self._streams = [STREAMS.lend(seed, site) for seed, site in self._draws]
        except BaseException:
            self._release()
            raise
        words = [word for key, block, _ in self._streams for word in (block & _WORD, block >> 64, key)]
        self._states = np.array(words, np.uint64)
        return self._states

    def __exit__(self, *error: object) -> None:
        words = iter(self._states.tolist())
        for (_, site), (_, block, generation), low, high, _ in zip(self._draws, self._streams, words, words, words):
            if generation is not None:
                STREAMS.give_back(site, generation, (low | high << 64) - block)
        self._release()

    def _release(self) -> None:
        for site in self._sites:
            site.lock.release()


def set_seed(seed: int | None) -> None:
    """Sets the global seed and starts all random streams again; None makes them unpredictable."""
    STREAMS.set_seed(None if seed is None else int(seed))


def number_draws(graph: Any) -> None:
    """Gives the random ops of a newly traced function their sites; those of functions inside it have theirs."""
    place = 0
    for node in graph.walk():
        if node.op in DRAWS and ("site" not in node.attrs or node.attrs["site"].place < 0):
            node.attrs = {**node.attrs, "site": Site(place, "site" in node.attrs)}
            place += node.attrs["seed"] is None


def _seeded(seed: Any, **attrs: Any) -> dict[str, Any]:
    """The attributes of a random op; in the trace of a replica also that it draws for itself."""
    attrs["seed"] = None if seed is None else int(seed)
    if ctx.variant is not None and ctx.builder is not None:
        attrs["site"] = Site(-1, is_own=True)
    return attrs


def _infer_drawn(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(attrs["dtype"], attrs["shape"]),)


def _size(shape: tuple[int, ...]) -> int:
    for entry in shape:
        if entry < 0:
            raise errors.InvalidArgumentError(f"Dimension {entry} must be >= 0 [Op:RandomUniform]")
    return int(np.prod(shape, dtype=np.int64))


def _draw_kernel(function: Any) -> Any:
    def kernel(
        *holes: Any, shape: tuple[int | None, ...], dtype: DType, seed: int | None, site: Site | None = None
    ) -> Any:
        full = fill_holes(shape, holes)
        count = _size(full)
        return function(*STREAMS.draw((function, dtype), seed, site, philox.BLOCKS * count), count, dtype._np).reshape(
            full
        )[()]

    return kernel


def _integers_kernel(
    low: Any, high: Any, *holes: Any, shape: tuple[int | None, ...], dtype: DType, seed: int | None,
    site: Site | None = None,
) -> Any:  # fmt: skip
    full = fill_holes(shape, holes)
    count = _size(full)
    if low >= high:
        raise errors.InvalidArgumentError(f"Need minval < maxval, got {low} >= {high} [Op:RandomUniformInt]")
    stream = STREAMS.draw((philox.integers, dtype), seed, site, philox.BLOCKS * count)
    return philox.integers(*stream, count, int(low), int(high), dtype._np).reshape(full)[()]


def _nothing(op: Any, dy: Any) -> Sequence[Any]:
    return [None] * len(op.inputs)


_DRAWS = tuple(
    Sample((), {"shape": shape, "dtype": dtype, "seed": 1})
    for shape in [(3,), (), (0, 2), (2, 5)]
    for dtype in (dtypes.float16, dtypes.float32, dtypes.float64)
)
RANDOM_UNIFORM = register(
    OpDef(
        "random_uniform", _infer_drawn, _draw_kernel(philox.uniform), grad=_nothing, effect=True,
        doc="Uniform random numbers in [0, 1).", samples=_DRAWS, cost=10,
        can_fail=False,
        is_random=True,
    )
)  # fmt: skip
RANDOM_NORMAL = register(
    OpDef(
        "random_normal", _infer_drawn, _draw_kernel(philox.normal), grad=_nothing, effect=True,
        doc="Standard normal random numbers.", samples=_DRAWS, cost=10,
        can_fail=False,
        is_random=True,
    )
)  # fmt: skip
RANDOM_INTEGERS = register(
    OpDef(
        "random_integers", _infer_drawn, _integers_kernel, grad=_nothing, effect=True,
        doc="Random integers in [low, high).",
        samples=tuple(
            Sample(((), ()), {"shape": (4,), "dtype": dtype, "seed": None}, fixed={0: low, 1: high})
            for dtype, low, high in [(dtypes.int32, np.int32(2), np.int32(9)), (dtypes.int64, np.int64(2), np.int64(9))]
        ),
        cost=10,
        is_random=True,
    )
)  # fmt: skip


@deferrable
def _drawn(row: OpDef, shape: Any, dtype: DType, seed: Any, *inputs: Tensor) -> Tensor:
    attr, holes = shape_args(shape)
    return apply(row, (*inputs, *holes), _seeded(seed, shape=attr, dtype=dtype))


def _need_float(dtype: DTypeLike) -> DType:
    wanted = dtypes.as_dtype(dtype)
    if not wanted.is_floating:
        raise ValueError(f"Argument `dtype` got invalid value {wanted.name}: random numbers need a float dtype here")
    return wanted


def normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: DTypeLike = dtypes.float32, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Normally distributed numbers. `mean` and `stddev` broadcast to `shape`."""
    wanted = _need_float(dtype)
    drawn = _drawn(RANDOM_NORMAL, shape, wanted, seed)
    return drawn * convert_to_tensor(stddev, wanted) + convert_to_tensor(mean, wanted)


def uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: DTypeLike = dtypes.float32, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Uniformly distributed numbers in [minval, maxval); integers need `maxval`.

    Raises ValueError for an integer dtype without `maxval`.
    """
    wanted = dtypes.as_dtype(dtype)
    if wanted.is_integer:
        if maxval is None:
            raise ValueError(f"Must specify maxval for integer dtype {wanted!r}")
        return _drawn(
            RANDOM_INTEGERS, shape, wanted, seed, convert_to_tensor(minval, wanted), convert_to_tensor(maxval, wanted)
        )
    _need_float(wanted)
    drawn = _drawn(RANDOM_UNIFORM, shape, wanted, seed)
    low = convert_to_tensor(minval, wanted)
    high = convert_to_tensor(1 if maxval is None else maxval, wanted)
    if static_value(low) is not None and np.all(static_value(low) == 0) and maxval is None:
        return drawn
    return drawn * (high - low) + low


def truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: DTypeLike = dtypes.float32, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Normally distributed numbers within two standard deviations of the mean."""
    wanted = _need_float(dtype)
    drawn = _drawn(RANDOM_TRUNCATED, shape, wanted, seed)
    return drawn * convert_to_tensor(stddev, wanted) + convert_to_tensor(mean, wanted)


RANDOM_TRUNCATED = register(
    OpDef(
        "random_truncated_normal", _infer_drawn, _draw_kernel(philox.truncated_normal), grad=_nothing, effect=True,
        doc="Standard normal random numbers, truncated to two standard deviations.", samples=_DRAWS, cost=10,
        can_fail=False,
        is_random=True,
    )
)  # fmt: skip


@deferrable
def shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """The rows of a tensor in random order."""
    x = convert_to_tensor(value)
    known_rank(x, "shuffle")
    order = apply(RANDOM_PERMUTATION, (call("dim", x, axis=0),), _seeded(seed))
    return call("gather", x, order, axis=0)


def _permutation_kernel(count: Any, seed: int | None, site: Site | None = None) -> Any:
    words = max(int(count) - 1, 0)
    return philox.permutation(*STREAMS.draw(philox.permutation, seed, site, -(-words // 4)), int(count))


RANDOM_PERMUTATION = register(
    OpDef(
        "random_permutation", lambda inputs, attrs: (TensorType(dtypes.int32, (None,)),), _permutation_kernel,
        grad=_nothing, effect=True, doc="The integers 0 .. count - 1 in random order.",
        samples=tuple(Sample(((),), {"seed": s}, fixed={0: np.int32(n)}) for s, n in [(3, 5), (None, 0)]),
        is_random=True,
    )
)  # fmt: skip


def _state_kernel(count: Any, kind: str, seed: int | None, site: Site | None = None) -> Any:
    key, counter = STREAMS.draw(kind, seed, site, philox.BLOCKS * int(count))
    return np.array([counter & _WORD, counter >> 64 & _WORD, key & _WORD], np.uint64).astype(np.int64)


RANDOM_STATE = register(
    OpDef(
        "random_state", lambda inputs, attrs: (TensorType(dtypes.int64, (3,)),), _state_kernel, grad=_nothing,
        effect=True, doc="The state of a stream after `count` of its numbers were drawn; see stateless.py.",
        samples=(Sample(((),), {"seed": 3, "kind": "gamma float32"}, fixed={0: np.int32(5)}),),
        is_random=True,
    )
)  # fmt: skip


def state_for(count: Any, kind: str, seed: Any) -> Tensor:
    """The state to draw `count` numbers from, by the rules of `set_seed`. Ops of another `kind` have other streams."""
    return apply(RANDOM_STATE, (convert_to_tensor(count),), _seeded(seed, kind=kind))


DRAWS = (RANDOM_STATE, RANDOM_UNIFORM, RANDOM_NORMAL, RANDOM_INTEGERS, RANDOM_TRUNCATED, RANDOM_PERMUTATION)
