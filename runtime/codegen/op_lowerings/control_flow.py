"""Lowerings of control flow and variable assignment.

    %i, %h = while(%i0, %h0) test(...) body(...)        i = i0
                                                        h = h0
                                                →       while i < n:
                                                            ...
                                                            h = a_1
                                                            i = i + 1

A loop's carries are variables. An array carry is a buffer variable and, if the loop may change the shape, variables for
the dimensions. Most carries whose shapes change are known in advance (`symbolic/varying_carries.py`); if another one is
found, the body is lowered again.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from runtime import dtypes
from runtime.codegen import cost_model
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.scalars import variable_of
from runtime.codegen.kernel.values import NO_VARIABLE, TOKEN, Array, Buffer, Dims, Scalar, StackRef, Vector, Virtual
from runtime.codegen.loops.scalarize import is_small, items, items_of, vector
from runtime.codegen.lower.induction_variables import Counter, counter_of
from runtime.codegen.lower.loop_stacks import check_stacks_before, stacks_of_one_scalar_a_trip
from runtime.codegen.lower.state import Lowering, emitter
from runtime.codegen.op_lowerings.effects import keep_in_step
from runtime.codegen.symbolic.carry_ranges import inside_branch, position_carries, ranges_of_carries
from runtime.codegen.symbolic.ranges import Atom, Range, known_range, limits, range_of, range_of_either
from runtime.dtypes import DType
from runtime.graph.ir import Graph, Node, Value
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import INT64
from runtime.types import StackType, TensorType, TokenType


@emitter("assign")
def _assign(low: Lowering, node: Node) -> None:
    low.define(node.outputs[0], low.ref(node.inputs[1]))


# --- cond ------------------------------------------------------------------------------------------------------------


@emitter("cond")
def _cond(low: Lowering, node: Node) -> None:
    predicate = low.scalar(node.inputs[0])
    operands = [_held(low, v, may_pass=True) for v in node.inputs[1:]]
    low.fusion.flush_all()
    small = {k for k, v in enumerate(node.outputs) if low.region.in_loop and _is_wanted_small(low, node, k, v)}
    variables = [_result_variables(low, v, k in small) for k, v in enumerate(node.outputs)]
    blocks: list[ir.Block] = []
    results: list[list[Any]] = []
    known = _known_here(low)
    for region, holds in zip(node.regions, (True, False)):
        inside = [_narrowed(r, each) for r, each in zip(operands, inside_branch(node, holds, known))]
        with low.nested() as block:
            refs = low.emit_graph(region, [_for_branch(r) for r in inside])
            refs = [_branch_result(low, r, v, k in small) for k, (r, v) in enumerate(zip(refs, node.outputs))]
            for k in _kept_besides(low, node, region):
                refs[k] = low.copied(refs[k], node.outputs[k].name) if isinstance(refs[k], Array) else refs[k]
        blocks.append(block)
        results.append(refs)
    if len(node.outputs) == 1 and not any(blocks):
        joint = _joint_condition(predicate, results[0][0], results[1][0])
        if joint is not None:
            low.define_scalar(node, joint)
            return
    predicate = _with_checks_in_front(low, predicate, blocks)
    variables = [_kept_variable(operands, pair) or names for names, pair in zip(variables, zip(*results))]
    for k, pair in enumerate(zip(*results)):
        if low.region.in_loop and all(map(_is_widened, pair)) and not all(isinstance(_wide(r), ir.Const) for r in pair):
            variables[k] = (ir.size_variable(variables[k][0].name),)
    outside = [_result_dims(low, value, pair) for value, pair in zip(node.outputs, zip(*results))]
    for block, refs in zip(blocks, results):
        for names, dims, ref in zip(variables, outside, refs):
            block += [ir.assign(a, b) for a, b in _assignments(names, dims, ref)]
    _add_branches(low, predicate, blocks)
    joined = [
        _joined(value, names, dims, pair)
        for value, names, dims, pair in zip(node.outputs, variables, outside, zip(*results))
    ]
    _keep_shared(joined, results)
    for value, ref in zip(node.outputs, joined):
        low.define(value, ref)


def _with_checks_in_front(low: Lowering, predicate: ir.Expr, blocks: list[ir.Block]) -> ir.Expr:
    """Moves the checks at the start of branches that do nothing else to the front, so that LLVM can compute both
    branches and choose: which is taken is often unpredictable. Gives the predicate, as a variable then."""
    found = [_checks(block) for block in blocks]
    if not any(found) or any(len(b) != len(c) for b, c in zip(blocks, found)) or sum(map(len, found)) > 2:
        return predicate
    predicate = predicate if isinstance(predicate, ir.Var) else low.assign(predicate, "t")
    for block, checks, taken in zip(blocks, found, (predicate, ir.negated(predicate))):
        for check in checks:
            low.branch(ir.both(taken, check.test), check.body)
        block.clear()
    return predicate


def _checks(block: ir.Block) -> list[ir.If]:
    """Its statements that fail on a condition, and do nothing else."""
    found = [each for each in block if isinstance(each, ir.If) and not each.orelse]
    return [each for each in found if all(isinstance(inner, ir.Fail) for inner in each.body)]


def _joint_condition(predicate: ir.Expr, then: Any, other: Any) -> ir.Expr | None:
    """The result of a `cond` that is `a and b`, or `a or b`, of which b takes no statements."""
    one, two = (ref.expr if isinstance(ref, Scalar) and ref.dtype.is_bool else None for ref in (then, other))
    if one is None or two is None:
        return None
    if two == ir.FALSE:
        return ir.both(predicate, one)
    if one == ir.FALSE:
        return ir.both(ir.negated(predicate), two)
    return ir.either(predicate, two) if one == ir.TRUE else None


def _kept_besides(low: Lowering, node: Node, region: Graph) -> list[int]:
    """The results of a branch that are what the trip around it goes on changing in place, and that the next trip gets
    as well. They are copied here: the trip would have to be, whatever the branch."""
    in_place = low.in_place.get(low.region.graph, ())
    outer = dict(zip(region.inputs, node.inputs[1:]))
    return [
        k
        for k, (inside, after) in enumerate(zip(region.outputs, node.outputs))
        if outer.get(inside) in in_place and after in low.region.outputs and after not in in_place
    ]


def _keep_shared(after: Sequence[Any], results: Sequence[Sequence[Any]]) -> None:
    """Two results that are the same memory at the end of one branch may be so after the node."""
    arrays = [k for k, ref in enumerate(after) if isinstance(ref, Array)]
    for refs in results:
        for k in arrays:
            for j in arrays[: arrays.index(k)]:
                if refs[j].buffer in refs[k].buffer.sharers:
                    after[k].buffer.may_be(after[j].buffer)


def _is_wanted_small(low: Lowering, node: Node, k: int, value: Value) -> bool:
    """Whether a result becomes a variable per element: its users read elements, and no branch updates it in memory."""
    made = [region.outputs[k].node for region in node.regions]
    if not is_small(value) or any(each is not None and each.op.is_update for each in made):
        return False
    return value in low.region.outputs or low.scalarization.wants_elements(low.region.graph, value)


def _branch_result(low: Lowering, ref: Any, value: Value, small: bool) -> Any:
    if small:
        return vector(low, value, items_of(low, ref, value.shape))
    return low.solid(ref, value.name) if _is_array(value) else ref


def _kept_variable(operands: Sequence[Any], pair: Sequence[Any]) -> tuple[ir.Var] | None:
    """The variable of an operand's memory that both branches return, updated or not; None if there is none."""
    if not all(isinstance(ref, Array) for ref in pair):
        return None
    then, other = (ref.buffer.variable for ref in pair)
    known = {operand.buffer.variable for operand in operands if isinstance(operand, Array)}
    return (then,) if then == other and then in known else None


