"""Prints a fusion group as one loop nest.

    group over (n, m):  %a = add(%x[n, m], %b[m]);  %s = reduce_sum(%a, axis=1)

        s = np.empty(n, np.float32)
        for i in range(n):
            total = 0.0
            for j in range(m):
                total = lib.add(total, x[i * m + j] + b[j])
            s[i] = np.float32(total)

Neighbouring dimensions that every operand walks through in memory order (or doesn't depend on) become one loop:
operands of one shape give a single flat loop. A dimension that may be 1 or n at run time gets a step of 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.codegen import cpu
from runtime.codegen.inplace import last_buffer
from runtime.codegen.reductions import REDUCTIONS, SHORT, accumulator, result
from runtime.codegen.refs import Array, Buffer, Dims, Scalar, Spread, Vector, Virtual, product
from runtime.codegen.rows import place
from runtime.codegen.threads import is_large
from runtime.graph.ir import Node, Value
from runtime.shapes import element_count
from runtime.types import TensorType

_INLINE_LIMIT = 72


@dataclass
class Loop:
    """One printed loop over the neighbouring dimensions `axes`."""

    axes: tuple[int, ...]
    size: str
    reduced: bool
    index: str = "0"


def broadcast_dims(low: Any, a: Dims, b: Dims, node: Node) -> Dims:
    """The atoms of a broadcast; prints a run-time check where dimensions aren't known to fit."""
    if a == b or not b:
        return a
    rank = max(len(a), len(b))
    left = ("1",) * (rank - len(a)) + a
    right = ("1",) * (rank - len(b)) + b
    return tuple(_broadcast_dim(low, x, y, node) for x, y in zip(left, right))


def _broadcast_dim(low: Any, a: str, b: str, node: Node) -> str:
    if a == b or b == "1":
        return a
    if a == "1":
        return b
    for scope in low.broadcasts:
        if (a, b) in scope:
            return scope[a, b]
    known = set(low.static.values())
    message = "Incompatible shapes: dimensions {0} and {1} don't broadcast " + f"[Op:{node.op.label}]"
    if a in known or b in known:
        fixed, other = (a, b) if a in known else (b, a)
        low.fail_when(
            f"{other} != {fixed} and {other} != 1", "InvalidArgumentError", message, node, (a, b), node.op.label
        )
        both = fixed
    else:
        low.fail_when(
            f"{a} != {b} and {a} != 1 and {b} != 1", "InvalidArgumentError", message, node, (a, b), node.op.label
        )
        both = low.assign(f"{b} if {a} == 1 else {a}", "n")
    low.broadcasts[-1][a, b] = low.broadcasts[-1][b, a] = both
    return both


class Access:
    """How a nest over `dims` reads one operand."""

    def __init__(self, low: Any, ref: Any, dims: Dims) -> None:
        self.low = low
        self.ref = ref = ref.source if isinstance(ref, Spread) else ref
        self.lead = len(dims) - len(ref.dims)
        own = ("1",) * self.lead + tuple(ref.dims)
        # full: walks with the nest; one: stays; step: decided at run time
        self.kinds = ["full" if a == b else "one" if a == "1" else "step" for a, b in zip(own, dims)]
        self.own = own
        self.steps = {
            axis: low.assign(f"0 if {own[axis]} == 1 else 1", "step")
            for axis, kind in enumerate(self.kinds)
            if kind == "step"
        }
        if isinstance(ref, Virtual) and ref.uniform:
            self.kinds = ["one"] * len(dims)
            self.steps = {}
        self.scattered = (isinstance(ref, Virtual) and not ref.uniform) or (
            isinstance(ref, Array) and ref.strides is not None
        )

    def may_merge(self, axis: int) -> bool:
        """Whether dimensions `axis` and `axis + 1` can be one loop."""
        a, b = self.kinds[axis], self.kinds[axis + 1]
        return a == b == "one" or (a == b == "full" and not self.scattered)

    def _index(self, loop: Loop, axis: int) -> str:
        kind = self.kinds[axis]
        if kind == "one" or loop.index == "0":
            return "0"
        return loop.index if kind == "full" else f"{loop.index} * {self.steps[axis]}"

    def text(self, loops: Sequence[Loop], name_offset: Callable[[str], str]) -> str:
        """The operand's element in the innermost loop."""
        ref = self.ref
        if isinstance(ref, Virtual):
            by_axis = {axis: loop for loop in loops for axis in loop.axes}
            return ref.element([self._index(by_axis[axis], axis) for axis in range(self.lead, len(self.kinds))])
        return f"{ref.buffer.name}[{self.offset(loops, name_offset)}]"

    def offset(self, loops: Sequence[Loop], name_offset: Callable[[str], str]) -> str:
        """Where the element lies in the flat buffer."""
        ref = self.ref
        if ref.strides is not None:
            terms = [] if ref.offset == "0" else [ref.offset]
            for loop in loops:
                (axis,) = loop.axes
                index = self._index(loop, axis)
                stride = ref.strides[axis - self.lead] if axis >= self.lead else "0"
                if index != "0" and stride != "0":
                    terms.append(index if stride == "1" else f"{index} * {stride}")
            return name_offset(" + ".join(terms) or "0")
        text = "0"
        for loop in loops:
            index = self._index(loop, loop.axes[0])
            size = product([self.own[axis] for axis in loop.axes])
            if text != "0" and size != "1":
                text = f"{_closed(text)} * {_closed(size)}"
            if index != "0":
                text = index if text == "0" else f"{text} + {index}"
        if ref.offset != "0":
            text = ref.offset if text == "0" else f"{ref.offset} + {text}"
        return name_offset(text)


