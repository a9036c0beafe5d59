"""``if``, ``while`` and ``for`` become calls of operators that take their blocks as functions.

    while i < n:              def loop_test():
        x = x * 2                 return i < n
        i += 1                def loop_body():
                      →           nonlocal i, x
                                  x = x * 2
                                  i += 1
                              ag__.while_stmt(loop_test, loop_body, ('i', 'x'))

The variables that a block sets are shared with the function around it through Python's own closure cells. The last
argument names those whose values matter later: what a loop carries, what a conditional gives out. Attributes and items
(``self.h``) are named there too. A name that starts with ``?`` may be left unbound: no read of it can come first.

Expects the output of loop_else.py, returns.py and breaks.py; everything else that jumps is pinned and stays.
"""

from __future__ import annotations

from typing import Any

import gast

from autograph.convert.context import Context
from autograph.convert.homes import Place, homes, split_extra_test, surely_set
from autograph.convert.tree import CONVERTIBLE, FUNCTIONS, Block, functions, head, holders, map_blocks, statements
from autograph.syntax import templates
from autograph.syntax.liveness import liveness
from autograph.syntax.names import Path
from autograph.syntax.scopes import Activities, Activity, own_scope
from autograph.syntax.walk import children, walk


def lower(tree: Any, context: Context) -> Any:
    """Rewrites every function in the tree; analyses all of them before changing any."""
    classes = _class_names(tree, context.class_name)
    activity = Activities()
    converters = [_Function(function, context, classes[function], activity) for function in functions(tree)]
    for converter in converters:
        converter.convert()
    return tree


