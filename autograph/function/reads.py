"""What a trace may read that Python code can change between calls: found from the text of the functions that it runs.

    def total(x):
        for each in METERS:              the contents of METERS
            x += each.rate(x)            and, for each of these objects, what its `rate` reads
        return x * CONFIG["scale"]       the item of CONFIG

A function's text is gone over with what is known of its names: globals, closure variables and, of the arguments,
objects. `_Reader` follows each such object through assignments, loops, containers, properties and calls, in whatever
order they come, and notes each number, string, bool and None that is read from one. What can't be followed (a name
computed at run time) counts as a read of all that may be meant.
"""

from __future__ import annotations

import builtins
import dataclasses
import operator
import os
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gast

from autograph.function.environment import MISSING, Environment, defaults_of, plain_function, weakly
from autograph.function.object_reads import ObjectReads, is_opaque
from autograph.function.places import (
    CONTAINERS,
    Attributes,
    Bag,
    Inner,
    Made,
    Method,
    Place,
    environment,
    is_simple,
    unplaced,
)
from autograph.syntax import source
from autograph.syntax.walk import children
from runtime import nest

# How many calls are gone over: a read that is missed makes a stale value possible, but a library that is reached by
# accident must not make tracing slow.
_MOST_CALLS = 2000
_ROUNDS = 4
# Calls that stand deeper in one another are gone over later, without their results.
_DEEPEST = 40
# Built-in functions whose result holds, or is made of, what is in their arguments.
_OF_ITEMS = frozenset(
    {"enumerate", "zip", "list", "tuple", "set", "frozenset", "sorted", "reversed", "iter", "filter", "dict"}
)
_READERS = frozenset({"values", "items", "keys", "copy", "index", "count", "__iter__", "__len__", "__contains__"})
_ITEM_READERS = frozenset({"get", "pop", "setdefault", "__getitem__"})


class Reads(ObjectReads):
    """What the functions that a trace runs read."""

    def __init__(self, is_user_code: Callable[[Any], bool]) -> None:
        self.is_user_code = is_user_code
        super().__init__()
        self.readers: dict[Any, _Reader] = {}
        self.texts: dict[types.FunctionType, Any] = {}
        self.depth = 0
        self.waiting: list[_Reader] = []

    def of(self, function: Any, arguments: Sequence[Any]) -> None:
        """Finds the reads of a function for the arguments of a call."""
        plain, given = plain_function(function, tuple(arguments))
        if plain is not None:
            self.call(plain, [self.argument(plain, index, each) for index, each in enumerate(given)], {})
        while self.waiting:
            self.waiting.pop().run()
        for each, text in self.texts.items():
            if text is not None:
                source.give_back(each, text)  # it is converted next

    def forget(self) -> None:
        """Lets go of the objects that were found at once, rather than when garbage is collected."""
        for each in self.made.values():
            if isinstance(each.value, Made):
                each.value.fields.clear()
        for found in (self.readers, self.made, self.kept, self.values, self.contents):
            found.clear()

    def argument(self, function: types.FunctionType, index: int, value: Any) -> list[Place]:
        if is_simple(value) or is_opaque(value):
            return []
        names = function.__code__.co_varnames
        name = names[index] if index < function.__code__.co_argcount else "arguments"
        return [Place(value, weakly(value), (), (name, f"argument '{name}'"), nest.is_nested(value))]

    def text_of(self, function: types.FunctionType) -> Any:
        """The syntax tree of a function, None if there is no source."""
        if function not in self.texts:
            try:
                self.texts[function] = source.find(function)
            except source.SourceUnavailable:
                self.texts[function] = None
        text = self.texts[function]
        return None if text is None else text.node

    def call(self, target: Any, arguments: Sequence[Iterable[Place]], keywords: dict[str, list[Place]]) -> list[Place]:
        """Goes over a function of the user's for these arguments; gives what it returns."""
        function, given = plain_function(target, ())
        if function is None or not self.is_user_code(function):
            return []
        known = [self.argument(function, index, each) for index, each in enumerate(given)]
        given_places = [*known, *map(list, arguments)]
        everything = [*given_places, *keywords.values()]
        # What only a reader knows doesn't tell calls apart: a function that calls itself makes more and more of it.
        kinds = [tuple(sorted({_key_of(place) for place in places})) for places in everything]
        key = function, tuple(kinds), tuple(keywords)
        reader = self.readers.get(key)
        if reader is None:
            if len(self.readers) >= _MOST_CALLS:
                return []
            reader = self.readers[key] = _Reader(self, function)
            self.kept.append(everything)
        reader.take(given_places, keywords, _weight(everything))
        if reader.must_run and not reader.is_running:
            if self.depth < _DEEPEST:
                self.depth += 1
                reader.run()
                self.depth -= 1
            else:
                self.waiting.append(reader)
        return list(reader.returned.values())


