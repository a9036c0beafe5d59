"""Lowers a fusion group as one loop nest.

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

import math
from collections.abc import Callable, Sequence
from typing import Any

from runtime.codegen import cost_model
from runtime.codegen.kernel.values import Array, Buffer, Dims, Scalar, Vector, product
from runtime.codegen.loops.access import Access, Loop
from runtime.codegen.loops.buffer_reuse import last_buffer
from runtime.codegen.loops.builder import KernelBuilder
from runtime.codegen.loops.concat_views import ConcatView, Parts, can_read, split
from runtime.codegen.loops.reduction_nest import lower_reductions
from runtime.codegen.loops.reductions import REDUCING
from runtime.codegen.passes.parallelize import is_costly
from runtime.codegen.symbolic.ranges import Atom
from runtime.graph.ir import Node, Value
from runtime.graph.passes import options
from runtime.kernel_ir import ir


def shown_shapes(low: KernelBuilder, *shapes: Dims) -> tuple[list[str], list[Atom]]:
    """Shapes as messages show them, and the numbers in them that are known only at a call: `[{0},4]`."""
    numbers: list[Atom] = []

    def shown(dim: Atom) -> str:
        static = low.static_size(dim)
        if static is not None:
            return str(static)
        if dim not in numbers:
            numbers.append(dim)
        return f"{{{numbers.index(dim)}}}"

    return [f"[{','.join(map(shown, shape))}]" for shape in shapes], numbers


def fail_unless_shapes_fit(
    low: KernelBuilder,
    wrong: ir.Expr,
    node: Node,
    shapes: Sequence[Dims],
    message: str = "Incompatible shapes: {} vs. {}",
) -> None:
    """Adds a check that fails where two shapes don't fit; the message shows both."""
    shown, numbers = shown_shapes(low, *shapes)
    label = node.op.label
    message = f"{message.format(*shown)} [Op:{label}]"
    low.fail_when(wrong, "InvalidArgumentError", message, node, numbers, label)


def broadcast_dims(
    low: KernelBuilder, a: Dims, b: Dims, node: Node, fail: Callable[[ir.Expr], None] | None = None
) -> Dims:
    """The dimensions of a broadcast, as atoms. Adds a run-time check if it isn't known that they fit: by `fail`, if
    given."""
    if a == b or not b:
        return a
    rank = max(len(a), len(b))
    left = (ir.ONE,) * (rank - len(a)) + a
    right = (ir.ONE,) * (rank - len(b)) + b
    fail = fail or (lambda wrong: fail_unless_shapes_fit(low, wrong, node, (a, b)))
    return tuple(_broadcast_dim(low, x, y, fail) for x, y in zip(left, right))


def _broadcast_dim(low: KernelBuilder, a: Atom, b: Atom, fail: Callable[[ir.Expr], None]) -> Atom:
    if a == b or b == ir.ONE:
        return a
    if a == ir.ONE:
        return b
    if low.shape_env.are_equal(a, b):
        return a
    for scope in low.broadcasts:
        if (a, b) in scope:
            found: Atom = scope[a, b]
            return found
    known = set(low.static.values())
    if a in known or b in known:
        fixed, other = (a, b) if a in known else (b, a)
        fail(ir.both(other.compare("!=", fixed), other.compare("!=", 1)))
        both: Atom = fixed
    else:
        fail(ir.both(a.compare("!=", b), a.compare("!=", 1), b.compare("!=", 1)))
        both = low.assign(a.compare("==", 1).choose(b, a), "n")
    low.broadcasts[-1][a, b] = low.broadcasts[-1][b, a] = both
    return both


