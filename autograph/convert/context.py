"""What the passes of one conversion share: the function's origin and the names that are free to use."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import gast

from autograph.convert.homes import always_covered
from autograph.convert.pins import pinned
from autograph.convert.tree import functions
from autograph.syntax.liveness import maybe_unbound
from autograph.syntax.scopes import own_scope
from autograph.syntax.walk import walk

OPERATORS = "ag__"


class Context:
    """One conversion.

    filename     the user's file, for messages
    class_name   innermost class around the function, for private names (``__x``), or None
    properties   names of properties and special methods of the user's classes
    suppressors  what `contextlib.suppress` is called where the function was defined
    shadowed     names that don't mean the built-in of that name where the function was defined
    """

    def __init__(
        self,
        tree: Any,
        filename: str = "<string>",
        class_name: str | None = None,
        shadowed: frozenset[str] | Mapping[str, Any] = frozenset(),
        properties: frozenset[str] = frozenset(),
        suppressors: frozenset[str] = frozenset(),
    ) -> None:
        self.properties = properties
        self.suppressors = suppressors
        self.filename = filename
        self.class_name = class_name
        self.shadowed = shadowed
        self.identifiers = _identifiers(tree)
        self.temporaries: set[str] = set()
        self._taken: dict[Any, set[str]] = {}
        self._covered: dict[Any, set[str]] = {}
        # Facts about the user's own functions, before any pass has changed them.
        own = list(functions(tree))
        self._unbound_reads = {function: maybe_unbound(function) for function in own}
        self._never_unbound = {function: always_covered(function, self._unbound_reads[function]) for function in own}
        self._pinned = {function: pinned(function) for function in own}
        self._locals = {function: own_scope(function).locals for function in own}

    def new_name(self, function: Any, base: str) -> str:
        """A name like ``base`` that nothing in the tree uses, and no earlier call gave out for ``function``.

        Nested functions may get the same name: a name made here is always local to its function.
        """
        taken = self._taken.setdefault(function, set())
        name, count = base, 0
        while name in taken or name in self.identifiers:
            count += 1
            name = f"{base}_{count}"
        taken.add(name)
        return name

    def new_temporary(self, function: Any, base: str) -> str:
        """A new name that only one expression uses, so that it may as well be a variable of a lambda around that."""
        name = self.new_name(function, base)
        self.temporaries.add(name)
        return name

    def free_name(self, base: str) -> str:
        """A name like ``base`` that the user's code doesn't use; the same one every time."""
        name, count = base, 0
        while name in self.identifiers:
            count += 1
            name = f"{base}_{count}"
        return name

    def mark_covered(self, function: Any, name: str) -> None:
        """Note that every read of the converter's own ``name`` stands behind a flag, so it may be left unbound."""
        self._covered.setdefault(function, set()).add(name)

    def locals_before(self, function: Any) -> frozenset[str]:
        """The local variables that the user's function had, also those that only unreachable code sets."""
        return self._locals[function]

    def pinned(self, function: Any) -> frozenset[Any]:
        """The statements of a function that stay Python statements."""
        return self._pinned[function]

    def pin(self, function: Any, stmt: Any) -> None:
        """Note that a statement made by a pass stays a Python statement: it has got a pinned one inside."""
        self._pinned[function] |= {stmt}

    def copied(self, block: Any) -> Any:
        """A copy of a block of the user's; what is known about its functions and statements holds for the copies."""
        memo: dict[int, Any] = {}
        made = copy.deepcopy(block, memo)

        def same(node: Any) -> Any:
            return memo.get(id(node), node)

        for facts in (self._unbound_reads, self._never_unbound, self._pinned, self._locals):
            facts.update({same(function): fact for function, fact in facts.items()})
        for function, reads in self._unbound_reads.items():
            self._unbound_reads[function] = [*reads, *[same(each) for each in reads if id(each) in memo]]
        for function, kept in self._pinned.items():
            self._pinned[function] = kept | {same(each) for each in kept}
        return made

    def unbound_reads(self, function: Any) -> list[Any]:
        """The Name nodes of the user's function that may read a variable without a value."""
        return self._unbound_reads[function]

    def never_unbound(self, function: Any) -> frozenset[str]:
        """The user's variables that are never read without a value, whatever way control takes."""
        return self._never_unbound[function]

    def covered(self, function: Any) -> frozenset[str]:
        return frozenset(self._covered.get(function, ()))


def _identifiers(tree: Any) -> frozenset[str]:
    found: set[str] = {OPERATORS}
    for node in walk(tree):
        for field in ("id", "name", "rest", "asname", "arg"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                found.add(value.partition(".")[0])
        if isinstance(node, (gast.Global, gast.Nonlocal)):
            found.update(node.names)
    return frozenset(found)
