"""What converted code calls at run time, as ``ag__``: Python's meaning on Python values, staging on tensors."""

from autograph.operators.absence import bound
from autograph.operators.aggregates import list_display, spread
from autograph.operators.assertion import assert_stmt, failed
from autograph.operators.called_later import OUTERMOST as _OUTERMOST  # noqa: F401 - it installs its guard
from autograph.operators.calls import attribute, converted_call, install_impure
from autograph.operators.choosing import install as _install_choosing
from autograph.operators.comprehensions import extend, extended, generator_exp, list_comp
from autograph.operators.conditional import if_exp, if_stmt
from autograph.operators.frames import own_names
from autograph.operators.functional import filter_, map_
from autograph.operators.immutable import install as _install
from autograph.operators.impure import impure as _impure
from autograph.operators.items import item, items, look_up
from autograph.operators.logic import and_, compare, in_, is_, is_none, is_not, is_not_none, not_, not_in, or_
from autograph.operators.loops import for_stmt, while_stmt
from autograph.operators.matching import equal_pattern, kind_pattern, match_stmt, value_pattern
from autograph.operators.numpy_functions import OVERLOADS as _numpy  # noqa: F401 - it registers its functions
from autograph.operators.numpy_makers import install as _install_arrays
from autograph.operators.raising import Raised, caught
from autograph.operators.recursion import watched
from autograph.operators.special_methods import (
    differs_from_none,
    equals_none,
    get_item,
    manager,
    operate,
    operate_alone,
    set_attribute,
    set_item,
)
from autograph.operators.staged_texts import install as _install_texts
from autograph.operators.standard_library import install as _install_standard_library
from autograph.operators.standard_library import unpacked
from autograph.operators.texts import formatted, percent, shown, text
from autograph.operators.unconverted import explanation
from runtime.tracebacks import drop_frames

_install()
_install_choosing()
_install_arrays()
_install_texts()
_install_standard_library()
install_impure(_impure)

__all__ = [
    "Raised",
    "and_",
    "assert_stmt",
    "attribute",
    "bound",
    "caught",
    "compare",
    "converted_call",
    "differs_from_none",
    "drop_frames",
    "equal_pattern",
    "equals_none",
    "explanation",
    "extend",
    "extended",
    "failed",
    "filter_",
    "for_stmt",
    "formatted",
    "generator_exp",
    "get_item",
    "if_exp",
    "if_stmt",
    "in_",
    "is_",
    "is_none",
    "is_not",
    "is_not_none",
    "item",
    "items",
    "kind_pattern",
    "list_comp",
    "list_display",
    "look_up",
    "manager",
    "map_",
    "match_stmt",
    "not_",
    "not_in",
    "operate",
    "operate_alone",
    "or_",
    "own_names",
    "percent",
    "set_attribute",
    "set_item",
    "shown",
    "spread",
    "text",
    "unpacked",
    "value_pattern",
    "watched",
    "while_stmt",
]
