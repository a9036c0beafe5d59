"""Builds graphs while Python runs: ops emit nodes here, regions capture what they use from outside.

A `Builder` is active while it is `ctx.builder` (use `with builder:`). Root builders make a function's graph; region
builders, made by `trace_region`, make the bodies of `cond` and `while`.

    body = trace_region("body", lambda i: [i + 1], [TensorType(int32, ())])
    (i,) = emit_while(test, body, [i0])

Variables and the effect order are *state*: a key (a reference to the variable, or `TOKEN`) with a current
value in each builder.
A region that only reads state captures it; one that writes it carries it (`while`) or gives it out (`cond`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import field
from typing import Any

from runtime import errors
from runtime.context import ctx
from runtime.dataclass import dataclass
from runtime.dtypes import DType
from runtime.graph.callers import user_place, user_span
from runtime.graph.ir import ConstantArray, Graph, Node, Substitution, Value, copy_nodes
from runtime.graph.structural import ASSIGN, CALL, COND, CONSTANT, LETREC, WHILE
from runtime.ops.convert import quick_scalar
from runtime.ops.table import OpDef
from runtime.shapes import widen
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor
from runtime.types import TensorType, TokenType, Type

TOKEN = "order token"
_numbers: dict[tuple[type, float | int, DType], tuple[ConstantArray, tuple]] = {}  # with the types of the constants


class Builder:
    """Collects the nodes of one graph.

    name      the function's name, for messages
    parent    the builder around it, for regions
    foreign   graphs whose values may be used directly; they become captures (adjoint regions use forward values)
    """

    def __init__(self, name: str, parent: Builder | None = None, foreign: Sequence[Graph] = ()) -> None:
        self.name = name
        self.graph = Graph(name)
        self.parent = parent
        self.foreign = tuple(foreign)
        self.captured: dict[Value, Value] = {}  # outer value -> own input
        self.outside: dict[Value, Value] = {}  # own input -> outer value
        self.entries: dict[Value, Any] = {}  # what is known of small integer tensors; see `runtime.ops.entries`
        self.state: dict[Any, Value] = {}  # key -> current value
        self.state_inputs: dict[Any, Value] = {}  # key -> own input
        self.written: dict[Any, None] = {}  # keys in the order they were first written
        self.eager_captures: dict[int, tuple[EagerTensor, Value]] = {}  # root only
        self.known: set[Value] = set()  # booleans known to be true here; see `SymbolicTensor.guard`
        self.names_read: set[int] = set()  # root only: ids of the variables whose names Python read
        self._outer: list[Any] = []

    # --- being the current builder -------------------------------------------------------------------------------

    def __enter__(self) -> Builder:
        self._outer.append(ctx.builder)
        ctx.builder = self
        return self

    def __exit__(self, *exception: Any) -> None:
        ctx.builder = self._outer.pop()

    def mark(self) -> Callable[[], None]:
        """What puts the builder, and the tapes that are open in it, back to where they are now."""
        graph, count = self.graph, len(self.graph.nodes)
        state, written, known = dict(self.state), dict(self.written), set(self.known)
        rewinds = [recorder.mark() for recorder in ctx.recorders if recorder.builder is self]

        def rewind() -> None:
            del graph.nodes[count:]
            # What was read for the first time since then stays an input.
            self.state, self.written, self.known = {**self.state_inputs, **state}, written, known
            for each in rewinds:
                each()

        return rewind

    @property
    def root(self) -> Builder:
        """The builder of the function."""
        found = self
        while found.parent is not None:
            found = found.parent
        return found

    def sketch(self) -> Builder:
        """A builder for a trial, whose graph is dropped."""
        return Builder(f"a trial in {self.name}")

    # --- values --------------------------------------------------------------------------------------------------

    def tensor(self, value: Value) -> SymbolicTensor:
        return SymbolicTensor(value, self)

    def add_input(self, type_: Type, name: str | None = None) -> Value:
        return self.graph.add_input(type_, name)

    def unknown(self, type_: Type) -> SymbolicTensor:
        """A tensor of which only the type is known, for a trace that will be dropped: nothing makes it."""
        return SymbolicTensor(Value(type_, self.graph), self)

    def use(self, tensor: Any) -> Value:
        """The value of this graph that stands for `tensor` (or outer value); captures it when it comes from outside.

        Raises InaccessibleTensorError for a symbolic tensor of a function that isn't around this one.
        """
        if type(tensor) is SymbolicTensor:
            value = tensor.value
            if tensor.guard is not None:
                tensor.guard.demand(self)
        elif isinstance(tensor, Value):
            value = tensor
        elif isinstance(tensor, EagerTensor):
            return self._use_eager(tensor)
        else:
            raise TypeError(f"expected a tensor, got {type(tensor).__name__}")
        if value.graph is self.graph:
            return value
        own = self.captured.get(value)
        if own is not None:
            return own
        if value.graph in self.foreign:
            return self._capture(value)
        if self.parent is None:
            raise errors.leaked(value, value.graph.name, self.name)
        return self._capture(self.parent.use(value))

    def _capture(self, outer: Value) -> Value:
        own = self.captured.get(outer)
        if own is None:
            own = self.captured[outer] = self.graph.add_input_like(outer)
            self.outside[own] = outer
        return own

    def forget_captures(self, used: Container[Value]) -> None:
        """Drops the captures that aren't among the `used` values of this graph."""
        unused = {own: outer for outer, own in self.captured.items() if own not in used}
        for outer in unused.values():
            del self.captured[outer]
        self.graph.inputs = [v for v in self.graph.inputs if v not in unused]

    def _use_eager(self, tensor: EagerTensor) -> Value:
        if self.parent is not None:
            return self._capture(self.parent._use_eager(tensor))
        entry = self.eager_captures.get(id(tensor))
        if entry is None:
            entry = tensor, self.add_input(tensor.type)
            self.eager_captures[id(tensor)] = entry
        return entry[1]

    # --- nodes ---------------------------------------------------------------------------------------------------

    def emit(self, op: OpDef, inputs: Sequence[Any], attrs: dict[str, Any]) -> tuple[Tensor, ...]:
        """Adds a node and gives its tensors. Raises ValueError or TypeError when the op's type rule refuses."""
        own = self.graph
        values = [
            t.value if t.__class__ is SymbolicTensor and t.value.graph is own and t.guard is None else self.use(t)
            for t in inputs
        ]
        try:
            types = op.infer([v.type for v in values], attrs)
        except errors.OpError as error:
            # TensorFlow raises ValueError for what shape inference finds while tracing.
            raise ValueError(error.message) from None
        if op.effect:
            node = self._add_effect(op, values, attrs, types)
        else:
            span, name = user_place()
            node = self._add(op, values, attrs, types, (), span)
            node.name = name
        outputs = tuple([SymbolicTensor(v, self) for v in node.outputs[: len(types)]])
        return outputs if ctx.numerics is None else ctx.numerics(self, op, inputs, outputs)

    def _add(
        self, op: OpDef, values: Sequence[Value], attrs: dict, types: Sequence[Type], regions: Any, span: Any
    ) -> Node:
        """A node that knows the `device` block of the function that it stands in."""
        node = self.graph.add_node(op, values, attrs, types, regions, span)
        if ctx.device is not None and ctx.traced_in is self.root:
            node.device = ctx.device
        return node

    def _add_effect(
        self, op: OpDef, values: list[Value], attrs: dict, types: Sequence[Type], regions: Any = ()
    ) -> Node:
        token = self.read_state(TOKEN)
        span, name = user_place()
        node = self._add(op, [*values, token], attrs, [*types, TokenType()], regions, span)
        node.name = name
        self.write_state(TOKEN, node.outputs[-1])
        return node

    def constant(self, array: Any) -> SymbolicTensor:
        """A constant of the graph."""
        attrs = {"value": ConstantArray(array)}
        node = self.graph.add_node(CONSTANT, (), attrs, CONSTANT.infer((), attrs))
        return SymbolicTensor(node.outputs[0], self)

    def number(self, value: float | int, dtype: DType) -> SymbolicTensor | None:
        """A constant for a Python number; None if its conversion needs the general rules (and their errors)."""
        key = value.__class__, value, dtype
        known = _numbers.get(key)
        if known is None:
            scalar = quick_scalar(value, dtype)
            if scalar is None:
                return None
            attrs = {"value": ConstantArray(scalar._array)}
            known = attrs["value"], CONSTANT.infer((), attrs)
            if value and len(_numbers) < 4096:  # the two zeros are equal, and nothing else that differs
                _numbers[key] = known
        node = self.graph.add_node(CONSTANT, (), {"value": known[0]}, known[1])
        return SymbolicTensor(node.outputs[0], self)

    def inline(self, graph: Graph, arguments: Sequence[Any]) -> list[Value]:
        """Copies the nodes of `graph` here, with `arguments` for its inputs; gives the values of its outputs."""
        mapping = Substitution(zip(graph.inputs, [self.use(a) for a in arguments]))
        start = len(self.graph.nodes)
        copy_nodes(graph.nodes, self.graph, mapping)
        if ctx.device is not None and ctx.traced_in is self.root:
            for node in self.graph.nodes[start:]:
                node.device = ctx.device
        recorders = [r for r in ctx.recorders if r.builder is self]
        if recorders:
            for node in self.graph.nodes[start:]:
                count = -1 if node.op.effect else None
                inputs = tuple(self.tensor(v) for v in node.inputs[:count])
                outputs = tuple(self.tensor(v) for v in node.outputs[:count])
                for recorder in recorders:
                    recorder.record(node.op, inputs, node.attrs, outputs)
        return [mapping[v] for v in graph.outputs]

    # --- state ---------------------------------------------------------------------------------------------------

    def note_name(self, variable: Any) -> None:
        """Notes that Python has read a variable's name while the graph was made: it may depend on that."""
        self.root.names_read.add(id(variable))

    def read_state(self, key: Any) -> Value:
        """The current value of a state key; the first read in a graph makes it an input."""
        value = self.state.get(key)
        if value is None:
            type_ = TokenType() if key is TOKEN else key.deref()._state_type()
            name = None if key is TOKEN else key.deref()._name.partition(":")[0]
            value = self.state[key] = self.state_inputs[key] = self.add_input(type_, name)
            if self.parent is not None:
                self.parent.read_state(key)
        return value

    def write_state(self, key: Any, value: Value) -> None:
        self.read_state(key)
        self.state[key] = value
        self.written[key] = None

    def merge_state(self, key: Any, value: Value) -> None:
        """Makes a result of control flow or of an inlined function the current value of a state key.

        To a tape open here, a later read of a variable is a read of its own: through the node that gave the value, what
        is read later would count a second time.
        """
        if key is not TOKEN and any(r.builder is self for r in ctx.recorders):
            value = self.graph.add_node(ASSIGN, [value, value], {}, [value.type]).outputs[0]
        self.write_state(key, value)

    def own_read(self, key: Any, before: Node | None, value: Value) -> Value:
        """A value of its own for a variable's value that a node here reads (None: the next), and for what is read
        later."""
        made = Node(ASSIGN, [value, value], {}, [value.type], self.graph)
        self.graph.nodes.insert(len(self.graph.nodes) if before is None else self.graph.nodes.index(before), made)
        if self.state[key] is value:
            self.state[key] = made.outputs[0]
        return made.outputs[0]

    def read_token(self) -> Value:
        """The current order token."""
        return self.read_state(TOKEN)

    def write_token(self, value: Value) -> None:
        self.write_state(TOKEN, value)

    def read_variable(self, variable: Any) -> SymbolicTensor:
        tensor = SymbolicTensor(self.read_state(variable.ref()), self)
        self._record_read(variable, tensor)
        return tensor

    def _record_read(self, variable: Any, tensor: SymbolicTensor) -> None:
        for recorder in ctx.recorders:
            if recorder.builder is self:
                recorder.record_read(variable, tensor)

    def assign_variable(self, variable: Any, tensor: Any) -> SymbolicTensor:
        """Sets a variable's value from here on. The new value is cut off from `tensor` for gradients."""
        key = variable.ref()
        old = self.read_state(key)
        node = self.graph.add_node(ASSIGN, [old, self.use(tensor)], {"variable": key}, [old.type], (), user_span())
        self.write_state(key, node.outputs[0])
        return SymbolicTensor(node.outputs[0], self)


