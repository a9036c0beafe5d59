"""Lowers a graph to one kernel in kernel IR, shown here as Python.

    graph f(x: float32[], n: int32[]):          def kernel(x, n):
      %i, %y = while(0, x, n) ...         →         y = x
                                                    i = np.int32(0)
                                                    while i < n:
                                                        y = y * np.float32(2.0)
                                                        i = np.int32(i + np.int32(1))
                                                    return y

The text depends on dtypes, ranks and equal dimensions, never on the dimensions themselves: those are read from the
arguments or passed as further ones. So equal subgraphs of different sizes give the same text, and share one kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from runtime import dtypes
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.source import (
    Kept,
    KernelSource,
    NotNative,
    Slot,
    Unfit,
    signature_of,
    slot_of,
)
from runtime.codegen.kernel.values import TOKEN, Array, Buffer, Scalar
from runtime.codegen.lower.recursion import CONSTANTS, complete, empty_buffers, expand_failures, function_of, given_to
from runtime.codegen.lower.state import EMITTERS, Lowering, calls_out, refusal
from runtime.codegen.op_lowerings import (  # noqa: F401 (each fills the table of emitters)
    boxes,
    checks,
    concat,
    control_flow,
    convolution,
    depthwise,
    effects,
    factorizations,
    gather,
    linalg,
    patches,
    random,
    reduce,
    scan,
    scatter,
    segment,
    selection,
    slice,
    sort,
    stack,
    view,
)  # fmt: skip
from runtime.codegen.op_lowerings.control_flow import stack_ref, stack_variables
from runtime.codegen.passes.kernel import Kernel
from runtime.codegen.passes.pipeline import run_passes
from runtime.codegen.symbolic.ranges import Atom
from runtime.codegen.symbolic.shape_env import Assumed
from runtime.dtypes import DType
from runtime.graph.ir import Graph, Node, Value
from runtime.graph.passes.pipeline import rewrite
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.polynomial import Polynomial
from runtime.kernel_ir.print_python import function as printed
from runtime.kernel_ir.types import Array as ArrayType
from runtime.kernel_ir.verify import verify
from runtime.shapes import element_count
from runtime.types import StackType, TensorType


def is_native(node: Node, for_device: bool = False) -> bool:
    """Whether the node and everything in its regions can be compiled, and should be. for_device: for a GPU."""
    try:
        _check_native(node, for_device)
    except NotNative:
        return False
    return True


def why_interpreted(node: Node, for_device: bool = False) -> tuple[str, Node] | None:
    """Why a node can't be compiled, and which node causes that (itself or one in its regions); None if it can.
    for_device: for a GPU."""
    try:
        _check_native(node, for_device)
    except NotNative as reason:
        return str(reason), reason.node or node
    return None


# Python allows 100 nested blocks; this leaves some for loops over arrays and for checks.
_DEEPEST = 90
_BLOCKS = {"while": 2, "cond": 1}  # blocks around the statements of a region


def _check_native(node: Node, for_device: bool, depth: int = 0, may_call_out: bool = False) -> None:
    """Raises NotNative if a node can't be part of a kernel. may_call_out: the kernel may let Python run it."""
    if may_call_out and calls_out(node):
        return
    depth += _BLOCKS.get(node.op.name, 1 if node.regions else 0)
    if depth > _DEEPEST:
        raise NotNative(f"branches (each `elif` is one) and loops are nested more than {_DEEPEST} blocks deep", node)
    if not (node.op.is_elementwise or node.op.name in EMITTERS):
        raise NotNative(f"op '{node.op.name}' can't be compiled", node)
    for value in (*node.inputs, *node.outputs):
        try:
            slot_of(value.type)
        except NotNative as reason:
            raise NotNative(f"op '{node.op.name}': {reason}", node) from None
        if node.op.widens and isinstance(value.type, StackType) and value.type.element.dtype.is_narrow:
            raise NotNative(f"op '{node.op.name}' on a stack of {value.type.element.dtype.name}", node)
    refused = refusal(node, for_device)
    if refused is not None:
        raise NotNative(f"op '{node.op.name}': {refused}", node)
    may_call_out = node.op.name in _BLOCKS and not for_device
    for region in node.regions:
        for value in region.inputs:
            slot_of(value.type)
        for inner in region.nodes:
            _check_native(inner, for_device, depth, may_call_out)


