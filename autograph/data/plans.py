"""How a dataset's elements come about: sources, and transformations that keep elements countable.

A plan gives its elements one by one to Python (`elements`). If it is `indexed` it also knows how many there are and
makes any one of them from its index alone (`cardinality`, `at`), so that a staged loop over it is an ordinary loop of
the program, which is compiled and differentiated like any other. If it is `in_blocks` it gives Python many elements at
a time (`blocks`), and if it is `by_index` any of them (`select`): see `blocks.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from autograph.data import blocks
from autograph.data.batching import Batching
from autograph.data.blocks import Blocks, Leaves
from autograph.data.elements import (
    as_element,
    batched_spec,
    call,
    fitter,
    row,
    row_spec,
    spec_of,
    stacker,
)  # fmt: skip
from autograph.data.none_values import NoneTensorSpec
from autograph.data.rows import has_spans, number_of_rows, ragged_spec_of_leaf, rows_between
from runtime import composites, dtypes, errors, nest
from runtime.context import ctx
from runtime.ops.arrays.creation import range as tensor_range
from runtime.ops.arrays.shape_ops import ensure_shape
from runtime.ops.arrays.shape_ops import shape as shape_of
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.arithmetic import maximum, minimum
from runtime.ops.elementwise.elementary import cast
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor

INFINITE = -1
UNKNOWN = -2


class Plan:
    """The elements of a dataset. Attributes: `spec`, their structure of specs; the others are explained above."""

    spec: Any
    indexed = False
    held: tuple[str, ...] = ()  # the attributes with structures of tensors or a `Seeds`, which a program may compute

    @property
    def by_index(self) -> bool:
        return False

    @property
    def in_blocks(self) -> bool:
        return self.by_index

    @property
    def is_stored(self) -> bool:
        """Whether the elements are there already, so that looking ahead costs nothing; only if `in_blocks`."""
        return self.in_blocks and all(plan.is_stored for plan in self.sources)

    @property
    def is_copied(self) -> bool:
        """Whether the elements only have to be copied from memory: nothing is computed, called or read."""
        return bool(self.sources) and all(plan.is_copied for plan in self.sources)

    @property
    def waits(self) -> bool:
        """Whether making elements may wait for something outside: the user's Python code, or files."""
        return any(plan.waits for plan in self.sources)

    @property
    def is_watched(self) -> bool:
        """Whether an open tape may follow gradients through the elements: then they are made by recorded ops."""
        return bool(ctx.recorders) and any(plan.is_watched for plan in self.sources)

    @property
    def sources(self) -> list[Plan]:
        """The plans that this one takes elements from."""
        return []

    @property
    def repeats_itself(self) -> bool:
        """Whether its repetition is a plan of its own in TensorFlow."""
        return False

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
        """The elements, eager, for one iteration of the dataset, which begins with this call."""
        raise NotImplementedError

    def pass_over(self) -> None:
        """Has the next iteration be the one after it: what is drawn anew for each is drawn."""
        for plan in self.sources:
            plan.pass_over()

    def select(self, which: Any) -> Leaves:
        """Some elements: those of a slice (start and stop) of indices, or of a vector of them; only if `by_index`."""
        raise NotImplementedError

    def blocks(self) -> Blocks:
        """The elements of one iteration, which begins with this call; only if `in_blocks`."""
        return blocks.Span(self.select, self.cardinality())


class Range(Plan):
    """The numbers of a range."""

    indexed = True
    is_copied = True
    held = ("bounds",)

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

    @property
    def by_index(self) -> bool:
        return all(isinstance(bound, EagerTensor) for bound in self.bounds)

    def select(self, which: Any) -> Leaves:
        start, _, step = map(int, self.bounds)
        places = np.arange(which.start, which.stop) if isinstance(which, slice) else which
        return [(start + places * step).astype(self.dtype._np)]

    def elements(self) -> Iterator[Any]:
        kind = self.dtype._np
        return (EagerTensor(np.int64(number).astype(kind), self.dtype) for number in range(*map(int, self.bounds)))


