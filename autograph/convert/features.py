"""`Feature`: what TensorFlow programs ask of the converter beyond control flow.

All of it is on anyway, but for one thing: `print` of tensors runs with the program only inside staged branches and
loops, as in TensorFlow without BUILTIN_FUNCTIONS; elsewhere it is Python's own, which runs while tracing.
"""

from __future__ import annotations

import enum
from typing import Any


class Feature(enum.Enum):
    """Optional features of the conversion, under TensorFlow's names."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"

    @classmethod
    def all(cls) -> tuple[Feature, ...]:
        """All features."""
        return tuple(cls)

    @classmethod
    def all_but(cls, exclude: Any) -> tuple[Feature, ...]:
        """All features but one, or but several in a tuple, list or set."""
        left_out = exclude if isinstance(exclude, (tuple, list, set)) else (exclude,)
        return tuple(each for each in cls if each not in left_out and each is not cls.ALL)


def checked(features: Any) -> frozenset[Feature]:
    """The features in a user's option. Raises TypeError for anything that isn't one."""
    if features is None:
        return frozenset()
    given = features if isinstance(features, (tuple, list, set, frozenset)) else (features,)
    for each in given:
        if not isinstance(each, Feature):
            raise TypeError(f"{each!r} is not an ag.autograph.experimental.Feature")
    return frozenset(given)