def lower(graph: Graph, assuming: bool = True, for_device: bool = False) -> KernelSource:
    """Lowers the graph to one kernel. Raises NotNative, with the node, if something in it can't be compiled.

    assuming: the kernel may assume that sizes aren't unusual, like 0 and 1; another one is lowered when a call has such
    sizes. for_device: the kernel is for a GPU, whose threads run it together; its loops aren't split into chunks
    for the threads or the caches of a CPU.
    """
    for node in graph.nodes:
        _check_native(node, for_device)
    graph = rewrite("narrow floats", rewrite("recursive captures", graph))
    equal: dict[str, Polynomial] = {}
    while True:
        try:
            return _lower(graph, Lowering(graph, assuming, equal, for_device))
        except Assumed as found:
            equal = {name: value.replaced(found.variable, found.value) for name, value in equal.items()}
            equal[found.variable] = found.value


def _lower(graph: Graph, low: Lowering) -> KernelSource:
    parameters: list[str] = []
    inputs = tuple(slot_of(v.type) for v in graph.inputs)
    refs = [_declare_input(low, value, slot, parameters) for value, slot in zip(graph.inputs, inputs)]
    results = low.emit_graph(graph, refs)
    passed = {i: graph.inputs.index(v) for i, v in enumerate(graph.outputs) if v in graph.inputs}
    outputs = tuple(slot_of(v.type) for v in graph.outputs)
    returned: list[ir.Expr] = []
    placeholders: list[ir.Expr] = []
    for index, (ref, slot) in enumerate(zip(results, outputs)):
        if index not in passed:
            _return_value(low, ref, slot, returned, placeholders)
    for function in low.functions:
        low.constants += function.low.constants
        low.reports += function.low.reports
    unfit = _guard_sizes(low)
    details = low.details
    kept = [each for item in low.kept.values() for each in (item.flag, item.result())]
    last = ir.Return((*returned, *kept))
    low.add(last)
    parts, joined = _run_passes(low, parameters)
    status = [ir.ZERO] * (1 + details if low.errors else 0)
    last.values = (*status, *last.values) or (ir.ZERO,)
    # With many results and many checks, the placeholder results of a failing kernel are written once.
    failed: ir.Var | None = None
    if len(placeholders) > 3 and len(low.errors) > 1:
        failed = ir.Var(low.names.fresh("failed"), ir.Tuple(tuple(placeholders)).type)
    expand_failures(low.block, details, placeholders if failed is None else [failed], kept, joined=failed is not None)
    start: ir.Block = [ir.Assign((name,), value) for name, value in low.prologue.items()]
    declared = [item for each in low.kept.values() for item in _declare_kept(low, each)]  # may need an empty buffer
    start += empty_buffers(low)
    start += declared
    if failed is not None:
        start.append(ir.assign(failed, ir.Tuple(tuple(placeholders))))
    used = ir.mentioned(low.block)
    read = {name for item in start for name in ir.variables(item)}
    start = [item for item in start if ir.targets(item)[0] in used | read]
    if not low.functions:  # these take all constants
        used |= ir.mentioned(start)
        low.constants = [(name, value) for name, value in low.constants if name in used]
    parameters += [name for name, _ in low.constants]
    kernel = ir.Function("kernel", tuple(parameters), [*start, *low.block])
    functions = [*parts, *[function_of(function, details) for function in low.functions], kernel]
    complete(functions, low, details)
    verify(functions, len(low.errors))
    text = f"{scalars.HEAD}\n\n" + "\n\n\n".join(printed(each) for each in functions) + "\n"
    constants = tuple(value for _, value in low.constants)
    return KernelSource(
        graph.name, text, signature_of(inputs, constants), inputs, outputs, constants, passed, tuple(low.errors),
        details, {variable: item.slot for variable, item in low.kept.items()},
        tuple(replace(report, loop=joined(report.loop)) for report in low.reports), _array_lines(graph),
        frozenset(low.scalarization.lowered), unfit=unfit,
        general=None if unfit is None else functools.partial(lower, graph, False, low.for_device),
        functions=tuple(functions), sizes=_known_sizes(low),
    )  # fmt: skip


def _known_sizes(low: Lowering) -> dict[str, int]:
    """The sizes that the text of a kernel doesn't depend on, by the variables that have them."""
    found = {atom.name: size for size, atom in low.static.items() if isinstance(atom, ir.Var)}
    return found | {name: value for name, value in low.constants if isinstance(value, int)}


def _run_passes(low: Lowering, parameters: Sequence[str]) -> tuple[list[ir.Function], Callable[[Any], Any]]:
    """Runs the passes over the kernel and its recursive functions, whose blocks they change. Returns the functions that
    threads run, and a function that finds the current loop of a nest."""
    lows = {"kernel": low, **{function.name: function.low for function in low.functions}}
    kernel = Kernel(
        functions=[
            ir.Function(name, (), each.block, "kernel" if each is low else "recursive") for name, each in lows.items()
        ],
        starts={name: each.prologue for name, each in lows.items()},
        given={"kernel": {*parameters, *_set_at_start(low)}, **{f.name: given_to(f) for f in low.functions}},
        names=low.names,
        own=set().union(*(each.fresh for each in lows.values())),
        kept={name for item in low.kept.values() for name in item.variables},
        sites=low.errors,
        constants=low.constants,
    )
    run_passes(kernel)
    return kernel.functions[len(lows) :], kernel.loop_of


