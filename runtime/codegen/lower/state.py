"""The state of lowering one kernel, and the table of ops' lowerings.

Rank-0 tensors are scalar expressions, arrays are flat buffers with their dimensions in variables (`kernel/values.py`);
elementwise nodes gather in fusion groups (`loops/fusion.py`) that are lowered when a value of theirs is needed
elsewhere. The lowering of an op is a row of `EMITTERS`; elementwise ops need none. In loops and branches, Python runs
what has no native form (`kernel/call_outs.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from runtime import cancellation, errors
from runtime.codegen import cost_model
from runtime.codegen.kernel import call_outs, scalars
from runtime.codegen.kernel.names import Names, rule_expression, template_of, uses
from runtime.codegen.kernel.region import Region
from runtime.codegen.kernel.reports import NestReport
from runtime.codegen.kernel.source import ErrorSite, Kept, NotNative, slot_of
from runtime.codegen.kernel.values import TOKEN, Array, Broadcast, Buffer, Dims, Ref, Scalar, Vector, Virtual, product
from runtime.codegen.loops import scalarize
from runtime.codegen.loops.buffer_reuse import Updates
from runtime.codegen.loops.builder import Bounds
from runtime.codegen.loops.concat_views import ConcatView, written
from runtime.codegen.loops.copies import copy
from runtime.codegen.loops.fusion import Fusion, Pending
from runtime.codegen.passes import parallelize
from runtime.codegen.symbolic.dimensions import Sizes
from runtime.codegen.symbolic.ranges import Atom, Range, checks, known_range, range_of, result_of
from runtime.codegen.symbolic.shape_env import Assumed
from runtime.codegen.symbolic.varying_carries import VaryingCarries
from runtime.dtypes import DType, float32, int64
from runtime.graph.ir import Graph, Node, Value
from runtime.graph.spans import with_op
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.polynomial import Polynomial
from runtime.kernel_ir.types import INT64
from runtime.types import TensorType, TokenType

Emitter = Callable[["Lowering", Node], None]
# op name -> its lowering. Filled by the modules of `op_lowerings`.
EMITTERS: dict[str, Emitter] = {}
# op name -> a function that says why a node of this op can't be compiled, or returns None.
REFUSALS: dict[str, Callable[[Node], str | None]] = {}
# The same for nodes that a library's function computes faster than a kernel for the CPU; kernels for GPUs have them.
LEFT_TO_LIBRARIES: dict[str, Callable[[Node], str | None]] = {}


def refusal(node: Node, for_device: bool) -> str | None:
    """Why the lowering of a node's op doesn't do for it; None if it does."""
    for table in (REFUSALS,) if for_device else (REFUSALS, LEFT_TO_LIBRARIES):
        reason = table[node.op.name](node) if node.op.name in table else None
        if reason is not None:
            return reason
    return None


def calls_out(node: Node) -> bool:
    """Whether a kernel for the CPU lets Python run a node in a loop or a branch: it has no native form, and takes and
    gives what can be passed."""
    if node.regions or node.op.is_random or node.op.is_collective:
        return False  # with collectives, a loop has the same bits whether they overlap with it or not
    if (node.op.is_elementwise or node.op.name in EMITTERS) and refusal(node, for_device=False) is None:
        return False
    try:
        kinds = {slot_of(value.type).kind for value in (*node.inputs, *node.outputs)}
    except NotNative:
        return False
    sizes = [size for value in node.outputs if value.is_tensor for size in value.shape or ()]
    return "stack" not in kinds and None not in sizes


def emitter(*names: str) -> Callable[[Emitter], Emitter]:
    """Registers the lowering of the named ops."""

    def add(function: Emitter) -> Emitter:
        for name in names:
            EMITTERS[name] = function
        return function

    return add


class Lowering(Sizes):
    """The state of lowering one kernel. for_device: see `lower`."""

    def __init__(
        self, graph: Graph, assuming: bool = False, equal: dict[str, Polynomial] | None = None, for_device: bool = False
    ) -> None:  # fmt: skip
        super().__init__(assuming, equal or {})
        self.graph = graph
        self.for_device = for_device
        self.names = Names()
        self.block: ir.Block = []
        self.errors: list[ErrorSite] = []
        self.details = 0
        self.prologue: dict[str, ir.Expr] = {}  # variable -> expression over the parameters
        self.broadcasts: list[dict[tuple[Atom, Atom], Atom]] = [{}]  # per open block: (a, b) -> their broadcast
        self.updates = Updates()
        self.varying = VaryingCarries()  # of loops; lowering adds those that it finds
        self.scalarization = scalarize.Scalarization(self.updates)
        self.region: Region = Region(graph)
        self.fusion = Fusion(self)
        self.index_names: list[ir.Var] = []  # loop variables by depth
        self.products: dict[Dims, Atom] = {}  # of dimensions other than 1
        self.empty_buffers: dict[DType, str] = {}
        self.functions: list[Any] = []  # recursive functions that were lowered (see `recursion.py`)
        self.callable: dict[str, Any] = {}  # by name, the functions that `call` nodes here may call
        self.within: Any = None  # the recursive function that is being lowered, if it is one
        self.nest_loop: ir.For | None = None  # that of the last nest
        self.fresh: set[str] = set()  # buffers that were allocated here
        self.reports: list[NestReport] = []  # what was lowered as one nest, for `explain`
        self.in_place: dict[Graph, set[Value]] = {}  # loop body -> its results that it has changed in place
        self.kept: dict[Any, Kept] = {}  # variable -> where the kernel keeps what was committed
        self.in_step: dict[
            Node, tuple[str, bool]
        ] = {}  # commit -> the memory that holds its value, whether it is kept before the loop

    # --- statements ----------------------------------------------------------------------------------------------

    def add(self, *statements: ir.Statement) -> None:
        """Adds statements to the current block."""
        self.block += statements

    def for_each(self, index: ir.Expr, bounds: Bounds, body: ir.Block) -> ir.For:
        """A loop; `bounds` is what Python's `range` takes."""
        assert isinstance(index, ir.Var)
        return ir.For(index.name, *ir.range_bounds(bounds if isinstance(bounds, tuple) else (bounds,)), body)

    def loop(self, index: ir.Expr, bounds: Bounds, body: ir.Block) -> None:
        """Adds a loop."""
        self.add(self.for_each(index, bounds, body))

    def loop_over(self, depth: int, bounds: Bounds, body: Callable[[ir.Var], None]) -> None:
        """Adds a loop whose body is what `body` adds for the index, which has the name for a depth."""
        index = self.index_name(depth)
        with self.nested() as block:
            body(index)
        self.loop(index, bounds, block)

    def nest(
        self, index: ir.Var, bounds: Bounds, body: ir.Block, large: bool, may_join: bool = True,
        independent: bool = False,
    ) -> None:  # fmt: skip
        """Adds the loop of a nest over elements. large: it is worth running on threads. may_join: another nest over the
        same rows may be fused with it; False if it calls a function that writes to arrays. independent: no trip reads
        or writes an element that another one writes, though subscripts don't show that."""
        self.nest_loop = self.for_each(index, bounds, body)
        self.nest_loop.nest = may_join
        self.nest_loop.independent = independent
        self.nest_loop.parallel = large and not ir.may_leave(body)
        self.add(self.nest_loop)

    def is_large(self, nodes: Sequence[Node]) -> bool:
        """Whether a nest of these nodes is to be split over the processor's threads."""
        return not self.for_device and parallelize.is_large(nodes)

    def branch(self, test: ir.Expr, body: ir.Block, orelse: ir.Block | None = None) -> None:
        """Adds an `if`."""
        self.add(ir.If(test, body, orelse or []))

    @contextlib.contextmanager
    def nested(self) -> Iterator[ir.Block]:
        """Collects the statements that are added meanwhile in a block; the caller inserts the block."""
        outer, self.block = self.block, []
        self.broadcasts.append({})
        try:
            yield self.block
        finally:
            self.hidden |= ir.assigned(self.block)
            self.broadcasts.pop()
            self.block = outer

    def assign(self, expr: ir.Expr, base: str | None = None) -> ir.Var:
        """A new variable with this value."""
        variable = ir.Var(self.names.fresh(base), expr.type)
        self.add(ir.assign(variable, expr))
        return variable

    def atom(self, expr: ir.Expr, base: str | None = "n") -> Atom:
        """A dimension (or other integer) as a variable or constant."""
        if isinstance(expr, ir.Var) or (isinstance(expr, ir.Const) and expr.type == INT64 and expr.value >= 0):
            return expr
        return self.assign(expr, base)

    def fail_when(
        self, condition: ir.Expr, error: str, message: str, node: Node, details: Sequence[ir.Expr] = (),
        op: str | None = None,
        dtypes: Sequence[DType] = (), summarize: int = 3,
    ) -> None:  # fmt: skip
        """Adds a check that leaves the kernel with an error. `details` are the integers that the message shows; those
        that encode other scalars (see `lib.bits`) have their dtype in `dtypes`."""
        message = with_op(message, errors.BY_NAME[error], node)
        self.leave_when(condition, ErrorSite(error, message, node.span, op, tuple(dtypes), summarize), details)

    def leave_when(
        self, condition: ir.Expr, site: ErrorSite, details: Sequence[ir.Expr] = ()
    ) -> None:  # fmt: skip
        """Adds a return with the status of `site`."""
        self.errors.append(site)
        self.details = max(self.details, len(details))
        self.branch(condition, [ir.Fail(len(self.errors), tuple(details))])

    def bits(self, value: Value) -> ir.Expr:
        """A scalar as an int64, which Python reads with `scalar_of_bits`."""
        number: ir.Expr = self.scalar_name(value)
        if value.dtype.is_narrow:
            number = scalars.convert(number, value.dtype, float32)
        return ir.call("lib.bits", number) if value.dtype.is_floating else ir.Convert(INT64, number)

    # --- values --------------------------------------------------------------------------------------------------

    def ref(self, value: Value) -> Ref:
        """The ref of the value; a pending computation of it is lowered now."""
        found = self.region.env[value]
        while isinstance(found, Pending):
            self.fusion.flush(found.group)
            found = self.region.env[value]
        if isinstance(found, ConcatView):
            found = written(self, found, value.name)
            self.define(value, found)
            found = self.region.env[value]
        return found

    def define(self, value: Value, ref: Any) -> None:
        """Binds a value. Static dimensions of its type replace computed ones."""
        if isinstance(ref, (Array, Broadcast, Virtual, Vector)) and isinstance(value.type, TensorType):
            ref = self.with_dims(ref, self.type_dims(value.type, ref.dims))
        if isinstance(ref, Array):
            ref.buffer.values.append(value)
        elif isinstance(ref, Broadcast):
            ref.source.buffer.values.append(value)
        self.region.env[value] = ref

    def wait(self, value: Value, ref: Any) -> None:
        """Binds a value to an array that is lowered only if it is needed (see `loops/concat_views.py`)."""
        if isinstance(ref, ConcatView):
            self.region.env[value] = self.fusion.views[value] = ref
        else:
            self.define(value, ref)

    def scalar(self, value: Value) -> ir.Expr:
        """The expression of a rank-0 value."""
        ref = self.ref(value)
        assert isinstance(ref, Scalar), (value, ref)
        return ref.expr

    def scalar_name(self, value: Value) -> ir.Var | ir.Const:
        """A rank-0 value as a variable or a constant: an expression that may be used several times, since it is
        computed once."""
        ref = self.ref(value)
        assert isinstance(ref, Scalar), (value, ref)
        if isinstance(ref.expr, (ir.Var, ir.Const)):
            return ref.expr
        name = self.assign(ref.expr, value.name)
        if ref.expr in self.sizes:
            self.sizes[name] = self.sizes[ref.expr]
        self.region.env[value] = replace(ref, expr=name, range=known_range(ref))
        return name

    def index_name(self, depth: int) -> ir.Var:
        """The variable of a loop over array elements; loops at the same depth share one."""
        while len(self.index_names) <= depth:
            self.index_names.append(ir.Var(self.names.fresh("ijklmnpq"[len(self.index_names) % 8]), INT64))
        return self.index_names[depth]

    def dims(self, value: Value) -> Dims:
        """The dimension atoms of a value, without computing it."""
        found = self.region.env[value]
        return () if isinstance(found, Scalar) else found.dims

    def array(self, value: Value) -> Array:
        """The value as a contiguous array in memory."""
        ref = self.ref(value)
        solid = self.solid(ref, value.name)
        if solid is not ref:
            solid.buffer.values.append(value)
            self.region.env[value] = solid
        return solid

    def solid(self, ref: Any, base: str | None = None) -> Array:
        """A contiguous array in memory with the elements of `ref`."""
        if isinstance(ref, Array) and ref.is_plain:
            return ref
        buffer = self.new_buffer(product(ref.dims) if not isinstance(ref, Scalar) else ir.ONE, ref.dtype, base)
        if isinstance(ref, Scalar):
            self.add(ir.store(buffer.variable, 0, ref.expr))
            return Array(buffer, ())
        if isinstance(ref, Vector):
            for index, item in enumerate(ref.items):
                self.add(ir.store(buffer.variable, index, item))
        else:
            self.copy_into(Array(buffer, ref.dims), ref)
        return Array(buffer, ref.dims)

    def new_buffer(self, size: ir.Expr, dtype: DType, base: str | None = None) -> Buffer:
        """Memory for `size` elements."""
        name = self.names.fresh(base or "a")
        self.fresh.add(name)
        self.add(ir.Alloc(name, size, scalars.machine_type(dtype)))
        return Buffer(name, dtype, owned=True)

    def copy_into(self, target: Array, ref: Any, add: bool = False, dims: Dims | None = None) -> None:
        """Adds a loop that writes (or adds) the elements of `ref` into those of `target` (see `loops/copies.py`)."""
        copy(self, target, ref, add, dims)

    def strides(self, array: Array) -> tuple[Atom, ...]:
        """For each dimension, the distance between neighbouring elements in the buffer."""
        if array.strides is not None:
            return array.strides
        return tuple(self.product(array.dims[axis + 1 :], "stride") for axis in range(len(array.dims)))

    def product(self, dims: Sequence[Atom], base: str = "n") -> Atom:
        """The product of dimensions. It has one name, so that nests over as many elements can be fused."""
        factors = tuple([each for each in dims if each != ir.ONE])
        known = self.products.get(factors)
        if known is not None and self.is_visible(known):
            return known
        found = self.products[factors] = self.atom(product(factors), base)
        if isinstance(found, ir.Var) and found not in factors:
            self.shape_env.values[found.name] = self.shape_env.product(factors)
        return found

    def empty_buffer(self, dtype: DType) -> ir.Var:
        """An empty array; the function has one for each dtype."""
        if dtype not in self.empty_buffers:
            self.empty_buffers[dtype] = self.names.fresh(f"no_{dtype.name}")
        return ir.array_variable(self.empty_buffers[dtype], scalars.machine_type(dtype))

    def copied(self, array: Array, base: str | None = None) -> Array:
        """A copy of an array in a new buffer, which the kernel owns. `base`: the beginning of the buffer's name."""
        buffer = self.new_buffer(product(array.dims), array.dtype, base)
        self.copy_into(Array(buffer, array.dims), array)
        return Array(buffer, array.dims)

    def snapshot(self) -> tuple:
        """The state to restore when statements are discarded and lowered again."""
        return (
            self.names.snapshot(), list(self.errors), self.details, list(self.constants), dict(self.static),
            dict(self.numbers), dict(self.prologue), set(self.hidden), dict(self.empty_buffers), dict(self.sizes),
            list(self.index_names), dict(self.kept), set(self.fresh), list(self.reports), list(self.functions),
            dict(self.products), self.shape_env.snapshot(),
        )  # fmt: skip

    def restore(self, saved: tuple) -> None:
        self.names.restore(saved[0])
        self.nest_loop = None
        (
            self.errors, self.details, self.constants, self.static, self.numbers, self.prologue, self.hidden,
            self.empty_buffers, self.sizes, self.index_names, self.kept, self.fresh, self.reports, self.functions,
            self.products,
        ) = saved[1:-1]  # fmt: skip
        self.shape_env.restore(saved[-1])

    def may_overwrite(self, value: Value) -> bool:
        """Whether this kernel owns the value's memory and the current node is the last to use it."""
        return self._still_read(value) == []

    def frees_memory_of(self, value: Value) -> bool:
        """Whether the current node may overwrite the value's memory, after this call has copied the elements that later
        nodes read from it."""
        readers = self._still_read(value)
        if not readers:
            return readers is not None
        refs = [self.region.env[other] for other in readers]
        if not all(isinstance(ref, Array) and not ref.whole for ref in refs):
            return False
        for other in readers:
            scalarize.keep_elements(self, other) if self.region.in_loop and scalarize.is_small(other) else self.array(
                other
            )
        for buffer in self.region.env[value].buffer.sharers:
            buffer.values = [other for other in buffer.values if other not in readers]
        return True

    def _still_read(self, value: Value) -> list[Value] | None:
        """The other values in the value's memory that the current node or a later one reads; None if this kernel
        doesn't own the memory, or the value itself is read again."""
        ref = self.region.env[value]
        if not isinstance(ref, Array) or not ref.is_plain or not ref.buffer.owned:
            return None
        region = self.region
        current = region.graph.nodes[region.index]
        found = [
            other
            for buffer in ref.buffer.sharers
            for other in buffer.values
            if region.last_use.get(other, -1) > region.index or (other is not value and other in current.inputs)
        ]
        return None if value in found or current.inputs.count(value) > 1 else list(dict.fromkeys(found))

    # --- nodes ---------------------------------------------------------------------------------------------------

    def emit_graph(self, graph: Graph, inputs: Sequence[Any], in_loop: bool = False) -> list[Any]:
        """Lowers a region's nodes here. Returns the refs of its outputs; groups that compute them are lowered."""
        outer = self.region
        in_loop = in_loop or outer.in_loop
        self.region = Region(graph, in_loop, self.scalarization.nodes(graph) if in_loop else frozenset())
        fusion, self.fusion = self.fusion, Fusion(self)
        try:
            for value, ref in zip(graph.inputs, inputs):
                self.define(value, ref)
            for index, node in enumerate(graph.nodes):
                self.region.index = index
                if node in self.region.live:
                    self.fusion.keep_order(node)
                    with _attributing_errors_to(node):
                        self.emit(node)
            self.region.index = len(graph.nodes)
            return [self.ref(v) for v in graph.outputs]
        finally:
            self.region, self.fusion = outer, fusion

    def emit(self, node: Node) -> None:
        cancellation.point()
        lowering = EMITTERS.get(node.op.name)
        if not self.for_device and calls_out(node):
            self.call_out(node)
        elif node in self.region.small:
            scalarize.emit(self, node)
        elif lowering is not None:
            lowering(self, node)
        elif node.op.is_elementwise:
            self.emit_elementwise(node)
        else:
            raise NotNative(f"op '{node.op.name}' can't be compiled", node)

    def call_out(self, node: Node) -> None:
        """Lets Python run a node that has no native form."""
        self.fusion.flush_all()
        call = call_outs.of_node(node)
        numbers: list[ir.Expr] = [ir.ZERO]
        arrays: list[ir.Var] = []
        for value in node.inputs:
            if isinstance(value.type, TokenType):
                continue
            if value.type.rank == 0:  # type: ignore[union-attr]
                numbers.append(self.bits(value))
            else:
                array = self.array(value)
                numbers += array.dims
                arrays.append(array.buffer.variable)
        results = [
            (value, Array(self.new_buffer(product(dims), value.dtype, value.name), dims))
            for value in node.outputs
            if not isinstance(value.type, TokenType)
            for dims in [tuple(self.static_dim(size) for size in value.shape)]
        ]
        record = self.new_buffer(ir.as_expr(len(numbers)), int64, "record").variable
        for place, number in enumerate(numbers):
            self.add(ir.store(record, place, number))
        name = self.names.fresh("python")
        self.constants.append((name, call))
        arrays += [array.buffer.variable for _, array in results]
        self.add(ir.Run(ir.call("lib.call_out", ir.size_variable(name), record, *arrays)))
        failed = ir.load(record, call_outs.FAILED).compare("!=", 0)
        self.leave_when(failed, call_outs.Failed("", "", node.span, call=call))
        for value, array in results:
            scalar = ir.load(array.buffer.variable, 0)
            self.define(value, array if array.dims else Scalar(self.assign(scalar, value.name), value.dtype))
        for value in node.outputs:
            if isinstance(value.type, TokenType):
                self.define(value, TOKEN)

    def emit_elementwise(self, node: Node) -> None:
        output = node.outputs[0]
        if output.type.rank:  # type: ignore[union-attr]
            self.fusion.add(node)
            return
        known = None
        if output.dtype.is_integer:
            self.check_operands(node, self.scalar_name)
            refs = [self.ref(v) for v in node.inputs]
            known = result_of(node.op, [range_of(ref) for ref in refs], output.dtype)
            known = self.shape_env.refined(node.op.arithmetic, refs, known, output.dtype)
        self.define_scalar(node, self.expression(node, [self.scalar(v) for v in node.inputs], alone=True), known=known)

    def check_operands(self, node: Node, name_of: Callable[[Value], ir.Expr]) -> None:
        """Adds the checks that an integer op's row requires."""
        known = [known_range(self.region.env[v]) for v in node.inputs]
        if node.op.divisor is not None:
            known[node.op.divisor] = self.shape_env.nonzero(known[node.op.divisor])
        for condition, error, message in checks(node, known, name_of):
            self.fail_when(condition, error, message, node)

    def expression(self, node: Node, operands: Sequence[ir.Expr], alone: bool = False) -> ir.Expr:
        """An elementwise op on the given operands, of exactly the output's dtype."""
        output = node.outputs[0].dtype
        sources = [v.dtype for v in node.inputs]
        if node.op.arithmetic in scalars.CONVERSIONS:
            return scalars.CONVERSIONS[node.op.arithmetic](operands[0], sources[0], output)
        template = template_of(node.op.scalar, operands, sources, output)
        operands = [
            operand
            if isinstance(operand, (ir.Var, ir.Const)) or uses(template, index) <= 1
            else self.assign(operand, "t")
            for index, operand in enumerate(operands)
        ]
        expr = rule_expression(node.op.scalar, operands, sources, output)
        found = scalars.narrow(scalars.fast(expr, output, alone), output)
        if output is int64 and found.type != INT64 and node.outputs[0].shape != ():
            return ir.Convert(INT64, found)  # numbers that were widened keep their type, elements have the array's
        return found

    def define_scalar(self, node: Node, expr: ir.Expr, pure: bool = True, known: Range | None = None) -> None:
        """Binds a node's rank-0 output; short expressions that are used once aren't named. `pure`: doesn't read
        memory."""
        value = node.outputs[0]
        if not (pure and self.needs_no_name(value, expr)):
            expr = self.assign(expr, value.name)
        self.define(value, Scalar(expr, value.dtype, known))

    def needs_no_name(self, value: Value, expr: ir.Expr) -> bool:
        if isinstance(expr, (ir.Var, ir.Const)):
            return True
        region = self.region
        if region.uses[value] != 1 or value.name is not None or len(ir.expressions(expr)) > cost_model.EXPRESSION_SIZE:
            return False
        users = region.users.get(value)
        if not users:
            return True  # an output
        user = users[0]
        if user.op.is_elementwise:
            rank = user.outputs[0].type.rank  # type: ignore[union-attr]
            return rank == 0 and user in region.live
        return user.op.name == "cond" and user.inputs[0] is value


@contextlib.contextmanager
def _attributing_errors_to(node: Node) -> Iterator[None]:
    """Attaches the node to an error in its lowering, so that a report can name it."""
    try:
        yield
    except (NotNative, Assumed, errors.KernelError):
        raise
    except Exception as error:
        failure = errors.KernelError(f"the lowering of op '{node.op.name}' failed: {type(error).__name__}: {error}")
        failure.node = node
        raise failure from error