def _closed(text: str) -> str:
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _is_short(node: Node, axes: Sequence[int]) -> bool:
    type_ = node.inputs[0].type
    assert isinstance(type_, TensorType)
    assert type_.shape is not None
    count = element_count(tuple(type_.shape[axis] for axis in axes))
    return count is not None and count <= SHORT


class Nest:
    """One fusion group on its way into text."""

    def __init__(self, low: Any, group: Any) -> None:
        self.low = low
        self.group = group
        self.dims: Dims = group.dims
        self.texts: dict[Value, str] = {}
        self.offsets: dict[str, str] = {}
        self.accesses: dict[Value, Access] = {}
        self.loops: list[Loop] = []
        self.short = False  # reductions here go over rows that are short

    # --- planning ------------------------------------------------------------------------------------------------

    def print(self) -> None:
        low = self.low
        reductions = [n for n in self.group.nodes if n.op.name in REDUCTIONS]
        stored = [n for n in self.group.nodes if n not in reductions and self._is_needed(n.outputs[0])]
        for node in self.group.nodes:
            for value in node.inputs:
                if value not in self.group.members:
                    self._read(value)
        self.plan_loops()
        last = None if reductions else last_buffer(self)
        buffers = {n: last if last and n is self.group.nodes[-1] else self._new_buffer(n, self.dims) for n in stored}
        if reductions:
            self._print_reductions(reductions, buffers)
        else:
            self._print_nest(self.loops, lambda: self._print_body(buffers, {}))
        for node, buffer in buffers.items():
            low.define(node.outputs[0], Array(buffer, self.dims))

    def _new_buffer(self, node: Node, dims: Dims) -> Buffer:
        value = node.outputs[0]
        return self.low.new_buffer(product(dims), value.dtype, value.name)

    def _is_needed(self, value: Value) -> bool:
        region = self.low.region
        inside = set(self.group.nodes)
        return value in region.outputs or any(u not in inside and u in region.live for u in region.users.get(value, ()))

    def _read(self, value: Value) -> None:
        if value in self.accesses or value in self.texts:
            return
        ref = self.low.ref(value)
        if isinstance(ref, Scalar):
            self.texts[value] = self.low.scalar_name(value)
            return
        if isinstance(ref, Vector):
            ref = self.low.array(value)
        self.accesses[value] = Access(self.low, ref, self.dims)

    def plan_loops(self) -> None:
        axes = self.group.axes or ()
        runs: list[list[int]] = []
        for axis in range(len(self.dims)):
            if (
                runs
                and (axis in axes) == (axis - 1 in axes)
                and all(access.may_merge(axis - 1) for access in self.accesses.values())
            ):
                runs[-1].append(axis)
            else:
                runs.append([axis])
        for run in runs:
            size = product([self.dims[a] for a in run])
            self.loops.append(Loop(tuple(run), size, run[0] in axes))
        depth = 0
        for loop in self.loops:
            if loop.size != "1":
                loop.index = self.low.index_name(depth)
                depth += 1
                if not loop.size.isidentifier():
                    loop.size = self.low.assign(loop.size, "n") if not loop.size.isdigit() else loop.size

    # --- printing ------------------------------------------------------------------------------------------------

    def _print_nest(self, loops: Sequence[Loop], body: Callable[[], None]) -> None:
        """Prints loops that nothing else of this group is inside of."""
        running = [loop for loop in loops if loop.index != "0"]
        if not running:
            body()
            return
        with self.low.nested() as block:
            self.print_loops(running[1:], body)
        place(self.low, running[0].index, running[0].size, block, is_large(self.group.nodes))

    def print_loops(self, loops: Sequence[Loop], body: Callable[[], None]) -> None:
        running = [loop for loop in loops if loop.index != "0"]
        if not running:
            body()
            return
        head, rest = running[0], running[1:]
        with self.low.nested() as block:
            self.print_loops(rest, body)
        self.low.line(f"for {head.index} in range({head.size}):")
        self.low.block.append(block or ["pass"])

    def name_offset(self, text: str) -> str:
        if text.isidentifier() or text.isdigit():
            return text
        name = self.offsets.get(text)
        if name is None:
            name = self.offsets[text] = self.low.assign(text, "at")
        return name

    def _print_body(self, buffers: dict[Node, Buffer], totals: dict[Node, Callable[[str], None]]) -> None:
        self.offsets = {}
        for node in self.group.nodes:
            if node in totals:
                totals[node](self._named(node.inputs[0]))
                continue
            text = self._expression(node)
            value = node.outputs[0]
            if node in buffers:
                if not text.isidentifier() and self.low.region.uses[value] > 1:
                    text = self.low.assign(text, f"{value.name or 'v'}_{self._suffix()}")
                whole = Access(self.low, Array(buffers[node], self.dims), self.dims)
                self.low.line(f"{buffers[node].name}[{whole.offset(self.loops, self.name_offset)}] = {cpu.strip(text)}")
            elif self.low.region.uses[value] > 1 or len(text) > _INLINE_LIMIT:
                text = self.low.assign(text, f"{value.name or 'v'}_{self._suffix()}")
            self.texts[value] = text

    def _suffix(self) -> str:
        return next((loop.index for loop in reversed(self.loops) if loop.index != "0"), "0")

    def _operand(self, value: Value) -> str:
        text = self.texts.get(value)
        if text is None:
            text = self.accesses[value].text(self.loops, self.name_offset)
            users = [u for u in self.low.region.users[value] if u in self.group.nodes]
            uses = sum(u.inputs.count(value) for u in users)
            if uses > 1 and not text.isidentifier():
                ref = self.accesses[value].ref
                base = ref.buffer.name if isinstance(ref, Array) else "v"
                text = self.low.assign(text, f"{base.removesuffix('_flat')}_{self._suffix()}")
            self.texts[value] = text
        return text

    def _named(self, value: Value) -> str:
        text = self._operand(value)
        if not text.isidentifier():
            text = self.texts[value] = self.low.assign(text, f"v_{self._suffix()}")
        return text

    def _expression(self, node: Node) -> str:
        low = self.low
        if node.outputs[0].dtype.is_integer:
            low.check_operands(node, self._named)
        return low.expression(node, [self._operand(v) for v in node.inputs])

    # --- reductions ----------------------------------------------------------------------------------------------

    def _print_reductions(self, nodes: Sequence[Node], buffers: dict[Node, Buffer]) -> None:
        running = [loop for loop in self.loops if loop.index != "0"]
        inner = len(running)
        while inner and running[inner - 1].reduced:
            inner -= 1
        if any(loop.reduced for loop in running[:inner]):
            self._reduce_into_buffers(nodes, buffers)
            return
        outer, inside = running[:inner], running[inner:]
        # Not for totals: their count often has a batch in it, and a new batch size must not need another kernel.
        self.short = bool(outer) and _is_short(nodes[0], self.group.axes)
        if not outer:
            totals = self._accumulate(nodes, inside, buffers)
            for node in nodes:
                self._define_single(node, totals[node])
            return
        out_dims = self._kept_dims()
        outs = {n: self._new_buffer(n, out_dims) for n in nodes}

        def body() -> None:
            totals = self._accumulate(nodes, inside, buffers)
            at = Access(self.low, Array(Buffer("", nodes[0].outputs[0].dtype), out_dims), self.dims)
            at.kinds = ["one" if loop_axis in self.group.axes else "full" for loop_axis in range(len(self.dims))]
            self.offsets = {}
            offset = at.offset(outer, self.name_offset)
            for node in nodes:
                self.low.line(f"{outs[node].name}[{offset}] = {cpu.strip(self._result(node, totals[node]))}")

        self._check_means(nodes)
        self._print_nest(outer, body)
        for node in nodes:
            self._define_array(node, outs[node])

    def _kept_dims(self) -> Dims:
        """The dimensions with the reduced ones as 1."""
        return tuple("1" if axis in self.group.axes else d for axis, d in enumerate(self.dims))

    def _accumulate(
        self, nodes: Sequence[Node], inside: Sequence[Loop], buffers: dict[Node, Buffer]
    ) -> dict[Node, str]:
        totals = {}
        steps: dict[Node, Callable[[str], None]] = {}
        for node in nodes:
            reduction = REDUCTIONS[node.op.name]
            dtype = accumulator(reduction, node.inputs[0].dtype, self.short)
            start = cpu.literal(reduction.start(dtype), dtype)
            total = totals[node] = self.low.assign(
                start, node.outputs[0].name or node.op.name.removeprefix("reduce_").split("_")[0]
            )
            steps[node] = self._step(reduction, total, total, dtype)
        self.print_loops(inside, lambda: self._print_body(buffers, steps))
        return totals

    def _step(self, reduction: Any, target: str, total: str, dtype: Any) -> Callable[[str], None]:
        return lambda value: self.low.line(f"{target} = {cpu.strip(reduction.step(total, value, dtype))}")

    def _result(self, node: Node, total: str) -> str:
        count = product([self.dims[a] for a in self.group.axes])
        return result(REDUCTIONS[node.op.name], total, _closed(count), node.outputs[0].dtype, self.short)

    def _check_means(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node.op.name == "reduce_mean" and not node.outputs[0].dtype.is_floating:
                message = "Integer division by zero: the mean of no elements [Op:Mean]"
                self.low.fail_when(f"{product(self.dims)} == 0", "InvalidArgumentError", message, node, (), "Mean")

    def _define_single(self, node: Node, total: str) -> None:
        self._check_means([node])
        text = self._result(node, total)
        if not text.isidentifier():
            text = self.low.assign(text, node.outputs[0].name)
        output = node.outputs[0]
        if output.type.rank == 0:  # type: ignore[union-attr]
            self.low.define(output, Scalar(text, output.dtype))
        else:
            dims: Dims = ("1",) * (output.type.rank or 0)  # type: ignore[union-attr]
            self.low.define(output, Virtual(output.dtype, dims, lambda indices: text, uniform=True))

    def _define_array(self, node: Node, buffer: Buffer) -> None:
        self.low.define(node.outputs[0], Array(buffer, self.group.results[node]))

    def _reduce_into_buffers(self, nodes: Sequence[Node], buffers: dict[Node, Buffer]) -> None:
        """Reduced dimensions outside kept ones: whole rows are accumulated at once."""
        low = self.low
        out_dims = self._kept_dims()
        size = low.atom(product(out_dims))
        self._check_means(nodes)
        steps: dict[Node, Callable[[str], None]] = {}
        totals: dict[Node, Buffer] = {}
        for node in nodes:
            reduction = REDUCTIONS[node.op.name]
            dtype = accumulator(reduction, node.inputs[0].dtype)
            total = totals[node] = low.new_buffer(size, dtype, node.outputs[0].name)
            index = low.index_name(0)
            low.line(f"for {index} in range({size}):")
            low.block.append([f"{total.name}[{index}] = {cpu.literal(reduction.start(dtype), dtype)}"])
            access = Access(low, Array(total, out_dims), self.dims)
            access.kinds = ["one" if axis in self.group.axes else "full" for axis in range(len(self.dims))]
            steps[node] = self._row_step(reduction, total.name, access, dtype)
        self.print_loops(self.loops, lambda: self._print_body(buffers, steps))
        for node in nodes:
            dtype = node.outputs[0].dtype
            total = totals[node]
            text = self._result(node, f"{total.name}[i]")
            if text != f"{total.name}[i]":
                index = low.index_name(0)
                out = low.new_buffer(size, dtype, node.outputs[0].name)
                low.line(f"for {index} in range({size}):")
                low.block.append([f"{out.name}[{index}] = {cpu.strip(self._result(node, f'{total.name}[{index}]'))}"])
                total = out
            self._define_array(node, total)

    def _row_step(self, reduction: Any, buffer: str, access: Access, dtype: Any) -> Callable[[str], None]:
        def step(value: str) -> None:
            place = f"{buffer}[{access.offset(self.loops, self.name_offset)}]"
            self.low.line(f"{place} = {cpu.strip(reduction.step(place, value, dtype))}")

        return step
