"""Recursion under conditions on tensors: a function that calls itself becomes a `letrec` node, the calls `call` nodes.

    def fib(n):                               %r = letrec(%n)
        if n < 2:                               fib(%n):
            return n                              %c = less(%n, 2)
        return fib(n - 1) + fib(n - 2)    →       %s = cond(%c, %n)
                                                    then: return %n
                                                    else: %a = call(%n - 1) {function=fib}
                                                          %b = call(%n - 2) {function=fib}
                                                          return %a + %b

A function that is called again while it is traced, under a condition on tensors, on arguments of the same types and
the same Python values, would be traced for ever. So its trace is thrown away where that comes up, and it is traced as a
region, until nothing changes any more: which arguments are parameters (those in which calls differ; the others are the
same in all calls), the type of the result (at first there is none: a branch that needs it is left out, so that the
cases without a further call tell), the variables that it writes.

Arguments that differ in Python values are Python's: such calls are traced one in the other, as Python runs them. Where
there is no end to that, numbers and sizes that differ become tensors.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from autograph.errors import StagingError, StagingTypeError, location_of, user_location
from autograph.operators.absence import plain, returned
from autograph.operators.calls import install_watcher
from autograph.operators.choices import with_strings
from autograph.operators.containers import STAGED, ListRequest, Snapshot, convert
from autograph.operators.frame import Frame
from autograph.operators.loop_memory import settling_at_once
from autograph.operators.loop_variables import identifier
from autograph.operators.raising import forget_refused
from autograph.operators.recurring import may_recur
from autograph.operators.state import Slot, read_cell
from autograph.operators.structure import children, flatten, map_leaves, rebuild, same_structure
from autograph.operators.symbolic import (
    accepts,
    common_dtype,
    conflict,
    is_tensorable,
    is_weak,
    same_python_value,
    tensor_type_of,
)
from autograph.operators.unfinished import Unfinished
from runtime import dtypes
from runtime.context import ctx
from runtime.errors import DTypeError
from runtime.graph.builder import Region, emit_call, emit_letrec, trace_region
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.ops.staged_number import StagedNumber, is_text, kind_of
from runtime.ops.strings.staged_string import StagedString
from runtime.shapes import widen
from runtime.signatures import signature_of
from runtime.staged_list import StagedList, moved, resolved
from runtime.tensor import SymbolicTensor
from runtime.thread_state import propagated
from runtime.types import TensorType
from runtime.variable import Variable

# Each round widens a type or adds a parameter. A type goes from parameter to parameter (`f(n - 1, a, b)` in a function
# of `n, b, c`) one a round, so a function that needs more rounds than this, and so many for each, never settles.
_ROUNDS, _ROUNDS_EACH = 20, 3
# Calls in calls that differ in Python numbers or sizes, before these become tensors.
_LEVELS = 64

# The way to a leaf of the arguments: the argument's name, then positions in containers.
Path = tuple[Any, ...]


class _Restart(BaseException):
    """The trace of an activation is of no use: it must be staged, or staged with more parameters. No handler of the
    user's may catch it."""

    def __init__(
        self,
        activation: Activation,
        parameters: dict[Path, TensorType],
        request: ListRequest | None = None,
        is_widening: bool = False,
    ) -> None:
        self.activation = activation
        self.parameters = parameters
        self.request = request
        self.is_widening = is_widening


class _State:
    """A variable, an attribute or a container that calls change: a parameter and a result of each of them.

    types: those of the leaves of what it holds; None for a leaf that is the same Python value in all calls.
    """

    def __init__(self, slot: Slot, before: Any) -> None:
        self.slot = slot
        self.before = before
        self.labels = [label for label, _ in flatten(before, slot.label)]
        self.types: list[TensorType | None] = [
            tensor_type_of(value) if is_tensor_like(value) else None for _, value in flatten(before)
        ]

    @property
    def tensor_types(self) -> list[TensorType]:
        return [type_ for type_ in self.types if type_ is not None]

    def widen(self, value: Any) -> bool:
        """Makes the types cover another value; gives whether they did."""
        leaves = flatten(value, self.slot.label)
        if [label for label, _ in leaves] != self.labels:
            raise StagingTypeError(
                f"'{self.slot.label}' gets another structure in a function that calls itself under a condition on a "
                "tensor",
                location=user_location(),
                cause="how deep the calls go is known only at run time, so all calls must keep the structure",
                fix="keep the lengths of lists and tuples, and the keys of dictionaries",
            )
        found = [
            _joined(type_, before, after, f"'{label}'", ("before a call", "after it"))
            for type_, (_, before), (label, after) in zip(self.types, flatten(self.before), leaves)
        ]
        fits = found == self.types
        self.types = found
        return fits

    def tensors(self, value: Any) -> list[Any]:
        """The tensors of a value."""
        leaves = zip(flatten(value), self.types)
        return [convert_to_tensor(plain(leaf), type_.dtype) for (_, leaf), type_ in leaves if type_ is not None]

    def put(self, tensors: Iterator[Any]) -> None:
        """Makes it hold the next tensors."""
        types = iter(self.types)
        self.slot.set(map_leaves(self.before, lambda leaf: leaf if next(types) is None else next(tensors)))


