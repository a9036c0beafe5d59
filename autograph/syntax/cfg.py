"""The control flow graph of a function.

A point is one step: a simple statement, or one of the parts of a compound statement (a test, the binding of a loop
variable, ...). Edges are of two kinds: ``next``, taken when the step completes, and ``raises``, taken when it fails
half-way, so that none of its bindings can be relied on. Every step inside a ``try`` may raise.

Simplifications, each on the side of more paths: a ``finally`` block stands once in the graph and continues to wherever
any of the ways into it leads. One on the side of fewer: a ``with`` block is taken not to swallow exceptions; else each
name that it binds would count as possibly kept from before, and loops would carry it without need.

Example::

    >>> graph = build(parse("def f(x):\\n    while x:\\n        x = g(x)\\n    return x").body[0])
    >>> loop = graph.function.body[0]
    >>> [type(p.node).__name__ for p in graph.header[loop].next]
    ['Assign', 'While']
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

import gast

from autograph.syntax.effects import Effects, captures, effects_of
from runtime.dataclass import dataclass


class Point:
    """One step: the statement it belongs to, what it does, and where control goes from here."""

    __slots__ = ("effects", "next", "node", "raises")

    def __init__(self, node: Any, effects: Effects, raises: list[Point]) -> None:
        self.node = node
        self.effects = effects
        self.next: list[Point] = []
        self.raises = raises


@dataclass(eq=False)
class Graph:
    """A function's points, and the points that stand before and after each of its statements.

    before, after: for each statement the (empty) points passed on the way in and upon normal completion.
    header: for each loop the point where an iteration begins: a ``while`` evaluates its test, a ``for`` asks its
        iterator for the next item.
    """

    function: Any
    entry: Point
    exit: Point
    points: list[Point]
    before: dict[Any, Point] = field(default_factory=dict)
    after: dict[Any, Point] = field(default_factory=dict)
    header: dict[Any, Point] = field(default_factory=dict)


@dataclass
class _Loop:
    on_break: Point
    on_continue: Point


@dataclass
class _Finally:
    """A block that jumps must pass through; ``pending`` are the kinds of jumps that came by."""

    entry: Point
    pending: set[str] = field(default_factory=set)


def build(function: Any) -> Graph:
    """The control flow graph of a gast function definition or lambda."""
    return _Builder(function).graph


class _Builder:
    """Walks the statements, keeping in ``ends`` the points whose next point is the one made next."""

    def __init__(self, function: Any) -> None:
        self.points: list[Point] = []
        self.frames: list[_Loop | _Finally] = []
        self.raises: list[Point] = []
        self.ends: list[Point] = []
        entry = self.point(function)
        exit_point = Point(function, Effects(), [])
        self.graph = Graph(function, entry, exit_point, self.points)
        if isinstance(function, gast.Lambda):
            self.point(function.body, effects_of(function.body))
        else:
            self.block(function.body)
        self.connect(exit_point)
        self.points.append(exit_point)

    # Making points

    def point(self, node: Any, effects: Effects | None = None) -> Point:
        """Append a point after the current ends and make it the only end."""
        made = Point(node, effects if effects is not None else Effects(), self.raises)
        self.points.append(made)
        self.connect(made)
        self.ends = [made]
        return made

    def detached(self, node: Any) -> Point:
        """An empty point that nothing leads to yet."""
        made = Point(node, Effects(), self.raises)
        self.points.append(made)
        return made

    def connect(self, target: Point) -> None:
        for end in self.ends:
            end.next.append(target)
        self.ends = []

    def block(self, stmts: Iterable[Any]) -> None:
        for stmt in stmts:
            self.statement(stmt)

    def statement(self, stmt: Any) -> None:
        self.graph.before[stmt] = self.point(stmt)
        method = getattr(self, "do_" + type(stmt).__name__, None)
        if method is None:
            self.point(stmt, effects_of(stmt))
        else:
            method(stmt)
        self.graph.after[stmt] = self.point(stmt)

    # Jumps

    def jump(self, kind: str) -> None:
        """Lead the current ends to where ``break``, ``continue`` or ``return`` goes."""
        for frame in reversed(self.frames):
            if isinstance(frame, _Finally):
                frame.pending.add(kind)
                return self.connect(frame.entry)
            if kind != "return":
                return self.connect(frame.on_break if kind == "break" else frame.on_continue)
        # Outside a function a stray break or continue leads nowhere; the compiler reports it.
        self.connect(self.graph.exit)
        return None

    def do_Break(self, stmt: Any) -> None:
        self.jump("break")

    def do_Continue(self, stmt: Any) -> None:
        self.jump("continue")

    def do_Return(self, stmt: Any) -> None:
        self.point(stmt, effects_of(stmt.value))
        self.jump("return")

    def do_Raise(self, stmt: Any) -> None:
        self.point(stmt, effects_of(stmt.exc, stmt.cause))
        self.ends = []

    # Branches and loops

    def do_If(self, stmt: Any) -> None:
        test = self.point(stmt, effects_of(stmt.test))
        always = _constant(stmt.test)
        self.ends = [] if always is False else [test]
        self.block(stmt.body)
        ends, self.ends = self.ends, [] if always is True else [test]
        self.block(stmt.orelse)
        self.ends += ends

    def do_While(self, stmt: Any) -> None:
        header = self.graph.header[stmt] = self.point(stmt, effects_of(stmt.test))
        always = _constant(stmt.test)
        self.loop(stmt, header, [] if always is False else [header], [] if always is True else [header])

    def do_For(self, stmt: Any) -> None:
        self.point(stmt, effects_of(stmt.iter))
        header = self.graph.header[stmt] = self.point(stmt)
        target = self.point(stmt, effects_of(stmt.target))
        self.loop(stmt, header, [target], [header])

    do_AsyncFor = do_For

    def loop(self, stmt: Any, header: Point, into: list[Point], out: list[Point]) -> None:
        broken = self.detached(stmt)
        self.frames.append(_Loop(broken, header))
        self.ends = into
        self.block(stmt.body)
        self.connect(header)
        self.frames.pop()
        self.ends = list(out)
        self.block(stmt.orelse)
        self.ends.append(broken)

    def do_With(self, stmt: Any) -> None:
        for item in stmt.items:
            self.point(stmt, effects_of(item.context_expr, item.optional_vars))
        self.block(stmt.body)

    do_AsyncWith = do_With

    def do_Match(self, stmt: Any) -> None:
        self.point(stmt, effects_of(stmt.subject))
        done: list[Point] = []
        for case in stmt.cases:
            pattern = self.point(stmt, effects_of(*_pattern_values(case.pattern)))
            bind = self.point(stmt)
            bind.effects.bound |= captures(case.pattern)
            failed = [] if _irrefutable(case.pattern) else [pattern]
            if case.guard is not None:
                failed.append(self.point(stmt, effects_of(case.guard)))
            self.block(case.body)
            done += self.ends
            self.ends = failed
        self.ends += done

    # Exceptions

    def do_Try(self, stmt: Any) -> None:
        outer = self.raises
        last = None
        if stmt.finalbody:
            last = _Finally(self.detached(stmt))
            self.frames.append(last)
            self.raises = [last.entry]
        inner = self.raises
        thrown = self.detached(stmt)
        self.raises = [thrown] if stmt.handlers else inner
        self.block(stmt.body)
        self.raises = inner
        self.block(stmt.orelse)
        done = self.ends
        self.ends = [thrown] if stmt.handlers else []
        for handler in stmt.handlers:
            done += self.handler(stmt, handler)
        # No handler fits: the exception goes on.
        for end in self.ends:
            end.next.extend(inner)
        self.ends = done
        if last is None:
            return
        self.connect(last.entry)
        self.frames.pop()
        self.raises = outer
        self.ends = [last.entry]
        self.block(stmt.finalbody)
        finished = self.ends
        for end in finished:
            end.next.extend(outer)
        for kind in sorted(last.pending):
            self.ends = list(finished)
            self.jump(kind)
        self.ends = finished

    do_TryStar = do_Try

    def handler(self, stmt: Any, handler: Any) -> list[Point]:
        """Append one handler; returns its ends and leaves the ends for "doesn't fit" behind."""
        test = self.point(stmt, effects_of(handler.type))
        unfit = [] if handler.type is None else [test]
        if handler.name is None:
            self.block(handler.body)
            done = self.ends
        else:
            # Python unbinds the name on every way out of the handler, as a `finally` would.
            cleanup = _Finally(self.detached(stmt))
            cleanup.entry.effects.unbound.add(handler.name.id)
            self.point(stmt, effects_of(handler.name))
            self.frames.append(cleanup)
            self.block(handler.body)
            self.frames.pop()
            self.connect(cleanup.entry)
            for kind in sorted(cleanup.pending):
                self.ends = [cleanup.entry]
                self.jump(kind)
            done = [cleanup.entry]
        # Of an exception group, a later `except*` clause may get the rest.
        self.ends = unfit + (list(done) if isinstance(stmt, gast.TryStar) else [])
        return done


def _constant(test: Any) -> bool | None:
    return bool(test.value) if isinstance(test, gast.Constant) else None


def _irrefutable(pattern: Any) -> bool:
    if isinstance(pattern, gast.MatchAs):
        return pattern.pattern is None or _irrefutable(pattern.pattern)
    return isinstance(pattern, gast.MatchOr) and _irrefutable(pattern.patterns[-1])


def _pattern_values(pattern: Any) -> list[Any]:
    """The expressions that a pattern evaluates: constants, dotted names, classes, mapping keys."""
    found: list[Any] = []
    for node in gast.walk(pattern):
        if isinstance(node, gast.MatchValue):
            found.append(node.value)
        elif isinstance(node, gast.MatchMapping):
            found += node.keys
        elif isinstance(node, gast.MatchClass):
            found.append(node.cls)
    return found