def _add_branches(low: Lowering, predicate: ir.Expr, blocks: list[ir.Block]) -> None:
    then, other = blocks
    if then:
        low.branch(predicate, then, other)
    elif other:
        low.branch(ir.negated(predicate), other)


def _held(low: Lowering, value: Value, may_pass: bool = False) -> Any:
    """An operand of a region: scalars in variables, arrays in memory, so that the region doesn't recompute them."""
    ref = low.ref(value)
    if isinstance(ref, Scalar):
        return ref if isinstance(ref.expr, (ir.Var, ir.Const)) else replace(ref, expr=low.scalar_name(value))
    if isinstance(ref, StackRef) and may_pass:
        return handle(low, value)
    if (isinstance(ref, Virtual) and not ref.uniform) or (isinstance(ref, Array) and ref.strides is not None):
        ref = low.array(value)
    return _inside(ref, may_pass and low.may_overwrite(value))


def _inside(ref: Any, owned: bool = False) -> Any:
    """How a region sees a value from outside: it may overwrite an array only if it owns it (`owned`)."""
    if isinstance(ref, Array):
        return replace(ref, buffer=Buffer(ref.buffer.name, ref.dtype, owned, outside=ref.buffer))
    if isinstance(ref, StackRef):
        return replace(ref, shared=True)
    return ref


