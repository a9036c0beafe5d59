"""``map`` and ``filter``: Python's own, unless they run over something staged; then the function is traced."""

from __future__ import annotations

import builtins
from typing import Any

from autograph.operators.absence import unset_test
from autograph.operators.builtins import OVERLOADS
from autograph.operators.calls import converted_call
from autograph.operators.comprehensions import as_generator
from autograph.operators.conditional import if_stmt
from autograph.operators.iterables import Staged, StagedMap, staged, zip_
from autograph.operators.loops import for_stmt
from autograph.operators.streams import iter_, next_
from runtime.ops.elementwise.compare import logical_not
from runtime.ops.flags import flagged
from runtime.staged_list import moved


def map_(*arguments: Any) -> Any:
    """``map``; staged when it runs over staged iterables."""
    if len(arguments) < 2 or all(staged(each) is None for each in arguments[1:]):
        return builtins.map(*arguments)
    function = converted_call(arguments[0])
    source = zip_(*arguments[1:])
    return StagedMap(function, source) if isinstance(source, Staged) else builtins.map(function, *arguments[1:])


def filter_(*arguments: Any) -> Any:
    """``filter``; over a staged iterable the list of the items that pass."""
    if len(arguments) != 2 or staged(arguments[1]) is None:
        return builtins.filter(*arguments)
    function = None if arguments[0] is None else converted_call(arguments[0])
    passed: list[Any] = []

    def loop_body(item: Any) -> None:
        if_stmt(item if function is None else function(item), lambda: passed.append(item))

    for_stmt(arguments[1], loop_body)
    became = moved(passed)
    return as_generator(passed if became is None else became, arguments[1])


def hasattr_(owner: Any, name: str) -> Any:
    """``hasattr``; of an attribute that is set on some ways through the program whether it is."""
    try:
        unset = unset_test(getattr(owner, name))
    except AttributeError:
        return False
    return True if unset is False else flagged(logical_not(unset))


def getattr_(owner: Any, name: str, *default: Any) -> Any:
    """``getattr``; with a default that, where the attribute is set on some ways through the program only."""
    value = getattr(owner, name, *default)
    unset = unset_test(value) if default else False
    return value if unset is False else if_stmt(unset, lambda: default[0], lambda: value)


OVERLOADS[builtins.hasattr] = hasattr_
OVERLOADS[builtins.getattr] = getattr_
OVERLOADS[builtins.map] = map_
OVERLOADS[builtins.filter] = filter_
OVERLOADS[builtins.iter] = iter_
OVERLOADS[builtins.next] = next_
