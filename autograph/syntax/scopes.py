"""Which names statements read, bind and delete, and which scope the names of a function belong to.

Follows the rules of CPython's symbol table: comprehension targets stay inside, a walrus in a comprehension binds
outside it, class bodies see the function around them but don't lend it their names, a nested function contributes what
it needs from outside.

Example::

    >>> stmts = parse("y = [i * k for i in xs if (last := i)]").body
    >>> found = activity(stmts)
    >>> sorted(found.read), sorted(found.bound)
    (['k', 'xs'], ['last', 'y'])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import gast

from autograph.syntax.names import Path
from autograph.syntax.walk import Visitor, children
from runtime.dataclass import dataclass

_EMPTY: frozenset[Any] = frozenset()


@dataclass(frozen=True)
class Activity:
    """What statements do to the names of the function that they stand in.

    read: names whose value may be read, by the statements themselves or later by a function defined in them.
    bound: names that may be given a value (assignment, import, def, class, for, with, except, match, walrus ...).
    deleted: names that may become unbound (``del``, and the name of ``except ... as name``).
    paths_read: attribute and subscript paths (never bare names) that may be read.
    paths_modified: attribute and subscript paths that may be assigned or deleted.
    globals, nonlocals: names that the statements declare so, in this scope.
    declared: names made local by a bare annotation (``x: int``), which binds nothing.
    """

    read: frozenset[str] = _EMPTY
    bound: frozenset[str] = _EMPTY
    deleted: frozenset[str] = _EMPTY
    paths_read: frozenset[Path] = _EMPTY
    paths_modified: frozenset[Path] = _EMPTY
    globals: frozenset[str] = _EMPTY
    nonlocals: frozenset[str] = _EMPTY
    declared: frozenset[str] = _EMPTY

    @property
    def modified(self) -> frozenset[str]:
        """Names that are bound or deleted."""
        return self.bound | self.deleted


@dataclass(frozen=True)
class OwnScope:
    """The names that a function makes its own or declares.

    params: parameter names in the order of the signature (positional-only, positional, *args, keyword-only, **kwargs).
    locals: every local name, parameters included.
    globals, nonlocals: names that the function declares so.
    """

    params: tuple[str, ...]
    locals: frozenset[str]
    globals: frozenset[str]
    nonlocals: frozenset[str]


@dataclass(frozen=True)
class FunctionScope(OwnScope):
    """Where the names that a function uses live.

    free: names used in the function or in functions nested in it that aren't local to it and not declared global:
        variables of enclosing functions, module globals and builtins.
    """

    free: frozenset[str]


def activity(node: Any) -> Activity:
    """What a node, or a list of nodes, reads, binds and deletes in the function scope that it stands in.

    A function definition given here counts as a statement: it binds its name and reads what its body needs from
    outside. Use ``function_scope`` for the inside.
    """
    scan = _Scan()
    scan.visit_all(node if isinstance(node, (list, tuple)) else [node])
    return Activity(
        frozenset(scan.read),
        frozenset(scan.bound | scan.bound_by_nested),
        frozenset(scan.deleted | scan.deleted_by_nested),
        frozenset(scan.paths_read),
        frozenset(scan.paths_modified),
        frozenset(scan.globals),
        frozenset(scan.nonlocals),
        frozenset(scan.declared),
    )


class Activities:
    """``activity`` of the nodes of a tree that doesn't change, each scanned once.

    Analyses ask for a block, then for each statement in it, then for the blocks of that: without a memory the work
    grows with the depth of nesting.
    """

    def __init__(self) -> None:
        self._known: dict[Any, Activity] = {}

    def __call__(self, node: Any) -> Activity:
        if isinstance(node, (list, tuple)):
            return _together([self(each) for each in node])
        found = self._known.get(node)
        if found is None:
            # What one of these does is what its parts do.
            found = self(children(node)) if isinstance(node, _MADE_OF_PARTS) else activity(node)
            self._known[node] = found
        return found


_MADE_OF_PARTS = (
    *(gast.If, gast.While, gast.For, gast.AsyncFor, gast.With, gast.AsyncWith),
    *(gast.Try, gast.TryStar, gast.Match, gast.match_case, gast.Expr, gast.Return),
)
_PARTS = tuple(each.name for each in fields(Activity))


def _together(found: list[Activity]) -> Activity:
    if len(found) == 1:
        return found[0]
    return Activity(*[_EMPTY.union(*[getattr(each, part) for each in found]) for part in _PARTS])


def function_scope(node: Any) -> FunctionScope:
    """The scope of a function definition or lambda; decorators, defaults and annotations lie outside it."""
    scan = _function_body(node)
    own = _own(node, scan)
    return FunctionScope(
        own.params,
        own.locals,
        own.globals,
        own.nonlocals,
        frozenset((scan.read | scan.nonlocals | scan.bound_by_nested) - own.locals - scan.globals),
    )


def own_scope(node: Any) -> OwnScope:
    """The same without what takes a look into nested functions."""
    scan = _OwnScan()
    scan.visit_all(node.body if isinstance(node.body, list) else [node.body])
    return _own(node, scan)


def _own(node: Any, scan: _Scan) -> OwnScope:
    params = parameters(node.args)
    local = scan.binds().union(params) - scan.globals - scan.nonlocals
    return OwnScope(params, frozenset(local), frozenset(scan.globals), frozenset(scan.nonlocals))


def parameters(args: Any) -> tuple[str, ...]:
    """The parameter names of a gast ``arguments`` node, in the order of the signature."""
    nodes = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    return tuple(node.id for node in nodes if node is not None)


def _function_body(node: Any) -> _Scan:
    scan = _Scan()
    scan.visit_all(node.body if isinstance(node.body, list) else [node.body])
    return scan


class _Scan(Visitor):
    """Collects the names of one scope; nested scopes are scanned apart and only their effects outside are merged."""

    def __init__(self, *, in_class: bool = False) -> None:
        self.read: set[str] = set()
        self.bound: set[str] = set()
        self.deleted: set[str] = set()
        self.declared: set[str] = set()
        # What nested functions do through `nonlocal`: it needs this scope's (or an outer one's) name, but makes none.
        self.bound_by_nested: set[str] = set()
        self.deleted_by_nested: set[str] = set()
        self.walrus: set[str] = set()
        self.paths_read: set[Path] = set()
        self.paths_modified: set[Path] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.in_class = in_class

    def binds(self) -> set[str]:
        """Names that this scope makes its own unless declared otherwise."""
        return self.bound | self.deleted | self.declared

    def visit_all(self, nodes: Iterable[Any]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    # Names and paths

    def visit_Name(self, node: Any) -> None:
        if isinstance(node.ctx, gast.Load):
            self.read.add(node.id)
        elif isinstance(node.ctx, gast.Del):
            self.deleted.add(node.id)
        else:
            self.bound.add(node.id)

    def _visit_place(self, node: Any) -> None:
        path = Path.of(node)
        if path is not None:
            (self.paths_read if isinstance(node.ctx, gast.Load) else self.paths_modified).add(path)
        self.generic_visit(node)

    visit_Attribute = _visit_place
    visit_Subscript = _visit_place

    def visit_AugAssign(self, node: Any) -> None:
        path = Path.of(node.target)
        if isinstance(node.target, gast.Name):
            self.read.add(node.target.id)
        elif path is not None:
            self.paths_read.add(path)
        self.visit(node.target)
        self.visit(node.value)

    def visit_AnnAssign(self, node: Any) -> None:
        if self.in_class:  # Python never evaluates annotations inside functions.
            self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)
        elif not isinstance(node.target, gast.Name):
            # `a.b: T` evaluates `a` but assigns nothing.
            self.generic_visit(node.target)
        elif node.simple:
            self.declared.add(node.target.id)

    def visit_NamedExpr(self, node: Any) -> None:
        self.visit(node.value)
        self.walrus.add(node.target.id)
        self.bound.add(node.target.id)

    def visit_Global(self, node: Any) -> None:
        self.globals.update(node.names)

    def visit_Nonlocal(self, node: Any) -> None:
        self.nonlocals.update(node.names)

    def visit_alias(self, node: Any) -> None:
        name = node.asname or node.name.partition(".")[0]
        if name != "*":
            self.bound.add(name)

    def visit_ExceptHandler(self, node: Any) -> None:
        self.generic_visit(node)
        if node.name is not None:  # Python unbinds the name when the handler ends.
            self.deleted.add(node.name.id)

    # Patterns

    def _visit_capture(self, node: Any) -> None:
        if node.name is not None:
            self.bound.add(node.name)
        self.generic_visit(node)

    visit_MatchAs = _visit_capture
    visit_MatchStar = _visit_capture

    def visit_MatchMapping(self, node: Any) -> None:
        if node.rest is not None:
            self.bound.add(node.rest)
        self.generic_visit(node)

    # Nested scopes

    def _surroundings(self) -> _Scan:
        """The scope that nested scopes look their free names up in."""
        return self

    def _merge(self, inner: _Scan, own: set[str], binds_outside: Iterable[str] = ()) -> None:
        """Take over what a nested scope whose own names are ``own`` does to the scope around it."""
        outer = self._surroundings()
        hidden = own | inner.globals
        outer.read |= inner.read - hidden
        outer.bound_by_nested |= inner.bound_by_nested.union(binds_outside) - hidden
        outer.deleted_by_nested |= inner.deleted_by_nested.union(inner.deleted.intersection(binds_outside)) - hidden
        outer.paths_read |= {path for path in inner.paths_read if not path.names & hidden}
        outer.paths_modified |= {path for path in inner.paths_modified if not path.names & hidden}

    def _merge_type_params(self, type_params: list[Any], users: Iterable[Any]) -> None:
        """Visit expressions that can see type parameters; without any they belong to this scope itself."""
        if not type_params:
            self.visit_all(users)
            return
        inner = _Scan()
        inner.visit_all([*type_params, *users])
        self._merge(inner, _type_param_names(type_params))

    def _visit_function(self, node: Any) -> None:
        self.visit_all(node.args.defaults)
        self.visit_all(node.args.kw_defaults)
        own: set[str] = set()
        if not isinstance(node, gast.Lambda):
            self.visit_all(node.decorator_list)
            self.bound.add(node.name)
            self._merge_type_params(_type_params(node), _annotations(node))
            own |= _type_param_names(_type_params(node))
        self._visit_function_body(node, own)

    def _visit_function_body(self, node: Any, own: set[str]) -> None:
        inner = _function_body(node)
        own |= (set(parameters(node.args)) | inner.binds()) - inner.globals - inner.nonlocals
        self._merge(inner, own, inner.nonlocals)

    visit_FunctionDef = _visit_function
    visit_AsyncFunctionDef = _visit_function
    visit_Lambda = _visit_function

    def visit_ClassDef(self, node: Any) -> None:
        self.visit_all(node.decorator_list)
        self.bound.add(node.name)
        self._merge_type_params(_type_params(node), [*node.bases, *node.keywords])
        self._visit_class_body(node)

    def _visit_class_body(self, node: Any) -> None:
        body = _ClassScan()
        body.visit_all(node.body)
        type_params = _type_param_names(_type_params(node))
        self._merge(body, type_params | (body.binds() - body.nonlocals - body.globals), body.nonlocals)
        self._merge(body.nested, type_params | {"__class__"})

    def visit_TypeAlias(self, node: Any) -> None:
        self.visit(node.name)
        inner = _Scan()
        inner.visit_all([*_type_params(node), node.value])
        self._merge(inner, _type_param_names(_type_params(node)))

    def _visit_comprehension(self, node: Any) -> None:
        first, *others = node.generators
        self.visit(first.iter)
        inner = _Scan()
        inner.visit_all([first.target, *first.ifs])
        for generator in others:
            inner.visit_all([generator.target, generator.iter, *generator.ifs])
        inner.visit_all([node.key, node.value] if isinstance(node, gast.DictComp) else [node.elt])
        self._merge(inner, inner.bound - inner.walrus)
        self.bound |= inner.walrus
        self.walrus |= inner.walrus

    visit_ListComp = _visit_comprehension
    visit_SetComp = _visit_comprehension
    visit_DictComp = _visit_comprehension
    visit_GeneratorExp = _visit_comprehension


class _OwnScan(_Scan):
    """Scans for the names that a scope makes its own: what happens in scopes nested in it doesn't matter."""

    def _visit_function_body(self, node: Any, own: set[str]) -> None:
        pass

    def _visit_class_body(self, node: Any) -> None:
        pass


class _ClassScan(_Scan):
    """Scans a class body. Scopes nested in it don't see its names, so their needs are kept apart in ``nested``."""

    def __init__(self) -> None:
        super().__init__(in_class=True)
        self.nested = _Scan()

    def _surroundings(self) -> _Scan:
        return self.nested


def _annotations(node: Any) -> list[Any]:
    args = node.args
    named = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    return [*(arg.annotation for arg in named if arg is not None and arg.annotation is not None), node.returns]


def _type_param_names(type_params: Iterable[Any]) -> set[str]:
    return {param.name for param in type_params}


def _type_params(node: Any) -> list[Any]:
    # gast 0.6 leaves the field out of classes before Python 3.12.
    return getattr(node, "type_params", None) or []
