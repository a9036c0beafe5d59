"""Finds the arrays carried by loops whose sizes change from trip to trip, before the loops are lowered.

    %a = while(%a0) body(%a): %b = concat(%a, %x)       a = a0; n = n0
                                                 →      while ...:
                                                            b = (n + m elements)
                                                            a = b; n = n + m

Lowering assumes that the sizes of carries don't change, and lowers a loop again where a size does. In a nest, the
innermost loop would be lowered once for each loop around it. Carries that are found here are lowered correctly at once.
A carry is found only if its size certainly changes; where that depends on arithmetic with sizes, lowering finds out.

Each loop and branch is analysed once, whatever surrounds it. The sizes of its inputs are symbols. A result has the size
of an input, a new size, or an unknown one.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.dataclass import dataclass
from runtime.graph.ir import Graph, Node, Value
from runtime.types import TensorType


@dataclass(frozen=True)
class Input:
    """The size of an input of the region."""

    index: int
    axis: int


@dataclass(frozen=True)
class Longer:
    """More than the size of an input."""

    size: Size


class New:
    """A size that is computed in the region, from what isn't known before it runs."""


# A number that tracing knew, or one of these; None where it may be anything.
Size = int | Input | Longer | New | None
Sizes = tuple[Size, ...] | None  # None: of an unknown rank, or no array


class VaryingCarries:
    """The carries of the loops of one program whose sizes change from trip to trip."""

    def __init__(self) -> None:
        self._found: dict[Node, set[int]] = {}
        self._kept: dict[Node, set[int]] = {}

    def of(self, loop: Node) -> set[int]:
        """The positions of a loop's carries that were found. Lowering adds those that it finds."""
        if loop not in self._found:
            self._look_at(loop)
        return self._found[loop]

    def _look_at(self, loop: Node) -> None:
        body, count = loop.regions[1], loop.attrs["carries"]
        inputs = [_named(value, index) for index, value in enumerate(body.inputs)]
        outputs = list(zip(self._outputs(body, inputs)[:count], inputs))
        found = {k for k, (after, before) in enumerate(outputs) if _differ(after, before)}
        # A carry that takes over the size of such a carry is one, too.
        waiting = list(found)
        while waiting:
            source = waiting.pop()
            for k, (after, _) in enumerate(outputs):
                if k not in found and any(type(size) is Input and size.index == source for size in after or ()):
                    found.add(k)
                    waiting.append(k)
        self._found[loop] = found
        self._kept[loop] = {k for k, (after, before) in enumerate(outputs) if after is not None and after == before}

    def _outputs(self, graph: Graph, inputs: Sequence[Sizes]) -> list[Sizes]:
        """The sizes of a graph's outputs."""
        known = dict(zip(graph.inputs, inputs))
        numbers: dict[Value, Size] = {}  # scalars that are sizes
        for node in graph.nodes:
            operands = [known.get(each) for each in node.inputs]
            results = list(self._results(node, operands, [numbers.get(each) for each in node.inputs]))
            results += [None] * (len(node.outputs) - len(results))
            for value, sizes in zip(node.outputs, results):
                known[value] = _with_static(value, sizes)
                if known[value] == ():
                    numbers[value] = _number(node, operands, [numbers.get(each) for each in node.inputs])
        return [known.get(value) for value in graph.outputs]

    def _results(self, node: Node, operands: Sequence[Sizes], numbers: Sequence[Size]) -> Sequence[Sizes]:
        """The sizes of a node's results, as far as something is known of them."""
        name = node.op.name
        if name == "while":
            return self._after_loop(node, operands)
        if name == "cond":
            regions = [self._outputs(region, operands[1:]) for region in node.regions]
            return [_chosen(*pair) for pair in zip(*regions)]
        if name == "assign":
            return [operands[1]]
        if name == "array_write":
            return [None if node.attrs["fixed"] or operands[2] is None else (New(), *operands[2])]
        if node.op.is_update:
            return [operands[0]]
        if name == "resize_rows" and operands[0]:
            count, rows = numbers[1], operands[0][0]
            is_known = type(count) is New or count == rows or not node.attrs["within"]
            return [(count if is_known else None, *operands[0][1:])]
        if name == "strided_slice":
            return [_sliced(operands[0], node.attrs["spec"], numbers[1:])]
        if name == "stack_pop":
            return [None, _new(node.outputs[1])]
        if name == "concat":
            return [_joined(operands, node.attrs["axis"])]
        return [_broadcast(operands)] if node.op.is_elementwise else []

    def _after_loop(self, loop: Node, operands: Sequence[Sizes]) -> list[Sizes]:
        found = self.of(loop)
        return [
            _new(value) if k in found else operands[k] if k in self._kept[loop] else None
            for k, value in enumerate(loop.outputs)
        ]