class Single(Plan):
    """One element."""

    indexed = True
    is_copied = True
    held = ("element",)

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
    is_copied = True
    held = ("tensors", "leaves")

    def __init__(self, tensors: Any) -> None:
        self.tensors = as_element(tensors)
        self.spec = row_spec(spec_of(self.tensors))
        self.leaves = [leaf for leaf in composites.flatten(self.tensors) if not isinstance(leaf, NoneTensorSpec)]
        if not self.leaves:
            raise ValueError("from_tensor_slices needs at least one tensor")
        lengths = {count for leaf in self.leaves if isinstance(count := number_of_rows(leaf), int)}
        if len(lengths) > 1:
            raise ValueError(f"from_tensor_slices needs tensors with equal numbers of rows, got {sorted(lengths)}.")
        self.length = lengths.pop() if lengths else None

    def cardinality(self) -> Any:
        return number_of_rows(self.leaves[0]) if self.length is None else self.length

    def at(self, index: Any) -> Any:
        return row(self.tensors, index)

    def span(self, start: Any, stop: Any) -> Any:
        if not all(map(has_spans, self.leaves)):
            return None
        return composites.map_structure(lambda leaf: rows_between(leaf, start, stop), self.tensors)

    @property
    def by_index(self) -> bool:
        return (
            self.length is not None
            and blocks.is_dense(self.spec)
            and all(isinstance(x, EagerTensor) for x in self.leaves)
        )

    def select(self, which: Any) -> Leaves:
        if isinstance(which, slice):
            return [leaf._array[which] for leaf in self.leaves]
        return [leaf._array.take(which, 0) for leaf in self.leaves]

    @property
    def is_watched(self) -> bool:
        return any(recorder.is_tracking(leaf) for recorder in ctx.recorders for leaf in self.leaves)

    def elements(self) -> Iterator[Any]:
        if not self.by_index or self.is_watched:
            return map(self.at, range(int(self.cardinality())))
        make = blocks.maker(self.spec)
        return map(make, zip(*[leaf._array for leaf in self.leaves]))


class Generated(Plan):
    """The elements that a Python generator function yields."""

    def __init__(self, generator: Callable[..., Any], arguments: tuple, spec: Any) -> None:
        self.generator = generator
        self.arguments = arguments
        self.spec = spec

    @property
    def waits(self) -> bool:
        return True

    def elements(self) -> Iterator[Any]:
        try:
            yield from map(fitter(self.spec), self.generator(*self.arguments))
        except errors.OpError:
            raise
        except TypeError as error:
            raise errors.GeneratorTypeError(f"{type(error).__name__}: {error}") from error
        except ValueError as error:
            raise errors.GeneratorValueError(f"{type(error).__name__}: {error}") from error


# --- transformations that keep elements countable ------------------------------------------------------------------


class OfFile(Plan):
    """A source that reads a file. The number of elements is known only at the end."""

    @property
    def waits(self) -> bool:
        return True


class Follower(Plan):
    """A plan that has the elements of its source, one for one, unless a subclass says otherwise."""

    def __init__(self, source: Plan) -> None:
        self.source = source
        self.spec = source.spec
        self.indexed = source.indexed

    def cardinality(self) -> Any:
        return self.source.cardinality()

    @property
    def sources(self) -> list[Plan]:
        return [self.source]


class Uncounted(Follower):
    """A plan with other elements than its source has: how many there are is known at the end."""

    def __init__(self, source: Plan) -> None:
        super().__init__(source)
        self.indexed = False

    def cardinality(self) -> Any:
        return UNKNOWN


class Same(Follower):
    """A plan that has the very elements of its source, whichever way they are asked for."""

    def at(self, index: Any) -> Any:
        return self.source.at(index)

    def span(self, start: Any, stop: Any) -> Any:
        return self.source.span(start, stop)

    @property
    def by_index(self) -> bool:
        return self.source.by_index

    @property
    def in_blocks(self) -> bool:
        return self.source.in_blocks

    def select(self, which: Any) -> Leaves:
        return self.source.select(which)

    def blocks(self) -> Blocks:
        return self.source.blocks()

    def elements(self) -> Iterator[Any]:
        return self.source.elements()