@dataclass
class Region:
    """A traced block, not yet part of a node. `carries` are the inputs that stand for the types it was traced with."""

    builder: Builder
    carries: list[Value]
    outputs: list[Value]
    result: Any = field(default=None, repr=False)  # what the traced callable returned, before `outputs` were taken

    @property
    def types(self) -> list[Type]:
        return [v.type for v in self.outputs]


def trace_region(
    name: str,
    function: Callable[..., Sequence[Any]],
    types: Sequence[Type] = (),
    names: Sequence[str] | None = None,
    foreign: Sequence[Graph] = (),
) -> Region:
    """Runs `function` on symbolic tensors of `types` in a fresh region of the current builder.

    It must return a sequence of tensors, the region's outputs. Whatever it uses from outside is captured. Nothing is
    added to the current builder until the region is handed to `emit_while` or `emit_cond`; a region may be dropped.
    """
    parent = ctx.builder
    builder = Builder(name, parent, foreign)
    carries = [builder.add_input(t, n) for t, n in zip(types, names or [None] * len(types))]  # type: ignore[list-item]
    with builder:
        result = function(*[builder.tensor(v) for v in carries])
        outputs = [builder.use(t) for t in result]
    return Region(builder, carries, outputs, result)


def emit_cond(pred: Any, then: Region, other: Region) -> list[SymbolicTensor]:
    """A `cond` node in the current builder; the regions' outputs must have the same dtypes in the same order.

    Shapes that differ widen to unknown dimensions. Raises TypeError when dtypes or counts differ.
    """
    parent: Builder = ctx.builder
    predicate = parent.use(pred)
    keys = list(dict.fromkeys([*then.builder.written, *other.builder.written]))
    if len(then.outputs) != len(other.outputs):
        raise TypeError(f"cond branches give {len(then.outputs)} and {len(other.outputs)} values")
    outputs_then = [*then.outputs, *[then.builder.read_state(k) for k in keys]]
    outputs_other = [*other.outputs, *[other.builder.read_state(k) for k in keys]]
    types = [join_types(a.type, b.type) for a, b in zip(outputs_then, outputs_other)]
    outer = _unify_inputs(parent, (then.builder, other.builder), [], [])
    then.builder.graph.outputs = outputs_then
    other.builder.graph.outputs = outputs_other
    return _emit_regions(parent, COND, [predicate, *outer], {"types": tuple(types)}, types, (then, other), keys)