class _Function:
    def __init__(self, function: Any, context: Context, class_name: str | None, activity: Activities) -> None:
        self.function = function
        self.activity = activity  # of the tree as it was
        self.context = context
        self.class_name = class_name
        self.pinned = context.pinned(function)
        self.needed = any(self.converts(stmt) for stmt in statements(function.body))
        self.scope = own_scope(function)
        if self.needed:
            self.live = liveness(function, activity)
            self.covered = context.covered(function)
            self.homes = homes(function, self.pinned, self.covered, activity)
            self.at_home: dict[Place, list[str]] = {}
            for name, home in sorted(self.homes.items()):
                self.at_home.setdefault(home, []).append(name)
            self.returning = holders(function.body, gast.Return)
            self.never_unbound = context.never_unbound(function)
            self.surely_set = surely_set(function, activity)

    def converts(self, stmt: Any) -> bool:
        return isinstance(stmt, CONVERTIBLE) and stmt not in self.pinned

    def convert(self) -> None:
        function = self.function
        lost = self.context.locals_before(function) - self.scope.locals
        if not (self.needed or lost):
            return
        added = [name for name in sorted(lost) if name not in self.scope.globals | self.scope.nonlocals]
        if self.needed:
            function.body = self.block(_without_declarations(function.body), ())
            added += self.missing_locals(function, ())
            top = self.declarations(self.scope.globals, self.scope.nonlocals, function.body[0])
        else:
            top = []
        docstring, rest = _split_docstring(function.body)
        function.body = [*docstring, *top, *self.declare(added), *rest]

    # --- statements ------------------------------------------------------------------------------------------------

    def block(self, block: Block, place: Place) -> Block:
        made: Block = []
        for stmt in block:
            if not self.converts(stmt):
                map_blocks(stmt, lambda inner: self.block(inner, place))
                made.append(stmt)
            elif isinstance(stmt, gast.If):
                made.extend(self.conditional(stmt, place))
            elif isinstance(stmt, gast.While):
                made.extend(self.while_loop(stmt, place))
            else:
                made.extend(self.for_loop(stmt, place))
        return made

    def conditional(self, stmt: Any, place: Place) -> Block:
        branches = [*stmt.body, *stmt.orelse]
        body, other = (*place, (stmt, "body")), (*place, (stmt, "orelse"))
        names = self.state(self.activity(branches), self.live.after[stmt], (body, other), stmt)
        returns = stmt in self.returning
        body_name, else_name = self.context.free_name("if_body"), self.context.free_name("else_body")
        if hasattr(stmt, "is_outcome"):  # see matches.py
            match_name = self.context.free_name("match_body")
            made = self.function_of(match_name, [], stmt.body, body, head(stmt))
            return made + _call("ag__.match_stmt(arguments)", [match_name], names, head(stmt))
        made = self.function_of(body_name, [], stmt.body, body, head(stmt))
        arguments = [stmt.test, body_name]
        if stmt.orelse:
            made += self.function_of(else_name, [], stmt.orelse, other, head(stmt))
            arguments.append(else_name)
        elif names:
            arguments.append(templates.literal(None, at=head(stmt)))
        template = "return ag__.if_stmt(arguments)" if returns else "ag__.if_stmt(arguments)"
        return made + _call(template, arguments, names, head(stmt))

    def while_loop(self, stmt: Any, place: Place) -> Block:
        test, body = (*place, (stmt, "test")), (*place, (stmt, "body"))
        names = self.state(self.activity([stmt.test, *stmt.body]), self.carried(stmt), (test, body), stmt)
        test_name, body_name = self.context.free_name("loop_test"), self.context.free_name("loop_body")
        made = self.test_function(test_name, stmt.test, test)
        made += self.function_of(body_name, [], stmt.body, body, head(stmt))
        return made + _call("ag__.while_stmt(arguments)", [test_name, body_name], names, head(stmt))

    def for_loop(self, stmt: Any, place: Place) -> Block:
        test, body = (*place, (stmt, "test")), (*place, (stmt, "body"))
        block, flag = split_extra_test(stmt)
        tested = frozenset(each.id for each in walk(flag) if isinstance(each, gast.Name)) if flag is not None else ()
        carried = self.carried(stmt).union(tested)  # the test comes in front of the next iteration
        names = self.state(self.activity([stmt.target, *stmt.body]), carried, (test, body), stmt)
        body_name = self.context.free_name("loop_body")
        if isinstance(stmt.target, gast.Name) and self.homes.get(stmt.target.id) == body:
            item, bind = stmt.target.id, []
        else:
            item = self.context.free_name("item")
            bind = templates.replace("target = item", at=stmt.target, target=stmt.target, item=item)
        made = self.function_of(body_name, [item], block, body, head(stmt), bind)
        arguments = [stmt.iter, body_name]
        if flag is not None:
            test_name = self.context.free_name("loop_test")
            made += self.test_function(test_name, templates.expression("not flag", at=flag, flag=flag), test)
            arguments.append(test_name)
        elif names:
            arguments.append(templates.literal(None, at=head(stmt)))
        return made + _call("ag__.for_stmt(arguments)", arguments, names, head(stmt))

    def carried(self, loop: Any) -> frozenset[str]:
        return self.live.iteration[loop] | self.live.after[loop]

    def state(self, seen: Activity, live: frozenset[str], inside: tuple[Place, ...], stmt: Any) -> tuple[str, ...]:
        """The names and paths that a statement modifies and that matter after it, as the operators expect them."""
        outlive = live | self.scope.globals | self.scope.nonlocals
        names = {name for name in seen.modified & outlive if not self.is_inside(name, inside)}
        unset = self.covered | (self.never_unbound - self.surely_set[stmt])
        found = [("?" if name in unset else "") + _mangled(name, self.class_name) for name in sorted(names)]
        # A path is state only if it names the same place all through the block.
        paths = {path for path in seen.paths_modified if not path.names & seen.modified}
        outermost = [path for path in paths if not any(prefix in paths for prefix in path.prefixes)]
        return (*found, *(_mangled_path(path, self.class_name) for path in sorted(outermost)))

    def is_inside(self, name: str, places: tuple[Place, ...]) -> bool:
        home = self.homes.get(name, ())
        return any(home[: len(place)] == place for place in places)

    # --- block functions -------------------------------------------------------------------------------------------

    def function_of(
        self, name: str, params: list[Any], block: Block, place: Place, at: Any, bind: Block | None = None
    ) -> Block:
        """The definition of the function that a block becomes; ``bind`` comes first in it."""
        block = [*(bind or []), *block]
        modified = self.activity(block).modified
        body = self.block(block, place)
        top, shared = self.shared(modified, place, at)
        body = _without_annotations(body, shared) or _pass(at)
        template = """
        def name(params):
            body
        """
        made = templates.replace(template, at=at, name=name, params=params, body=body)
        made[0].body = [*top, *self.declare(self.missing_locals(made[0], place)), *body]
        made[0].is_block = True
        return made

    def test_function(self, name: str, test: Any, place: Place) -> Block:
        template = """
        def name():
            top
            return test
        """
        top, _ = self.shared(self.activity(test).modified, place, test)
        made = templates.replace(template, at=test, name=name, top=top, test=test)
        made[0].is_block = True
        return made

    def shared(self, modified: frozenset[str], place: Place, at: Any) -> tuple[Block, frozenset[str]]:
        """The declarations of the variables that a block shares with the function around it, and their names."""
        global_names = modified & self.scope.globals
        nonlocal_names = {name for name in modified - global_names if not self.is_inside(name, (place,))}
        return self.declarations(global_names, nonlocal_names, at), global_names | nonlocal_names

    def declarations(self, global_names: Any, nonlocal_names: Any, at: Any) -> Block:
        made: Block = []
        if global_names:
            made += templates.replace("global names", at=at, names=sorted(global_names))
        if nonlocal_names:
            made += templates.replace("nonlocal names", at=at, names=sorted(nonlocal_names))
        return made

    def missing_locals(self, function: Any, place: Place) -> list[str]:
        """The variables of a function that only the blocks inside it set: they need a declaration."""
        own = self.at_home.get(place)
        if not own:
            return []
        bound = own_scope(function).locals
        return [name for name in own if name not in bound]

    def declare(self, names: list[str]) -> Block:
        """Bare annotations: they make a name local without assigning to it."""
        at = self.function.body[0]
        return [made for name in names for made in templates.replace("name: 'local'", at=at, name=name)]