class WithOptions(Same):
    """The elements of a source, with options of the dataset."""

    def __init__(self, source: Plan, options: Any) -> None:
        super().__init__(source)
        self.options = options


class Described(Same):
    """The elements of a source under a less specific spec."""

    def __init__(self, source: Plan, spec: Any) -> None:
        super().__init__(source)
        self.spec = spec


class Calling(Follower):
    """A plan that calls a function of the program's for each element."""

    @property
    def batching(self) -> Batching:
        """The function for many elements."""
        raise NotImplementedError

    @property
    def is_stored(self) -> bool:
        return False

    @property
    def is_copied(self) -> bool:
        return False

    @property
    def waits(self) -> bool:
        return self.source.waits or self.batching.has_effects


class Mapped(Calling):
    """A function of each element."""

    def __init__(self, source: Plan, function: Callable[..., Any], spec: Any) -> None:
        super().__init__(source)
        self.function = function
        self.spec = spec
        self._batching: Batching | None = None
        # Iterators draw the same numbers each time (`Restarted`); the streams of a loop of the program would go on.
        if self.indexed and self.batching.draws and not self.batching.is_of_program:
            self.indexed = False

    @property
    def batching(self) -> Batching:
        """The function for many elements at once. It is made at the first use."""
        if self._batching is None:
            self._batching = Batching(self.function, self.source.spec, self.spec)
        return self._batching

    @property
    def by_index(self) -> bool:
        return self.source.by_index and self.batching.works and self.batching.pure

    @property
    def in_blocks(self) -> bool:
        return self.source.in_blocks and self.batching.works

    @property
    def is_watched(self) -> bool:
        return bool(ctx.recorders) and (self.source.is_watched or self.batching.is_watched)

    def select(self, which: Any) -> Leaves:
        return self.batching(self.source.select(which))

    def blocks(self) -> Blocks:
        return blocks.Changed(self.source.blocks(), self.batching)

    def made(self, element: Any) -> Any:
        """The result of the function for an element."""
        return as_element(call(self.function, element))

    def at(self, index: Any) -> Any:
        return self.made(self.source.at(index))

    def elements(self) -> Iterator[Any]:
        return map(self.made, self.source.elements())  # goes on behind an element that fails, as TensorFlow does


class Zipped(Plan):
    """Elements of several sources side by side, as long as all have one."""

    def __init__(self, sources: Any) -> None:
        self.structure = sources  # a structure of plans
        self.flat: list[Plan] = nest.flatten(sources)
        self.spec = self._packed(lambda plan: plan.spec)
        self.indexed = all(plan.indexed for plan in self.flat)

    def _packed(self, part: Callable[[Plan], Any]) -> Any:
        return nest.map_structure(part, self.structure)

    def cardinality(self) -> Any:
        counts = [plan.cardinality() for plan in self.flat]
        if any(isinstance(count, int) and count == UNKNOWN for count in counts):
            return UNKNOWN
        finite = [count for count in counts if not (isinstance(count, int) and count == INFINITE)]
        return least(finite) if finite else INFINITE

    def at(self, index: Any) -> Any:
        return self._packed(lambda plan: plan.at(index))

    @property
    def sources(self) -> list[Plan]:
        return self.flat

    @property
    def by_index(self) -> bool:
        return bool(self.flat) and all(plan.by_index for plan in self.flat)

    @property
    def in_blocks(self) -> bool:
        return bool(self.flat) and all(plan.in_blocks for plan in self.flat)

    def select(self, which: Any) -> Leaves:
        return [array for plan in self.flat for array in plan.select(which)]

    def blocks(self) -> Blocks:
        return blocks.Beside([plan.blocks() for plan in self.flat])

    def elements(self) -> Iterator[Any]:
        return map(nest.packer(self.structure), zip(*[plan.elements() for plan in self.flat]))


