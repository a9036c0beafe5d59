"""Loops whose trips can run side by side, in the lanes of vectors: which they are, and what of them does.

    while index < n:                            lanes of  index = index + 0, 1, 2, ...
        x = a[index]                                      x = a[index]
        while abs(x) > 1e-9:              →               while any lane's abs(x) > 1e-9:
            x = x - f(x) / g(x)                               x = x - f(x) / g(x)  in those lanes
        index = index + 1                       each lane in turn
        total = total + x                                 index = index + 1
                                                          total = total + x

A trip has two parts. What hangs on nothing that an earlier trip made (`apart`) runs in lanes, each of which does what
the trip alone would do; lanes whose inner loops have ended wait for the others. The rest (`in_turn`: sums of floats,
writes to arrays) follows lane by lane as it stands, so every result has the bits that the loop alone would give. Sums
of integers, which wrap, may be taken apart: inside an inner loop, `total = total + 1` counts from zero, and what it
came to is added in turn.

LLVM makes vectors of loops without loops inside; these here are the others. A loop with a way out in the middle is none
of them: lanes may only begin trips that would be made. (But for errors: a trip that never ends, a few trips after one
that fails, keeps the error from being told.)
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime.kernel_ir.types import BOOL, SCALARS, Array, Scalar, Unsupported

# Counts what all lanes do together, for Ctrl-C (codegen/passes/interrupt_polls.py).
TICKS = "ticks"
_LARGEST = 1500  # nodes of the syntax tree of a trip
_FEW = 5  # trips that would leave most lanes without work


class Syntax:
    """What stands in statements; each is gone over once."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[ast.AST, list[ast.AST]]] = {}

    def parts(self, nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
        """The nodes of syntax trees, but for those that say whether a name is read."""
        for node in nodes:
            if id(node) not in self._parts:
                self._parts[id(node)] = node, self._walked(node)
            yield from self._parts[id(node)][1]

    def _walked(self, node: ast.AST) -> list[ast.AST]:
        found, waiting = [], [node]
        while waiting:
            part = waiting.pop()
            found.append(part)
            for name in part._fields:
                value = getattr(part, name, None)
                if type(value) is list:
                    waiting += value
                elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                    waiting.append(value)
        return found

    def names(self, nodes: Iterable[ast.AST]) -> Counter[str]:
        """How often variables are named."""
        return Counter(part.id for part in self.parts(nodes) if type(part) is ast.Name)

    def reads(self, nodes: Iterable[ast.AST]) -> set[str]:
        found = set()
        for part in self.parts(nodes):
            if type(part) is ast.Name and type(part.ctx) is ast.Load:
                found.add(part.id)
            elif type(part) is ast.AugAssign and isinstance(part.target, ast.Name):
                found.add(part.target.id)
        return found

    def assigned(self, nodes: Iterable[ast.AST]) -> set[str]:
        return {part.id for part in self.parts(nodes) if type(part) is ast.Name and type(part.ctx) is ast.Store}

    def exposed(self, body: Sequence[ast.stmt], defined: set[str]) -> set[str]:
        """The variables that statements may read before they assign them; `defined` gets those they surely assign."""
        found: set[str] = set()
        for statement in body:
            if isinstance(statement, ast.If):
                found |= self.reads([statement.test]) - defined
                yes, no = set(defined), set(defined)
                found |= self.exposed(statement.body, yes) | self.exposed(statement.orelse, no)
                if isinstance(statement.body[-1], (ast.Return, ast.Break)):
                    yes = no
                defined |= yes & no
            elif isinstance(statement, ast.While):
                found |= self.reads([statement.test]) - defined
                found |= self.exposed(statement.body, set(defined))
            elif isinstance(statement, ast.For):
                found |= self.reads([statement.iter]) - defined
                found |= self.exposed(statement.body, defined | self.assigned([statement.target]))
            else:
                found |= self.reads([statement]) - defined
                if isinstance(statement, ast.Assign):
                    defined |= self.assigned(statement.targets)
        return found


@dataclass
class Plan:
    """A loop `while index < limit` as lanes run it.

    apart     statements that lanes run together; `shared` of the variables that they assign are the same in all lanes
    in_turn   those that follow for one lane after the other
    taken     variables of lanes that the statements in turn, or what comes after the loop, read
    hot       bits of the widest number that inner loops assign
    names     how often the function names what
    """

    syntax: Syntax
    index: str
    limit: ast.expr
    apart: list[ast.stmt]
    in_turn: list[ast.stmt]
    varying: set[str] = field(default_factory=set)
    taken: list[str] = field(default_factory=list)
    hot: int = 64
    names: Counter[str] = field(default_factory=Counter)
    _local: dict[int, set[str]] = field(default_factory=dict)

    def differs(self, node: ast.AST) -> bool:
        """Whether an expression may differ between lanes."""
        parts = self.syntax.parts([node])
        return any(type(part) is ast.Name and part.id in self.varying for part in parts)

    def divides(self, node: ast.While | ast.If) -> bool:
        """Whether only some lanes may run what is inside of a statement."""
        tests = [node.test, *(way_out.test for way_out in node.body if ends_loop(way_out))]  # type: ignore[attr-defined]
        return any(self.differs(test) for test in tests)

    def is_local(self, name: str, inside: list[ast.stmt]) -> bool:
        """Whether nothing but certain statements sees a variable, and they assign it before they read it."""
        local = self._local.get(id(inside))
        if local is None:
            here = self.syntax.names(inside)
            own = {each for each, count in here.items() if count == self.names[each]}
            local = self._local[id(inside)] = own - self.syntax.exposed(inside, set())
        return name in local


def plans(types: Any) -> dict[int, Plan]:
    """How the loops of a function run in lanes that can and would gain by it, by the identity of their statements: of
    loops in one another the innermost."""
    found: dict[int, Plan] = {}
    syntax = Syntax()

    def visit(body: Sequence[ast.stmt]) -> bool:
        """Whether there is such a loop among statements, or in them."""
        some = False
        for node in body:
            within = [visit(getattr(node, name)) for name in ("body", "orelse") if hasattr(node, name)]
            if isinstance(node, ast.While) and not any(within):
                plan = _plan(types, syntax, node)
                if plan is not None:
                    found[id(node)] = plan
                    some = True
            some |= any(within)
        return some

    visit(types.function.body)
    return found


def _plan(types: Any, syntax: Syntax, node: ast.While) -> Plan | None:
    counted = _counted(types, syntax, node)
    if counted is None or not any(type(part) is ast.While for part in syntax.parts(node.body)):
        return None
    index, _ = counted
    if sum(1 for _ in syntax.parts(node.body)) > _LARGEST:
        return None
    outside = syntax.names([types.function])
    outside.subtract(syntax.names([node]))
    loop = _copied(node)
    found = Plan(syntax, index, loop.test.comparators[0], [], [])
    loop.body = _sums_apart(types, syntax, loop.body)
    if not _divided(types, loop, found, outside):
        return None
    _find_varying(found, outside, loop)
    if not _worthwhile(types, found):
        return None
    made = syntax.assigned(found.apart)
    wanted = syntax.reads(found.in_turn) | {name for name, count in outside.items() if count}
    found.taken = sorted((made & wanted & found.varying) - {TICKS})
    return found


def _copied(node: Any) -> Any:
    """A syntax tree of its own; `copy.deepcopy` takes ten times as long."""
    if isinstance(node, list):
        return [_copied(each) for each in node]
    if not isinstance(node, ast.AST) or not node._fields:
        return node
    copy = node.__class__.__new__(node.__class__)
    for name, value in node.__dict__.items():
        copy.__dict__[name] = _copied(value) if isinstance(value, (ast.AST, list)) else value
    return copy


def _counted(types: Any, syntax: Syntax, node: ast.While) -> tuple[str, ast.expr] | None:
    """The counter and the limit of a loop `while i < n: ...; i = i + 1; ...` over int64."""
    test = node.test
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Lt)):
        return None
    index, limit = test.left, test.comparators[0]
    if not isinstance(index, ast.Name) or not isinstance(limit, (ast.Name, ast.Constant, ast.Attribute, ast.Subscript)):
        return None
    of_array = isinstance(limit, ast.Subscript) and not isinstance(limit.value, ast.Attribute)
    if of_array or syntax.reads([limit]) & syntax.assigned(node.body):
        return None
    trips = types.constant(limit)
    if isinstance(trips, int) and trips < _FEW:
        return None
    steps = [s for s in node.body if index.id in syntax.assigned([s])]
    if len(steps) != 1 or ast.unparse(steps[0]) != f"{index.id} = {index.id} + 1":
        return None
    int64 = all(isinstance(t, Scalar) and t.name == "int64" for t in (types.of(index), types.of(limit)))
    return (index.id, limit) if int64 else None


