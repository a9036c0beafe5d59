"""`tape.watch()` in a staged loop or branch.

The tape sees a staged block as one node, when it ends. Until then `watch` leaves a mark in the block. When the node is
recorded, each mark becomes a flag, which the block carries and gives out: whether the run has come there.

    for v in x:                       while: (s, watched = False)
        if v > 0.7:                       watched = cond(v > 0.7, true, watched)
            tape.watch(w)                 seen = select(watched, w, unrecorded(w))
        s += w * v                        s = s + seen * v

What uses `w` afterwards outside of the block lets its cotangent through where the flag holds (`NodeCall.masks`).

As on an eager tape, the flag decides for each *read* of a variable. Of a tensor it decides whether an operation is
recorded, which it also is for the sake of another operand that the tape knows; then it counts whenever `w` is watched.
So each value has a flag, too: whether the tape knows it. It is computed where that depends on the run.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.autodiff.calls import is_differentiable
from runtime.autodiff.recording_pauses import UNRECORDED, refuse
from runtime.dataclass import dataclass
from runtime.graph.ir import ConstantArray, Graph, Node, Value
from runtime.graph.structural import ASSIGN, COND, CONSTANT, LETREC, WHILE
from runtime.ops.elementwise.compare import SELECT
from runtime.ops.growable import ARRAY_WRITE
from runtime.ops.table import OPS, OpDef
from runtime.types import StackType, TensorType

Thing = Hashable  # what is watched: a tensor's value in the tape's graph, or the reference of a variable
_FLAG = TensorType(dtypes.bool_, ())


def _of_no_kernel(*arrays: Any, **attrs: Any) -> Any:
    raise AssertionError("marks are replaced when the tape records the block")


# Not in the op table: no finished graph has it. An effect, so that no pass takes it for dead code.
MARK = OpDef("watch", lambda inputs, attrs: (), _of_no_kernel, multiple=True, effect=True, label="Watch")


class _Depends:
    """A flag that depends on the run."""


_SOME = _Depends()  # while a block is only looked at
_UNTOLD = _Depends()  # not computed: of lists, some of whose items the tape may know, and of results of earlier blocks
Flag = Any  # True, None (no, in all runs), a value of the graph, or one of these


@dataclass
class _Scope:
    """What is known in a graph.

    things   the values that are something watched late; flags: whether it is by now
    known    of other values, whether the tape knows them
    masks    in the tape's own graph: the operands of the node whose cotangents a flag lets through. None elsewhere:
             there the operands are replaced
    changes  whether the graph is to be changed
    """

    things: dict[Value, Thing]
    flags: dict[Thing, Flag]
    known: dict[Value, Flag]
    changes: bool
    masks: dict[Value, Flag] | None = None
    made: dict[Any, Value] = field(default_factory=dict)  # what was added to the graph

    def flag(self, value: Value) -> Flag:
        """Whether the tape knows a value."""
        thing = self.things.get(value)
        return self.known.get(value) if thing is None else self.flags.get(thing)


class Watches:
    """What a tape watches since some point of a staged block, and which values it knows because of that."""

    def __init__(self, number: int) -> None:
        self._number = number  # the tape's
        self._flags: dict[Thing, Flag] = {}
        self._things: dict[Value, Thing] = {}  # by the values in the tape's graph
        self._known: dict[Value, Flag] = {}  # of values that the tape tracks, where it isn't True
        self._marked: set[Thing] = set()  # in the node that is being recorded

    def copy(self) -> Watches:
        made = Watches(self._number)
        made._flags, made._things, made._known = {**self._flags}, {**self._things}, {**self._known}
        return made

    def __bool__(self) -> bool:
        return bool(self._flags or self._marked)

    def mark(self, builder: Any, value: Value, variable: Any, span: Any) -> None:
        """Leaves a mark in a block for a value of its graph, that of a variable if it is the reference of one."""
        builder.graph.add_node(MARK, [value], {"tape": self._number, "variable": variable}, [], (), span)

    def depends(self, thing: Thing) -> bool:
        """Whether the value is watched, or followed by the tape, in some runs only."""
        return thing in self._flags or thing in self._known

    def need_told(self, thing: Thing) -> None:
        """Raises an error for a tensor that the tape follows only in some runs, since what it is computed from is
        watched in some runs only: which of its uses have been recorded depends on the run."""
        if self._known.get(thing) is not None:  # type: ignore[call-overload]
            refuse(
                "watch() of a tensor that is computed from what the tape watches in some runs only",
                "watch it where it is made, before any block, or watch what it is computed from before the block",
            )

    def flag(self, thing: Thing) -> Value | None:
        """Whether something is watched by now, if that depends on the run."""
        return self._flags.get(thing)

    def settle(self, thing: Thing) -> None:
        """Notes that the thing is watched in all runs from here on."""
        self._flags.pop(thing, None)
        self._known.pop(thing, None)  # type: ignore[call-overload]
        for value in [v for v, each in self._things.items() if each == thing]:
            del self._things[value]
            self._known.pop(value, None)

    def read(self, variable: Thing, value: Value) -> None:
        """Notes that a value of the tape's graph is the variable's."""
        if variable in self._flags:
            self._things[value] = variable

    # --- nodes of the tape's graph -------------------------------------------------------------------------------

    def found(self, node: Node) -> list[tuple[int, Any]]:
        """What is watched inside of a node: the positions among its operands, and references of variables (None: a
        tensor). Raises UnimplementedError where a mark can't be followed to an operand."""
        return [(at, mark.attrs["variable"]) for at, mark in self._operands_marked(node)]

    def begin(self, value: Value, thing: Thing) -> None:
        """Notes that a value of the tape's graph is something that the next node to be recorded watches."""
        self._things[value] = thing
        self._marked.add(thing)

    def visit(self, node: Node, tracked: Container[Hashable], recording: bool) -> dict[Value, Flag]:
        """Replaces the marks in a node that the tape is about to record, and gives its `masks`.

        tracked: what the tape knows; recording: whether it is going to know the results.
        """
        scope = self._own_scope(node, tracked, True)
        self._visit(node, scope)
        self._flags = {thing: flag for thing, flag in scope.flags.items() if flag is not None}
        self._note(node, scope, recording)
        for thing in [t for t in self._marked if self._flags.get(t) is True]:
            self.settle(thing)
        self._marked = set()
        assert scope.masks is not None
        return scope.masks

    def look_at(self, node: Node, tracked: Container[Hashable]) -> None:
        """Notes which results of a node the tape knows that was recorded before anything was watched late."""
        scope = self._own_scope(node, tracked, False)
        self._visit(node, scope)
        self._note(node, scope, True)

    def _own_scope(self, node: Node, tracked: Container[Hashable], changes: bool) -> _Scope:
        known = {v: self._known.get(v, True) for v in node.inputs if v in tracked}
        return _Scope({**self._things}, {**self._flags}, known, changes, {})

    def _note(self, node: Node, scope: _Scope, recording: bool) -> None:
        for value in node.outputs:
            flag = scope.flag(value) if recording else None
            if flag is not True:
                self._known[value] = _UNTOLD if flag is _SOME else flag
            if value in scope.things:
                self._things[value] = scope.things[value]

    # --- marks ---------------------------------------------------------------------------------------------------

    def _operands_marked(self, node: Node) -> list[tuple[int, Node]]:
        """The marks in the regions of a node, with the positions of the operands that they watch."""
        offset = 1 if node.op is COND else 0
        found = []
        for region in node.regions:
            for inner in region.nodes:
                if inner.op is MARK and inner.attrs["tape"] == self._number:
                    marks = [(inner.inputs[0], inner)]
                else:
                    marks = [(inner.inputs[at], mark) for at, mark in self._operands_marked(inner)]
                for value, mark in marks:
                    at = _input_of(value, region, mark.attrs["variable"] is not None)
                    if node.op not in (COND, WHILE):
                        _refuse("watch() in a function that calls itself", mark, "watch it before the call")
                    is_carry = node.op is WHILE and at is not None and at < node.attrs["carries"]
                    if at is None or (is_carry and mark.attrs["variable"] is None):
                        _refuse("watch() of a tensor that the staged loop or branch changes", mark, _BEFORE)
                    assert at is not None
                    found.append((at + offset, mark))
        return found

    # --- walking over graphs -------------------------------------------------------------------------------------

    def _visit_all(self, graph: Graph, scope: _Scope) -> None:
        for node in list(graph.nodes):
            self._visit(node, scope)
        graph.program = None

    def _visit(self, node: Node, scope: _Scope) -> None:
        if node.op is MARK and node.attrs["tape"] == self._number:
            scope.flags[scope.things[node.inputs[0]]] = True
            if scope.changes:
                node.graph.nodes.remove(node)
        elif node.op is COND:
            self._visit_cond(node, scope)
        elif node.op is WHILE:
            self._visit_while(node, scope)
        elif node.op is ASSIGN:
            thing = scope.things.get(node.inputs[0])
            if thing is not None and _is_variable(thing):
                scope.things[node.outputs[0]] = thing
            scope.known[node.outputs[0]] = scope.flag(node.inputs[0])
        elif node.op is not UNRECORDED or node.attrs["tape"] != self._number:
            self._visit_op(node, scope)

    def _visit_op(self, node: Node, scope: _Scope) -> None:
        results = [v for v in node.outputs if is_differentiable(v.type)]
        if not results:
            return
        flags = [scope.flag(v) for v in node.inputs]
        recorded = self._any(flags, node, scope)
        for index, value in enumerate(node.inputs):
            thing = scope.things.get(value)
            if thing is None:
                if scope.masks is not None and (recorded is None or isinstance(recorded, Value)):
                    scope.masks[value] = recorded  # it may be watched later on
                continue
            if scope.flags.get(thing) is True:
                continue
            if scope.changes and (node.op is LETREC or (_holds(node) and thing in self._marked)):
                _refuse(
                    "what is put into a list, or handed to a function that calls itself, is watched later on, in a "
                    "staged loop or branch", node, _BEFORE,
                )  # fmt: skip
            self._gate(node, index, scope.flags.get(thing) if _is_variable(thing) else recorded, scope)
        if _holds(node):  # what comes out of a list is one of its items
            recorded = flags[0] if flags and all(flag is flags[0] for flag in flags[1:]) else _UNTOLD
        for value in results:
            scope.known[value] = recorded

    def _any(self, flags: Iterable[Flag], node: Node, scope: _Scope) -> Flag:
        """Whether one of some flags holds."""
        found = [flag for flag in dict.fromkeys(flags) if flag is not None]
        for special in (True, _UNTOLD, _SOME):
            if any(flag is special for flag in found):
                return special
        if not found or not scope.changes:
            return _SOME if found else None
        key = frozenset(found)
        if key not in scope.made:
            result = found[0]
            for flag in found[1:]:
                result = _add(node.graph, node, OPS["logical_or"], [result, flag], {}, _FLAG)
            scope.made[key] = result
        return scope.made[key]

    def _gate(self, node: Node, index: int, flag: Flag, scope: _Scope) -> None:
        """Lets cotangents through to an operand of a node only where the flag holds."""
        if flag is True or not scope.changes:
            return
        if flag is _UNTOLD:
            _refuse(
                "a tensor that a staged loop or branch watches is used together with an item of a list, or a result of "
                "an earlier loop or branch, which the tape may know or not", node, _BEFORE,
            )  # fmt: skip
        value = node.inputs[index]
        if scope.masks is not None:
            scope.masks[value] = flag
        else:
            node.inputs[index] = self._gated(value, flag, node, scope)

    def _gated(self, value: Value, flag: Flag, before: Node | None, scope: _Scope) -> Value:
        """A value that the tape follows only if `flag` is true at run time; its numbers don't change."""
        made = scope.made.get((value, flag))
        if made is None:
            graph = value.graph
            made = _add(graph, before, UNRECORDED, [value], {"tape": self._number}, value.type)
            if flag is not None:
                made = _add(graph, before, SELECT, [flag, value, made], {}, value.type)
            scope.made[value, flag] = made
        return made

    # --- blocks --------------------------------------------------------------------------------------------------

    def _enter(self, node: Node, region: Graph, scope: _Scope, changes: bool) -> _Scope:
        """What is known at the start of a region, by the flags of the graph around it."""
        offset = 1 if node.op is COND else 0
        inner = _Scope({}, {}, {}, changes)
        for own, value in zip(region.inputs, node.inputs[offset:]):
            flag = scope.flag(value)
            if not changes and isinstance(flag, Value):
                flag = _SOME
            if value in scope.things:
                inner.things[own] = scope.things[value]
                inner.flags[scope.things[value]] = flag
            else:
                inner.known[own] = flag
        return inner

    def _hand_in(self, node: Node, inner: Sequence[_Scope]) -> None:
        """Hands the flags around a node to its regions."""
        flags = [f for each in inner for f in (*each.flags.values(), *each.known.values()) if isinstance(f, Value)]
        outer = list(dict.fromkeys(flags))
        node.inputs += outer
        for region, each in zip(node.regions, inner):
            own = {flag: region.add_input(_FLAG) for flag in outer}
            each.flags = {t: own.get(f, f) for t, f in each.flags.items()}
            each.known = {v: own.get(f, f) for v, f in each.known.items()}

    def _visit_cond(self, node: Node, scope: _Scope) -> None:
        marked = self._things_marked(node, scope)
        inner = [self._enter(node, region, scope, scope.changes) for region in node.regions]
        if scope.changes:
            self._hand_in(node, inner)
        for region, each in zip(node.regions, inner):
            self._visit_all(region, each)
        for index, result in enumerate(list(node.outputs)):
            self._join_outputs(node, index, result, inner, scope)
        for thing in marked:
            scope.flags[thing] = self._joined(node, [each.flags.get(thing) for each in inner], scope)
        if scope.changes:
            node.attrs = {**node.attrs, "types": tuple([v.type for v in node.outputs])}

    def _joined(self, node: Node, flags: Sequence[Flag], scope: _Scope) -> Flag:
        """A flag after a `cond`, from those at the ends of its branches."""
        flag = _chosen(*flags)
        if flag is not _SOME or not scope.changes:
            return flag
        for region, each in zip(node.regions, flags):
            region.outputs.append(_flag_value(region, None, each))
        return _add_output(node)

    def _join_outputs(self, node: Node, index: int, result: Value, inner: Sequence[_Scope], scope: _Scope) -> None:
        values = [region.outputs[index] for region in node.regions]
        things = [each.things.get(v) for v, each in zip(values, inner)]
        if things[0] is not None and things[0] == things[1] and _is_variable(things[0]):
            scope.things[result] = things[0]
        elif is_differentiable(result.type):
            flags = [each.flag(v) for v, each in zip(values, inner)]
            for region, each, value in zip(node.regions, inner, values):
                self._give_out(region, index, value, each, node)
            scope.known[result] = self._joined(node, flags, scope)

    def _give_out(self, region: Graph, index: int, value: Value, scope: _Scope, node: Node) -> None:
        """Makes a region's output follow the flag of a value that was watched during the region: the tape sees it only
        if the flag holds at the end."""
        thing = scope.things.get(value)
        if thing is None or scope.flags.get(thing) is True or not scope.changes or not is_differentiable(value.type):
            return
        self._refuse_alias(thing, node)
        region.outputs[index] = self._gated(value, scope.flags.get(thing), None, scope)

    def _refuse_alias(self, thing: Thing, node: Node) -> None:
        if thing in self._marked and not _is_variable(thing):
            _refuse("a variable of a staged loop or branch may be the very tensor that is watched in it", node, _BEFORE)

    def _visit_while(self, node: Node, scope: _Scope) -> None:
        carries = node.attrs["carries"]
        marked = self._things_marked(node, scope)
        start = [scope.flag(v) for v in node.inputs[:carries]]
        flags = [_SOME if isinstance(flag, Value) else flag for flag in start]
        # Carries that are the state of a variable. If the body gives something else, only the first trip reads it.
        states = {i for i, v in enumerate(node.inputs[:carries]) if v in scope.things and _is_variable(scope.things[v])}
        body = node.regions[1]
        while True:
            trial = self._enter_loop(node, body, scope, False, flags, states, marked)
            self._visit_all(body, trial)
            after = [_chosen(flag, trial.flag(v)) for flag, v in zip(flags, body.outputs)]
            left = {i for i in states if trial.things.get(body.outputs[i]) == scope.things[node.inputs[i]]}
            if after == flags and left == states:
                break
            flags, states = after, left
        for index, result in enumerate(node.outputs):
            if index in states:
                scope.things[result] = scope.things[node.inputs[index]]
            else:
                scope.known[result] = flags[index]
        if scope.changes:
            self._change_while(node, scope, flags, states, marked)
        else:
            scope.flags.update({t: _SOME for t in marked if scope.flags.get(t) is not True})

    def _enter_loop(
        self, node: Node, region: Graph, scope: _Scope, changes: bool, flags: Sequence[Flag], states: set[int],
        marked: Iterable[Thing],
    ) -> _Scope:  # fmt: skip
        inner = self._enter(node, region, scope, changes)
        for index, flag in enumerate(flags):
            if index not in states:
                own = region.inputs[index]
                inner.things.pop(own, None)
                inner.known[own] = flag
        for thing in marked:
            if inner.flags.get(thing) is not True:
                inner.flags[thing] = _SOME
        return inner

    def _change_while(
        self, node: Node, scope: _Scope, flags: Sequence[Flag], states: set[int], marked: Sequence[Thing]
    ) -> None:
        carries = node.attrs["carries"]
        inner = [self._enter_loop(node, r, scope, True, flags, states, marked) for r in node.regions]
        # What is carried: flags of things, and of carries.
        things = [t for t in marked if scope.flags.get(t) is not True]
        values = [i for i in range(carries) if i not in states and flags[i] is _SOME]
        start = [*[scope.flags.get(t) for t in things], *[scope.flag(node.inputs[i]) for i in values]]
        for index, value in enumerate(node.inputs[:carries]):
            thing = scope.things.get(value)
            if thing is not None and index not in states and is_differentiable(value.type):
                if scope.flags.get(thing) is not True:
                    self._refuse_alias(thing, node)
                self._gate(node, index, scope.flags.get(thing), scope)
        self._hand_in(node, inner)
        for position, flag in enumerate(start, carries):
            node.inputs.insert(position, _flag_value(node.graph, node, flag))
            for region in node.regions:
                region.inputs.insert(position, Value(_FLAG, region))
        for region, each in zip(node.regions, inner):
            own = region.inputs[carries : carries + len(start)]
            each.flags.update(zip(things, own))
            each.known.update(zip([region.inputs[i] for i in values], own[len(things) :]))
        node.attrs = {**node.attrs, "carries": carries + len(start)}
        for region, each in zip(node.regions, inner):
            self._visit_all(region, each)
        body, end = node.regions[1], inner[1]
        after = [*[end.flags[t] for t in things], *[end.flag(body.outputs[i]) for i in values]]
        for index in range(carries):
            if index not in states:
                self._give_out(body, index, body.outputs[index], end, node)
        body.outputs += [_flag_value(body, None, flag) for flag in after]
        found = [_add_output(node) for _ in start]
        scope.flags.update(zip(things, found))
        scope.known.update(zip([node.outputs[i] for i in values], found[len(things) :]))

    def _things_marked(self, node: Node, scope: _Scope) -> list[Thing]:
        """The values that marks in the node watch, each once."""
        return list(dict.fromkeys(scope.things[node.inputs[at]] for at, _ in self._operands_marked(node)))


