"""Built-in functions that do something of their own on symbolic tensors; on anything else they are Python's.

``OVERLOADS`` maps a built-in function to the one that converted code calls in its place. Those that need
a loop are added by aggregates.py and functional.py.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from autograph.operators.choices import Choice, texts_of
from autograph.operators.identity import is_instance, type_of_value
from autograph.operators.iterables import Staged, enumerate_, range_, reversed_, staged, zip_
from autograph.operators.math_functions import MATH
from autograph.operators.opaque import note_printed
from autograph.operators.symbolic import condition, symbolic, truth, visible
from runtime import dtypes
from runtime.context import ctx
from runtime.ops.arrays.shape_ops import reshape
from runtime.ops.arrays.shape_ops import shape as shape_of
from runtime.ops.control import assert_op
from runtime.ops.control import print_ as staged_print
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.arithmetic import maximum
from runtime.ops.elementwise.compare import where
from runtime.ops.elementwise.elementary import cast
from runtime.ops.elementwise.elementary import round as round_tensor
from runtime.ops.staged_number import StagedNumber, as_storage, is_number, kind_of, whole_number
from runtime.ops.strings.staged_string import StagedText, StandsForString
from runtime.ops.values import default_of
from runtime.ragged.tensor import RaggedTensor
from runtime.staged_list import StagedList, moved

# Whether `print` of tensors runs with the program everywhere: the feature BUILTIN_FUNCTIONS.
STAGES_PRINTS: ContextVar[bool] = ContextVar("STAGES_PRINTS", default=False)

# Taken now: a program may put a function of its own in the place of `builtins.len`, which is not to be called here.
_len = builtins.len


def _single(arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The symbolic tensor that is the only argument, or None."""
    return symbolic(arguments[0]) if _len(arguments) == 1 and not options else None


def len_(*arguments: Any, **options: Any) -> Any:
    """``len``; of a symbolic tensor its first dimension, a `StagedNumber` where it is known only at run time."""
    if _len(arguments) == 1 and not options and isinstance(arguments[0], list | StagedList):
        items = arguments[0] if isinstance(arguments[0], StagedList) else moved(arguments[0])
        return _len(arguments[0]) if items is None else StagedNumber(items.size, items.size.dtype)
    if _len(arguments) == 1 and (size_of := getattr(type(arguments[0]), "__staged_size__", None)) is not None:
        size = size_of(arguments[0])
        return _len(*arguments, **options) if size is None else StagedNumber(size, size.dtype)
    if _len(arguments) == 1 and not options and isinstance(arguments[0], Staged | RaggedTensor):
        rows = staged(arguments[0])
        count = _len(*arguments) if rows is None else rows.count()
        return count if isinstance(count, int) else StagedNumber(maximum(count, 0), count.dtype)
    tensor = _single(arguments, options)
    if tensor is None or tensor.type.shape == () or (tensor.type.shape and tensor.type.shape[0] is not None):
        return _len(*arguments, **options)
    return StagedNumber(shape_of(tensor)[0], dtypes.int32)


def int_(*arguments: Any, **options: Any) -> Any:
    """``int``; of a symbolic tensor of one element the number, cut off towards zero. See `StagedNumber`."""
    number = _number(arguments, options)
    if number is None:
        return builtins.int(*arguments, **options)
    if not isinstance(number, StagedNumber) or number.kind is builtins.int:
        return number
    return whole_number(number.wide())


def float_(*arguments: Any, **options: Any) -> Any:
    """``float``; of a symbolic tensor of one element the number. See `StagedNumber`."""
    number = _number(arguments, options)
    if number is None:
        return builtins.float(*arguments, **options)
    if not isinstance(number, StagedNumber):
        return cast(number, dtypes.float32)
    return number if number.kind is builtins.float else StagedNumber(number.to(dtypes.float64), dtypes.float32)