def ends_loop(node: ast.stmt) -> bool:
    """Whether a statement is `if ...: ...; break`."""
    return isinstance(node, ast.If) and isinstance(node.body[-1], ast.Break) and not node.orelse


# --- sums ------------------------------------------------------------------------------------------------------------


def _sums_apart(types: Any, syntax: Syntax, body: list[ast.stmt]) -> list[ast.stmt]:
    """The body with sums of integers inside of its inner loops counted from zero and added after them."""
    result: list[ast.stmt] = []
    for statement in body:
        if not isinstance(statement, ast.While):
            result.append(statement)
            continue
        before: list[ast.stmt] = []
        after: list[ast.stmt] = []
        counts = syntax.names([statement])
        assignments = [part for part in syntax.parts([statement]) if type(part) is ast.Assign]
        for name in sorted(syntax.assigned([statement]) - {TICKS}):
            type_ = types.variables[name]
            if not isinstance(type_, Scalar) or type_.is_float or type_ == BOOL:
                continue
            additions = [part for part in assignments if _is_addition(part, name)]
            if not additions or counts[name] != 2 * len(additions):
                continue  # it is read, too
            fresh = f"{name}.sum"
            types.variables[fresh] = type_
            for addition in additions:
                for part in ast.walk(addition):
                    if isinstance(part, ast.Name) and part.id == name:
                        part.id = fresh
            before.append(_parsed(f"{name} = 0", {name: fresh}))
            total = f"{name} + other" if type_.name == "int64" else f"np.{type_.name}({name} + other)"
            after.append(_parsed(f"{name} = {total}", {"other": fresh}))
        result += [*before, statement, *after]
    return result


