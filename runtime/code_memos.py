"""What is found out about code objects, remembered by their identity.

As keys of a dictionary they would be hashed and compared, with all the code in them. To compare two that are equal, as
those of a notebook's cell that is run again are, CPython compares their constants twice at each level: 2 ** d steps for
functions that stand d deep in one another, as nested blocks of converted code do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def remembered(most: int) -> Callable[[_Function], _Function]:
    """Remembers the last `most` answers of a function of a code object and, perhaps, of hashable values."""

    def decorate(function: _Function) -> _Function:
        known: dict[tuple[Any, ...], tuple[CodeType, Any]] = {}  # with the code, whose identity stays its own by that

        @functools.wraps(function)
        def answer(code: CodeType, *rest: Any) -> Any:
            key = id(code), *rest
            entry = known.get(key)
            if entry is None:
                entry = code, function(code, *rest)
                while len(known) >= most:
                    known.pop(next(iter(known), key), None)
                known[key] = entry
            return entry[1]

        return answer  # type: ignore[return-value]

    return decorate