def _for_branch(ref: Any) -> Any:
    """How a branch sees a value from outside: with a `Buffer` object of its own, since each branch tracks what it
    overwrites."""
    if isinstance(ref, Array):
        return replace(ref, buffer=Buffer(ref.buffer.name, ref.dtype, ref.buffer.owned, ref.buffer.outside))
    return ref


def _is_array(value: Value) -> bool:
    return isinstance(value.type, TensorType) and bool(value.type.rank)


def _result_variables(low: Lowering, value: Value, small: bool = False) -> tuple[ir.Var, ...]:
    base = value.name or "r"
    if small:
        return tuple(variable_of(low.names.fresh(base), value.dtype) for _ in range(math.prod(value.shape)))
    if isinstance(value.type, TokenType):
        return ()
    if isinstance(value.type, StackType):
        return stack_variables(low, base, value.type)
    return (variable_of(low.names.fresh(base), value.dtype, value.type.rank),)


def _result_dims(low: Lowering, value: Value, pair: Sequence[Any]) -> list[Atom]:
    """Atoms of a result's dimensions; fresh variables for those in which the branches differ."""
    if not _is_array(value) or isinstance(pair[0], Vector):
        return []
    dims: list[Atom] = []
    for size, then, other in zip(value.type.shape, pair[0].dims, pair[1].dims):  # type: ignore[union-attr,arg-type]
        if size is not None:
            dims.append(low.static_dim(size))
        elif then == other and low.is_visible(then):
            dims.append(then)
        else:
            dims.append(ir.size_variable(low.names.fresh(f"{value.name or 'r'}_d")))
    return dims


def _assignments(variables: Sequence[ir.Var], dims: Sequence[Atom], ref: Any) -> list[tuple[ir.Var, ir.Expr]]:
    """The assignments, as pairs, after which (`variables`, `dims`) represent `ref`."""
    if ref is TOKEN:
        return []
    if isinstance(ref, Scalar):
        is_wide = variables[0].type == INT64 and ref.dtype is not dtypes.int64
        pairs: list[tuple[ir.Var, ir.Expr]] = [(variables[0], _wide(ref) if is_wide else ref.expr)]
    elif isinstance(ref, StackRef):
        pairs = list(zip(variables, ref.variables))
    elif isinstance(ref, Vector):
        pairs = list(zip(variables, ref.items))
    else:
        sizes = [(dim, own) for dim, own in zip(dims, ref.dims) if isinstance(dim, ir.Var)]
        pairs = [(variables[0], ref.buffer.variable), *sizes]
    return [(a, b) for a, b in pairs if a != b]