def _is_addition(node: ast.Assign, name: str) -> bool:
    """Whether a statement is `name = name + e`, or that cast to an integer type."""
    if not isinstance(node.targets[0], ast.Name) or node.targets[0].id != name:
        return False
    value = node.value
    if isinstance(value, ast.Call) and len(value.args) == 1 and isinstance(value.func, ast.Attribute):
        if value.func.attr not in SCALARS:
            return False
        value = value.args[0]
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return False
    return isinstance(value.left, ast.Name) and value.left.id == name


def _parsed(text: str, renamed: dict[str, str]) -> ast.stmt:
    statement = ast.parse(text).body[0]
    for part in ast.walk(statement):
        if isinstance(part, ast.Name):
            part.id = renamed.get(part.id, part.id)
    return statement


# --- the two parts of a trip -----------------------------------------------------------------------------------------


def _divided(types: Any, loop: ast.While, found: Plan, outside: Counter[str]) -> bool:
    """Sorts the statements of a trip; False where their order forbids it."""
    syntax = found.syntax
    ways_out = [s for part in syntax.parts(loop.body) if isinstance(part, ast.While) for s in part.body if ends_loop(s)]
    others = Counter(type(part) for part in syntax.parts(loop.body))
    if others[ast.Continue] or others[ast.Break] != len(ways_out):
        return False
    defined: set[str] = set()
    exposed = syntax.exposed(loop.body, defined)
    assigned = syntax.assigned(loop.body)
    later = {name for name in assigned if outside[name] and name not in defined}
    tainted = ((exposed | later) & assigned) - {TICKS, found.index}
    writes = any(_writes(types, syntax, part) for part in syntax.parts(loop.body))
    together = [_is_apart(types, syntax, statement, writes) for statement in loop.body]
    turn: set[int] = set()
    before = -1
    while before != len(turn):
        before = len(turn)
        for position, statement in enumerate(loop.body):
            if position in turn:
                continue
            mine = syntax.assigned([statement]) - {TICKS}
            hangs = (mine | syntax.reads([statement])) & tainted
            if hangs or found.index in mine or not together[position]:
                turn.add(position)
                tainted |= mine - {found.index}
    for position in turn:
        seen = syntax.reads([loop.body[position]])
        if any(
            seen & syntax.assigned([s]) - {TICKS} for at, s in enumerate(loop.body) if at not in turn and at > position
        ):
            return False
    found.apart = [s for position, s in enumerate(loop.body) if position not in turn]
    found.in_turn = [s for position, s in enumerate(loop.body) if position in turn]
    # What reads the counter after its step would see another one than it does where the counter steps in turn.
    step = next(at for at, s in enumerate(loop.body) if found.index in syntax.assigned([s]))
    return not any(found.index in syntax.reads([s]) for at, s in enumerate(loop.body) if at not in turn and at > step)


