"""Lowers recursive functions to functions beside the kernel, which call themselves.

    %r = letrec(%n)                    @lib.recursive
      fib(%m):                         def recursive_fib(depth, base, calls, m) -> "(int64, int32)":
        ...                                ...
        %a = call(%m - 1)      →           if depth >= 1000 or base - lib.here() > 4194304:
        ...                                    return 1, np.int32(0)
                                           status, r = recursive_fib(depth + 1, base, calls, np.int32(m - 1))
                                           if status:
                                               return status, np.int32(0)

Each call returns a status, as kernels do; the caller returns a nonzero status at once. A call first checks its depth,
in calls and in bytes of the stack, because the stack must never overflow. One call in a fixed number checks for Ctrl-C.
Captures are arguments. An array is passed and returned as its buffer and its unknown dimensions. A function owns the
arrays that it updates in place: the caller passes an array that it no longer needs, or a copy. It only reads other
arrays, and may return one of them.

All functions take the constants that any of them needs. Which constants these are, and how many numbers come with a
status, is known only when the kernel is complete. Until then, calls contain placeholders for them (`complete`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from runtime import dtypes
from runtime.codegen import cost_model
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.source import ErrorSite, Interruption, NotNative, constant_variable, numba_type, slot_of
from runtime.codegen.kernel.values import TOKEN, Array, Buffer, Scalar, StackRef
from runtime.codegen.lower.state import REFUSALS, Lowering, calls_out, emitter
from runtime.codegen.op_lowerings.control_flow import handle, own_stack, stack_ref, stack_variables
from runtime.codegen.passes.kernel import interrupt_poll
from runtime.codegen.symbolic.ranges import Atom
from runtime.dataclass import dataclass
from runtime.graph.ir import Graph, Node, Value
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import INT64
from runtime.kernel_ir.types import Tuple as TupleType
from runtime.recursion import DEEPEST, TOO_DEEP
from runtime.types import StackType, TensorType, TokenType

# Bytes of the stack that nested calls may use. A thread has 8 MiB, of which Python may have used some.
_ROOM = 4 << 20
# The placeholder in calls for the constants of all functions, until these are known.
CONSTANTS = "constants__of_functions"


@dataclass(eq=False)
class Function:
    """A recursive function and its lowered parts.

    updates: the parameters that it updates in place. pushes: whether it pushes on the stacks that it takes, which it
    then owns. owned: for each result, whether its memory belongs to the caller alone: all are assumed to, until a body
    that has been lowered shows the opposite. stacks: those that it takes, one of each type. low: with the block of its
    body.
    """

    name: str
    graph: Graph
    updates: set[int]
    pushes: bool
    depth: ir.Var
    base: ir.Var
    calls: ir.Var
    owned: list[bool] = field(default_factory=list)
    low: Lowering = field(init=False)
    parameters: list[str] = field(default_factory=list)
    results: list[ir.Expr] = field(default_factory=list)
    placeholders: list[ir.Expr] = field(default_factory=list)
    stacks: dict[StackType, StackRef] = field(default_factory=dict)


def _why_not(node: Node) -> str | None:
    for inner in (inner for region in node.regions for inner in region.walk()):
        if inner.op.name == "commit":
            return "a recursive function that assigns a variable before an op that may fail can't be compiled"
        if inner.op.is_random:
            return "a recursive function that draws random numbers can't be compiled"
        if inner.op.name == "raise" or calls_out(inner):
            return f"a recursive function with the op '{inner.op.name}' can't be compiled"
    return None


REFUSALS["letrec"] = _why_not


@emitter("letrec")
def _letrec(low: Lowering, node: Node) -> None:
    low.fusion.flush_all()
    updates = low.updates.of_functions(node)
    functions: dict[str, Function] = {}
    for name, region in zip(node.attrs["functions"], node.regions):
        text = f"recursive_{name}".replace("'", "_gradient")
        function = low.names.fresh(text)
        depth, base = (ir.size_variable(low.names.fresh(each)) for each in ("depth", "base"))
        calls = ir.array_variable(low.names.fresh("calls"), INT64)
        owned = [True] * len(region.outputs)
        pushes = any(inner.op.name == "stack_push" for inner in region.walk())
        functions[name] = Function(function, region, updates[name], pushes, depth, base, calls, owned)
    visible = {**low.callable, **functions}
    first = next(iter(functions.values()))
    operands = _arguments(low, node, first)
    while True:
        saved = low.snapshot()
        guessed = [each.owned for each in functions.values()]
        for each in functions.values():
            _lower(low, each, visible, node)
        if guessed == [each.owned for each in functions.values()]:
            break
        low.restore(saved)
    around: Function | None = low.within
    if around is None:
        calls = low.new_buffer(ir.ONE, dtypes.int64, "calls").variable
        low.add(ir.store(calls, 0, 0))
        _call(low, node, first, [ir.ONE, ir.call("lib.here"), calls], operands)
    else:
        _check_depth(low, node, around)
        _call(low, node, first, _inside(around), operands)


@emitter("call")
def _call_inside(low: Lowering, node: Node) -> None:
    function: Function | None = low.callable.get(node.attrs["function"])
    around: Function | None = low.within
    if function is None or around is None:
        raise NotNative(f"'{node.attrs['function']}' is called outside its letrec", node)
    low.fusion.flush_all()
    operands = _arguments(low, node, function)
    _check_depth(low, node, around)
    _call(low, node, function, _inside(around), operands)


def _inside(around: Function) -> list[ir.Expr]:
    """The arguments that a call passes on from the enclosing function."""
    return [around.depth + 1, around.base, around.calls]


def _check_depth(low: Lowering, node: Node, around: Function) -> None:
    site = ErrorSite("RecursionError", TOO_DEEP, node.span)
    is_deep = around.depth.compare(">=", DEEPEST)
    takes_much = (around.base - ir.call("lib.here")).compare(">", _ROOM)
    low.leave_when(ir.either(is_deep, takes_much), site)


# --- calls ------------------------------------------------------------------------------------------------------------


def _arguments(low: Lowering, node: Node, function: Function) -> list[tuple[list[ir.Expr], list[Buffer]]]:
    """For each operand, the arguments for its parameter and the memory whose ownership it passes on."""
    pairs = enumerate(zip(node.inputs, function.graph.inputs))
    return [
        _stack_argument(low, value, function) if isinstance(parameter.type, StackType)
        else _argument(low, value, parameter, k in function.updates)
        for k, (value, parameter) in pairs
    ]  # fmt: skip


def _stack_argument(low: Lowering, value: Value, function: Function) -> tuple[list[ir.Expr], list[Buffer]]:
    stack = handle(low, value)
    if function.pushes and stack.shared:
        stack = own_stack(low, stack)
    return list(stack.variables), []


def _argument(low: Lowering, value: Value, parameter: Value, is_updated: bool) -> tuple[list[ir.Expr], list[Buffer]]:
    if isinstance(parameter.type, TokenType):
        return [], []
    assert isinstance(parameter.type, TensorType)
    if not parameter.type.rank:
        return [low.scalar_name(value)], []
    array = low.array(value)
    if is_updated and not low.may_overwrite(value):
        array = low.copied(array)
    assert parameter.type.shape is not None
    sizes = [dim for dim, size in zip(array.dims, parameter.type.shape) if size is None]
    return [array.buffer.variable, *sizes], [array.buffer]


def _call(low: Lowering, node: Node, function: Function, first: list[ir.Expr], operands: Sequence[Any]) -> None:
    arguments = [*first, *[each for given, _ in operands for each in given]]
    memory = [buffer for _, buffers in operands for buffer in buffers]
    status = ir.size_variable(low.names.fresh("status"))
    targets = [status, ir.size_variable(f"{status.name}__details")]
    refs: list[Any] = []
    for value, result, is_owned in zip(node.outputs, function.graph.outputs, function.owned):
        if isinstance(result.type, TokenType):
            refs.append(TOKEN)
            continue
        if isinstance(result.type, StackType):
            stack = stack_ref(result.type, stack_variables(low, value.name or "r", result.type), not function.pushes)
            targets += stack.variables
            refs.append(stack)
            continue
        assert isinstance(result.type, TensorType)
        if result.type.shape is None:
            raise NotNative("a tensor of unknown rank that a recursive function returns can't be compiled", node)
        name = low.names.fresh(value.name or "r")
        targets.append(scalars.variable_of(name, result.dtype, result.type.rank))
        if not result.type.rank:
            refs.append(Scalar(targets[-1], result.dtype))
            continue
        dims: list[Atom] = []
        for axis, size in enumerate(result.type.shape):
            if size is None:
                targets.append(ir.size_variable(low.names.fresh(f"{name}_d{axis}")))
            dims.append(targets[-1] if size is None else low.static_dim(size))
        buffer = Buffer(name, result.dtype, is_owned)
        buffer.may_be(*memory)
        memory.append(buffer)
        refs.append(Array(buffer, tuple(dims)))
    found = TupleType(tuple(each.type for each in targets if each.type is not None))
    called = ir.Call(function.name, (*arguments, ir.size_variable(CONSTANTS)), found)
    low.add(ir.Assign(tuple(each.name for each in targets), called))
    low.branch(status.compare("!=", 0), [ir.Fail(status.name)])
    for value, ref in zip(node.outputs, refs):
        low.define(value, ref)


# --- functions --------------------------------------------------------------------------------------------------------


def _lower(outer: Lowering, function: Function, visible: dict[str, Any], node: Node) -> None:
    """Lowers the body of a function."""
    low = function.low = Lowering(function.graph, for_device=outer.for_device)
    low.names, low.errors, low.details = outer.names, list(outer.errors), outer.details
    low.callable, low.within = visible, function
    low.updates.parameters.update(outer.updates.parameters)
    function.parameters, function.results, function.placeholders, function.stacks = [], [], [], {}
    inputs = enumerate(function.graph.inputs)
    refs = [_parameter(low, value, function, k in function.updates) for k, value in inputs]
    ticks = ir.load(function.calls, 0)
    low.add(ir.set_to(ticks, ticks + cost_model.CALL_TICKS))
    with low.nested() as lines:
        low.leave_when(ir.call("lib.interrupted"), Interruption("KeyboardInterrupt", "", node.span))
    low.add(interrupt_poll(ticks, *lines))
    results = low.emit_graph(function.graph, refs, in_loop=True)
    function.owned = [
        _result(low, ref, value, function) and owned
        for owned, ref, value in zip(function.owned, results, function.graph.outputs)
    ]
    if low.kept:
        raise NotNative("a recursive function that assigns a variable before an op that may fail can't be compiled")
    low.add(ir.Return(tuple(function.results)))
    outer.errors, outer.details = low.errors, low.details
    outer.functions += [*low.functions, function]
    low.functions = []


def _parameter(low: Lowering, value: Value, function: Function, is_updated: bool) -> Any:
    parameters = function.parameters
    if isinstance(value.type, StackType):
        stack = stack_ref(value.type, stack_variables(low, value.name or "r", value.type), not function.pushes)
        parameters += [variable.name for variable in stack.variables]
        function.stacks[value.type] = stack
        return stack
    slot = slot_of(value.type)
    if slot.kind == "token":
        return TOKEN
    assert slot.dtype is not None
    name = low.names.fresh(value.name or "x")
    parameters.append(name)
    if slot.kind == "scalar":
        return Scalar(scalars.variable_of(name, slot.dtype), slot.dtype)
    assert isinstance(value.type, TensorType)
    assert value.type.shape is not None
    dims: list[Atom] = []
    for axis, size in enumerate(value.type.shape):
        if size is not None:
            dims.append(low.static_dim(size))
        else:
            atom = low.names.fresh(f"{name}_d{axis}")
            parameters.append(atom)
            dims.append(low.shape_env.declare(atom))
    return Array(Buffer(name, slot.dtype, is_updated), tuple(dims))


def _result(low: Lowering, ref: Any, value: Value, function: Function) -> bool:
    """Adds the expressions for a result. Returns whether its memory is used by nothing else, except perhaps another
    result."""
    slot = slot_of(value.type)
    if slot.kind == "token":
        return True
    assert slot.dtype is not None
    if slot.kind == "scalar":
        function.results.append(ref.expr)
        function.placeholders.append(scalars.literal(0, slot.dtype))
        return True
    if isinstance(value.type, StackType):
        function.results += ref.variables
        taken = function.stacks.get(value.type)
        if taken is not None:
            # A stack that the function takes costs nothing, as against empty arrays that each call would allocate.
            function.placeholders += taken.variables
            return True
        function.placeholders += [low.empty_buffer(slot.dtype), ir.ZERO]
        function.placeholders += [low.empty_buffer(dtypes.int64), ir.ZERO] if ref.rank else []
        return True
    assert isinstance(value.type, TensorType)
    assert value.type.shape is not None
    array = low.solid(ref)
    sizes = [dim for dim, size in zip(array.dims, value.type.shape) if size is None]
    function.results += [array.buffer.variable, *sizes]
    function.placeholders += [low.empty_buffer(slot.dtype), *[ir.ZERO] * len(sizes)]
    return array.buffer.owned


def expand_failures(
    block: ir.Block, details: int, placeholders: Sequence[ir.Expr], kept: Sequence[ir.Expr] = (), joined: bool = False
) -> None:
    """Turns each `Fail` into a return of its status, its details, and placeholder results.

    details: how many numbers come with each status. joined: `placeholders` is one variable that holds them all.
    """
    for inside in ir.walk_blocks(block):
        for position, item in enumerate(inside):
            if isinstance(item, ir.Fail):
                status = _status_of(item, details)
                if joined:
                    (name,) = placeholders
                    value: ir.Expr = ir.Binary("+", ir.Tuple(status), name)
                    value = ir.Binary("+", value, ir.Tuple(tuple(kept))) if kept else value
                    inside[position] = ir.Return((value,))
                else:
                    inside[position] = ir.Return((*status, *placeholders, *kept))


def _status_of(fail: ir.Fail, details: int) -> tuple[ir.Expr, ...]:
    """The status that a failing check returns, and the numbers that come with it."""
    if isinstance(fail.status, str):
        return (ir.size_variable(fail.status), *map(ir.size_variable, _details(fail.status, details)))
    return (ir.Const(fail.status, INT64), *fail.details, *[ir.ZERO] * (details - len(fail.details)))


def _details(status: str, details: int) -> list[str]:
    return [f"{status}__d{k}" for k in range(details)]


def empty_buffers(low: Lowering) -> ir.Block:
    """The empty arrays that a function needs."""
    return [ir.Alloc(name, ir.ZERO, scalars.machine_type(dtype)) for dtype, name in low.empty_buffers.items()]


def given_to(function: Function) -> set[str]:
    """The variables of a recursive function that are set when it starts, besides its sizes."""
    own = {function.depth.name, function.base.name, function.calls.name, CONSTANTS, *function.parameters}
    return own.union(function.low.empty_buffers.values(), (name for name, _ in function.low.constants))


def function_of(function: Function, details: int) -> ir.Function:
    """Builds a recursive function whose body is complete; `details` numbers come with each status."""
    low = function.low
    last = low.block[-1]
    assert isinstance(last, ir.Return)
    last.values = (*[ir.ZERO] * (1 + details), *last.values)
    expand_failures(low.block, details, function.placeholders)
    start: ir.Block = [ir.Assign((name,), value) for name, value in low.prologue.items()]
    start += empty_buffers(low)
    used = ir.mentioned(low.block).union(*(ir.variables(item) for item in start))
    start = [item for item in start if ir.targets(item)[0] in used]
    types = ["int64"] * (1 + details)
    for value in function.graph.outputs:
        if isinstance(value.type, StackType):
            types += [numba_type(value.type.element.dtype, 1), "int64"]
            types += [numba_type(dtypes.int64, 1), "int64"] if value.type.element.rank else []
        elif not isinstance(value.type, TokenType):
            assert isinstance(value.type, TensorType)
            types.append(numba_type(value.dtype, min(value.type.rank or 0, 1)))
            types += ["int64"] * sum(size is None for size in value.type.shape or ())
    parameters = (
        *(each.name for each in (function.depth, function.base, function.calls)),
        *function.parameters,
        CONSTANTS,
    )
    return ir.Function(function.name, parameters, [*start, *low.block], "recursive", f"({', '.join(types)})")


def complete(functions: Sequence[ir.Function], low: Lowering, details: int) -> None:
    """Completes recursive functions and their calls with facts that are known only when the kernel is complete."""
    if not low.functions:
        return
    names = [name for function in low.functions for name, _ in function.low.constants]
    constants = [constant_variable(*each) for function in low.functions for each in function.low.constants]
    own = {function.name for function in low.functions}
    for function in functions:
        if function.kind == "recursive":
            function.parameters = (*function.parameters[:-1], *names)
        for item in ir.walk(function.body):
            if isinstance(item, ir.Assign) and isinstance(item.value, ir.Call) and item.value.function in own:
                arguments, found = (*item.value.arguments[:-1], *constants), item.value.type
                assert isinstance(found, TupleType)
                of_status, _, *of_results = found.items
                found = TupleType((of_status, *[INT64] * details, *of_results))
                item.value = ir.Call(item.value.function, arguments, found)
                status, _, *results = item.targets
                item.targets = (status, *_details(status, details), *results)
