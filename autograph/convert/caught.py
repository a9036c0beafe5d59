"""A ``raise`` under a condition inside of ``try``: staged, a flag leads to the clause that catches it.

    try:                              do_raise = False
        if x > 0:                     try:
            raise ValueError              if x > 0:
        y = f(x)                              failure = ag__.Raised()
    except ValueError:                        do_raise = True
        y = 0                 →               raise ValueError
                                          if not do_raise:
                                              y = f(x)
                                      except ValueError:
                                          do_raise = False
                                          y = 0
                                      else:
                                          if do_raise:
                                              if ag__.caught(failure, ValueError):
                                                  do_raise = False
                                                  y = 0
                                      if do_raise:
                                          raise failure.uncaught

On Python values the ``raise`` raises, and the ``except`` clause that was there catches the error; no flag is read that
is true. Where a tensor decides, the branch ends at the ``raise`` and leaves its flag set (see operators/raising.py).
An error that no clause catches is raised again after the statement, when its ``finally`` clause has run.
A ``raise`` that stands in a loop, and in no ``if`` there, leaves the loop first:

    while test():                 do_raise = False
        x = f(x)                  while test():
        raise ValueError              x = f(x)
                           →          do_raise = True
                                      break
                                  if do_raise:
                                      raise ValueError

An ``assert`` that a clause may catch becomes such a ``raise`` first. The block of ``with suppress(ValueError)`` becomes
a ``try`` in that statement, with an ``except ValueError`` that does nothing.

Not lowered: a ``raise`` that stands in neither ``if`` nor loop, and ``try`` statements that hold a pinned statement.
"""

from __future__ import annotations

import builtins
import copy
from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.tree import (
    LOOPS,
    SCOPES,
    Block,
    StatementRewriter,
    functions,
    head,
    leaves,
    map_blocks,
    statements,
)
from autograph.syntax import templates
from autograph.syntax.walk import walk

_JUMPS = (gast.Break, gast.Continue, gast.Return)


def lower(tree: Any, context: Context) -> Any:
    """Gives such ``try`` statements flags, the inner ones first."""
    suppressors = context.suppressors - _bound_names(tree)
    for function in functions(tree):
        for stmt in statements(function.body):
            if isinstance(stmt, gast.With) and stmt not in context.pinned(function) and _raises(stmt.body, False):
                _suppress_by_clause(stmt, suppressors)
        if any(isinstance(stmt, gast.Try) for stmt in statements(function.body)):
            function.body = _Tries(function, context).block(function.body)
    return tree


def _bound_names(tree: Any) -> frozenset[str]:
    """The names that anything in the tree binds, and the attributes of these that may suppress errors."""
    names = {each.id for each in walk(tree) if isinstance(each, gast.Name) and not isinstance(each.ctx, gast.Load)}
    for each in walk(tree):
        if isinstance(each, gast.alias):
            names.add((each.asname or each.name).partition(".")[0])
        elif isinstance(each, (gast.FunctionDef, gast.ClassDef)):
            names.add(each.name)
    return frozenset(names | {f"{name}.suppress" for name in names})


def _suppress_by_clause(stmt: Any, suppressors: frozenset[str]) -> None:
    """Puts a ``try`` into a ``with`` statement whose last managers suppress errors of types that are plain names."""
    for item in reversed(stmt.items):
        call = item.context_expr
        if not (isinstance(call, gast.Call) and _dotted(call.func) in suppressors and item.optional_vars is None):
            return
        if call.keywords or not call.args or not all(map(_dotted, call.args)):
            return
        types = copy.deepcopy(call.args[0] if len(call.args) == 1 else gast.Tuple(call.args, gast.Load()))
        template = "try:\n    body\nexcept types:\n    pass"
        stmt.body = templates.replace(template, at=head(stmt), body=stmt.body, types=types)


def _dotted(node: Any) -> str:
    """The text of a name or of attributes of one; empty for anything else."""
    if isinstance(node, gast.Name):
        return str(node.id)
    owner = _dotted(node.value) if isinstance(node, gast.Attribute) else ""
    return f"{owner}.{node.attr}" if owner else ""


