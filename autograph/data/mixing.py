"""Elements chosen: from several datasets in turns, at random, once each, and those that can be made at all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from autograph.data.arguments import known_tensor
from autograph.data.elements import joined_spec
from autograph.data.plans import INFINITE, UNKNOWN, Follower, Plan, Uncounted
from autograph.data.seeds import seeds_for, words
from runtime import dtypes
from runtime.errors import FailedPreconditionError, InvalidArgumentError, OpError
from runtime.ops.random import philox
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor


class Counted(Plan):
    """An infinite sequence of numbers from ``start``, ``step`` apart."""

    is_copied = True
    held = ("start", "step")

    def __init__(self, start: Any, step: Any, dtype: dtypes.DType) -> None:
        self.start, self.step = known_tensor(start, dtype), known_tensor(step, dtype)
        self.dtype = dtype
        self.spec = TensorSpec((), dtype)

    def cardinality(self) -> Any:
        return INFINITE

    def elements(self) -> Iterator[Any]:
        kind, start, step = self.dtype._np.type, self.start.numpy().item(), self.step.numpy().item()
        return (EagerTensor(kind(number), self.dtype) for number in itertools.count(start, step))


class RandomWords(Plan):
    """Random 32-bit words as int64 scalars, without end: TensorFlow's, for the same seeds.

    rerandomize: whether each iteration begins another stream.
    """

    is_copied = True
    held = ("seeds",)

    def __init__(self, seed: int | None, rerandomize: bool) -> None:
        self.spec = TensorSpec((), dtypes.int64)
        self.seeds = seeds_for(seed, rerandomize)

    def cardinality(self) -> Any:
        return INFINITE

    def pass_over(self) -> None:
        next(self.seeds)

    def elements(self) -> Iterator[Any]:
        return self._drawn(words(*next(self.seeds)))

    def _drawn(self, stream: philox.Words) -> Iterator[Any]:
        while True:
            for word in stream.take(64).tolist():
                yield EagerTensor(np.int64(word), dtypes.int64)


class Directed(Plan):
    """Elements of several sources: of which one, another source says.

    stop: end where an exhausted one is chosen, instead of choosing again.
    """

    def __init__(self, choice: Plan, choices: list[Plan], stop: bool) -> None:
        self.choice, self.choices, self.stop = choice, choices, stop
        self.spec = choices[0].spec
        for each in choices[1:]:
            self.spec = joined_spec(self.spec, each.spec)

    @property
    def sources(self) -> list[Plan]:
        return [self.choice, *self.choices]

    @property
    def is_copied(self) -> bool:
        return False

    def cardinality(self) -> Any:
        counts = [plan.cardinality() for plan in self.choices]
        return INFINITE if any(isinstance(count, int) and count == INFINITE for count in counts) else UNKNOWN

    def elements(self) -> Iterator[Any]:
        return self._directed(self.choice.elements(), [plan.elements() for plan in self.choices])

    def _directed(self, choice: Iterator[Any], sources: list[Iterator[Any]]) -> Iterator[Any]:
        left = set(range(len(sources)))
        for chosen in choice:
            number = int(chosen)
            if not 0 <= number < len(sources):
                raise InvalidArgumentError(f"Selector index out of range: {number} >= {len(sources)}")
            if number in left:
                for element in sources[number]:
                    yield element
                    break
                else:
                    left.remove(number)
            if number not in left and (self.stop or not left):
                return


class Unique(Uncounted):
    """Each element, a scalar, once, where it comes first."""

    def __init__(self, source: Plan) -> None:
        super().__init__(source)
        if not isinstance(source.spec, TensorSpec) or source.spec.dtype not in (
            dtypes.int32, dtypes.int64, dtypes.string,
        ):  # fmt: skip
            raise TypeError(
                "`tf.data.Dataset.unique` does not support type "
                f"{source.spec} -- only `tf.int32`, `tf.int64`, and `tf.string` are supported."
            )

    def elements(self) -> Iterator[Any]:
        return self._new_ones(self.source.elements())

    def _new_ones(self, source: Iterator[Any]) -> Iterator[Any]:
        seen: set[Any] = set()
        for element in source:
            array = np.asarray(element._array)
            key = array.item() if array.ndim == 0 else (array.shape, *array.ravel().tolist())
            if key not in seen:
                seen.add(key)
                yield element


class WithoutErrors(Uncounted):
    """A source without the elements whose computation raises an error."""

    def __init__(self, source: Plan, log: Any) -> None:
        super().__init__(source)
        self.log = log

    @property
    def is_copied(self) -> bool:
        return False

    def elements(self) -> Iterator[Any]:
        return self._good_ones(self.source.elements())

    def _good_ones(self, source: Iterator[Any]) -> Iterator[Any]:
        while True:
            try:
                element = next(source)
            except StopIteration:
                return
            except (OpError, ArithmeticError, ValueError, TypeError, LookupError, OSError) as error:
                if self.log is not None:
                    self.log(f"Error raised with error message {error}")
                continue
            yield element


class Asserted(Follower):
    """The elements of a source, of which there must be so many."""

    def __init__(self, source: Plan, expected: int) -> None:
        super().__init__(source)
        self.indexed = False
        self.expected = expected

    def cardinality(self) -> Any:
        return self.expected

    def elements(self) -> Iterator[Any]:
        return self._counted(self.source.elements())

    def _counted(self, source: Iterator[Any]) -> Iterator[Any]:
        count = 0
        for element in source:
            count += 1
            if count > self.expected >= 0:
                raise self._wrong("more than")
            yield element
        if count != self.expected:
            raise self._wrong(f"{count} elements, not")

    def _wrong(self, found: str) -> Exception:
        wanted = "an infinite number of" if self.expected == INFINITE else str(self.expected)
        return FailedPreconditionError(f"The dataset was expected to have {wanted} elements, it has {found} {wanted}.")
