"""Built-in functions that do something of their own on symbolic tensors; on anything else they are Python's.

``OVERLOADS`` maps a built-in function to the one that converted code calls in its place.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from functools import reduce
from typing import Any

from autograph.operators.iterables import enumerate_, range_, reversed_, zip_
from autograph.operators.math_functions import MATH
from autograph.operators.symbolic import symbolic
from runtime import dtypes
from runtime.context import ctx
from runtime.ops.arithmetic import maximum, minimum
from runtime.ops.array import shape as shape_of
from runtime.ops.control import print_ as staged_print
from runtime.ops.elementwise import cast
from runtime.ops.elementwise import round as round_tensor
from runtime.ops.reduce import reduce_all, reduce_any, reduce_max, reduce_min, reduce_sum
from runtime.ops.sorting import sort
from runtime.staged_list import StagedList, moved

# Taken now: a program may put a function of its own in the place of `builtins.len`, which is not to be called here.
_len = builtins.len


def _single(arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The symbolic tensor that is the only argument, or None."""
    return symbolic(arguments[0]) if _len(arguments) == 1 and not options else None


def len_(*arguments: Any, **options: Any) -> Any:
    """``len``; of a symbolic tensor its first dimension, as a tensor where it is known only at run time."""
    if _len(arguments) == 1 and not options and isinstance(arguments[0], list | StagedList):
        staged = arguments[0] if isinstance(arguments[0], StagedList) else moved(arguments[0])
        return _len(arguments[0]) if staged is None else staged.size
    tensor = _single(arguments, options)
    if tensor is None or tensor.type.shape == () or (tensor.type.shape and tensor.type.shape[0] is not None):
        return _len(*arguments, **options)
    return shape_of(tensor)[0]


def int_(*arguments: Any, **options: Any) -> Any:
    """``int``; of a symbolic tensor its int32 (or own integer) value, cut off towards zero."""
    tensor = _single(arguments, options)
    if tensor is None:
        return builtins.int(*arguments, **options)
    return tensor if tensor.dtype.is_integer else cast(tensor, dtypes.int32)


def float_(*arguments: Any, **options: Any) -> Any:
    """``float``; of a symbolic tensor its float32 (or own floating) value."""
    tensor = _single(arguments, options)
    if tensor is None:
        return builtins.float(*arguments, **options)
    return tensor if tensor.dtype.is_floating else cast(tensor, dtypes.float32)


def bool_(*arguments: Any, **options: Any) -> Any:
    """``bool``; of a symbolic tensor whether it isn't zero."""
    tensor = _single(arguments, options)
    return builtins.bool(*arguments, **options) if tensor is None else cast(tensor, dtypes.bool_)


def round_(*arguments: Any, **options: Any) -> Any:
    """``round``; of a symbolic tensor the nearest whole value, halves to even, in its own dtype."""
    tensor = symbolic(arguments[0]) if arguments else None
    if tensor is None:
        return builtins.round(*arguments, **options)
    digits = arguments[1] if _len(arguments) > 1 else options.get("ndigits")
    if digits is None:
        return round_tensor(tensor)
    scale = 10.0**digits
    return round_tensor(tensor * scale) / scale


def sum_(*arguments: Any, **options: Any) -> Any:
    """``sum``; of a symbolic tensor along its first axis."""
    tensor = symbolic(arguments[0]) if arguments else None
    if tensor is None or not tensor.type.shape:
        return builtins.sum(*arguments, **options)
    total = reduce_sum(tensor, axis=0)
    start = arguments[1] if _len(arguments) > 1 else options.get("start", 0)
    return total if type(start) is int and start == 0 else start + total


def any_(*arguments: Any, **options: Any) -> Any:
    """``any``; of a symbolic tensor whether one of its elements holds."""
    tensor = _single(arguments, options)
    return builtins.any(*arguments, **options) if tensor is None else reduce_any(cast(tensor, dtypes.bool_))


