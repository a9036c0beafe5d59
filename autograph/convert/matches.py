"""``match`` becomes ``if``: values are compared; other patterns stay with Python, which tells whether they match.

    match x:                      matched = False
        case 0 | 1:               if x == 0 or x == 1:
            y = 0                     y = 0
        case (a, 2) if a > 0: →   else:
            y = a                     match x:
        case _:                           case (a, 2):
            y = -1                            matched = True
                                      if matched and a > 0:
                                          y = a
                                      else:
                                          y = -1

A ``match`` that is left in the result is an *outcome*: a block of its own, which may run more than once while tracing
(see operators/deciding.py), since what a pattern looks at can hold tensors anywhere.
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.tree import Block, StatementRewriter, functions, statements
from autograph.syntax import templates
from autograph.syntax.scopes import activity


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the ``match`` statements of a tree that aren't pinned."""
    for function in functions(tree):
        if any(isinstance(stmt, gast.Match) for stmt in statements(function.body)):
            function.body = _Matches(function, context).block(function.body)
    return tree


_KINDS = frozenset({"bool", "float", "int", "str"})


class _Matches(StatementRewriter):
    def statement(self, stmt: Any) -> Block:
        return self.lowered(stmt) if isinstance(stmt, gast.Match) and stmt not in self.pinned else [stmt]

    def lowered(self, stmt: Any) -> Block:
        bound = {name for case in stmt.cases for name in activity(case.pattern).bound}
        bound |= {name for case in stmt.cases if case.guard is not None for name in activity(case.guard).bound}
        if isinstance(stmt.subject, gast.Name) and stmt.subject.id not in bound:
            return self.chain(stmt.subject.id, stmt.cases)
        name = self.context.new_name(self.function, "subject")
        made = templates.replace("name = value", at=stmt.subject, name=name, value=stmt.subject)
        return [*made, *self.chain(name, stmt.cases)]

    def chain(self, subject: str, cases: list[Any]) -> Block:
        """The statements that do what the remaining cases do."""
        if not cases:
            return []
        case = cases[0]
        before, test = self.test(subject, case.pattern)
        if case.guard is not None:
            guard = case.guard
            test = guard if test is None else templates.expression("test and guard", at=guard, test=test, guard=guard)
        if test is None:
            return [*before, *case.body]
        made = gast.If(test, case.body, self.chain(subject, cases[1:]))
        return [*before, gast.copy_location(made, case.pattern)]

    def test(self, subject: str, pattern: Any) -> tuple[Block, Any]:
        """What has to run before the test of a pattern, and the test; None for a pattern that always matches."""
        comparison = _comparison(subject, pattern)
        if comparison is not None:
            return [], comparison
        if isinstance(pattern, gast.MatchAs) and pattern.pattern is None:
            if pattern.name is None:
                return [], None
            return templates.replace("name = subject", at=pattern, name=pattern.name, subject=subject), None
        classes: Block = []
        pattern = self.asking(pattern, classes)
        flag = self.context.new_name(self.function, "matched")
        template = """
        flag = False
        match subject:
            case _:
                flag = True
        """
        made = templates.replace(template, at=pattern, flag=flag, subject=subject)
        match = made[-1]
        match.cases[0].pattern = pattern
        outcome = gast.copy_location(gast.If(templates.literal(True, at=pattern), [match], []), pattern)
        outcome.is_outcome = True
        return [*classes, *made[:-1], outcome], templates.expression("flag", at=pattern, flag=flag)

    def asking(self, pattern: Any, classes: Block) -> Any:
        """A pattern with classes of ours where Python would look at a value's class or identity itself.

        classes: takes the statements that bind their names.
        """

        def bound(value: str, operator: str, given: Any) -> Any:
            name = self.context.new_name(self.function, value)
            template = "name = ag__.operator(given)"
            classes.extend(templates.replace(template, at=pattern, name=name, operator=operator, given=given))
            return templates.expression("name", at=pattern, name=name)

        if isinstance(pattern, gast.MatchSingleton):
            value = templates.literal(pattern.value, at=pattern)
            made = gast.MatchClass(bound("is_value", "value_pattern", value), [], [], [])
            return gast.copy_location(made, pattern)
        if isinstance(pattern, gast.MatchValue) and isinstance(pattern.value, gast.Attribute):
            value = templates.expression("lambda: value", at=pattern, value=pattern.value)
            made = gast.MatchClass(bound("equal", "equal_pattern", value), [], [], [])
            return gast.copy_location(made, pattern)
        if isinstance(pattern, gast.MatchClass):
            kind = getattr(pattern.cls, "id", "")
            if kind in _KINDS and kind not in self.context.shadowed:
                pattern.cls = bound("kind", "kind_pattern", templates.expression("kind", at=pattern, kind=kind))
            pattern.kwd_patterns = [self.asking(each, classes) for each in pattern.kwd_patterns]
        if hasattr(pattern, "patterns"):
            pattern.patterns = [self.asking(each, classes) for each in pattern.patterns]
        if getattr(pattern, "pattern", None) is not None:
            pattern.pattern = self.asking(pattern.pattern, classes)
        return pattern


def _comparison(subject: str, pattern: Any) -> Any:
    """The test of a pattern that consists of values; None if there is more to it."""
    if isinstance(pattern, gast.MatchValue):
        return templates.expression("subject == value", at=pattern, subject=subject, value=pattern.value)
    if isinstance(pattern, gast.MatchSingleton):
        value = templates.literal(pattern.value, at=pattern)
        return templates.expression("subject is value", at=pattern, subject=subject, value=value)
    if isinstance(pattern, gast.MatchOr):
        parts = [_comparison(subject, each) for each in pattern.patterns]
        if all(part is not None for part in parts):
            return gast.copy_location(gast.BoolOp(gast.Or(), parts), pattern)
    return None