def _joined(value: Value, variables: Sequence[ir.Var], dims: Sequence[Atom], refs: Sequence[Any]) -> Any:
    if isinstance(value.type, TokenType):
        return TOKEN
    if isinstance(value.type, StackType):
        return stack_ref(value.type, variables, any(r.shared for r in refs))
    if not value.type.rank:
        return _scalar(variables[0], value.dtype, range_of_either(refs))
    if isinstance(refs[0], Vector):
        return replace(refs[0], items=tuple(variables))
    buffer = Buffer(variables[0].name, value.dtype, all(r.buffer.owned for r in refs))
    buffer.may_be(*[origin for ref in refs for origin in ref.buffer.origins])
    return Array(buffer, tuple(dims))


def _scalar(variable: ir.Var, dtype: DType, known: Range | None) -> Scalar:
    """The scalar in a variable, which may hold it in 64 bits (see `_is_widened`)."""
    if variable.type != INT64 or (known is None and dtype is dtypes.int64):
        return Scalar(variable, dtype, known)
    known = (known or Range(*limits(dtype)))._replace(wide=variable)
    return Scalar(scalars.convert(variable, dtypes.int64, dtype), dtype, known)


def _is_widened(ref: Any) -> bool:
    """Whether a scalar is an int32 that the kernel has in 64 bits, too. Then the 64 bits are kept: addresses are
    computed from them, and LLVM can't widen 32 bits that may wrap around."""
    known = known_range(ref) if isinstance(ref, Scalar) and ref.dtype is dtypes.int32 else None
    return known is not None and known.wide is not None


def _wide(ref: Scalar) -> ir.Expr:
    """An integer in 64 bits."""
    known = known_range(ref)
    return ir.Convert(INT64, ref.expr) if known is None or known.wide is None else known.wide


def _narrowed(ref: Any, known: Range | None) -> Any:
    """A value with a narrower range, where a test has shown that."""
    if known is None or not isinstance(ref, Scalar) or isinstance(ref.expr, ir.Const):
        return ref
    before = range_of(ref)
    if before is None:
        return ref
    low, high = max(before.low, known.low), min(before.high, known.high)
    return replace(ref, range=before._replace(low=low, high=high)) if low <= high else ref


def _known_here(low: Lowering) -> Callable[[Value], Range | None]:
    """What is known of a value while the region around it is lowered."""
    env = low.region.env
    return lambda value: known_range(env.get(value))


def stack_variables(low: Lowering, base: str, type_: StackType) -> tuple[ir.Var, ...]:
    """Fresh variables for a stack."""
    element = type_.element
    data = variable_of(low.names.fresh(f"{base}_data"), element.dtype, rank=1)
    top = ir.size_variable(low.names.fresh(f"{base}_top"))
    if not element.rank:
        return data, top
    dims = ir.array_variable(low.names.fresh(f"{base}_dims"), INT64)
    return data, top, dims, ir.size_variable(low.names.fresh(f"{base}_dims_top"))


def handle(low: Lowering, value: Value) -> StackRef:
    """A stack as an operand; shared if other nodes read its elements, too."""
    ref, users = low.ref(value), dict.fromkeys(low.region.users.get(value, ()))
    assert isinstance(ref, StackRef)
    sizes = sum(node.inputs[k] is value for node in users for k in node.op.shape_only)
    return replace(ref, shared=True) if low.region.uses[value] - sizes > 1 else ref


def stack_ref(type_: StackType, variables: Sequence[ir.Var], shared: bool) -> StackRef:
    """A stack in variables, given in the order data, top, dims, dims_top (for rank 0 only the first two)."""
    data, top, *rest = variables
    rank = type_.element.rank or 0
    dims, dims_top = rest or (NO_VARIABLE, NO_VARIABLE)
    return StackRef(type_.element.dtype, rank, data, dims, top, dims_top, shared)