def _set_at_start(low: Lowering) -> set[str]:
    """The variables that are set at the start of a kernel, besides its sizes."""
    return {CONSTANTS, *low.empty_buffers.values(), *(name for item in low.kept.values() for name in item.variables)}


def _guard_sizes(low: Lowering) -> int | None:
    """Adds the check that the arguments' sizes are as assumed. Returns its status, or None if nothing was assumed."""
    guards = low.shape_env.guards
    if not guards:
        return None
    low.errors.append(Unfit("InvalidArgumentError", "", None))
    low.block.insert(0, ir.If(ir.either(*guards), [ir.Fail(len(low.errors))]))
    return len(low.errors)


def _array_lines(graph: Graph) -> tuple[Any, ...]:
    """The user's lines that allocate arrays. If sizes are known only at run time, any of them may be the largest."""
    found: dict[Any, float] = {}
    for node in graph.walk():
        for value in node.outputs:
            if node.span and not node.regions and isinstance(value.type, TensorType) and value.type.rank:
                count = element_count(value.type.shape)
                size = float("inf") if count is None else count * value.type.dtype.np.itemsize
                found[node.span] = max(found.get(node.span, 0.0), size)
    return tuple(sorted(found, key=lambda span: -found[span]))


def _declare_kept(low: Lowering, kept: Kept) -> ir.Block:
    assert kept.slot.dtype is not None
    blank = low.empty_buffer(kept.slot.dtype) if kept.slot.rank else scalars.literal(0, kept.slot.dtype)
    sizes = [ir.assign(dim, 0) for dim in kept.dims]
    return [ir.assign(kept.flag, ir.FALSE), ir.assign(kept.value, blank), *sizes]


def _declare_input(low: Lowering, value: Value, slot: Slot, parameters: list[str]) -> Any:
    if slot.kind == "token":
        return TOKEN
    assert slot.dtype is not None
    name = low.names.fresh(value.name or "x")
    if slot.kind == "scalar":
        parameters.append(name)
        return Scalar(scalars.variable_of(name, slot.dtype), slot.dtype)
    if slot.kind == "stack":
        assert isinstance(value.type, StackType)
        stack = stack_ref(value.type, stack_variables(low, name, value.type), shared=True)
        parameters += [variable.name for variable in stack.variables]
        return stack
    parameters.append(name)
    parameter = ir.Var(name, ArrayType(scalars.machine_type(slot.dtype), slot.rank))
    buffer = name
    if slot.rank > 1:
        buffer = low.names.fresh(f"{name}_flat")
        low.prologue[buffer] = ir.call("lib.flat", parameter)
    assert isinstance(value.type, TensorType)
    assert value.type.shape is not None
    dims: list[Atom] = []
    for axis, size in enumerate(value.type.shape):
        atom = low.static.get(size) if size is not None else None
        if atom is None:
            variable = low.names.fresh(f"{name}_d{axis}")
            low.prologue[variable] = ir.Dim(parameter, axis)
            if size is not None:
                atom = low.static[size] = ir.size_variable(variable)
            else:
                atom = low.shape_env.declare(variable)
        dims.append(atom)
    return Array(Buffer(buffer, slot.dtype), tuple(dims))


def _return_value(low: Lowering, ref: Any, slot: Slot, returned: list[ir.Expr], placeholders: list[ir.Expr]) -> None:
    assert slot.kind == "token" or slot.dtype is not None
    if slot.kind == "token":
        return
    dtype: DType = slot.dtype  # type: ignore[assignment]
    if slot.kind == "scalar":
        returned.append(ref.expr)
        placeholders.append(scalars.literal(0, dtype))
        return
    if slot.kind == "stack":
        returned += ref.variables
        placeholders += [low.empty_buffer(dtype), ir.ZERO]
        if slot.rank:
            placeholders += [low.empty_buffer(dtypes.int64), ir.ZERO]
        return
    solid = low.solid(ref)
    if slot.rank == 1:
        returned.append(solid.buffer.variable)
        placeholders.append(low.empty_buffer(dtype))
    else:
        returned.append(ir.call("lib.shaped", ir.Tuple(solid.dims), solid.buffer.variable))
        placeholders.append(ir.call("lib.shaped", ir.Tuple((ir.ZERO,) * slot.rank), low.empty_buffer(dtype)))