class _Active(threading.local):
    """The functions that are being traced, outermost first."""

    def __init__(self) -> None:
        self.stack: list[Activation] = []


_active = propagated(_Active())


def watched(callee: FunctionType, made: Callable[..., Any], owner: Any = None) -> Callable[..., Any]:
    """What calls `made`, the converted form of a function, and notices when that calls itself.

    owner: the `ag.function` that is made of it, if that is what is being traced.
    """
    if not may_recur(callee):
        return made

    def call(*args: Any, **kwargs: Any) -> Any:
        if ctx.builder is None:
            return made(*args, **kwargs)
        before = [each for each in _active.stack if each.code is callee.__code__]
        if before:
            found = _call_node(before, callee, args, kwargs)
            if found is not None:
                return found.result
        activation = Activation(callee, made, args, kwargs, owner)
        activation.may_widen = all(each.may_widen for each in before)
        activation.is_pythons = any(each.is_pythons for each in before)
        # What Python has called again without asking a tensor in between isn't undone.
        if not activation.is_pythons and (not before or before[-1].builder is not ctx.builder):
            activation.look_around()
        return activation.run()

    return call


class _Result:
    def __init__(self, result: Any) -> None:
        self.result = result


def _call_node(before: list[Activation], callee: FunctionType, args: tuple, kwargs: dict[str, Any]) -> _Result | None:
    """The result of a call of a function that is being traced, as a `call` node; None where Python has to call it.

    Raises _Restart where an activation must be staged first.
    """
    around = _around(ctx.builder)
    under_condition = [each for each in before if each.builder in around]
    if not under_condition:
        return None
    arguments = _bind(callee, args, kwargs)
    if arguments is None:
        return None
    comparable = [each for each in under_condition if each.may_be_staged and each.has_closure_of(callee)]
    for activation in reversed(comparable):
        parameters = activation.parameters_for(arguments)
        if parameters is None:
            continue
        between = _active.stack[_active.stack.index(activation) + 1 :]
        owners = [each.owner for each in between if each.owner is not None and not each.owner.recurs]
        for owner in owners:
            owner.recurs = True
        if owners or activation.recursion is None or parameters != activation.recursion.parameters:
            raise _Restart(activation, parameters)
        activation.recursion.look_at_state()
        return _Result(activation.recursion.call(arguments))
    for activation in [each for each in comparable if each.may_widen]:
        activation.wider = activation.parameters_for(arguments, widening=True)
        if activation.wider is not None:
            if len(under_condition) >= _LEVELS:
                raise _Restart(activation, activation.wider, is_widening=True)
            break
    return None


def _around(builder: Any) -> list[Any]:
    """The builders around one."""
    found = []
    while builder is not None:
        builder = builder.parent if builder.parent is not None else getattr(builder, "outer", None)
        found.append(builder)
    return found


