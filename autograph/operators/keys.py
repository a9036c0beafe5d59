"""Keys of dictionaries that are known only when the program runs: numbers, strings, tuples of these.

    counts[k] += 1      →      each entry is changed under the condition that the dictionary has it at a key equal to k

The program finds the key among those that the dictionary has while it is traced. It makes no entry at another one.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from typing import Any, NoReturn

import numpy as np

from autograph.operators.choices import Alternatives, Choice
from autograph.operators.conditional import if_exp
from autograph.operators.objects import as_key
from autograph.operators.selecting import raise_at_run_time, select
from autograph.operators.staged_strings import is_staged_text
from runtime import dtypes
from runtime.ops.arrays.reduce import argmax, reduce_any
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.compare import equal, logical_and, logical_or, where
from runtime.ops.elementwise.elementary import cast
from runtime.ops.staged_number import StagedNumber

# Fewer keys are told apart one by one, which needs no array.
_FEW = 8
_NONE_EQUAL = "a key that is known only when the program runs, and that no key is equal to"
_NO_NEW = (
    "a dictionary gets no new key that is known only when the program runs: give it all keys that may come before, "
    "as in `{k: 0 for k in range(n)}`"
)


def is_unknown(key: Any) -> bool:
    """Whether a key is known only when the program runs, and isn't a choice of known ones."""
    if type(key) is tuple:
        return any(map(is_unknown, key))
    return type(key) is StagedNumber or (is_staged_text(key) and not isinstance(key, Choice))


def at_key(owner: Any, key: Any) -> Any:
    """``owner[key]`` of a dictionary at such a key."""
    found, is_there = key_among(owner, key)
    if isinstance(owner, Counter):
        return 0 if found is None else if_exp(is_there, lambda: at(owner, found), lambda: 0)
    makes_entries = hasattr(owner, "__missing__")
    if found is None:
        return owner[key] if makes_entries else _raise(KeyError(_NONE_EQUAL))
    raise_at_run_time(KeyError(_NO_NEW if makes_entries else _NONE_EQUAL), unless=is_there)
    return at(owner, found)


def _raise(error: Exception) -> NoReturn:
    raise error


def at(owner: Any, key: Any) -> Any:
    """``owner[key]`` of a dictionary that has the key, which may be a choice."""
    return select(key, lambda each: owner[each]) if isinstance(key, Choice) else owner[key]


def get(owner: dict[Any, Any], key: Any, default: Any = None) -> Any:
    """``owner.get(key, default)``"""
    key = as_key(key, "get")
    if is_unknown(key):
        found, is_there = key_among(owner, key)
        return default if found is None else if_exp(is_there, lambda: get(owner, found), lambda: default)
    return select(key, lambda each: owner.get(each, default)) if isinstance(key, Choice) else owner.get(key, default)


def key_to_change(owner: dict[Any, Any], key: Any) -> Any:
    """A key at which an entry is changed: for one that isn't known, one of those that are there."""
    key = as_key(key, "[]")
    if not is_unknown(key) and not _has_new(owner, key):
        return key
    found, is_there = key_among(owner, key)
    if found is None:
        return key  # Python refuses it
    raise_at_run_time(KeyError(_NO_NEW), unless=is_there)
    return found


def _has_new(owner: dict[Any, Any], key: Any) -> bool:
    """Whether a key is a choice of strings of which a dictionary has some and others not."""
    if not isinstance(key, Choice) or not is_staged_text(key):
        return False
    return any(type(each) is str for each in owner) and not all(each in owner for each in key.ag_alternatives)


def key_among(owner: dict[Any, Any], key: Any) -> tuple[Any, Any]:
    """The key of a dictionary that one is equal to, a choice if it has several that may be; and whether there is one.

    Without any that may be it gives None and False.
    """
    keys = [each for each in owner if _may_be(key, each)]
    if not keys:
        return None, False
    if len(keys) == 1:
        return keys[0], _same(key, keys[0])
    if len(keys) > _FEW and type(key) is StagedNumber:
        numbers = np.asarray(keys)
        index, found = _place_of_number(key, numbers)
    else:
        index, found = convert_to_tensor(0, dtypes.int32), convert_to_tensor(False)
        for position, each in enumerate(keys):
            same = _same(key, each)
            index, found = where(same, position, index), logical_or(found, same)
    return Choice(index, Alternatives(keys)), found


def _place_of_number(key: StagedNumber, numbers: np.ndarray) -> tuple[Any, Any]:
    wide = key.wide()
    if numbers.dtype.kind == "i" and np.array_equal(numbers, np.arange(len(numbers))):
        found = logical_and(wide >= 0, wide < len(numbers))
        return where(found, cast(wide, dtypes.int32), 0), found
    same = equal(wide, convert_to_tensor(numbers, wide.dtype))
    return argmax(cast(same, dtypes.int32), output_type=dtypes.int32), reduce_any(same)


def _may_be(key: Any, known: Any) -> bool:
    """Whether a key can be equal to one of a dictionary's."""
    if type(key) is tuple:
        return type(known) is tuple and len(key) == len(known) and all(map(_may_be, key, known))
    if type(key) is StagedNumber:
        return isinstance(known, (int, float, np.number))
    if is_staged_text(key):
        return type(known) is str
    return bool(key == known)


def _same(key: Any, known: Any) -> Any:
    """Whether they are equal, as a boolean tensor."""
    if type(key) is tuple:
        unknown = [pair for pair in zip(key, known) if type(pair[0]) is tuple or is_unknown(pair[0])]
        return reduce(logical_and, [_same(*pair) for pair in unknown])
    return convert_to_tensor(equal(key.wide(), known))
