"""The conversion: a list of passes over a function's syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from autograph.convert import (
    asserts,
    breaks,
    calls,
    caught,
    comparison,
    comprehensions,
    control_flow,
    displays,
    items,
    logic,
    loop_else,
    matches,
    properties,
    returns,
    special_methods,
    super_calls,
    swallowed,
    ternary,
    texts,
    unbound_returns,
    walrus,
)
from autograph.convert.context import Context

Pass = Callable[[Any, Context], Any]

PASSES: tuple[tuple[str, Pass], ...] = (
    ("super", super_calls.lower),  # needs the user's own functions: blocks have no `self`
    ("unbound returns", unbound_returns.lower),  # before any pass copies or moves a name
    ("match", matches.lower),  # makes `if`s, whose jumps the next passes see
    ("walrus", walrus.lower),  # before loop else and breaks: makes a `break`
    ("caught", caught.lower),  # before loop else and breaks: makes a `break`; before return, which sees its `if`s
    ("loop else", loop_else.lower),  # before breaks, which it tells what flag to use
    ("swallowed", swallowed.lower),  # tells the next two where an error undoes a jump
    ("return", returns.lower),  # turns returns in loops into breaks
    ("break and continue", breaks.lower),  # leaves no jump out of a block that is to become a function
    ("control flow", control_flow.lower),  # the analyses want plain names: before anything adds lambdas
    ("text", texts.lower),
    ("assert", asserts.lower),
    ("comparison", comparison.lower),  # makes `and`s for the next one
    ("logic", logic.lower),
    ("conditional expression", ternary.lower),
    ("item", items.lower),
    ("list display", displays.lower),
    ("special method", special_methods.lower),
    ("property", properties.lower),
    ("call", calls.lower),  # late, since it must see which calls are the operators'
    ("comprehension", comprehensions.lower),  # copies expressions: last, so that nothing is converted twice
)


def convert_tree(
    node: Any,
    *,
    filename: str = "<string>",
    class_name: str | None = None,
    shadowed: frozenset[str] | Mapping[str, Any] = frozenset(),
    property_names: frozenset[str] = frozenset(),
    suppressors: frozenset[str] = frozenset(),
    after_pass: Callable[[str, Any], None] | None = None,
) -> Any:
    """Converts a gast function definition or lambda in place and returns it.

    shadowed: names that mean something else than the built-in of that name. after_pass: called with the name of each
    pass and the tree after it. property_names: see properties.py. suppressors: what `contextlib.suppress` is called.
    """
    context = Context(node, filename, class_name, shadowed, property_names, suppressors)
    if hasattr(node, "decorator_list"):
        node.decorator_list = []
    for name, lower in PASSES:
        node = lower(node, context)
        if after_pass is not None:
            after_pass(name, node)
    return node
