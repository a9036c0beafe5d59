"""List comprehensions and generator expressions can run over staged iterables: a loop stands beside Python's own form.

    [x * x for x in t if x > 0]     →      ag__.list_comp(t, lambda items: [x * x for x in items if x > 0],
                                               lambda found, x: ag__.if_stmt(x > 0, lambda: found.append(x * x)))

The first form is Python's, for Python's iterables: nothing about it changes. The second one is the body of a loop that
is traced. Each level of comprehensions in comprehensions doubles the text, so beyond a few levels they stay as they
are, as do those that bind a name (``:=``), suspend their function, or are asynchronous. An element that makes a closure
shares the comprehension's variables with the others; ``True`` at the end keeps it from the second form unless the
iterable is staged. The second form of a comprehension that is a statement of its own (``[log.append(x) for x in t]``)
makes no list. ``y.extend(v + y[-1] for v in t)`` and ``y += (...)`` add the elements one by one, since these may read
the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.expressions import ExpressionPass, added, can_defer, is_operator_call
from autograph.convert.tree import head
from autograph.syntax import templates
from autograph.syntax.walk import children

_MOST_NESTED = 3


def lower(tree: Any, context: Context) -> Any:
    """Rewrites the comprehensions in a tree; comes last, because what it copies must be converted already."""
    return _Comprehensions(context).visit(tree)


class _Comprehensions(ExpressionPass):
    unused: Any = None  # the expression of a statement: of a comprehension that stands there the list isn't made

    def visit_Expr(self, node: Any) -> Any:
        self.unused = node.value
        return self.generic_visit(node)

    def visit_Call(self, node: Any) -> Any:
        if not _is_extend(node):
            return self.generic_visit(node)
        method = self.visit(node.func.args[0])
        made = self.comprehension(node.args[0], "ag__.extend(arguments)", [method])
        if isinstance(made, gast.Call):
            return made
        node.func.args, node.args = [method], [made]
        return node

    def visit_AugAssign(self, node: Any) -> Any:
        if not (isinstance(node.value, gast.GeneratorExp) and isinstance(node.op, gast.Add) and _is_path(node.target)):
            return self.generic_visit(node)
        owner = templates.with_context(node.target, gast.Load())
        node.value = self.comprehension(node.value, "ag__.extended(arguments)", [owner])
        if isinstance(node.value, gast.Call):
            return gast.copy_location(gast.Assign([node.target], node.value, None), node)
        return node

    def visit_ListComp(self, node: Any) -> Any:
        return self.comprehension(node, "ag__.list_comp(arguments)")

    def visit_GeneratorExp(self, node: Any) -> Any:
        return self.comprehension(node, "ag__.generator_exp(arguments)")

    def comprehension(self, node: Any, template: str, before: Sequence[Any] = ()) -> Any:
        """The call of an operator with the forms of a comprehension, after other arguments; or it as it is."""
        if _levels(node) > _MOST_NESTED or not can_defer(node, self.context):
            return self.generic_visit(node)
        keeps_variables = _makes_closures(node)
        self.generic_visit(node)
        first = node.generators[0]
        iterable = first.iter
        items, found = self.context.free_name("items"), self.context.free_name("comprehension")
        loop = self.loop_body(node, found, self.body(node, found))
        first.iter = templates.expression("items", at=iterable, items=items)
        native = templates.expression("lambda items: form", at=head(node), items=items, form=node)
        arguments = [*before, iterable, native, loop]
        if keeps_variables:
            arguments.append(templates.literal(True, at=head(node)))
        return templates.expression(template, at=head(node), arguments=arguments)

    def loop_body(self, node: Any, found: str, body: Any) -> Any:
        """What the loop over the first iterable does with a list and an item."""
        target = node.generators[0].target
        if isinstance(target, gast.Name):
            name, body = target.id, body
        else:
            name, body = self.unpacked(target, body)
        return templates.expression("lambda found, item: body", at=head(node), found=found, item=name, body=body)

    def body(self, node: Any, found: str) -> Any:
        """An expression that adds an item's elements to the list."""
        method, element = added(node)
        if node is self.unused and method == "append":
            made = templates.expression("(element, None)[1]", at=element, element=element)
        else:
            function = templates.expression(f"found.{method}", at=element, found=found)
            if method == "extend":  # whose items may be staged
                function = templates.expression("ag__.converted_call(function)", at=element, function=function)
            made = templates.expression("function(element)", at=element, function=function, element=element)
        for position, clause in reversed(list(enumerate(node.generators))):
            for test in reversed(clause.ifs):
                made = templates.expression("ag__.if_stmt(test, lambda: body)", at=test, test=test, body=made)
            if position > 0:
                name = clause.target.id if isinstance(clause.target, gast.Name) else ""
                if not name:
                    name, made = self.unpacked(clause.target, made)
                template = "ag__.for_stmt(items, lambda item: body)"
                made = templates.expression(template, at=clause.iter, items=clause.iter, item=name, body=made)
        return made

    def unpacked(self, target: Any, body: Any) -> tuple[str, Any]:
        """A name for an item, and the body under the names that the target takes from the item."""
        name = self.context.free_name("item")
        template = "[body for target in (item,)]"
        return name, templates.expression(template, at=target, body=body, target=target, item=name)


def _is_extend(node: Any) -> bool:
    """Whether a call is ``y.extend(...)`` of a generator expression, made one of the operators' by calls.py."""
    if len(node.args) != 1 or node.keywords or not isinstance(node.args[0], gast.GeneratorExp):
        return False
    if not (isinstance(node.func, gast.Call) and is_operator_call(node.func)):
        return False
    method = node.func.args[0] if node.func.args else None
    return isinstance(method, gast.Attribute) and method.attr == "extend"


def _is_path(target: Any) -> bool:
    """Whether an assignment's target is a name, or attributes of one: what can be read twice."""
    while isinstance(target, gast.Attribute):
        target = target.value
    return isinstance(target, gast.Name)


def _levels(node: Any) -> int:
    inner = max((_levels(child) for child in children(node)), default=0)
    return inner + isinstance(node, (gast.ListComp, gast.GeneratorExp))


def _makes_closures(node: Any) -> bool:
    """Whether functions or generators come out of a comprehension that may see its variables change."""
    waiting = [*children(node)]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (gast.Lambda, gast.GeneratorExp)):
            return True
        if isinstance(each, gast.Call) and is_operator_call(each):
            waiting.extend(child.body if isinstance(child, gast.Lambda) else child for child in each.args)
        elif isinstance(each, gast.Call) and len(each.args) == 1 and isinstance(each.args[0], gast.GeneratorExp):
            # Whoever is called with a generator alone (sum, any, tuple ...) takes all from it.
            waiting.extend([each.func, *children(each.args[0]), *each.keywords])
        else:
            waiting.extend(children(each))
    return False