def emit_while(test: Region, body: Region, init: Sequence[Any], attrs: dict | None = None) -> list[SymbolicTensor]:
    """A `while` node in the current builder, from `init`, whose types must be those both regions were traced with.

    Raises TypeError when the body's output types don't fit the carries.
    """
    parent: Builder = ctx.builder
    if test.builder.written:
        return _emit_rotated_while(test, body, init, attrs)
    keys = list(body.builder.written)
    start = [parent.use(t) for t in init]
    types = [v.type for v in body.carries]
    for carry, output in zip(body.carries, body.outputs):
        if join_types(carry.type, output.type) != carry.type:
            raise TypeError(f"loop carry {carry!r} gets a value of type {output.type}")
    carries = [test.carries, body.carries]
    outer = _unify_inputs(parent, (test.builder, body.builder), carries, keys)
    state = [parent.read_state(k) for k in keys]
    types += [v.type for v in state]
    test.builder.graph.outputs = list(test.outputs)
    body.builder.graph.outputs = [*body.outputs, *[body.builder.state[k] for k in keys]]
    attrs = {"carries": len(types), **(attrs or {})}
    return _emit_regions(parent, WHILE, [*start, *state, *outer], attrs, types, (test, body), keys)


def emit_letrec(name: str, body: Region, arguments: Sequence[Any], keys: Sequence[Any]) -> list[SymbolicTensor]:
    """A `letrec` node in the current builder that calls a recursive function with `arguments`, of its carries' types.

    keys: the state that each call takes and gives; at least what the body writes.
    """
    parent: Builder = ctx.builder
    operands = [parent.use(t) for t in arguments]
    inner = body.builder
    outer = _unify_inputs(parent, (inner,), [body.carries], list(keys))
    inner.graph.outputs = [*body.outputs, *[inner.read_state(k) for k in keys]]
    types = [v.type for v in inner.graph.outputs]
    state = [parent.read_state(k) for k in keys]
    attrs = {"functions": (name,), "captures": len(outer), "types": tuple(types)}
    return _emit_regions(parent, LETREC, [*operands, *state, *outer], attrs, types, (body,), list(keys))