def _call(template: str, arguments: list[Any], names: tuple[str, ...], at: Any) -> Block:
    if names:
        arguments = [*arguments, templates.literal(names, at=at)]
    return templates.replace(template, at=at, arguments=arguments)


def _pass(at: Any) -> Block:
    return [gast.copy_location(gast.Pass(), at)]


def _without_declarations(block: Block) -> Block:
    """Removes ``global`` and ``nonlocal`` statements, which hold for the whole function wherever they stand."""
    made: Block = []
    for stmt in block:
        if not isinstance(stmt, (gast.Global, gast.Nonlocal)):
            map_blocks(stmt, _without_declarations)
            made.append(stmt)
    return made or _pass(block[0])


def _without_annotations(block: Block, shared: frozenset[str]) -> Block:
    """A variable declared ``nonlocal`` can't be annotated; annotations in functions do nothing, so they go."""
    made: Block = []
    for stmt in block:
        if isinstance(stmt, gast.AnnAssign) and isinstance(stmt.target, gast.Name) and stmt.target.id in shared:
            if stmt.value is not None:
                made += templates.replace("target = value", at=stmt, target=stmt.target, value=stmt.value)
            continue
        map_blocks(stmt, lambda inner: _without_annotations(inner, shared) or _pass(inner[0]))
        made.append(stmt)
    return made


def _split_docstring(body: Block) -> tuple[Block, Block]:
    first = body[0] if body else None
    if isinstance(first, gast.Expr) and isinstance(first.value, gast.Constant) and isinstance(first.value.value, str):
        return body[:1], body[1:]
    return [], body


# --- private names -------------------------------------------------------------------------------------------------


def _class_names(tree: Any, outermost: str | None) -> dict[Any, str | None]:
    """For every function in a tree the innermost class around it."""
    found: dict[Any, str | None] = {}
    waiting: list[tuple[Any, str | None]] = [(tree, outermost)]
    while waiting:
        node, class_name = waiting.pop()
        if isinstance(node, FUNCTIONS):
            found[node] = class_name
        elif isinstance(node, gast.ClassDef):
            class_name = node.name
        waiting.extend((child, class_name) for child in children(node))
    return found


def _mangled(name: str, class_name: str | None) -> str:
    """The name that Python gives to a private name (``__x``) inside a class."""
    if class_name is None or not name.startswith("__") or name.endswith("__"):
        return name
    stripped = class_name.lstrip("_")
    return f"_{stripped}{name}" if stripped else name


def _mangled_path(path: Path, class_name: str | None) -> str:
    steps = tuple(
        (kind, _mangled(key, class_name)) if kind == "." else (kind, Path.parse(_mangled_path(key, class_name)))
        if isinstance(key, Path) else (kind, key)
        for kind, key in path.steps
    )  # fmt: skip
    return str(Path(_mangled(path.root, class_name), steps))
