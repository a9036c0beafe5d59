"""Which values are still needed, and which reads may find nothing.

Backward data flow over the control flow graph, on bit sets. Where in doubt a name counts as live: names that a nested
function reads or rebinds are live everywhere after its definition (where it is only ever called by its name, before its
calls), names declared global or nonlocal everywhere, and
a path that a statement modifies (``self.h = ...``) is live after that statement, since the object may outlive it.

Example::

    >>> function = parse("def f(a, b):\\n    if a:\\n        b = t = 1\\n    return b").body[0]
    >>> sorted(live_out(function)[function.body[0]])
    ['b']
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gast

from autograph.syntax.cfg import Graph, Point, build
from autograph.syntax.scopes import Activities, function_scope, own_scope
from autograph.syntax.walk import walk
from runtime.dataclass import dataclass


@dataclass(frozen=True)
class Liveness:
    """Names and paths (as text) that may be read from some place on.

    before, after: on the way into each statement, and upon its normal completion.
    iteration: at the start of each iteration of a loop (and at its end: the next iteration or what comes after), so
        what the loop's body modifies and this holds, the loop must carry.
    """

    before: dict[Any, frozenset[str]]
    after: dict[Any, frozenset[str]]
    iteration: dict[Any, frozenset[str]]


def live_out(function: Any) -> dict[Any, frozenset[str]]:
    """For each statement in a function the names and paths that may be read after it completes normally.

    For statements in a loop that includes what the next iteration reads.
    """
    return liveness(function).after


def liveness(function: Any, activity: Activities | None = None) -> Liveness:
    """Live names and paths around every statement of a gast function definition (nested functions not included)."""
    graph = build(function)
    flow = _Live(graph)
    activity = activity or Activities()
    own_paths: dict[Any, frozenset[str]] = {}

    def with_own_paths(stmt: Any, names: frozenset[str]) -> frozenset[str]:
        if stmt not in own_paths:
            own_paths[stmt] = frozenset(map(str, activity(stmt).paths_modified))
        return names | own_paths[stmt]

    return Liveness(
        before={stmt: flow.names(point) for stmt, point in graph.before.items()},
        after={stmt: with_own_paths(stmt, flow.names(point)) for stmt, point in graph.after.items()},
        iteration={stmt: with_own_paths(stmt, flow.names(point)) for stmt, point in graph.header.items()},
    )


def maybe_unbound(function: Any) -> list[Any]:
    """The Name nodes in a function that may read a local variable while it is unbound, in order of evaluation.

    Reads in nested functions aren't judged: they happen at some later time. ``del x`` counts as a read of ``x``.
    """
    graph = build(function)
    scope = own_scope(function)
    bits = _Bits(scope.locals)
    everything = bits.of(scope.locals)
    # Bound for certain on arrival at each point; starts from "everything", so unreachable points report nothing.
    arriving = dict.fromkeys(graph.points, everything)
    arriving[graph.entry] = bits.of(scope.params)
    pending = [graph.entry]
    seen: set[Point] = set()
    while pending:
        point = pending.pop()
        seen.add(point)
        before = arriving[point]
        after = (before & ~bits.of(point.effects.unbound)) | bits.of(point.effects.bound)
        for targets, state in ((point.next, after), (point.raises, before & after)):
            for target in targets:
                if arriving[target] & state != arriving[target] or target not in seen:
                    arriving[target] &= state
                    pending.append(target)
    return [
        node
        for point in graph.points
        if point in seen
        for node in point.effects.reads
        if node.id in scope.locals and not arriving[point] & bits.of([node.id])
    ]


def _only_called(function: Any) -> dict[str, set[str]]:
    """The nested functions that nothing but calls by their names can reach, and the names that each may read or rebind.

    So they read these when they are called, and at no other time: they make no functions or generators themselves.
    """
    made: dict[str, list[Any]] = {}
    called: set[Any] = set()
    mentioned: list[Any] = []
    for node in walk(function):
        name = _defined(node)
        if name is not None:
            made.setdefault(name, []).append(node.value if isinstance(node, gast.Assign) else node)
        elif isinstance(node, gast.Call):
            called.add(node.func)
        if isinstance(node, gast.Name):
            mentioned.append(node)
    targets = {node.targets[0] for node in walk(function) if isinstance(node, gast.Assign) and _defined(node)}
    others = {node.id for node in mentioned if node not in called and node not in targets}
    declared = {
        name for node in walk(function) if isinstance(node, (gast.Global, gast.Nonlocal)) for name in node.names
    }
    scope = own_scope(function)
    found = {}
    for name, functions in made.items():
        if (
            name in scope.locals
            and name not in others | declared | set(scope.params)
            and all(map(_runs_at_once, functions))
        ):
            found[name] = set().union(*[function_scope(each).free for each in functions])
    return found


def _defined(node: Any) -> str | None:
    """The name that a statement gives to a function that it makes."""
    if isinstance(node, gast.FunctionDef):
        return str(node.name)
    is_lambda = isinstance(node, gast.Assign) and isinstance(node.value, gast.Lambda) and len(node.targets) == 1
    return node.targets[0].id if is_lambda and isinstance(node.targets[0], gast.Name) else None


_LATER = (
    gast.FunctionDef, gast.AsyncFunctionDef, gast.Lambda, gast.ClassDef, gast.GeneratorExp, gast.Yield, gast.YieldFrom
)  # fmt: skip


def _runs_at_once(function: Any) -> bool:
    """Whether all that a function does is done when its call has returned."""
    if getattr(function, "decorator_list", ()):
        return False
    return not any(isinstance(node, _LATER) and node is not function for node in walk(function))


class _Bits:
    """Sets of names as integers."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = sorted(names)
        self.bit = {name: 1 << index for index, name in enumerate(self.names)}

    def of(self, names: Iterable[str]) -> int:
        found = 0
        for name in names:
            found |= self.bit.get(name, 0)
        return found

    def set(self, bits: int) -> frozenset[str]:
        found = []
        while bits:
            low = bits & -bits
            found.append(self.names[low.bit_length() - 1])
            bits ^= low
        return frozenset(found)