def own_stack(low: Lowering, ref: StackRef) -> StackRef:
    """The stack with buffers of its own, which no other handle uses."""
    data = low.assign(ir.call("lib.copied", ref.data, ref.top), ref.data.name)
    if not ref.rank:
        return replace(ref, data=data, shared=False)
    dims = low.assign(ir.call("lib.copied", ref.dims, ref.dims_top), ref.dims.name)
    return replace(ref, data=data, dims=dims, shared=False)


# --- while -----------------------------------------------------------------------------------------------------------


@emitter("while")
def _while(low: Lowering, node: Node) -> None:
    loop = _While(low, node)
    entered = loop.enter()
    kept = [keep_in_step(low, node, k, loop.starts[k]) for k in sorted(loop.updated - loop.small)]
    loop.check_stacks()
    block, entry = loop.lower_trip()
    for target, atom in entry:
        low.add(ir.assign(target, atom))
    low.add(loop.statement(block, entered | {target.name for target, _ in entry}))
    # Values kept for an error must not change after the loop.
    for variable in filter(None, kept):
        low.add(ir.assign(variable, ir.call("lib.copied", variable, ir.Size(variable))))
    loop.leave()


class _While:
    """A `while` node that is being lowered.

    updated     the carries that the body updates in place
    small       those whose elements are scalar variables
    variables   for each carry, the variables that hold it
    pushed      the carries that are stacks of which each trip pushes one scalar, and no more
    popped      the same for pops, if they are checked before the loop
    varying     the carries whose dimensions change from trip to trip
    carries     refs of the carries at the start of a trip; `dims` are their dimensions
    results     refs at the end of a trip
    """

    def __init__(self, low: Lowering, node: Node) -> None:
        self.low, self.node = low, node
        self.count = node.attrs["carries"]
        self.updated = low.updates.carries(node)
        self.captures = [_capture(low, node, k) for k in range(self.count, len(node.inputs))]
        self.small = {k for k in range(self.count) if low.scalarization.keeps(node, k, k in self.updated)}
        self.starts = self._starts()
        low.fusion.flush_all()
        self.pushed, self.popped = (stacks_of_one_scalar_a_trip(node, op) for op in ("stack_push", "stack_pop"))
        known = [[known_range(ref) for ref in refs] for refs in (self.starts, self.captures)]
        self.ranges = ranges_of_carries(node, *known)
        positions = position_carries(node)
        self.variables = [self._variables(k, k in positions) for k in range(self.count)]
        self.counter = counter_of(
            low, node, self.starts, self.captures, lambda k: self.variables[k][0].name, positions
        )  # fmt: skip
        self.counts_trips = self.counter is not None and self.counter.rest is None
        self.varying = low.varying.of(node)
        self.dims: list[Dims] = []
        self.carries: list[Any] = []
        self.results: list[Any] = []

    def _starts(self) -> list[Any]:
        low, node = self.low, self.node
        pushes = any(isinstance(v.type, StackType) for v in node.outputs) and _pushes(node)
        return [
            vector(low, inside, items(low, value, inside.shape))
            if k in self.small
            else _start(low, value, k in self.updated, pushes)
            for k, (value, inside) in enumerate(zip(node.inputs[: self.count], node.regions[1].inputs))
        ]

    def _variables(self, k: int, is_position: bool) -> tuple[ir.Var, ...]:
        start, known = self.starts[k], self.ranges.at_test[k]
        if k in self.updated and isinstance(start, Array):
            return (start.buffer.variable,)  # a carry that the loop updates in place stays in its variable
        variables = _result_variables(self.low, _named(self.node, k), k in self.small)
        is_narrow = known is not None and (known.low, known.high) != limits(dtypes.int32)
        if is_position and is_narrow and start.dtype is dtypes.int32:
            return (ir.size_variable(variables[0].name),)
        return variables

    def enter(self) -> set[str]:
        """Assigns the carries their first values. Returns the variables that have a value from here on."""
        entered: set[str] = set() if self.counter is None else {self.counter.name}
        for k, (own, ref) in enumerate(zip(self.variables, self.starts)):
            if self.counter is not None and k == self.counter.index:
                continue
            memory = ref.buffer.variable if isinstance(ref, Array) else None
            for target, first in _assignments(own, (), ref) if memory is None else [(own[0], memory)]:
                if first != target:
                    self.low.add(ir.assign(target, first))
                entered.add(target.name)
        return entered

    def check_stacks(self) -> None:
        """Checks the stacks before the loop if its trips are counted; if not, each pop has its own check."""
        if self.counter is None or not self.counts_trips:
            self.popped = []
            return
        stacks = [
            {k: _carry(self.node, k, self.variables[k], (), self.starts[k], False) for k in ks}
            for ks in (self.pushed, self.popped)
        ]
        check_stacks_before(self.low, self.node, self.counter, *stacks)

    def lower_trip(self) -> tuple[ir.Block, list[tuple[ir.Var, Atom]]]:
        """Lowers the body, again if it turns out that the dimensions of a carry change. Returns its block, and the
        assignments of dimensions that the loop needs before it."""
        low, node = self.low, self.node
        while True:
            saved = low.snapshot()
            self.dims, entry = _carry_dims(low, node, self.starts, self.varying)
            self.carries = [self._carry_inside(k) for k in range(self.count)]
            with low.nested() as block:
                self.results = _trip(
                    low, node, self.carries, self.captures, self.updated, self.counter, self.ranges.in_body
                )
            wrong = {
                k
                for k, result in enumerate(self.results)
                if isinstance(result, Array) and k not in self.varying and result.dims != self.dims[k]
            }
            if not wrong:
                return block, entry
            low.restore(saved)
            self.varying |= wrong

    def _carry_inside(self, k: int) -> Any:
        if self.counter is not None and k == self.counter.index:
            return self.counter.inside()
        carry = self._carry_like(self.starts[k], k)
        if isinstance(carry, Array):
            carry.buffer.outside = self.starts[k].buffer
        return replace(carry, reserved=True) if k in (*self.pushed, *self.popped) else carry

    def _carry_like(self, ref: Any, k: int) -> Any:
        return _carry(self.node, k, self.variables[k], self.dims[k], ref, k in self.updated, self.ranges.at_test[k])

    def statement(self, block: ir.Block, entered: set[str]) -> ir.While:
        """The loop. entered: the variables that have a value when it begins."""
        low, node, counter = self.low, self.node, self.counter
        owned = {
            carry.buffer.name: k in self.updated or not _is_array(node.inputs[k]) or low.may_overwrite(node.inputs[k])
            for k, carry in enumerate(self.carries)
            if isinstance(carry, Array) and k not in self.varying
        }
        stacks = tuple((self.carries[k].data, self.carries[k].top) for k in self.pushed if not self.counts_trips)
        loop = _loop(block) if counter is None else ir.While(counter.test, block)
        induction = None if counter is None else counter.induction
        loop.loop = ir.Loop(_ticks(node.regions[1]), node.span, low.region.in_loop, owned, entered, stacks, induction)
        return loop

    def leave(self) -> None:
        """Binds the outputs to the carries after the last trip."""
        for carry, result in zip(self.carries, self.results):
            if isinstance(carry, Array):
                carry.buffer.may_be(result.buffer)
        for k, value in enumerate(self.node.outputs):
            ref = self._carry_like(self.results[k], k)
            if self.counter is not None and k == self.counter.index:
                self.low.shape_env.leave_loop(self.counter.name)
                ref = self.counter.after()
            if isinstance(ref, Array):
                ref.buffer.may_be(*self.carries[k].buffer.origins)
            self.low.define(value, ref)