class _Tries(StatementRewriter):
    def __init__(self, function: Any, context: Context) -> None:
        super().__init__(function, context)
        self.found: list[tuple[str, str, Any]] = []  # of the current `try`: each raise with its flag and its error

    def statement(self, stmt: Any) -> Block:
        if isinstance(stmt, gast.Try) and not any(inner in self.pinned for inner in statements([stmt])):
            stmt.body = self.outside_loops(stmt.body)
            if __debug__ and any(map(_may_catch_assertion, stmt.handlers)):
                stmt.body = self.raised(stmt.body)
        if not isinstance(stmt, gast.Try) or any(inner in self.pinned for inner in statements([stmt])):
            return [stmt]
        if not _raises(stmt.body, False) or any(isinstance(each, _JUMPS) for each in statements(stmt.finalbody)):
            return [stmt]
        surely_leaves = leaves([stmt], loop=True)
        self.found = []
        body = self.flagged(stmt.body, False, False)
        orelse = stmt.orelse
        for flag, failure, _ in reversed(self.found if stmt.handlers else ()):
            template = "if flag:\n    clauses" + ("\nelse:\n    orelse" if orelse else "")
            others = {"orelse": orelse} if orelse else {}
            clauses = self.clauses(stmt, flag, failure)
            orelse = templates.replace(template, at=stmt, flag=flag, clauses=clauses, **others)
        made = self.reset(stmt)
        for handler in stmt.handlers:
            handler.body = [*self.reset(handler), *handler.body]
        made.append(gast.copy_location(gast.Try(body, stmt.handlers, orelse, stmt.finalbody), stmt))
        if not stmt.handlers or stmt.handlers[-1].type is not None:
            for flag, failure, place in self.found:
                last = surely_leaves and flag is self.found[-1][0]
                template = "raise failure.uncaught" if last else "if flag:\n    raise failure.uncaught"
                names = {"failure": failure} if last else {"failure": failure, "flag": flag}
                made += templates.replace(template, at=place, **names)
        return made

    def outside_loops(self, block: Block) -> Block:
        """A block in which no ``raise`` stands directly in a loop's body."""
        made: Block = []
        for stmt in block:
            map_blocks(stmt, self.outside_loops)
            made.append(stmt)
            position = _direct_raise(stmt.body) if isinstance(stmt, LOOPS) else None
            if position is None:
                continue
            flag = self.context.new_name(self.function, "do_raise")
            raising = stmt.body[position]
            stmt.body[position:] = templates.replace("flag = True\nbreak", at=raising, flag=flag)
            made.insert(-1, *templates.replace("flag = False", at=head(stmt), flag=flag))
            made += templates.replace("if flag:\n    raising", at=raising, flag=flag, raising=[raising])
        return made

    def raised(self, block: Block) -> Block:
        """A block whose assertions are conditions on a ``raise``."""
        made: Block = []
        for stmt in block:
            map_blocks(stmt, self.raised)
            if isinstance(stmt, gast.Assert):
                error = "ag__.failed()" if stmt.msg is None else "ag__.failed(message)"
                parts = {"test": stmt.test} if stmt.msg is None else {"test": stmt.test, "message": stmt.msg}
                made += templates.replace(f"if not test:\n    raise {error}", at=head(stmt), **parts)
            else:
                made.append(stmt)
        return made

    def reset(self, place: Any) -> Block:
        """Takes back all flags of the current ``try``."""
        return templates.replace(" = ".join([flag for flag, _, _ in self.found]) + " = False", at=place)

    def clauses(self, stmt: Any, flag: str, failure: str) -> Block:
        """What the ``except`` clauses do, chosen by the type of the error that a flag stands for."""
        made: Block = []
        for handler in reversed(stmt.handlers):
            body = _without_bare_raise(self.context.copied(handler.body), failure)
            names: dict[str, Any] = {"flag": flag}
            lines = ["flag = False"]
            if handler.name is not None:
                lines.append("name = failure.error")
                name = handler.name if isinstance(handler.name, str) else handler.name.id
                names.update(name=name, failure=failure)
            block = [*templates.replace("\n".join(lines), at=handler, **names), *body]
            template = "if ag__.caught(failure, types):\n    block" + ("\nelse:\n    others" if made else "")
            parts: dict[str, Any] = {"others": made} if made else {}
            if handler.type is None:
                template = template.replace(", types", "")
            else:
                parts["types"] = copy.deepcopy(handler.type)
            made = templates.replace(template, at=handler, failure=failure, block=block, **parts)
        return made

    def flagged(self, block: Block, under: bool, in_loop: bool) -> Block:
        """A block in which a flag is set before each such ``raise``, and keeps what follows from being done."""
        made: Block = []
        for position, stmt in enumerate(block):
            if _is_raise(stmt, under):
                return [*made, *self.flag(stmt), *block[position:]]
            made.append(stmt)
            before = len(self.found)
            for holder, field, part in _parts(stmt):
                inner_loop = field == "body" if isinstance(stmt, LOOPS) else in_loop
                setattr(holder, field, self.flagged(part, _lies_under(stmt, field, under), inner_loop))
            flags = [flag for flag, _, _ in self.found[before:]]
            if not flags:
                continue
            rest = self.flagged(block[position + 1 :], under, in_loop)
            test = " or ".join(flags)
            if in_loop:
                return [*made, *templates.replace(f"if {test}:\n    break", at=stmt), *rest]
            if rest:
                negated = f"not {test}" if len(flags) == 1 else f"not ({test})"
                made += templates.replace(f"if {negated}:\n    rest", at=rest[0], rest=rest)
            return made
        return made

    def flag(self, stmt: Any) -> Block:
        """What stands before a ``raise``."""
        stmt.is_flagged = True
        flag = self.context.new_name(self.function, "do_raise")
        failure = self.context.new_name(self.function, "failure")
        self.context.mark_covered(self.function, failure)
        self.found.append((flag, failure, stmt))
        return templates.replace("failure = ag__.Raised()\nflag = True", at=stmt, failure=failure, flag=flag)