def _writes(types: Any, syntax: Syntax, node: ast.AST) -> bool:
    """Whether a statement or call changes arrays, or may."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store)
    if not isinstance(node, ast.Call):
        return False
    elements = {id(part.value) for part in syntax.parts(node.args) if isinstance(part, (ast.Subscript, ast.Attribute))}
    names = (part for part in syntax.parts(node.args) if type(part) is ast.Name and id(part) not in elements)
    return any(isinstance(types.variables.get(name.id), Array) for name in names)


def _is_apart(types: Any, syntax: Syntax, statement: ast.stmt, writes: bool) -> bool:
    """Whether lanes may run a statement together as far as its own kind goes."""
    returned = {id(p) for part in syntax.parts([statement]) if type(part) is ast.Return for p in ast.walk(part)}
    for part in syntax.parts([statement]):
        if isinstance(part, (ast.Expr, ast.For, ast.AugAssign)):
            return False
        if id(part) not in returned and _writes(types, syntax, part):
            return False
        if type(part) is ast.Name:
            type_ = types.variables.get(part.id)
            if part.id in types.tuples or (isinstance(type_, Array) and isinstance(part.ctx, ast.Store)):
                return False
        # Nothing is written through a kernel's arguments; other arrays may be one under two names.
        if isinstance(part, ast.Subscript) and writes and isinstance(part.value, ast.Name):
            name = part.value.id
            if name not in types.parameters or name in types.assigned:
                return False
    return True


# --- what differs between lanes --------------------------------------------------------------------------------------


def _find_varying(found: Plan, outside: Counter[str], loop: ast.While) -> None:
    """The variables of the statements apart that differ between lanes: what comes of the counter, and what only some
    lanes assign and others see."""
    found.names = outside + found.syntax.names([loop])
    found.varying = {found.index}
    before = 0
    while before != len(found.varying):
        before = len(found.varying)
        _spread(found, found.apart, None)


def _spread(found: Plan, body: list[ast.stmt], inside: list[ast.stmt] | None) -> None:
    """inside: the innermost statements around these that only some lanes run; None where all do."""
    for statement in body:
        if isinstance(statement, (ast.While, ast.If)):
            apart = found.divides(statement)
            for inner in (statement.body, getattr(statement, "orelse", [])):
                if inner:
                    _spread(found, inner, inner if apart else inside)
        elif isinstance(statement, ast.Assign):
            for target, value in _pairs(statement):
                seen = inside is not None and not found.is_local(target, inside)
                if target != TICKS and (found.differs(value) or seen):
                    found.varying.add(target)


def _pairs(node: ast.Assign) -> list[tuple[str, ast.expr]]:
    (target,) = node.targets
    if isinstance(target, ast.Name):
        return [(target.id, node.value)]
    names = [each.id for each in getattr(target, "elts", []) if isinstance(each, ast.Name)]
    if isinstance(node.value, ast.Tuple) and len(names) == len(node.value.elts):
        return list(zip(names, node.value.elts))
    return [(name, node.value) for name in names]


# --- what it gains ---------------------------------------------------------------------------------------------------


def _worthwhile(types: Any, found: Plan) -> bool:
    """Whether some inner loop is one that LLVM makes no vectors of, and nothing in it is slow in lanes."""
    loops = [part for part in found.syntax.parts(found.apart) if isinstance(part, ast.While)]
    if not any(found.divides(loop) or _chained(types, found.syntax, loop) for loop in loops):
        return False
    hot: set[Scalar] = set()
    for loop in loops:
        for name in found.syntax.assigned(loop.body) & found.varying:
            type_ = types.variables.get(name)
            if isinstance(type_, Scalar) and type_ != BOOL:
                hot.add(type_)
        if any(_is_long_division(types, part) for part in found.syntax.parts([loop])):
            return False
    found.hot = max((type_.bits for type_ in hot), default=64)
    return bool(hot)


def _chained(types: Any, syntax: Syntax, loop: ast.While) -> bool:
    """Whether each trip needs a float that the one before made, other than by an addition in any order."""
    carried = syntax.exposed(loop.body, set()) & syntax.assigned(loop.body) - {TICKS}
    return any(isinstance(t := types.variables.get(name), Scalar) and t.is_float for name in carried)


def _is_long_division(types: Any, node: ast.AST) -> bool:
    """Whether an operator divides integers of 64 bits by something that isn't known."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.FloorDiv, ast.Mod)):
        return False
    if types.constant(node.right) is not None:
        return False
    try:
        sides = [types.scalar(side) for side in (node.left, node.right)]
    except Unsupported:
        return True
    return not any(side.is_float for side in sides) and max(side.bits for side in sides) == 64