class Nest:
    """One fusion group while it is lowered."""

    def __init__(self, low: KernelBuilder, group: Any) -> None:
        self.low = low
        self.group = group
        self.dims: Dims = group.dims
        self.elements: dict[Value, ir.Expr] = {}
        self.offsets: dict[ir.Expr, ir.Var] = {}
        self.accesses: dict[Value, Access] = {}
        self.views: dict[Value, ConcatView] = {}
        self.parts: Parts | None = None
        self.loops: list[Loop] = []

    # --- planning ------------------------------------------------------------------------------------------------

    def lower(self) -> None:
        low = self.low
        reductions = [n for n in self.group.nodes if n.op.name in REDUCING]
        stored = [n for n in self.group.nodes if n not in reductions and self._is_needed(n.outputs[0])]
        self._read_all()
        rematerialized = [n for n in stored if reductions and self._is_rematerialized(n)]
        stored = [n for n in stored if n not in rematerialized]
        self.plan_loops()
        last = None if reductions or self.views else last_buffer(self)
        buffers = {n: last if last and n is self.group.nodes[-1] else self.new_buffer(n, self.dims) for n in stored}
        targets = {n: Array(buffer, self.dims) for n, buffer in buffers.items()}
        if reductions:
            lower_reductions(self, reductions, targets)
        else:
            self._add_elements(targets)
        low.fusion.literals = {}
        for node, array in targets.items():
            low.define(node.outputs[0], array)
        for node in rematerialized:
            low.fusion.rematerialize(node, self.dims)

    def lower_into(self, value: Value, place: Array) -> None:
        """Lowers an elementwise group of which only `value` is needed, and stores it in the elements of `place`."""
        self._read_all()
        target = Array(place.buffer, self.dims, place.strides, place.offset, whole=False)
        self.accesses[value] = Access(self.low, target, self.dims)
        self.plan_loops()
        del self.accesses[value]
        self._add_elements({value.node: target})  # type: ignore[dict-item]
        self.low.fusion.literals = {}

    def _read_all(self) -> None:
        for node in self.group.nodes:
            for value in node.inputs:
                if value not in self.group.members:
                    self._read(value)
        self.parts = split(self, self.views) if self.views else None
        if self.views and self.parts is None:
            values, self.views = list(self.views), {}
            for value in values:
                self.low.ref(value)
                self._read(value)

    def _add_elements(self, targets: dict[Node, Array]) -> None:
        self.lower_nest(self.loops, lambda: self.lower_body(targets, {}))

    def new_buffer(self, node: Node, dims: Dims) -> Buffer:
        value = node.outputs[0]
        return self.low.new_buffer(product(dims), value.dtype, value.name)

    def _is_needed(self, value: Value) -> bool:
        region = self.low.region
        inside = set(self.group.nodes)
        return value in region.outputs or any(u not in inside and u in region.live for u in region.users.get(value, ()))

    def _is_rematerialized(self, node: Node) -> bool:
        """Whether later nests recompute the value instead of loading it: it is cheap, and reads one array of the nest's
        size and values of its rows. (Beside functions like exp a store costs nothing, and it brings the memory of the
        result into the cache.)"""
        value, low = node.outputs[0], self.low
        if not node.op.is_light or not value.dtype.is_floating or value in low.region.outputs:
            return False
        if not options.get("remapping") or len(self.dims) - 1 not in (self.group.axes or ()):
            return False
        if is_costly(self.group.nodes) or any(v in self.group.members or v in self.views for v in node.inputs):
            return False
        large = [v for v in node.inputs if v in self.accesses and self.accesses[v].ref.dims == self.dims]
        users = low.region.users.get(value, ())
        return len(large) == 1 and all(user.op.is_elementwise or user.op.name in REDUCING for user in users)

    def _read(self, value: Value) -> None:
        if value in self.accesses or value in self.elements or value in self.views:
            return
        found = self.low.region.env[value]
        if isinstance(found, ConcatView) and can_read(self, found):
            self.views[value] = found
            return
        ref = self.low.ref(value)
        if isinstance(ref, Scalar):
            self.elements[value] = self.low.scalar_name(value)
            return
        if isinstance(ref, Vector):
            ref = self.low.array(value)
        self.accesses[value] = Access(self.low, ref, self.dims)

    def plan_loops(self) -> None:
        if self.parts is not None:
            self.loops = self.parts.loops()
            return
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
            if loop.size != ir.ONE:
                loop.index = self.low.index_name(depth)
                depth += 1
                loop.size = self.low.product([self.dims[axis] for axis in loop.axes])
        self._write_out_short_rows(depth)

    def _write_out_short_rows(self, running: int) -> None:
        """Writes the length of short rows as a literal into a large nest, or into one in a loop.

        LLVM then packs several very short rows into a vector, and chooses fitting vectors for the others, without a
        remainder loop (see `llvm/statements.py`). That takes half of the time or less.
        """
        last = self.loops[-1] if self.loops else None
        if running < 2 or last is None or not last.runs:
            return
        large = self.low.is_large(self.group.nodes)
        if not (self.low.region.in_loop or large):
            return
        sizes = [(self.dims[axis], self._known_size(axis)) for axis in last.axes]  # two may have one name
        count = math.prod(size for _, size in sizes)
        if 0 < count <= (cost_model.SHORT_ROW_IN_LARGE_NEST if large else cost_model.SHORT_ROW_IN_LOOP):
            last.size = ir.as_expr(count)
            self.low.fusion.literals = {atom: ir.as_expr(size) for atom, size in sizes}

    def _known_size(self, axis: int) -> int:
        return next(
            (size for size, atom in self.low.static.items() if atom == self.dims[axis]),
            cost_model.SHORT_ROW_IN_LARGE_NEST + 1,
        )

    # --- lowering ------------------------------------------------------------------------------------------------

    def lower_nest(self, loops: Sequence[Loop], body: Callable[[], None]) -> None:
        """Lowers loops that contain nothing else of this group."""
        if self.parts is not None:
            self.parts.lower(loops, body, self.low.is_large(self.group.nodes))
            return
        running = [loop for loop in loops if loop.runs]
        if not running:
            body()
            return
        with self.low.nested() as block:
            self.lower_loops(running[1:], body)
        assert isinstance(running[0].index, ir.Var)
        self.low.nest(running[0].index, running[0].size, block, self.low.is_large(self.group.nodes))

    def lower_loops(self, loops: Sequence[Loop], body: Callable[[], None]) -> None:
        if self.parts is not None:
            self.parts.lower(loops, body)
            return
        running = [loop for loop in loops if loop.runs]
        if not running:
            body()
            return
        head, rest = running[0], running[1:]
        with self.low.nested() as block:
            self.lower_loops(rest, body)
        self.low.loop(head.index, head.range, block)

    def name_offset(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, (ir.Var, ir.Const)):
            return expr
        name = self.offsets.get(expr)
        if name is None:
            name = self.offsets[expr] = self.low.assign(expr, "at")
        return name

    def lower_body(self, targets: dict[Node, Array], totals: dict[Node, Callable[[ir.Expr], None]]) -> None:
        self.offsets = {}
        for node in self.group.nodes:
            if node in totals:
                totals[node](self._named(node.inputs[0]))
                continue
            expr = self._expression(node)
            value = node.outputs[0]
            if node in targets:
                if not isinstance(expr, ir.Var) and self.low.region.uses[value] > 1:
                    expr = self.low.assign(expr, f"{value.name or 'v'}_{self._suffix()}")
                place = Access(self.low, targets[node], self.dims).offset(self.loops, self.name_offset)
                self.low.add(ir.store(targets[node].buffer.variable, place, expr))
            elif self.low.region.uses[value] > 1 or len(ir.expressions(expr)) > cost_model.NEST_EXPRESSION_SIZE:
                expr = self.low.assign(expr, f"{value.name or 'v'}_{self._suffix()}")
            self.elements[value] = expr

    def _suffix(self) -> str:
        return next((loop.index.name for loop in reversed(self.loops) if isinstance(loop.index, ir.Var)), "0")

    def _operand(self, value: Value) -> ir.Expr:
        expr = self.elements.get(value)
        if expr is None:
            expr = self.accesses[value].element(self.loops, self.name_offset)
            users = [u for u in self.low.region.users[value] if u in self.group.nodes]
            uses = sum(u.inputs.count(value) for u in users)
            if uses > 1 and not isinstance(expr, ir.Var):
                ref = self.accesses[value].ref
                base = ref.buffer.name if isinstance(ref, Array) else "v"
                expr = self.low.assign(expr, f"{base.removesuffix('_flat')}_{self._suffix()}")
            self.elements[value] = expr
        return expr

    def _named(self, value: Value) -> ir.Expr:
        expr = self._operand(value)
        if not isinstance(expr, ir.Var):
            expr = self.elements[value] = self.low.assign(expr, f"v_{self._suffix()}")
        return expr

    def _expression(self, node: Node) -> ir.Expr:
        low = self.low
        if node.outputs[0].dtype.is_integer:
            low.check_operands(node, self._named)
        found: ir.Expr = low.expression(node, [self._operand(v) for v in node.inputs])
        return found