def _capture(low: Lowering, node: Node, k: int) -> Any:
    """A capture as the loop uses it. A small array whose elements the body uses is read before the loop."""
    value = node.inputs[k]
    if is_small(value) and low.scalarization.wants_elements(node.regions[1], node.regions[1].inputs[k]):
        return vector(low, value, items(low, value))
    return _held(low, value)


def _named(node: Node, k: int) -> Value:
    """The value that gives a carry's variable its name: the body's input."""
    return node.regions[1].inputs[k]


def _pushes(loop: Node) -> bool:
    """Whether anything in a loop pushes on a stack."""
    return any(inner.op.name == "stack_push" for inner in loop.regions[1].walk())


def _start(low: Lowering, value: Value, overwritten: bool, pushes: bool) -> Any:
    """A carry's first value. An array that the loop updates in place must belong to this loop."""
    ref = low.ref(value)
    if not _is_array(value):
        if isinstance(ref, StackRef):
            # One copy here saves copies at pushes in the loop.
            shared = ref.shared or low.region.uses[value] > 1
            return own_stack(low, ref) if shared and pushes else replace(ref, shared=shared)
        return ref
    if overwritten and not isinstance(ref, Array):
        return low.solid(ref, value.name)  # not bound to the value, whose other users would cause a copy
    solid = low.array(value)
    if overwritten and not low.frees_memory_of(value):
        return low.copied(solid, value.name)
    return solid