def emit_call(
    name: str, arguments: Sequence[Any], types: Sequence[Type], keys: Sequence[Any] = ()
) -> list[SymbolicTensor]:
    """A `call` of a function of a `letrec` around the current builder; gives the results, of `types`.

    keys: the state that the function takes and gives.
    """
    builder: Builder = ctx.builder
    inputs = [*[builder.use(t) for t in arguments], *[builder.read_state(k) for k in keys]]
    types = [*types, *[v.type for v in inputs[len(arguments) :]]]
    return _emit_regions(builder, CALL, inputs, {"function": name, "types": tuple(types)}, types, (), list(keys))


def emit_functions(names: Sequence[str], functions: Sequence[Graph], arguments: Sequence[Any]) -> list[SymbolicTensor]:
    """A `letrec` node that calls the first of some functions, which capture nothing and have no effects."""
    parent: Builder = ctx.builder
    types = [v.type for v in functions[0].outputs]
    attrs = {"functions": tuple(names), "captures": 0, "types": tuple(types)}
    node = parent._add(LETREC, [parent.use(t) for t in arguments], attrs, types, functions, user_span())
    return _recorded(parent, node)


def _emit_regions(
    parent: Builder, op: OpDef, inputs: list[Value], attrs: dict, types: list[Type], regions: Any, keys: list
) -> list[SymbolicTensor]:
    graphs = [r.builder.graph for r in regions]
    # The variables that a region reads are reads of the outer graph too, for the tapes that are open there.
    for region in regions:
        for key in region.builder.state_inputs:
            if key is not TOKEN:
                parent._record_read(key.deref(), parent.tensor(parent.read_state(key)))
    node = parent._add(op, inputs, attrs, types, graphs, user_span())
    count = len(types) - len(keys)
    for key, value in zip(keys, node.outputs[count:]):
        parent.merge_state(key, value)
    return _recorded(parent, node)[:count]


