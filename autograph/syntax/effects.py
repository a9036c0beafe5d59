"""What one step of a program does, in the order in which it is evaluated.

``scopes.activity`` says what *may* happen somewhere in a statement; flow analysis needs more: which reads come before
the bindings of the same step, which bindings are certain (``a and (x := b)`` may bind nothing), and which reads only
happen later, when a function defined here is called.

Example::

    >>> step = effects_of(parse("y = (n := f()) + n + m").body[0])
    >>> [node.id for node in step.reads], sorted(step.bound)
    (['f', 'm'], ['n', 'y'])
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gast

from autograph.syntax.names import Path
from autograph.syntax.scopes import activity, function_scope
from autograph.syntax.walk import Visitor

# Builtins that use up a generator before they return: what it reads is read at once, not later.
_CONSUMERS = frozenset(
    {"all", "any", "bytearray", "bytes", "dict", "frozenset", "fsum", "join", "list", "max", "min", "prod", "set"}
    | {"sorted", "sum", "tuple"}
)


class Effects(Visitor):
    """The effects of a step.

    reads: Name nodes that read a value from before the step (not one that the step itself has surely bound).
    bound: names that are surely bound once the step has completed.
    unbound: names that may be unbound by it.
    captured: names that functions and generators made here may read or rebind later.
    paths: attribute and subscript paths that are read, here or by functions made here.
    """

    def __init__(self) -> None:
        self.reads: list[Any] = []
        self.bound: set[str] = set()
        self.unbound: set[str] = set()
        self.captured: set[str] = set()
        self.paths: set[Path] = set()

    def run(self, nodes: Iterable[Any]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def run_perhaps(self, nodes: Iterable[Any]) -> set[str]:
        """Visit nodes that may not be evaluated; returns the names that are bound if they are."""
        before = set(self.bound)
        self.run(nodes)
        after, self.bound = self.bound, before
        return after

    def bind(self, name: str) -> None:
        self.bound.add(name)
        self.unbound.discard(name)

    # Names and paths

    def visit_Name(self, node: Any) -> None:
        if isinstance(node.ctx, gast.Load):
            if node.id not in self.bound:
                self.reads.append(node)
        elif isinstance(node.ctx, gast.Del):
            # Deleting needs the name to be bound, so it reads as well.
            if node.id not in self.bound:
                self.reads.append(node)
            self.bound.discard(node.id)
            self.unbound.add(node.id)
        else:
            self.bind(node.id)

    def _visit_place(self, node: Any) -> None:
        if isinstance(node.ctx, gast.Load):
            path = Path.of(node)
            if path is not None:
                self.paths.add(path)
        self.generic_visit(node)

    visit_Attribute = _visit_place
    visit_Subscript = _visit_place

    # Statements whose order of evaluation isn't the order of their fields

    def visit_Assign(self, node: Any) -> None:
        self.run([node.value, *node.targets])

    def visit_AugAssign(self, node: Any) -> None:
        target = node.target
        if isinstance(target, gast.Name):
            if target.id not in self.bound:
                self.reads.append(target)
            self.visit(node.value)
            self.bind(target.id)
            return
        path = Path.of(target)
        if path is not None:
            self.paths.add(path)
        self.run([target, node.value])

    def visit_AnnAssign(self, node: Any) -> None:
        # Annotations of local variables are never evaluated.
        if node.value is not None:
            self.run([node.value, node.target])
        elif not isinstance(node.target, gast.Name):
            self.generic_visit(node.target)

    def visit_NamedExpr(self, node: Any) -> None:
        self.visit(node.value)
        self.bind(node.target.id)

    def visit_alias(self, node: Any) -> None:
        name = node.asname or node.name.partition(".")[0]
        if name != "*":
            self.bind(name)

    # Expressions that evaluate some of their parts only perhaps

    def visit_BoolOp(self, node: Any) -> None:
        self.visit(node.values[0])
        self.run_perhaps(node.values[1:])

    def visit_Compare(self, node: Any) -> None:
        self.run([node.left, node.comparators[0]])
        self.run_perhaps(node.comparators[1:])

    def visit_IfExp(self, node: Any) -> None:
        self.visit(node.test)
        self.bound = self.run_perhaps([node.body]) & self.run_perhaps([node.orelse])

    def visit_Assert(self, node: Any) -> None:
        self.visit(node.test)
        self.run_perhaps([node.msg])

    def visit_Dict(self, node: Any) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            self.run([key, value])

    # Nested scopes

    def _visit_comprehension(self, node: Any, *, lazy: bool = False) -> None:
        first, *others = node.generators
        self.visit(first.iter)
        inner = Effects()
        inner.bound = set(self.bound)
        inner.run([first.target, *first.ifs])
        for generator in others:
            inner.run([generator.iter, generator.target, *generator.ifs])
        inner.run([node.key, node.value] if isinstance(node, gast.DictComp) else [node.elt])
        targets = {
            name.id
            for generator in node.generators
            for name in gast.walk(generator.target)
            if isinstance(name, gast.Name) and isinstance(name.ctx, gast.Store)
        }
        self.reads += inner.reads
        self.captured |= inner.captured - targets
        self.paths |= {path for path in inner.paths if not path.names & targets}
        if lazy:
            self.captured |= activity(node).read | activity(node).bound

    def visit_GeneratorExp(self, node: Any) -> None:
        self._visit_comprehension(node, lazy=True)

    visit_ListComp = _visit_comprehension
    visit_SetComp = _visit_comprehension
    visit_DictComp = _visit_comprehension

    def visit_Call(self, node: Any) -> None:
        name = getattr(node.func, "id", getattr(node.func, "attr", None))
        self.visit(node.func)
        for arg in node.args:
            if isinstance(arg, gast.GeneratorExp) and name in _CONSUMERS:
                self._visit_comprehension(arg)
            else:
                self.visit(arg)
        self.run(node.keywords)

    def _visit_function(self, node: Any) -> None:
        args = node.args
        if not isinstance(node, gast.Lambda):
            self.run(node.decorator_list)
            own = {param.name for param in getattr(node, "type_params", ())}
            annotations = [arg.annotation for arg in gast.walk(args) if isinstance(arg, gast.Name) and arg.annotation]
            self.run(each for each in [*annotations, node.returns] if not own)
            if own:
                self.captured |= activity(node).read
        self.run([*args.defaults, *args.kw_defaults])
        self._capture(node)
        if not isinstance(node, gast.Lambda):
            self.bind(node.name)

    visit_FunctionDef = _visit_function
    visit_AsyncFunctionDef = _visit_function
    visit_Lambda = _visit_function

    def _capture(self, node: Any) -> None:
        scope = function_scope(node)
        self.captured |= scope.free
        inside = activity(node.body)
        self.paths |= {path for path in inside.paths_read if not path.names & (scope.locals | scope.globals)}

    def visit_ClassDef(self, node: Any) -> None:
        # The body runs at once, its functions later; telling the two apart would buy little.
        found = activity(node)
        self.captured |= (found.read | found.bound) - {node.name}
        self.paths |= found.paths_read
        self.run([*node.decorator_list, *node.bases, *node.keywords])
        self.bind(node.name)

    def visit_TypeAlias(self, node: Any) -> None:
        found = activity(node)
        self.captured |= found.read
        self.bind(node.name.id)


def effects_of(*nodes: Any | None) -> Effects:
    """The effects of evaluating expressions or simple statements (or None, which is skipped) one after another."""
    found = Effects()
    found.run(nodes)
    return found


def captures(pattern: Any) -> set[str]:
    """The names that a ``match`` pattern binds when it matches."""
    names = {
        getattr(node, "rest" if isinstance(node, gast.MatchMapping) else "name", None) for node in gast.walk(pattern)
    }
    return {name for name in names if name is not None}