class Activation:
    """One call of a function that is being traced."""

    def __init__(
        self, callee: FunctionType, made: Callable[..., Any], args: tuple, kwargs: dict[str, Any], owner: Any
    ) -> None:
        self.callee = callee
        self.code = callee.__code__
        self.made = made
        self.args, self.kwargs = args, kwargs
        self.owner = owner
        self.builder = ctx.builder
        self.recursion: Recursion | None = None
        self.frame: Frame | None = None
        self.may_be_staged = False
        self.may_widen = True
        self.is_pythons = False  # it can't be staged, so Python runs its calls
        # The parameters with which calls in it, which differ in Python numbers or sizes, would be the same.
        self.wider: dict[Path, TensorType] | None = None

    def look_around(self) -> None:
        """Remembers what the function may change, so that its trace can be thrown away."""
        self.args = tuple([_now(each) for each in self.args])
        self.kwargs = {name: _now(each) for name, each in self.kwargs.items()}
        self.frame = Frame.of(self.callee, *self.args, *self.kwargs.values())
        self.may_be_staged = True

    def run(self) -> Any:
        """The result of the call."""
        stack = _active.stack
        rewind = ctx.builder.mark() if self.may_be_staged else None
        stack.append(self)
        failure: Exception | None = None
        try:
            return self.made(*self.args, **self.kwargs)
        except _Restart as found:
            if found.activation is not self:
                raise
            restart = found
        except Exception as error:
            if self.wider is None:
                raise
            # Python's own calls may go further than the program would: beyond an array's end, for one.
            failure, restart = error, _Restart(self, self.wider, is_widening=True)
        finally:
            stack.pop()
        assert rewind is not None
        self.undo(rewind)
        stack.append(self)
        recursion = Recursion(self, restart.parameters)
        try:
            return recursion.stage()
        except Exception as error:
            if failure is not None:
                raise failure from None
            if not (restart.is_widening or recursion.changes_state):
                raise
            refusal = error
        finally:
            stack.pop()
        # Python's own state may bring the calls to an end, which a function of the program couldn't use.
        self.undo(rewind)
        self.recursion, self.may_widen, self.wider = None, False, None
        if not restart.is_widening:
            self.is_pythons, self.may_be_staged = True, False
        try:
            return self.run()
        except RecursionError:
            raise refusal from None

    def undo(self, rewind: Callable[[], None]) -> None:
        """Throws the trace away."""
        assert self.frame is not None
        rewind()
        self.frame.restore()
        forget_refused(ctx.builder)

    def has_closure_of(self, other: FunctionType) -> bool:
        """Whether another function with the same code sees the same values around it."""
        cells = zip(self.callee.__closure__ or (), other.__closure__ or ())
        return all(a is b or same_python_value(read_cell(a), read_cell(b)) for a, b in cells)

    def parameters_for(self, arguments: dict[str, Any], widening: bool = False) -> dict[Path, TensorType] | None:
        """The parameters that this call and one with other arguments can share; None where they can't.

        widening: Python numbers and sizes may differ.
        """
        own = _bind(self.callee, self.args, self.kwargs)
        if own is None or own.keys() != arguments.keys():
            return None
        found = dict(self.recursion.parameters) if self.recursion is not None else {}
        for name, value in own.items():
            for path, one, other in _differences(value, arguments[name], (name,)):
                type_ = _parameter_type(found.get(path), one, other, widening)
                if type_ is None:
                    return None
                found[path] = type_
        return found


def _bind(callee: FunctionType, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any] | None:
    try:
        bound = signature_of(callee, follow_wrapped=False).bind(*args, **kwargs)
    except TypeError:  # Python says so itself when it calls
        return None
    bound.apply_defaults()
    return {name: _now(value) for name, value in bound.arguments.items()}


def _now(value: Any) -> Any:
    """An argument; of a list that has become a staged one, that."""
    staged = moved(value)
    return value if staged is None else staged