def _recorded(parent: Builder, node: Node) -> list[SymbolicTensor]:
    """The results of control flow, which the tapes see that are open in a builder."""
    outputs = [parent.tensor(v) for v in node.outputs]
    for recorder in ctx.recorders:
        if recorder.builder is parent:
            # Recorded with all inputs: state and captures are differentiable operands like any other.
            recorder.record(node.op, tuple(parent.tensor(v) for v in node.inputs), node.attrs, tuple(outputs))
    return outputs


def _unify_inputs(
    parent: Builder, builders: Sequence[Builder], carries: Sequence[list[Value]], keys: list
) -> list[Value]:
    """Gives both regions the same inputs: carries, then written state, then every outer value either of them uses.

    Returns the outer values, in that order (without carries and written state).
    """
    outer: dict[Value, None] = {}
    for builder in builders:
        outer.update(dict.fromkeys(builder.captured))
    read_only: dict[Any, None] = {}
    for builder in builders:
        read_only.update(dict.fromkeys(k for k in builder.state_inputs if k not in keys))
    for index, builder in enumerate(builders):
        own = list(carries[index]) if carries else []
        own += [_state_input(builder, k) for k in keys]
        own += [builder.captured.get(v) or Value(v.type, builder.graph) for v in outer]
        own += [_state_input(builder, k) for k in read_only]
        builder.graph.inputs = own
    return [*outer, *[parent.read_state(k) for k in read_only]]


def _state_input(builder: Builder, key: Any) -> Value:
    builder.read_state(key)
    return builder.state_inputs[key]


def _emit_rotated_while(test: Region, body: Region, init: Sequence[Any], attrs: dict | None) -> list[SymbolicTensor]:
    """A loop whose test has effects: the test runs once before the loop and once at the end of each trip.

    while test(x): x = body(x)    →    go = test(x)
                                       while go: x = body(x); go = test(x)
    """
    parent: Builder = ctx.builder

    def run(region: Region, builder: Builder, arguments: Sequence[Any]) -> list[SymbolicTensor]:
        inner, graph = region.builder, region.builder.graph
        mapping = Substitution(zip(region.carries, [builder.use(a) for a in arguments]))
        for outer, own in inner.captured.items():
            mapping[own] = builder.use(outer)
        for key, own in inner.state_inputs.items():
            mapping[own] = builder.read_state(key)
        copy_nodes(graph.nodes, builder.graph, mapping)
        for key in inner.written:
            builder.write_state(key, mapping[inner.state[key]])
        return [builder.tensor(mapping[v]) for v in region.outputs]

    go = run(test, parent, init)[0]

    def rotated_body(*carried: Any) -> list[Any]:
        values = run(body, ctx.builder, carried[:-1])
        return [*values, run(test, ctx.builder, values)[0]]

    types = [*[v.type for v in body.carries], TensorType(go.dtype, ())]
    new_test = trace_region("test", lambda *carried: [carried[-1]], types)
    new_body = trace_region("body", rotated_body, types)
    return emit_while(new_test, new_body, [*init, go], attrs)[:-1]


def join_types(a: Type, b: Type) -> Type:
    """The type that covers both. Raises TypeError when they differ in more than shape."""
    if a == b:
        return a
    if isinstance(a, TensorType) and isinstance(b, TensorType) and a.dtype is b.dtype:
        return TensorType(a.dtype, widen(a.shape, b.shape))
    raise TypeError(f"types {a} and {b} don't agree")