def _key_of(place: Place) -> tuple[str, int]:
    return ("", id(place.value)) if place.is_placed else (type(place.value).__name__, 0)


def _weight(arguments: Sequence[Iterable[Place]]) -> int:
    """How much is in the containers among some arguments that readers know."""
    return sum([len(place.value.items) for each in arguments for place in each if isinstance(place.value, Bag)])


class _Reader:
    """Goes over the text of one function."""

    def __init__(self, reads: Reads, function: types.FunctionType) -> None:
        self.reads = reads
        self.function = function
        self.environment = Environment(function, ())
        self.node = reads.text_of(function)
        self.names: dict[str, dict[int, Place]] = {}
        self.outer: dict[str, list[Place]] = {}
        self.returned: dict[int, Place] = {}
        self.bags: dict[Any, Place] = {}  # what a node makes, so that rounds find it again
        self.open: list[Any] = []  # the lambdas that are being gone over
        self.weight = -1
        self.must_run = False  # there are arguments that it hasn't been run with
        self.is_running = False

    def take(self, arguments: Sequence[list[Place]], keywords: dict[str, list[Place]], weight: int) -> None:
        """Adds the arguments of a call to those that the function may be called with."""
        before = sum(map(len, self.names.values()))
        self.bind_parameters(self.node, arguments, keywords)
        self.must_run |= weight != self.weight or sum(map(len, self.names.values())) != before
        self.weight = weight

    def run(self) -> None:
        self.is_running = True
        for _ in range(_ROUNDS):
            self.must_run, before = False, self.size()
            if self.node is None:  # without its text only the names are known
                for name in (*self.function.__code__.co_names, *self.function.__code__.co_freevars):
                    self.name(name)
            else:
                self.statements(self.node.body if isinstance(self.node.body, list) else [gast.Return(self.node.body)])
            if self.size() == before and not self.must_run:
                break
        self.is_running = self.must_run = False

    def size(self) -> int:
        """How many places are known of names, results and containers: nothing new is found where it stays."""
        bags = [each.value.items for each in self.bags.values() if isinstance(each.value, Bag)]
        known = [*bags, self.returned.values(), *[places.values() for places in self.names.values()]]
        return sum([1 for places in known for each in places if each.is_placed])

    # --- names -----------------------------------------------------------------------------------------------------

    def bind_parameters(self, node: Any, arguments: Sequence[Any], keywords: dict[str, list[Place]]) -> None:
        if node is None:
            return
        parameters = [each.id for each in (*node.args.posonlyargs, *node.args.args)]
        for name, places in zip(parameters, arguments):
            self.bind_name(name, self.own(name, places))
        rest = [place for places in arguments[len(parameters) :] for place in places]
        if node.args.vararg is not None:
            self.bind_name(node.args.vararg.id, self.bag(node.args.vararg, rest))
        named = {*parameters, *[each.id for each in node.args.kwonlyargs]}
        for name, places in keywords.items():
            if name in named:
                self.bind_name(name, self.own(name, places))
            elif node.args.kwarg is not None:
                self.bind_name(node.args.kwarg.id, self.bag(node.args.kwarg, places))
        if node is self.node:
            missing = [*parameters[len(arguments) :], *named - {*keywords}]
            for name, value in defaults_of(self.function):
                if name in missing and not is_simple(value):
                    root = f"the default of '{name}' of {self.function.__qualname__}"
                    self.bind_name(name, [Place(value, weakly(value), (), (name, root))])
        else:
            pairs = [*zip(parameters[::-1], node.args.defaults[::-1])]
            pairs += [(each.id, value) for each, value in zip(node.args.kwonlyargs, node.args.kw_defaults) if value]
            for name, value in pairs:
                self.bind_name(name, self.values(value))

    def bind_name(self, name: str, places: Iterable[Place]) -> None:
        known = self.names.setdefault(name, {})
        for each in places:
            known.setdefault(id(each.value), each)

    def bind(self, target: Any, places: list[Place]) -> None:
        """Assigns to a target of an assignment or loop."""
        if isinstance(target, gast.Name):
            self.bind_name(target.id, places)
        elif isinstance(target, (gast.Tuple, gast.List)):
            items = [*places, *self.items(places)]
            for each in target.elts:
                self.bind(each, items)
        elif isinstance(target, gast.Starred):
            self.bind(target.value, self.bag(target, places))
        elif isinstance(target, gast.Attribute):
            for owner in self.values(target.value):
                if isinstance(owner.value, Made):
                    known = owner.value.fields.setdefault(target.attr, {})
                    for each in places:
                        known.setdefault(id(each.value), each)
        elif isinstance(target, gast.Subscript):
            self.use(target.slice)
            for owner in self.values(target.value):
                if isinstance(owner.value, Bag):
                    self.add(owner.value, places)

    def bag(self, node: Any, items: Iterable[Place]) -> list[Place]:
        """The container that a node makes, or a name stands for."""
        place = self.bags.setdefault(node if isinstance(node, str) else id(node), unplaced(Bag(())))
        self.add(place.value, items)
        return [place]

    def add(self, bag: Bag, items: Iterable[Place]) -> None:
        """Puts something into a container; of containers that the function makes what is in them."""
        known = {id(each.value) for each in bag.items}
        for each in items:
            for item in list(each.value.items) if isinstance(each.value, Bag) else [each]:
                if id(item.value) not in known:
                    known.add(id(item.value))
                    bag.items.append(item)

    def own(self, node: Any, places: list[Place]) -> list[Place]:
        """Places from another function, with one container of this one's in the place of those that it has made."""
        bags = [each for each in places if isinstance(each.value, Bag)]
        return [*_objects(places), *self.bag(node, bags)] if bags else places

    def name(self, name: str) -> list[Place]:
        if name in self.names:
            return list(self.names[name].values())
        if name not in self.outer:
            root = self.environment.root(name)
            self.outer[name] = []
            if root is not None:
                label, read = root
                owner = self.environment.cells.get(name, self.environment.globals)
                self.outer[name] = self.reads.value(owner, ("name", name), Place(read(), read, (), (name, label)))
        return self.outer[name]

    def inner(self, node: Any) -> list[Place]:
        """The function that a node defines; its parameters are names of its own."""
        self.bind_parameters(node, (), {})
        for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            self.bind_name(each.id, ())
        return [self.bags.setdefault(id(node), unplaced(Inner(node)))]

    # --- statements ------------------------------------------------------------------------------------------------

    def statement(self, node: Any) -> None:
        if isinstance(node, (gast.Assign, gast.AnnAssign)):
            places = self.values(node.value) if node.value is not None else []
            for target in node.targets if isinstance(node, gast.Assign) else [node.target]:
                self.bind(target, places)
        elif isinstance(node, gast.AugAssign):
            self.use(_as_load(node.target))
            self.bind(node.target, self.values(node.value))
            self.use(node.value)
        elif isinstance(node, gast.For):
            self.bind(node.target, self.items(self.values(node.iter)))
            self.statements(node.body, node.orelse)
        elif isinstance(node, gast.Return):
            for place in self.values(node.value) if node.value is not None else ():
                self.reads.whole(place)
                self.returned.setdefault(id(place.value), place)
        elif isinstance(node, gast.With):
            for item in node.items:
                entered = self.values(item.context_expr)
                entered += [each for place in entered for each in self.reads.method(place, "__enter__")]
                if item.optional_vars is not None:
                    self.bind(item.optional_vars, entered)
            self.statements(node.body)
        elif isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef)):
            self.bind_name(node.name, self.inner(node))
            self.statements(node.body)
        elif isinstance(node, gast.Match):
            subject = self.values(node.subject)
            for case in node.cases:
                self.pattern(case.pattern, subject)
                if case.guard is not None:
                    self.use(case.guard)
                self.statements(case.body)
        elif isinstance(node, gast.Expr):
            self.values(node.value)
        elif isinstance(node, (gast.Global, gast.Nonlocal, gast.Import, gast.ImportFrom)):
            pass
        else:
            for each in children(node):
                self.statement(each) if isinstance(each, gast.stmt) else self.anything(each)

    def pattern(self, node: Any, places: list[Place]) -> None:
        """Goes over a pattern for what it is matched with."""
        if isinstance(node, gast.MatchClass):
            self.use(node.cls)
            for place in places:
                names = [*getattr(type(place.value), "__match_args__", ())[: len(node.patterns)], *node.kwd_attrs]
                for name, inner in zip(names, (*node.patterns, *node.kwd_patterns)):
                    self.pattern(inner, self.reads.attribute(place, name))
        elif isinstance(node, gast.MatchMapping):
            for key, inner in zip(node.keys, node.patterns):
                found = self.keys(key)
                self.pattern(inner, self.items_at(places, found))
            if node.rest is not None:
                self.bind_name(node.rest, self.bag(node, self.items(places)))
        elif isinstance(node, gast.MatchSequence):
            items = self.items(places)
            for inner in node.patterns:
                self.pattern(inner, items)
        elif isinstance(node, gast.MatchOr):
            for inner in node.patterns:
                self.pattern(inner, places)
        elif isinstance(node, (gast.MatchAs, gast.MatchStar)):
            if getattr(node, "pattern", None) is not None:
                self.pattern(node.pattern, places)
            if node.name is not None:
                self.bind_name(node.name, places)
        elif isinstance(node, gast.MatchValue):
            self.use(node.value)
            for place in places:
                self.reads.whole(place)
                self.reads.method(place, "__eq__")

    def anything(self, node: Any) -> None:
        if isinstance(node, gast.expr):
            self.use(node)
        else:
            for each in children(node):  # a handler, a case
                self.statement(each) if isinstance(each, gast.stmt) else self.anything(each)

    def statements(self, *blocks: Any) -> None:
        for block in blocks:
            for each in block:
                self.statement(each)

    # --- expressions -----------------------------------------------------------------------------------------------

    def use(self, node: Any) -> None:
        """Goes over an expression whose value is looked at as a whole."""
        self.used(node)

    def values(self, node: Any) -> list[Place]:
        """The places that an expression may stand for, if they aren't simple values."""
        visit = _VISITS.get(type(node))
        if visit is not None:
            return visit(self, node)
        for each in children(node):
            self.anything(each)
        return []

    def of_name(self, node: Any) -> list[Place]:
        return self.name(node.id) if isinstance(node.ctx, gast.Load) else []

    def of_attribute(self, node: Any) -> list[Place]:
        if isinstance(node.value, gast.Call) and getattr(node.value.func, "id", "") == "super":
            return self.of_super(node.attr)
        return [found for place in self.values(node.value) for found in self.reads.attribute(place, node.attr)]

    def of_condition(self, node: Any) -> list[Place]:
        self.use(node.test)
        return self.values(node.body) + self.values(node.orelse)

    def of_logic(self, node: Any) -> list[Place]:
        return [place for each in node.values for place in self.used(each)]

    def of_walrus(self, node: Any) -> list[Place]:
        places = self.values(node.value)
        self.bind(node.target, places)
        return places

    def of_display(self, node: Any) -> list[Place]:
        return self.bag(node, [place for each in node.elts for place in self.values(each)])

    def of_dict(self, node: Any) -> list[Place]:
        for each in node.keys:
            if each is not None:
                self.use(each)
        return self.bag(node, [place for each in node.values for place in self.values(each)])

    def of_lambda(self, node: Any) -> list[Place]:
        made = self.inner(node)
        self.values(node.body)
        return made

    def of_starred(self, node: Any) -> list[Place]:
        return self.items(self.values(node.value))

    def used(self, node: Any) -> list[Place]:
        """Notes that the value of an expression is read as a whole, with its truth value and length; returns its
        places."""
        places = self.values(node)
        for place in places:
            if isinstance(place.value, Bag):
                continue
            self.reads.whole(place)
            self.reads.method(place, "__bool__")
            self.reads.method(place, "__len__")
        return places

    def operation(self, node: Any) -> list[Place]:
        """Lists that are joined hold what was in them; special methods of the user's are called."""
        operands = [self.used(node.left), self.used(node.right)]
        name = _OPERATORS.get(type(node.op), "")
        left, right = map(_objects, operands)
        found = [each for place in left for each in self.reads.method(place, f"__{name}__", operands[1])]
        found += [each for place in right for each in self.reads.method(place, f"__r{name}__", operands[0])]
        items = self.items([*operands[0], *operands[1]])
        return found + (self.bag(node, items) if items else [])

    def compared(self, node: Any) -> list[Place]:
        operands = [_objects(self.used(each)) for each in (node.left, *node.comparators)]
        for kind, one, other in zip(node.ops, operands, operands[1:]):
            name = _COMPARISONS.get(type(kind))
            if name is not None:
                for place in one:
                    self.reads.method(place, name[0], other)
                for place in other:
                    self.reads.method(place, name[1], one)
        return []

    def comprehension(self, node: Any) -> list[Place]:
        for each in node.generators:
            self.bind(each.target, self.items(self.values(each.iter)))
            for test in each.ifs:
                self.use(test)
        if isinstance(node, gast.DictComp):
            self.use(node.key)
        return self.bag(node, self.values(node.value if isinstance(node, gast.DictComp) else node.elt))

    def of_super(self, name: str) -> list[Place]:
        cell = self.environment.cells.get("__class__")
        kind = cell.cell_contents if cell is not None else None
        found: list[Place] = []
        name_of_self = self.function.__code__.co_varnames[0] if self.function.__code__.co_argcount else ""
        for place in self.names.get(name_of_self, {}).values():
            own = place.value.kind if isinstance(place.value, Made) else type(place.value)
            mro = own.__mro__[own.__mro__.index(kind) + 1 :] if kind in own.__mro__ else ()
            member = next((vars(each)[name] for each in mro if name in vars(each)), MISSING)
            if member is not MISSING:
                if type(member) is types.FunctionType:
                    found.append(self.bags.setdefault((id(member), id(place.value)), unplaced(Method(member, place))))
                else:
                    found += self.reads.member(place, place.value, name, member)
        return found

    def attributes(self, places: list[Place], path: str) -> list[Place]:
        """What ``x.a.b`` is of the objects at some places, for the path ``a.b``."""
        for name in path.split("."):
            places = [found for place in places for found in self.reads.attribute(place, name)]
        return places

    def items(self, places: Sequence[Place]) -> list[Place]:
        """What is in the containers at some places; objects may be there because they were in one."""
        items = [item for place in places for item in self.reads.items(place)]
        return [*items, *[place for place in places if not isinstance(place.value, (*CONTAINERS, Bag))]]

    def items_at(self, places: Sequence[Place], keys: list[Any] | None) -> list[Place]:
        """What is in them at some keys; at any of theirs if the keys aren't known."""
        if keys is None:
            return self.items(places)
        return [item for place in places for key in keys for item in self.reads.item(place, key)]

    def subscript(self, node: Any) -> list[Place]:
        places, keys = self.values(node.value), self.keys(node.slice)
        found = self.items_at(places, keys)
        if isinstance(node.slice, gast.Slice):
            found = self.bag(node, found)
        if keys is None:
            found += [each for place in places for each in self.reads.method(place, "__getitem__")]
        return found

    def keys(self, node: Any) -> list[Any] | None:
        """The values of a key, or None where they aren't known."""
        if isinstance(node, gast.Constant):
            return [node.value]
        if isinstance(node, gast.UnaryOp) and isinstance(node.operand, gast.Constant):
            return [-node.operand.value] if isinstance(node.op, gast.USub) else None
        self.use(node)
        if isinstance(node, gast.Name) and node.id not in self.names:
            root = self.environment.root(node.id)
            value = MISSING if root is None else root[1]()
            return [value] if is_simple(value) else None
        return None

    # --- calls -----------------------------------------------------------------------------------------------------

    def call(self, node: Any) -> list[Place]:
        name = node.func.id if isinstance(node.func, gast.Name) else ""
        is_builtin = bool(name) and name not in self.names and self.environment.root(name) is None
        if is_builtin and hasattr(builtins, name):
            return self.builtin(name, node)
        if isinstance(node.func, gast.Attribute):
            found = self.of_container(node)
            if found is not None:
                return found
        targets = self.values(node.func)
        if any(target.value is os.getenv for target in targets) and node.args:
            return self.items_at([environment()], self.keys(node.args[0]))
        if any(target.value is operator.attrgetter for target in targets):
            names = [key for each in node.args for key in self.keys(each) or () if type(key) is str]
            return [self.bags.setdefault(id(node), unplaced(operator.attrgetter(*names)))] if names else []
        arguments = [
            self.items(self.values(each.value)) if isinstance(each, gast.Starred) else self.values(each)
            for each in node.args
        ]
        keywords = {each.arg: self.values(each.value) for each in node.keywords if each.arg is not None}
        for each in node.keywords:
            if each.arg is None:
                spread = [(key, item) for place in self.values(each.value) for key, item in self.named_items(place)]
                for key, item in spread:
                    keywords.setdefault(key, []).append(item)
        found = []
        is_known = False
        for target in targets:
            result = self.called(target, arguments, keywords)
            is_known |= result is not None
            found += result or []
        if is_known:
            return self.own(node, found)
        # A function of a library, or one that isn't known: it may look at all of its arguments, and give one of them.
        given = [place for places in (*arguments, *keywords.values()) for place in places]
        for place in given:
            self.reads.whole(place)
            if isinstance(place.value, Inner):
                self.called(place, [given] * 8, {})
            elif isinstance(place.value, (types.FunctionType, Method)):
                self.called(place, [[each for each in given if each is not place]], {})
        if isinstance(node.func, gast.Attribute) and node.func.attr in ("asdict", "astuple"):
            return [self.bags.setdefault(("vars", id(place.value)), unplaced(Attributes(place))) for place in given]
        items = self.items([place for place in given if isinstance(place.value, Bag)])
        return [*_objects(given), *(self.bag(node, items) if items else ())]

    def named_items(self, place: Place) -> list[tuple[str, Place]]:
        self.reads.whole(place)
        if not isinstance(place.value, dict):
            return []
        return [(key, place.at(("[", key), each)) for key, each in place.value.items() if not is_simple(each)]

    def called(self, target: Place, arguments: list[list[Place]], keywords: dict[str, Any]) -> list[Place] | None:
        """The places that a call may return; None if the callee isn't a function of the user's."""
        callee = target.value
        if isinstance(callee, Method):
            return self.reads.call(callee.function, [[callee.owner], *arguments], keywords)
        if isinstance(callee, Inner):
            self.bind_parameters(callee.node, arguments, keywords)
            if isinstance(callee.node, gast.Lambda) and callee.node not in self.open:
                self.open.append(callee.node)
                found = self.values(callee.node.body)
                self.open.pop()
                return found
            return list(self.returned.values())
        if isinstance(callee, (Bag, Attributes, Made)):
            return self.reads.method(target, "__call__", *arguments) if isinstance(callee, Made) else []
        if type(callee) is operator.attrgetter:
            paths = callee.__reduce__()[1]
            return [each for path in paths for each in self.attributes(arguments[0] if arguments else [], path)]
        if isinstance(callee, type):
            return self.construct(callee, arguments, keywords)
        function = plain_function(callee, ())[0]
        if function is not None:
            if not self.reads.is_user_code(function):
                return self.reads.dispatched(function, arguments, keywords)
            if function is callee and target.label[0]:
                self.reads.values.setdefault(("function", id(function)), target)
            return self.reads.call(callee, arguments, keywords)
        method = next((vars(each)["__call__"] for each in type(callee).__mro__ if "__call__" in vars(each)), None)
        if type(method) is types.FunctionType and self.reads.is_user_code(method):
            return self.reads.call(method, [[target], *arguments], keywords)
        return None

    def construct(self, kind: type, arguments: list[list[Place]], keywords: dict[str, Any]) -> list[Place] | None:
        init = kind.__init__  # type: ignore[misc]
        names: Sequence[str] = getattr(kind, "_fields", ())
        if dataclasses.is_dataclass(kind):
            names = [each.name for each in dataclasses.fields(kind) if each.init]
        if not names and not (type(init) is types.FunctionType and self.reads.is_user_code(init)):
            return None
        ids = tuple([tuple([id(place.value) for place in places]) for places in (*arguments, *keywords.values())])
        made = self.reads.made.setdefault((kind, ids, tuple(keywords)), unplaced(Made(kind)))
        for name, places in (*zip(names, arguments), *[each for each in keywords.items() if each[0] in names]):
            made.value.fields[name] = {id(place.value): place for place in places}
        if names:
            self.reads.method(made, "__post_init__")
        else:
            self.reads.call(init, [[made], *arguments], keywords)
        return [made]

    def of_container(self, node: Any) -> list[Place] | None:
        """What a method of a container that reads it gives; None if there is no container."""
        owners = self.values(node.func.value)
        name = node.func.attr
        if not owners or not all(isinstance(each.value, (*CONTAINERS, Bag, Attributes)) for each in owners):
            return None
        given = [place for each in node.args for place in self.values(each)]
        if name in _READERS:
            return self.bag(node, self.items(owners))
        if name in _ITEM_READERS:
            return [*self.items_at(owners, self.keys(node.args[0]) if node.args else None), *given]
        for place in owners:
            if isinstance(place.value, Bag):
                self.add(place.value, given)
        return []

    def builtin(self, name: str, node: Any) -> list[Place]:
        if name in ("getattr", "hasattr") and len(node.args) >= 2:
            names = self.keys(node.args[1])
            found = [place for each in node.args[2:] for place in self.values(each)]
            for place in self.values(node.args[0]):
                if names is None:
                    found += self.reads.all_attributes(place)
                else:
                    found += [each for key in names if type(key) is str for each in self.reads.attribute(place, key)]
            return found
        places = [self.values(each) for each in (*node.args, *[each.value for each in node.keywords])]
        if name == "vars" and places:
            return [self.bags.setdefault(("vars", id(each.value)), unplaced(Attributes(each))) for each in places[0]]
        if name == "super":
            return []
        items = self.items([place for each in places for place in each])
        if name in ("map", "filter", "sorted", "min", "max"):
            functions = [each for given in places for each in given]
            results = [self.called(each, [items], {}) or [] for each in functions]
            if name == "map":
                return self.bag(node, [place for each in results for place in each])
        if name in _OF_ITEMS:
            return self.bag(node, items)
        for each in places:
            for place in each:
                self.reads.method(place, _SPECIAL.get(name, f"__{name}__"))
        return items if name in ("next", "min", "max", "sum") else []