def _differences(one: Any, other: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """The leaves in which two structures differ; where they have different forms, the whole of them."""
    if one is other:
        return
    first, second = children(one), children(other)
    if first is not None and second is not None and same_structure(one, other):
        for index, ((_, a), (_, b)) in enumerate(zip(first, second)):
            yield from _differences(a, b, (*path, index))
    elif first is not None or second is not None or not same_python_value(one, other):
        yield path, one, other


def _parameter_type(known: TensorType | None, one: Any, other: Any, widening: bool) -> TensorType | None:
    """The type of a parameter that stands for two values; None where they can't share one."""
    if not (_is_passable(one) and _is_passable(other)):
        return None
    if known is None:
        if not (_is_tensor(one) or _is_tensor(other) or (widening and (type(one) in (int, float) or is_text(one)))):
            return None
        # How large an int has become while calls were traced one in the other says nothing of its type.
        dtype = common_dtype(*[0 if type(each) is int else each for each in (one, other)])
        if dtype is None:
            return None
        shape = tensor_type_of(one).shape
    else:
        dtype, shape = known.dtype, known.shape
        if not (accepts(dtype, kind_of(other)) if is_weak(other) else tensor_type_of(other).dtype is dtype):
            return None
    found = tensor_type_of(other).shape
    wide = widen(shape, found)
    # A size that isn't known in a call covers one that is known in the call around it.
    return TensorType(dtype, wide) if wide in (shape, found) or widening else None


def _is_passable(value: Any) -> bool:
    return is_text(value) or (is_tensorable(value) and not isinstance(value, (Variable, bytes)))


def _leaf(arguments: dict[str, Any], path: Path) -> Any:
    value = arguments[path[0]]
    for index in path[1:]:
        value = (children(value) or ())[index][1]
    return value


def _exchanged(value: Any, path: Path, leaves: dict[Path, Any]) -> Any:
    """A structure with other leaves at some places."""
    if path in leaves:
        return leaves[path]
    items = children(value)
    if items is None or not any(place[: len(path)] == path for place in leaves):
        return value
    return rebuild(value, [_exchanged(item, (*path, index), leaves) for index, (_, item) in enumerate(items)])


class Recursion:
    """A function that is being traced as a region."""

    def __init__(self, activation: Activation, parameters: dict[Path, TensorType]) -> None:
        self.activation = activation
        self.parameters = parameters
        self.keys: list[Any] = []  # of the state that it writes
        self.result: Any = None
        self.types: list[TensorType | None] | None = None  # of the result's leaves; None: it has no result yet
        self.state: list[_State] = []
        self.changes_state = False
        names = {name for each in _active.stack if each.recursion for name in [each.recursion.name]}
        name = activation.callee.__name__.replace("<lambda>", "function")
        numbered = (f"{name}_{count}" for count in itertools.count(2))
        self.name: str = name if name not in names else next(each for each in numbered if each not in names)

    # --- tracing ---------------------------------------------------------------------------------------------------

    def stage(self) -> Any:
        """Traces the function until nothing changes; emits the node, and gives its result."""
        activation = self.activation
        activation.recursion = self
        rounds = 0
        while rounds < _ROUNDS + _ROUNDS_EACH * len(self.parameters):
            rounds += 1
            before = self.signature()
            try:
                region = self.trace()
            except _Restart as restart:
                if restart.activation is not activation:
                    raise
                self.take(restart.parameters)
                if restart.request is not None:
                    assert activation.frame is not None
                    convert(restart.request, activation.frame.replace)
                    activation.look_around()
                continue
            except DTypeError:
                if not self.promote():
                    raise
                continue
            except Unfinished:
                if self.types is not None:
                    raise
                raise self.endless() from None
            self.keys += [key for key in region.builder.written if key not in self.keys]
            if before == self.signature():
                return self.emit(region)
        raise StagingError(
            f"the types of the results of the recursive function '{activation.callee.__name__}' never settle",
            location=self.location,
            cause="each call returns another type than the calls inside it",
            fix="return tensors of one dtype and rank on all paths through the function",
        )

    def promote(self) -> bool:
        """Gives parameters that stand for Python's numbers in all calls the next dtype; False if there is none left."""
        wider = {dtypes.int32: dtypes.float32, dtypes.float32: dtypes.float64}
        weak = {path for path in self.parameters if is_weak(_leaf(self.own, path))}
        found = {
            path: TensorType(wider[type_.dtype], type_.shape) if path in weak and type_.dtype in wider else type_
            for path, type_ in self.parameters.items()
        }
        changed = found != self.parameters
        self.take(found)
        return changed

    def take(self, parameters: dict[Path, TensorType]) -> None:
        """Takes other parameters, with which the result may have another type."""
        if parameters != self.parameters:
            self.parameters, self.types = parameters, None

    @property
    def own(self) -> dict[str, Any]:
        """The arguments of the call from outside."""
        own = _bind(self.activation.callee, self.activation.args, self.activation.kwargs)
        assert own is not None
        return own

    def signature(self) -> Any:
        return dict(self.parameters), self.types, list(self.keys), [list(each.types) for each in self.state]

    def trace(self) -> Region:
        activation = self.activation
        frame = activation.frame
        assert frame is not None
        self.take_staged_lists(frame)
        types = [*self.parameters.values(), *[type_ for each in self.state for type_ in each.tensor_types]]
        own = self.own

        def body(*tensors: Any) -> list[Any]:
            activation.builder = ctx.builder
            given = iter(tensors)
            leaves = {
                path: StagedString(tensor) if is_text(_leaf(own, path)) else tensor
                for path, tensor in zip(self.parameters, itertools.islice(given, len(self.parameters)))
            }
            args, kwargs = self.arguments(own, leaves)
            for each in self.state:
                each.put(given)
            result = resolved(activation.made(*args, **kwargs))
            self.look_at_state()
            return [*self.outputs(result), *self.state_tensors()]

        outer = activation.builder
        try:
            with frame.tracing(), settling_at_once():
                return trace_region(self.name, body, types, self.labels())
        finally:
            activation.builder = outer
            frame.restore()

    def labels(self) -> list[str]:
        names = ["_".join(map(str, path)) for path in self.parameters]
        for each in self.state:
            names += [identifier(label) for label, type_ in zip(each.labels, each.types) if type_ is not None]
        return names

    def arguments(self, own: dict[str, Any], leaves: dict[Path, Any]) -> tuple[tuple, dict[str, Any]]:
        bound = signature_of(self.activation.callee, follow_wrapped=False).bind(
            *self.activation.args, **self.activation.kwargs
        )
        bound.apply_defaults()
        for name, value in own.items():
            bound.arguments[name] = _exchanged(value, (name,), leaves)
        return bound.args, bound.kwargs

    # --- state -----------------------------------------------------------------------------------------------------

    def take_staged_lists(self, frame: Frame) -> None:
        """The contents of staged lists in reach are state from the start."""
        known = {each.slot.place for each in self.state}
        for snapshot in frame.containers:
            if isinstance(snapshot.owner, STAGED) and snapshot.slot().place not in known:
                slot = snapshot.slot()
                self.state.append(_State(slot, slot.get()))

    def look_at_state(self) -> None:
        """Finds out what the function has changed by now of Python's variables, attributes and containers.

        Raises _Restart where that isn't known as state yet.
        """
        frame = self.activation.frame
        assert frame is not None
        before = {slot.place: value for slot, _, value in frame.changed_far_slots()}
        contents = {snapshot.slot().place: snapshot for snapshot in frame.containers if snapshot.changed()}
        changed, self.changes_state = self.changes_state, True
        found = frame.changes({each.slot.place for each in self.state})  # raises for what can't be state
        self.changes_state = changed or bool(found)
        for slot, now in found:
            snapshot = contents.get(slot.place)
            if snapshot is None:
                self.state.append(_State(slot, before[slot.place]))
            elif type(snapshot.owner) is list and (isinstance(now, StagedList) or len(now) != len(snapshot.before)):
                self.make_staged(snapshot, now)
            else:
                after = slot.get()
                snapshot.restore()
                self.state.append(_State(slot, slot.get()))
                slot.set(after)
        if found:
            for state, (_, now) in zip(self.state[-len(found) :], found):
                state.widen(now)
            raise _Restart(self.activation, self.parameters)

    def make_staged(self, snapshot: Snapshot, now: Any) -> None:
        """A list whose length calls change becomes a staged one."""
        items, like = ((), now) if isinstance(now, StagedList) else (now, None)
        label = snapshot.label or "the list"
        request = ListRequest(label, snapshot.owner, items, like)
        raise _Restart(self.activation, self.parameters, request)

    def state_tensors(self) -> list[Any]:
        found: list[Any] = []
        fits = True
        values = [each.slot.get() for each in self.state]
        for each, value in zip(self.state, values):
            fits &= each.widen(value)
        if not fits:
            raise _Restart(self.activation, self.parameters)
        for each, value in zip(self.state, values):
            found += each.tensors(value)
        return found

    # --- results ---------------------------------------------------------------------------------------------------

    def outputs(self, result: Any) -> list[Any]:
        """The tensors of a result, whose types are joined with those known."""
        result = with_strings(result)
        leaves = flatten(result)
        values = [value for _, value in leaves]
        for value in values:
            if type(value) in (SymbolicTensor, StagedNumber, StagedString):
                returned(value)
        values = [plain(value) for value in values]
        if self.types is None:
            types: list[TensorType | None] = [
                None if not _is_tensor(value) else tensor_type_of(value) for value in values
            ]
        else:
            known = flatten(self.result)
            if [label for label, _ in known] != [label for label, _ in leaves]:
                raise self.mismatch(
                    f"returns {len(known)} values on one way and {len(leaves)} on another"
                    if len(known) != len(leaves)
                    else "returns values of different structures"
                )
            name = self.activation.callee.__name__
            ways = ("at first", "with the results of the calls in it")
            types = [
                _joined(type_, before, value, f"the result{label} of '{name}'", ways)
                for (label, _), type_, (_, before), value in zip(leaves, self.types, known, values)
            ]
        self.result, self.types = result, types
        return [convert_to_tensor(value, type_.dtype) for value, type_ in zip(values, types) if type_ is not None]

    # --- nodes -----------------------------------------------------------------------------------------------------

    def call(self, arguments: dict[str, Any]) -> Any:
        """The result of a call from inside of the function."""
        if self.types is None:
            raise Unfinished
        operands = [convert_to_tensor(_leaf(arguments, path), type_.dtype) for path, type_ in self.parameters.items()]
        types = [type_ for type_ in self.types if type_ is not None]
        types += [type_ for each in self.state for type_ in each.tensor_types]
        return self.assemble(emit_call(self.name, [*operands, *self.state_tensors()], types, self.keys))

    def emit(self, region: Region) -> Any:
        """The result of the call from outside."""
        own = self.own
        operands = [convert_to_tensor(_leaf(own, path), type_.dtype) for path, type_ in self.parameters.items()]
        return self.assemble(emit_letrec(self.name, region, [*operands, *self.state_tensors()], self.keys))

    def assemble(self, tensors: list[Any]) -> Any:
        assert self.types is not None
        given, types = iter(tensors), iter(self.types)

        def put(leaf: Any) -> Any:
            if next(types) is None:
                return leaf
            return StagedString(next(given)) if is_text(leaf) else next(given)

        result = map_leaves(self.result, put)
        for each in self.state:
            each.put(given)
        return result

    # --- errors ----------------------------------------------------------------------------------------------------

    @property
    def location(self) -> Any:
        code = self.activation.code
        return location_of(code, code.co_firstlineno, 0)

    def endless(self) -> Exception:
        name = self.activation.callee.__name__
        return StagingError(
            f"'{name}' has no case in which it doesn't call itself",
            location=self.location,
            cause="every path through the function needs the result of another call, so it would never return",
            fix="return a value that needs no further call under one of the conditions",
        )

    def mismatch(self, what: str) -> Exception:
        return StagingTypeError(
            f"'{self.activation.callee.__name__}' calls itself under a condition on a tensor and {what}",
            location=self.location,
            cause="how deep the calls go is known only at run time, so all calls must return the same structure",
            fix="return tensors in the same structure on every path, or put them into an ag.TensorArray",
        )


def _joined(type_: TensorType | None, before: Any, value: Any, label: str, ways: tuple[str, str]) -> TensorType | None:
    """The type of a leaf that is ``before`` in one call, or of a type, and another value in another."""
    if type_ is None:
        if same_python_value(before, value):
            return None
        dtype = common_dtype(before, value) if is_tensorable(before) and is_tensorable(value) else None
        if dtype is None:
            raise conflict(label, before, value, ways)
        return TensorType(dtype, widen(tensor_type_of(before).shape, tensor_type_of(value).shape))
    if not is_tensorable(value):
        raise conflict(label, before, value, ways)
    found = tensor_type_of(value)
    shape = widen(type_.shape, found.shape)
    if found.dtype is type_.dtype or (is_weak(value) and accepts(type_.dtype, kind_of(value))):
        return TensorType(type_.dtype, shape)
    if is_weak(before):
        # The dtype so far came from a Python number; the tensor decides, if it can hold the number.
        dtype = common_dtype(before, value)
        if dtype is not None:
            return TensorType(dtype, shape)
    raise conflict(label, before, value, ways)


def _is_tensor(value: Any) -> bool:
    return type(value) in (StagedNumber, StagedString) or (is_tensorable(value) and not is_weak(value))


install_watcher(watched)