class _Live:
    """Solves the data flow equations once; ``names`` looks a point up."""

    def __init__(self, graph: Graph) -> None:
        scope = own_scope(graph.function)
        paths = {path for point in graph.points for path in point.effects.paths}
        declared = scope.globals | scope.nonlocals
        self.bits = _Bits(scope.locals | declared | {str(path) for path in paths})
        # Once a name in it is bound anew, a path means another place.
        self.paths_with: dict[str, set[str]] = {}
        for path in paths:
            for name in path.names:
                self.paths_with.setdefault(name, set()).add(str(path))
        self.always = self.bits.of(declared)
        self.called = _only_called(graph.function)
        captured = self._captured(graph.points)
        self.live = self._solve(graph.points, captured)

    def names(self, point: Point) -> frozenset[str]:
        return self.bits.set(self.live[point] | self.always)

    def _rebound(self, names: Iterable[str]) -> int:
        found = self.bits.of(names)
        for name in names:
            found |= self.bits.of(self.paths_with.get(name, ()))
        return found

    def _captured(self, points: list[Point]) -> dict[Point, int]:
        """The names that functions defined on some way to each point may read."""
        made = {
            point: 0 if _defined(point.node) in self.called else self.bits.of(self._with_calls(point.effects.captured))
            for point in points
        }
        arriving = dict.fromkeys(points, 0)
        pending = [point for point in points if made[point]]
        while pending:
            point = pending.pop()
            leaving = arriving[point] | made[point]
            for target in (*point.next, *point.raises):
                if leaving & ~arriving[target]:
                    arriving[target] |= leaving
                    pending.append(target)
        return arriving

    def _with_calls(self, names: set[str]) -> set[str]:
        """Names that are read, with those that functions read which are called by one of them."""
        found, pending = set(names), list(names)
        while pending:
            for name in self.called.get(pending.pop(), ()):
                if name not in found:
                    found.add(name)
                    pending.append(name)
        return found

    def _solve(self, points: list[Point], captured: dict[Point, int]) -> dict[Point, int]:
        before: dict[Point, list[Point]] = {point: [] for point in points}
        reads: dict[Point, int] = {}
        kept: dict[Point, int] = {}
        for point in points:
            effects = point.effects
            made = set() if _defined(point.node) in self.called else effects.captured
            reads[point] = captured[point] | self.bits.of(
                self._with_calls({node.id for node in effects.reads} | made) | {str(path) for path in effects.paths}
            )
            kept[point] = ~self._rebound(effects.bound | effects.unbound)
            for target in (*point.next, *point.raises):
                before[target].append(point)
        live = dict(reads)
        pending = list(points)
        waiting = set(points)
        while pending:
            point = pending.pop()
            waiting.discard(point)
            found = reads[point]
            for target in point.next:
                found |= live[target] & kept[point]
            for target in point.raises:
                found |= live[target]
            if found != live[point]:
                live[point] = found
                for source in before[point]:
                    if source not in waiting:
                        waiting.add(source)
                        pending.append(source)
        return live