def _carry_dims(
    low: Lowering, node: Node, starts: Sequence[Any], varying: set[int]
) -> tuple[list[Dims], list[tuple[ir.Var, Atom]]]:
    """The dimension atoms of the carries inside the loop, and the assignments to new variables before it."""
    dims: list[Dims] = []
    entry: list[tuple[ir.Var, Atom]] = []
    for k, start in enumerate(starts):
        if not isinstance(start, Array):
            dims.append(())
            continue
        atoms = []
        for size, atom in zip(node.outputs[k].type.shape, start.dims):  # type: ignore[union-attr,arg-type]
            if size is not None:
                atom = low.static_dim(size)
            elif k in varying:
                variable = ir.size_variable(low.names.fresh(f"{_named(node, k).name or 'r'}_d"))
                entry.append((variable, atom))
                atom = variable
            atoms.append(atom)
        dims.append(tuple(atoms))
    return dims, entry


def _carry(
    node: Node, k: int, variables: Sequence[ir.Var], dims: Sequence[Atom], like: Any, owned: bool,
    known: Range | None = None,
) -> Any:  # fmt: skip
    value = node.outputs[k]
    if like is TOKEN:
        return TOKEN
    if isinstance(like, StackRef):
        assert isinstance(value.type, StackType)
        return stack_ref(value.type, variables, like.shared)
    if isinstance(like, Scalar):
        return _scalar(variables[0], value.dtype, known)
    if isinstance(like, Vector):
        return replace(like, items=tuple(variables))
    return Array(Buffer(variables[0].name, value.dtype, owned), tuple(dims))