_BEFORE = "watch it before"


def need_unused(value: Any, recorded: Iterable[Node], place: Node | None = None) -> None:
    """Raises an error for a tensor that a tape begins to watch if a block recorded before has used it: the block's
    gradient doesn't tell which of its operations were recorded for the sake of others.

    place: the node in which it is watched, where that isn't where the program is.
    """
    if any(earlier.regions and value in earlier.inputs for earlier in recorded):
        _refuse("watch() of a tensor that an earlier staged loop or branch has used", place, "watch it before that")


def _is_variable(thing: Thing) -> bool:
    return not isinstance(thing, Value)


def _holds(node: Node) -> bool:
    """Whether the node puts a tensor into a list or array of them, which is no operation in Python."""
    return node.op is ARRAY_WRITE or any(isinstance(v.type, StackType) for v in node.outputs)


def _chosen(one: Flag, other: Flag) -> Flag:
    """The flag of what is one value or the other."""
    if one is other:
        return one
    return _UNTOLD if _UNTOLD in (one, other) else _SOME


def _input_of(value: Value, region: Graph, is_state: bool) -> int | None:
    """The position among a region's inputs of a value; of a variable's, before what the region assigns."""
    while value not in region.inputs:
        node = value.node
        if node is None or not is_state:
            return None
        if node.op is ASSIGN:
            value = node.inputs[0]
        elif node.op is WHILE:
            value = node.inputs[node.outputs.index(value)]
        elif node.op is COND:
            inner = node.regions[0]
            at = _input_of(inner.outputs[node.outputs.index(value)], inner, True)
            if at is None:
                return None
            value = node.inputs[1 + at]
        else:
            return None
    return region.inputs.index(value)


def _add(graph: Graph, before: Node | None, op: OpDef, inputs: Sequence[Value], attrs: dict, type_: Any) -> Value:
    """Adds a node before another one, or at the end of the graph."""
    made = Node(op, inputs, attrs, [type_], graph, (), None if before is None else before.span)
    made.device = None if before is None else before.device
    place = len(graph.nodes) if before is None else graph.nodes.index(before)
    graph.nodes.insert(place, made)
    graph.program = None
    return made.outputs[0]


def _flag_value(graph: Graph, before: Node | None, flag: Flag) -> Value:
    if isinstance(flag, Value):
        return flag
    return _add(graph, before, CONSTANT, [], {"value": ConstantArray(np.asarray(flag is True))}, _FLAG)


def _add_output(node: Node) -> Value:
    result = Value(_FLAG, node.graph, node)
    node.outputs.append(result)
    return result


def _refuse(cause: str, node: Node | None, fix: str) -> None:
    refuse(cause if node is None or node.span is None else f"{cause} ({node.span[0]}:{node.span[1]})", fix)