_SPECIAL = {"str": "__str__", "print": "__str__"}
_OPERATORS = {
    gast.Add: "add", gast.Sub: "sub", gast.Mult: "mul", gast.Div: "truediv", gast.FloorDiv: "floordiv",
    gast.Mod: "mod", gast.Pow: "pow", gast.MatMult: "matmul", gast.LShift: "lshift", gast.RShift: "rshift",
    gast.BitAnd: "and", gast.BitOr: "or", gast.BitXor: "xor",
}  # fmt: skip
_COMPARISONS = {
    gast.Lt: ("__lt__", "__gt__"), gast.LtE: ("__le__", "__ge__"), gast.Gt: ("__gt__", "__lt__"),
    gast.GtE: ("__ge__", "__le__"), gast.Eq: ("__eq__", "__eq__"), gast.NotEq: ("__ne__", "__eq__"),
    gast.In: ("", "__contains__"), gast.NotIn: ("", "__contains__"),
}  # fmt: skip


_VISITS: dict[type, Callable[[_Reader, Any], list[Place]]] = {
    gast.Name: _Reader.of_name, gast.Attribute: _Reader.of_attribute, gast.Subscript: _Reader.subscript,
    gast.Call: _Reader.call, gast.IfExp: _Reader.of_condition, gast.BoolOp: _Reader.of_logic,
    gast.NamedExpr: _Reader.of_walrus, gast.Tuple: _Reader.of_display, gast.List: _Reader.of_display,
    gast.Set: _Reader.of_display, gast.Dict: _Reader.of_dict, gast.Starred: _Reader.of_starred,
    gast.ListComp: _Reader.comprehension, gast.SetComp: _Reader.comprehension,
    gast.GeneratorExp: _Reader.comprehension, gast.DictComp: _Reader.comprehension, gast.Lambda: _Reader.of_lambda,
    gast.BinOp: _Reader.operation, gast.Compare: _Reader.compared, gast.Constant: lambda reader, node: [],
}  # fmt: skip


def _objects(places: list[Place]) -> list[Place]:
    """The places without those of containers that the function itself makes."""
    return [place for place in places if not isinstance(place.value, Bag)]


def _as_load(target: Any) -> Any:
    """What ``target += x`` reads."""
    made = type(target)(**{name: getattr(target, name) for name in target._fields})
    made.ctx = gast.Load()
    return made