def _trip(
    low: Lowering, node: Node, carries: Sequence[Any], captures: Sequence[Any], wanted: set[int],
    counter: Counter | None, in_body: Sequence[Range | None],
) -> list[Any]:  # fmt: skip
    """Lowers test, exit, body and the assignment of the carries; returns the refs of the body's results. The test of a
    counter is in the loop's head instead."""
    test, body = node.regions
    rest = test if counter is None else counter.rest
    if rest is not None:
        go = low.emit_graph(rest, [*map(_inside, carries), *captures], in_loop=True)[0]
        low.branch(ir.negated(go.expr), [ir.Break()])
    inside = [_narrowed(ref, known) for ref, known in zip(carries, in_body)]
    low.in_place[body] = {body.outputs[k] for k in wanted}
    results = low.emit_graph(body, [*inside, *captures], in_loop=True)
    results = [_branch_result(low, r, v, isinstance(c, Vector)) for r, v, c in zip(results, node.outputs, carries)]
    for k in sorted(wanted):
        # The next trip overwrites it, so no other carry may be the same memory.
        mine = results[k].buffer
        others = {each.buffer for j, each in enumerate(results) if isinstance(each, Array) and j != k}
        if not mine.owned or others & mine.sharers:
            results[k] = low.copied(results[k], node.outputs[k].name)
    pairs: list[tuple[ir.Var, ir.Expr]] = []
    for k, (carry, ref) in enumerate(zip(carries, results)):
        if counter is not None and k == counter.index:
            pairs.append((counter.variable, counter.advanced))
        elif carry is not TOKEN:
            pairs += _assignments(_variables_of(carry), carry.dims if isinstance(carry, Array) else (), ref)
    low.add(*parallel_assignment(low, pairs))
    return results


def _variables_of(ref: Any) -> tuple[ir.Var, ...]:
    if isinstance(ref, StackRef):
        return ref.variables
    if isinstance(ref, Vector):
        return tuple(item for item in ref.items if isinstance(item, ir.Var))
    if isinstance(ref, Scalar):
        variable = ref.expr if isinstance(ref.expr, ir.Var) else _wide(ref)
        assert isinstance(variable, ir.Var)
        return (variable,)
    return (ref.buffer.variable,)


def parallel_assignment(low: Lowering, pairs: Sequence[tuple[ir.Var, ir.Expr]]) -> ir.Block:
    """Statements that assign all values to their variables at once, with temporaries only where no order avoids them.

    [(a, b), (b, a + b)]  →  b_1 = a + b;  a = b;  b = b_1
    """
    pending = {k: (target, value) for k, (target, value) in enumerate(pairs) if value != target}
    reads = {k: ir.variables(value) for k, (_, value) in pending.items()}
    readers: dict[str, set[int]] = {target.name: set() for target, _ in pending.values()}
    for k, names in reads.items():
        for name in names & readers.keys():
            readers[name].add(k)
    writers: dict[str, list[int]] = {}
    for k, (target, _) in pending.items():
        writers.setdefault(target.name, []).append(k)
    ready = [k for k, (target, _) in pending.items() if readers[target.name] <= {k}]
    order = iter(list(pending))
    first: ir.Block = []
    last: ir.Block = []
    while pending:
        if ready:
            k = heapq.heappop(ready)
            target, value = pending.pop(k)
            first.append(ir.assign(target, value))
        else:
            k = next(k for k in order if k in pending)
            target, value = pending.pop(k)
            keep = ir.Var(low.names.fresh(f"{target.name}_next"), target.type)
            first.append(ir.assign(keep, value))
            last.append(ir.assign(target, keep))
        for name in reads[k] & readers.keys():
            readers[name].discard(k)
            for other in writers[name]:
                if other in pending and readers[name] <= {other} and other not in ready:
                    heapq.heappush(ready, other)
    return first + last


def _loop(block: ir.Block) -> ir.While:
    """The loop of a block: `while test:` instead of `while True: if not test: break` if the test is one expression."""
    first = block[0]
    if isinstance(first, ir.If) and len(first.body) == 1 and isinstance(first.body[0], ir.Break):
        return ir.While(ir.negated(first.test), block[1:])
    return ir.While(ir.TRUE, block)


def _ticks(body: Graph) -> int:
    """The rough cost of a trip of a loop with this body, in ticks."""
    total = 1
    for node in body.nodes:
        if node.regions:
            total += max(_ticks(region) for region in node.regions)
        elif node.op.terms is not None:
            total += cost_model.PRODUCT_TICKS
        elif any(isinstance(v.type, TensorType) and v.type.rank for v in node.outputs):
            total += cost_model.ARRAY_TICKS
        elif node.op.name != "constant":
            total += 1
    return total