def _shape(value: Value) -> Sequence[int | None] | None:
    return value.type.shape if isinstance(value.type, TensorType) else None


def _named(value: Value, index: int) -> Sizes:
    shape = _shape(value)
    return None if shape is None else tuple([Input(index, k) if size is None else size for k, size in enumerate(shape)])


def _new(value: Value) -> Sizes:
    shape = _shape(value)
    return None if shape is None else tuple([New() if size is None else size for size in shape])


def _with_static(value: Value, sizes: Sizes) -> Sizes:
    """The sizes with those that tracing knew."""
    shape = _shape(value)
    if shape is None:
        return None
    if sizes is None or len(sizes) != len(shape):
        return tuple(shape)
    return tuple([size if known is None else known for known, size in zip(shape, sizes)])


def _differ(after: Sizes, before: Sizes) -> bool:
    """Whether a carry surely has other sizes after a trip than the names that it had before."""
    pairs = [] if after is None or before is None or len(after) != len(before) else zip(after, before)
    return any(type(b) is Input and (type(a) is New or a == Longer(b)) for a, b in pairs)


def _chosen(one: Sizes, other: Sizes) -> Sizes:
    """The sizes of what a branch chooses."""
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple([_either(*pair) for pair in zip(one, other)])


def _either(one: Size, other: Size) -> Size:
    if one is other or one == other:
        return one
    if one is None or other is None:
        return None
    # Two symbols may stand for one size; a new size equals no other.
    return New() if New in (type(one), type(other)) or Longer(one) == other or Longer(other) == one else None


def _number(node: Node, operands: Sequence[Sizes], numbers: Sequence[Size]) -> Size:
    """The size that a scalar is, if that is known."""
    name = node.op.arithmetic
    if name == "dim":
        return None if operands[0] is None else operands[0][node.attrs["axis"]]
    if name == "constant":
        value = node.attrs["value"].array
        return int(value) if value.dtype.kind == "i" else None
    if name == "stack_pop":
        return New()
    if name in ("add", "subtract"):
        # A new size and a constant or an input's size give a new size; two new sizes may give any.
        kinds = {type(each) for each in numbers}
        return New() if New in kinds and kinds & {int, Input} else None
    return numbers[0] if name == "cast" else None


def _sliced(sizes: Sizes, spec: Sequence[tuple], bounds: Sequence[Size]) -> Sizes:
    """The sizes of a part of an array: a new one where it ends at one."""
    if sizes is None or any(kind not in ("slice", "index") for kind, *_ in spec):
        return None
    found: list[Size] = []
    remaining = iter(bounds)
    for size, (kind, *places) in zip(sizes, spec):
        given = [next(remaining, None) if place == "?" else place for place in places]
        if kind == "slice":
            start, stop, step = given
            is_head = start in (None, 0) and step in (None, 1)
            whole = size if is_head and stop is None else None
            found.append(stop if is_head and type(stop) is New else whole)
    return (*found, *sizes[len(spec) :])


def _joined(parts: Sequence[Sizes], axis: int) -> Sizes:
    first = parts[0]
    if first is None:
        return None
    lengths = [None if part is None else part[axis] for part in parts]
    rest = [size for size in lengths if size != 0]
    named = [size for size in rest if type(size) is Input]
    total: Size = None
    if len(rest) == 1:
        total = rest[0]
    elif any(type(size) is New for size in rest):
        total = New()
    elif named:
        total = Longer(named[0])
    return (*first[:axis], total, *first[axis + 1 :])


def _broadcast(operands: Sequence[Sizes]) -> Sizes:
    """The sizes of an elementwise result: those that the operands share, apart from ones that broadcast."""
    known = [each for each in operands if each is not None]
    if not known or len(known) < len(operands):
        return None
    rank = max(map(len, known))
    padded = [(1,) * (rank - len(each)) + each for each in known]
    found: list[Size] = []
    for sizes in zip(*padded):
        rest = [size for size in sizes if size != 1]
        found.append(1 if not rest else rest[0] if all(size is rest[0] or size == rest[0] for size in rest) else None)
    return tuple(found)