def all_(*arguments: Any, **options: Any) -> Any:
    """``all``; of a symbolic tensor whether all of its elements hold."""
    tensor = _single(arguments, options)
    return builtins.all(*arguments, **options) if tensor is None else reduce_all(cast(tensor, dtypes.bool_))


def min_(*arguments: Any, **options: Any) -> Any:
    """``min``; of symbolic tensors elementwise, of a single one its smallest element."""
    return _extreme(builtins.min, minimum, reduce_min, arguments, options)


def max_(*arguments: Any, **options: Any) -> Any:
    """``max``; of symbolic tensors elementwise, of a single one its largest element."""
    return _extreme(builtins.max, maximum, reduce_max, arguments, options)


def _extreme(python: Any, pairwise: Any, whole: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if options:
        return python(*arguments, **options)
    if _len(arguments) == 1:
        tensor = symbolic(arguments[0])
        if tensor is not None and tensor.type.shape != ():
            return whole(tensor)
        items = arguments[0]
        if type(items) in (list, tuple) and any(symbolic(each) is not None for each in items):
            return reduce(pairwise, items)
        return python(*arguments)
    if any(symbolic(each) is not None for each in arguments):
        return reduce(pairwise, arguments)
    return python(*arguments)


def print_(*values: Any, **options: Any) -> None:
    """``print``; in a branch or loop on tensors it prints when the program gets there, as often as it gets there.

    Elsewhere in a function that is being traced it is Python's own: it prints once for every trace, and shows a tensor
    without its value. `ag.print` prints at run time everywhere.
    """
    builder = ctx.builder
    if builder is None or builder.parent is None:
        builtins.print(*values, **options)
        return
    sep, end, stream = (options.get(key) for key in ("sep", "end", "file"))
    shown = [value if isinstance(value, str) or symbolic(value) is not None else _shown(value) for value in values]
    staged_print(
        *shown,
        output_stream=sys.stdout if stream is None else stream,
        sep=" " if sep is None else sep,
        end="\n" if end is None else end,
    )


def _shown(value: Any) -> Any:
    """A structure as it is, for the tensors in it; anything else as the text that Python prints."""
    return value if isinstance(value, (list, tuple, dict)) else str(value)


def sorted_(*arguments: Any, **options: Any) -> Any:
    """``sorted``; of a symbolic tensor its elements in order, as a tensor."""
    tensor = symbolic(arguments[0]) if _len(arguments) == 1 else None
    if tensor is None or set(options) - {"reverse"} or type(options.get("reverse", False)) is not bool:
        return builtins.sorted(*arguments, **options)
    return sort(tensor, direction="DESCENDING" if options.get("reverse") else "ASCENDING")


def divmod_(*arguments: Any) -> Any:
    """``divmod``; of symbolic tensors the floor of the quotient and the remainder."""
    if _len(arguments) != 2 or not any(symbolic(each) is not None for each in arguments):
        return builtins.divmod(*arguments)  # type: ignore[misc]
    return arguments[0] // arguments[1], arguments[0] % arguments[1]


def pow_(*arguments: Any, **options: Any) -> Any:
    """``pow``; of symbolic tensors with a modulus too, as the remainder of the power."""
    if _len(arguments) != 3 or options or not any(symbolic(each) is not None for each in arguments):
        return builtins.pow(*arguments, **options)
    return arguments[0] ** arguments[1] % arguments[2]


OVERLOADS: dict[Any, Callable[..., Any]] = {
    **MATH,
    builtins.all: all_,
    builtins.any: any_,
    builtins.bool: bool_,
    builtins.enumerate: enumerate_,
    builtins.divmod: divmod_,
    builtins.float: float_,
    builtins.int: int_,
    builtins.len: len_,
    builtins.max: max_,
    builtins.min: min_,
    builtins.pow: pow_,
    builtins.print: print_,
    builtins.range: range_,
    builtins.reversed: reversed_,
    builtins.round: round_,
    builtins.sorted: sorted_,
    builtins.sum: sum_,
    builtins.zip: zip_,
}