def _number(arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The only argument as a number of the program, if it is one or a symbolic tensor; else None.

    A tensor of several elements, or of a dtype that no Python number has, stays a tensor.
    """
    if _len(arguments) == 1 and type(arguments[0]) is StagedNumber:
        return arguments[0]
    tensor = _single(arguments, options)
    if tensor is None:
        return None
    if tensor.dtype.is_bool:
        return StagedNumber(cast(tensor, dtypes.int32), dtypes.int32)
    if tensor.dtype.kind not in "iuf" or tensor.dtype is dtypes.uint64 or tensor.type.shape is None:
        return tensor
    if any(size != 1 for size in tensor.type.shape):
        return tensor
    return StagedNumber(reshape(tensor, ()) if tensor.type.shape else tensor, tensor.dtype)


def isinstance_(value: Any, classes: Any) -> Any:
    """``isinstance``; a number or Python bool of the program is an instance of what the Python value is."""
    return isinstance(value, classes) if ctx.builder is None else is_instance(value, classes)


def bool_(*arguments: Any, **options: Any) -> Any:
    """``bool``; of a symbolic tensor of one element whether it isn't zero, of a staged list whether it isn't empty."""
    tensor = truth(arguments[0]) if _len(arguments) == 1 and not options else None
    return builtins.bool(*arguments, **options) if tensor is None else condition(tensor, "bool")


def round_(*arguments: Any, **options: Any) -> Any:
    """``round``; of a symbolic tensor the nearest whole value, halves to even, in its own dtype."""
    if arguments and type(arguments[0]) is StagedNumber:
        number, *rest = arguments
        made = round_(number.wide(), *rest, **options)
        if number.kind is builtins.float and not rest and options.get("ndigits") is None:
            return whole_number(made)
        return StagedNumber(made, number.default)
    tensor = symbolic(arguments[0]) if arguments else None
    if tensor is None:
        return builtins.round(*arguments, **options)
    digits = arguments[1] if _len(arguments) > 1 else options.get("ndigits")
    if digits is None:
        return round_tensor(tensor)
    if tensor.dtype.is_integer and type(digits) is int:
        if digits >= 0:
            return tensor
        unit = 10**-digits
        rest = tensor % unit
        low = tensor - rest
        up = (rest * 2 > unit) | ((rest * 2 == unit) & ((low // unit) % 2 == 1))
        return where(up, low + unit, low)
    scale = 10.0**digits
    return round_tensor(tensor * scale) / scale


def print_(*values: Any, **options: Any) -> None:
    """``print``; in a branch or loop on tensors it prints when the program gets there, as often as it gets there.

    Elsewhere in a function that is being traced it is Python's own: it prints once for every trace, and shows a tensor
    without its value. `ag.print` prints at run time everywhere, and so does `print` of tensors in a function with the
    feature BUILTIN_FUNCTIONS.
    """
    builder = ctx.builder
    if builder is None or (builder.parent is None and not STAGES_PRINTS.get()):
        builtins.print(*values, **options)
        return
    values = tuple([_visible(value) for value in values])
    if builder.parent is None and all(symbolic(value) is None and type(value) is not StagedText for value in values):
        builtins.print(*values, **options)
        return
    sep, end, stream = (options.get(key) for key in ("sep", "end", "file"))
    note_printed(builder.root, stream)
    shown = [value if isinstance(value, str) or symbolic(value) is not None else _shown(value) for value in values]
    staged_print(
        *shown,
        output_stream=sys.stdout if stream is None else stream,
        sep=" " if sep is None else sep,
        end="\n" if end is None else end,
    )


def _visible(value: Any, show: Callable[[Any], Any] = builtins.str) -> Any:
    """What shows a value as it is when the program gets there; in a structure as its ``repr`` does."""
    if type(value) in (list, tuple):
        return type(value)([_visible(each, builtins.repr) for each in value])
    if type(value) is dict:
        return {key: _visible(each, builtins.repr) for key, each in value.items()}
    if isinstance(value, Choice):
        return StagedText(texts_of(value, show))
    if isinstance(value, StandsForString):
        shown = value if show is builtins.str else OVERLOADS[show](value)
        return shown if type(shown) is StagedText else StagedText((shown.wide(), None))
    tensor = visible(value)
    return value if tensor is None else tensor


def _shown(value: Any) -> Any:
    """A structure as it is, for the tensors in it; anything else as the text that Python prints."""
    return value if isinstance(value, (list, tuple, dict)) else str(value)


def divmod_(*arguments: Any) -> Any:
    """``divmod``; of symbolic tensors the floor of the quotient and the remainder."""
    if _len(arguments) != 2 or not any(symbolic(each) is not None for each in arguments):
        return builtins.divmod(*arguments)  # type: ignore[misc]
    return arguments[0] // arguments[1], arguments[0] % arguments[1]


def pow_(power_modulo: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """``pow``; of symbolic integers with a modulus too, as the remainder of the power.

    power_modulo: gives that of scalars. Of arrays products of remainders must fit 64 bits: InvalidArgumentError.
    """
    if _len(arguments) != 3 or options or not any(symbolic(each) is not None for each in arguments):
        return builtins.pow(*arguments, **options)
    if all(type(each) is int or (is_number(each) and kind_of(each) is int) for each in arguments):
        base, exponent, modulus = arguments
        if type(exponent) is int:  # known as it is, a loop of the program goes over its bits
            known = ctx.builder.tensor(ctx.builder.use(as_storage(exponent, dtypes.int64)))
            exponent = StagedNumber(known, default_of(exponent))
        return power_modulo(base, exponent, modulus)
    tensors = [convert_to_tensor(each) for each in arguments]
    dtype = next(each.dtype for each, given in zip(tensors, arguments) if symbolic(given) is not None)
    if not all(each.dtype.is_integer for each in tensors):
        raise TypeError("pow() 3rd argument not allowed unless all arguments are integers")
    base, exponent, modulus = (cast(each, dtypes.int64) for each in tensors)
    if all(each.shape.rank == 0 for each in tensors):
        return cast(power_modulo(base, exponent, modulus), dtype)
    assert_op(exponent >= 0, "pow() of tensors with a modulus needs an exponent that isn't negative", "ValueError")
    assert_op(modulus != 0, "pow() 3rd argument cannot be 0", "ValueError")
    assert_op(
        (modulus < 2**31) & (modulus > -(2**31)),
        "pow() of arrays needs a modulus below 2 ** 31, whose products fit 64 bits; take map_fn",
        "InvalidArgumentError",
    )
    result, base = modulus // modulus % modulus, base % modulus
    # Squares, by the bits of the exponent: no product is larger than the square of the modulus.
    for bit in range(63 if dtype is dtypes.int64 else 31):
        result = where(exponent // 2**bit % 2 == 1, result * base % modulus, result)
        base = base * base % modulus
    return cast(result, dtype)


OVERLOADS: dict[Any, Callable[..., Any]] = {
    **MATH,
    builtins.bool: bool_,
    builtins.enumerate: enumerate_,
    builtins.divmod: divmod_,
    builtins.float: float_,
    builtins.int: int_,
    builtins.isinstance: isinstance_,
    builtins.len: len_,
    builtins.print: print_,
    builtins.range: range_,
    builtins.reversed: reversed_,
    builtins.round: round_,
    builtins.type: type_of_value,
    builtins.zip: zip_,
}