def _raises(block: Block, under: bool) -> bool:
    """Whether a block holds a ``raise`` to lower. under: it lies in an ``if`` of its ``try`` or loop."""
    for stmt in block:
        if _is_raise(stmt, under):
            return True
        if any(_raises(part, _lies_under(stmt, field, under)) for _, field, part in _parts(stmt)):
            return True
    return False


def _may_catch_assertion(handler: Any) -> bool:
    """Whether an ``except`` clause could catch a failed assertion, as far as its text tells."""
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, gast.Tuple) else [handler.type]
    known = [getattr(builtins, each.id, None) if isinstance(each, gast.Name) else None for each in types]
    return not all(isinstance(each, type) and not issubclass(AssertionError, each) for each in known)


def _direct_raise(block: Block) -> int | None:
    """The position of a ``raise`` of an error in a block."""
    raises = (index for index, stmt in enumerate(block) if isinstance(stmt, gast.Raise) and stmt.exc is not None)
    return next(raises, None)


def _is_raise(stmt: Any, under: bool) -> bool:
    return under and isinstance(stmt, gast.Raise) and stmt.exc is not None and not hasattr(stmt, "is_flagged")


def _parts(stmt: Any) -> list[tuple[Any, str, Block]]:
    """The blocks of a statement, each with what holds it and under which name."""
    if isinstance(stmt, SCOPES):
        return []
    holders = (stmt, *getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ()))
    fields = ("body", "orelse", "finalbody")
    found = [(holder, field, getattr(holder, field, None)) for holder in holders for field in fields]
    return [(holder, field, block) for holder, field, block in found if isinstance(block, list) and block]


def _lies_under(stmt: Any, field: str, under: bool) -> bool:
    if isinstance(stmt, LOOPS):
        return under and field == "orelse"
    return under or isinstance(stmt, (gast.If, gast.Match))


def _without_bare_raise(block: Block, failure: str) -> Block:
    """A clause's body whose ``raise`` alone raises the error that the flag stands for."""
    for stmt in statements(block):
        if isinstance(stmt, gast.Raise) and stmt.exc is None:
            stmt.exc = templates.expression("failure.error", at=stmt, failure=failure)
    return block