class Enumerated(Follower):
    """Each element with its number."""

    held = ("start",)

    def __init__(self, source: Plan, start: Any) -> None:
        super().__init__(source)
        self.start: Any = convert_to_tensor(start, dtypes.int64)
        self.spec = (TensorSpec((), dtypes.int64), source.spec)

    def at(self, index: Any) -> Any:
        return self.start + cast(index, dtypes.int64), self.source.at(index)

    @property
    def by_index(self) -> bool:
        return self.source.by_index and isinstance(self.start, EagerTensor)

    @property
    def in_blocks(self) -> bool:
        return self.source.in_blocks and isinstance(self.start, EagerTensor)

    def select(self, which: Any) -> Leaves:
        places = np.arange(which.start, which.stop) if isinstance(which, slice) else which
        return [int(self.start) + places, *self.source.select(which)]

    def blocks(self) -> Blocks:
        number = int(self.start)

        def numbered(leaves: Leaves) -> Leaves:
            nonlocal number
            first, number = number, number + len(leaves[0])
            return [np.arange(first, number), *leaves]

        return blocks.Changed(self.source.blocks(), numbered)

    def elements(self) -> Iterator[Any]:
        numbered = enumerate(self.source.elements(), int(self.start))
        return ((EagerTensor(np.int64(number), dtypes.int64), element) for number, element in numbered)


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

    @property
    def by_index(self) -> bool:
        return self.source.by_index

    @property
    def in_blocks(self) -> bool:
        return self.source.in_blocks

    def select(self, which: Any) -> Leaves:
        skipped = (
            slice(which.start + self.skip, which.stop + self.skip) if isinstance(which, slice) else which + self.skip
        )
        return self.source.select(skipped)

    def blocks(self) -> Blocks:
        return super().blocks() if self.by_index else blocks.Limited(self.source.blocks(), self.skip, self.take)

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

    @property
    def in_blocks(self) -> bool:
        return self.source.in_blocks and self.times != 0

    def blocks(self) -> Blocks:
        left = itertools.count() if self.times is None else iter(range(self.times))
        next(left)
        ending = iter([self._end])

        def following(given: int) -> Blocks | None:
            if given and next(left, None) is not None:
                return self.source.blocks()
            for end in ending if given else ():
                end()
            return None

        return blocks.Chained(self.source.blocks(), following)

    def elements(self) -> Iterator[Any]:
        return self._repeated(self.source.elements() if self.times else None)

    def _repeated(self, first: Iterator[Any] | None) -> Iterator[Any]:
        for _ in itertools.count() if self.times is None else range(self.times):
            empty = True
            for element in self.source.elements() if first is None else first:
                empty = False
                yield element
            if empty:
                return
            first = None
        self._end()

    def _end(self) -> None:
        """TensorFlow begins one more iteration behind the last, but for a shuffle that is repeated itself."""
        if not self.source.repeats_itself:
            self.source.pass_over()


class Batched(Follower):
    """``size`` elements at a time as one, with an axis in front; if ``ragged``, ragged where sizes are unknown."""

    def __init__(self, source: Plan, size: Any, drop_remainder: bool, ragged: bool = False) -> None:
        super().__init__(source)
        self.row_spec = composites.map_structure(ragged_spec_of_leaf, source.spec) if ragged else source.spec
        is_known = type(size) is int  # otherwise a symbolic int64 scalar, or what stands for one
        if isinstance(size, int) and size < 1:
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
        if self.source.in_blocks and not self.source.is_watched:
            return self._from_blocks(self.source.blocks())
        return self._from_elements(self.source.elements())

    def _from_blocks(self, source: Blocks) -> Iterator[Any]:
        make = blocks.maker(self.spec)
        found = self.size
        while found == self.size:
            leaves = source.take(self.size)
            found = len(leaves[0])
            if found == self.size or (found and not self.drop_remainder):
                yield make(leaves)

    def _from_elements(self, source: Iterator[Any]) -> Iterator[Any]:
        stack = stacker(self.row_spec)
        while rows := list(itertools.islice(source, self.size)):
            if len(rows) == self.size or not self.drop_remainder:
                yield stack(rows)


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
