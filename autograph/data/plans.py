"""How a dataset's elements come about: sources, and transformations that keep elements countable.

A plan gives its elements one by one to Python (`elements`). If it is `indexed` it also knows how many there are and
makes any one of them from its index alone (`count`, `at`), so that a staged loop over it is an ordinary loop of the
program, which is compiled and differentiated like any other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from autograph.data.elements import as_element, batched_spec, call, fitted, row, row_spec, spec_of, stacked
from autograph.data.rows import has_spans, number_of_rows, ragged_spec_of_leaf
from runtime import composites, dtypes, nest
from runtime.ops.arithmetic import maximum, minimum
from runtime.ops.array import ensure_shape
from runtime.ops.array import shape as shape_of
from runtime.ops.convert import convert_to_tensor
from runtime.ops.creation import range as tensor_range
from runtime.ops.elementwise import cast
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor

INFINITE = -1
UNKNOWN = -2


class Plan:
    """The elements of a dataset. Attributes: `spec`, their structure of specs; `indexed`, see above."""

    spec: Any
    indexed = False

    def cardinality(self) -> Any:
        """The number of elements, or INFINITE or UNKNOWN."""
        return UNKNOWN

    def at(self, index: Any) -> Any:
        """The element at an index, a scalar int64 tensor or an int; only if `indexed`."""
        raise NotImplementedError

    def span(self, start: Any, stop: Any) -> Any:
        """The elements from start to stop - 1 as one batch, or None if they would have to be stacked."""
        return None

    def elements(self) -> Iterator[Any]:
        """The elements, eager, for one iteration of the dataset."""
        raise NotImplementedError


class Range(Plan):
    """The numbers of a range."""

    indexed = True

    def __init__(self, start: Any, stop: Any, step: Any, dtype: dtypes.DType) -> None:
        self.bounds: list[Any] = [cast(convert_to_tensor(bound), dtypes.int64) for bound in (start, stop, step)]
        self.dtype = dtype
        self.spec = TensorSpec((), dtype)

    def cardinality(self) -> Any:
        if all(isinstance(bound, EagerTensor) for bound in self.bounds):
            return len(range(*map(int, self.bounds)))
        return shape_of(tensor_range(*self.bounds), out_type=dtypes.int64)[0]

    def at(self, index: Any) -> Any:
        start, _, step = self.bounds
        return cast(start + index * step, self.dtype)

    def span(self, start: Any, stop: Any) -> Any:
        first, _, step = self.bounds
        return cast(tensor_range(first + start * step, first + stop * step, step), self.dtype)

    def elements(self) -> Iterator[Any]:
        for number in range(*map(int, self.bounds)):
            yield convert_to_tensor(number, self.dtype)


class Single(Plan):
    """One element."""

    indexed = True

    def __init__(self, element: Any) -> None:
        self.element = as_element(element)
        self.spec = spec_of(self.element)

    def cardinality(self) -> Any:
        return 1

    def at(self, index: Any) -> Any:
        return self.element

    def elements(self) -> Iterator[Any]:
        yield self.element


class Slices(Plan):
    """The rows of tensors."""

    indexed = True

    def __init__(self, tensors: Any) -> None:
        self.tensors = as_element(tensors)
        self.spec = row_spec(spec_of(self.tensors))
        self.leaves = composites.flatten(self.tensors)
        if not self.leaves:
            raise ValueError("from_tensor_slices needs at least one tensor")
        lengths = {count for leaf in self.leaves if isinstance(count := number_of_rows(leaf), int)}
        if len(lengths) > 1:
            raise ValueError(f"Tensors of {sorted(lengths)} rows can't be sliced together.")
        self.length = lengths.pop() if lengths else None

    def cardinality(self) -> Any:
        return number_of_rows(self.leaves[0]) if self.length is None else self.length

    def at(self, index: Any) -> Any:
        return row(self.tensors, index)

    def span(self, start: Any, stop: Any) -> Any:
        if not all(map(has_spans, self.leaves)):
            return None
        return composites.map_structure(lambda leaf: leaf[start:stop], self.tensors)

    def elements(self) -> Iterator[Any]:
        for index in range(int(self.cardinality())):
            yield self.at(index)


class Generated(Plan):
    """What a Python generator function yields."""

    def __init__(self, generator: Callable[..., Any], arguments: tuple, spec: Any) -> None:
        self.generator = generator
        self.arguments = arguments
        self.spec = spec

    def elements(self) -> Iterator[Any]:
        for value in self.generator(*self.arguments):
            yield fitted(value, self.spec)


# --- transformations that keep elements countable ------------------------------------------------------------------


class Follower(Plan):
    """A plan that has the elements of its source, one for one, unless a subclass says otherwise."""

    def __init__(self, source: Plan) -> None:
        self.source = source
        self.spec = source.spec
        self.indexed = source.indexed

    def cardinality(self) -> Any:
        return self.source.cardinality()


class Mapped(Follower):
    """A function of each element."""

    def __init__(self, source: Plan, function: Callable[..., Any], spec: Any) -> None:
        super().__init__(source)
        self.function = function
        self.spec = spec

    def at(self, index: Any) -> Any:
        return as_element(call(self.function, self.source.at(index)))

    def elements(self) -> Iterator[Any]:
        for element in self.source.elements():
            yield as_element(call(self.function, element))


class Zipped(Plan):
    """Elements of several sources side by side, as long as all have one."""

    def __init__(self, sources: Any) -> None:
        self.sources = sources  # a structure of plans
        self.flat: list[Plan] = nest.flatten(sources)
        self.spec = self._packed(lambda plan: plan.spec)
        self.indexed = all(plan.indexed for plan in self.flat)

    def _packed(self, part: Callable[[Plan], Any]) -> Any:
        return nest.map_structure(part, self.sources)

    def cardinality(self) -> Any:
        counts = [plan.cardinality() for plan in self.flat]
        if any(isinstance(count, int) and count == UNKNOWN for count in counts):
            return UNKNOWN
        finite = [count for count in counts if not (isinstance(count, int) and count == INFINITE)]
        return least(finite) if finite else INFINITE

    def at(self, index: Any) -> Any:
        return self._packed(lambda plan: plan.at(index))

    def elements(self) -> Iterator[Any]:
        for parts in zip(*(plan.elements() for plan in self.flat)):
            rest = iter(parts)
            yield self._packed(lambda _, rest=rest: next(rest))  # type: ignore[misc]


class Enumerated(Follower):
    """Each element with its number."""

    def __init__(self, source: Plan, start: Any) -> None:
        super().__init__(source)
        self.start: Any = convert_to_tensor(start, dtypes.int64)
        self.spec = (TensorSpec((), dtypes.int64), source.spec)

    def at(self, index: Any) -> Any:
        return self.start + cast(index, dtypes.int64), self.source.at(index)

    def elements(self) -> Iterator[Any]:
        for number, element in enumerate(self.source.elements(), int(self.start)):
            yield convert_to_tensor(number, dtypes.int64), element


class Part(Follower):
    """The elements from the index ``skip`` on, ``take`` of them at most; all of them where it is None."""

    def __init__(self, source: Plan, skip: int = 0, take: int | None = None) -> None:
        super().__init__(source)
        self.skip = skip
        self.take = take

    def cardinality(self) -> Any:
        count = self.source.cardinality()
        if isinstance(count, int):
            if count == UNKNOWN:
                return UNKNOWN
            if count == INFINITE:
                return INFINITE if self.take is None else self.take
        left = greatest(count - self.skip, 0) if self.skip else count
        return left if self.take is None else least([left, self.take])

    def at(self, index: Any) -> Any:
        return self.source.at(index + self.skip if self.skip else index)

    def span(self, start: Any, stop: Any) -> Any:
        return self.source.span(start + self.skip, stop + self.skip)

    def elements(self) -> Iterator[Any]:
        end = None if self.take is None else self.skip + self.take
        return itertools.islice(self.source.elements(), self.skip, end)


class Repeated(Follower):
    """The source over and over: ``times``, or without end where it is None."""

    def __init__(self, source: Plan, times: int | None) -> None:
        super().__init__(source)
        self.times = times
        self.indexed = source.indexed and times is not None

    def cardinality(self) -> Any:
        count = self.source.cardinality()
        if isinstance(count, int) and count <= 0:
            return count
        return INFINITE if self.times is None else count * self.times

    def at(self, index: Any) -> Any:
        # An empty source has no element to ask for, but the loop over it is traced all the same.
        return self.source.at(index % greatest(self.source.cardinality(), 1))

    def elements(self) -> Iterator[Any]:
        for _ in itertools.count() if self.times is None else range(self.times):
            empty = True
            for element in self.source.elements():
                empty = False
                yield element
            if empty:
                return


class Batched(Follower):
    """``size`` elements at a time as one, with an axis in front; if ``ragged``, ragged where sizes are unknown."""

    def __init__(self, source: Plan, size: Any, drop_remainder: bool, ragged: bool = False) -> None:
        super().__init__(source)
        self.row_spec = composites.map_structure(ragged_spec_of_leaf, source.spec) if ragged else source.spec
        is_known = isinstance(size, int)  # otherwise a symbolic int64 scalar
        if is_known and size < 1:
            raise ValueError(f"batch_size must be at least 1, got {size}")
        self.size = size
        self.drop_remainder = drop_remainder
        self.spec = batched_spec(self.row_spec, size if drop_remainder and is_known else None)
        self.indexed = source.indexed and source.span(0, 1) is not None

    def cardinality(self) -> Any:
        count = self.source.cardinality()
        if isinstance(count, int) and count < 0:
            return count
        return (count if self.drop_remainder else count + self.size - 1) // self.size

    def at(self, index: Any) -> Any:
        start = index * self.size
        if not self.drop_remainder:
            return self.source.span(start, least([start + self.size, self.source.cardinality()]))
        batch = self.source.span(start, start + self.size)

        def known(leaf: Any, spec: Any) -> Any:
            return ensure_shape(leaf, spec.shape) if isinstance(spec, TensorSpec) else leaf

        return composites.map_structure(known, batch, self.spec)

    def elements(self) -> Iterator[Any]:
        source = self.source.elements()
        while rows := list(itertools.islice(source, self.size)):
            if len(rows) == self.size or not self.drop_remainder:
                yield stacked(rows, self.row_spec)


def least(counts: list[Any]) -> Any:
    """The smallest of some counts: an int if all of them are ints."""
    known = [count for count in counts if isinstance(count, int)]
    result: Any = min(known) if known else None
    for count in counts:
        if not isinstance(count, int):
            count = cast(count, dtypes.int64)
            result = count if result is None else minimum(count, result)
    return result


def greatest(count: Any, floor: int) -> Any:
    """A count, or the floor if that is larger."""
    return max(count, floor) if isinstance(count, int) else maximum(count, floor)
