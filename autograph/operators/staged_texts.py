"""What a program asks of an f-string of symbolic tensors, which Python takes for the text that shows these.

`print`, errors and assertions put the values in when the program gets there. What the program itself asks is asked of
the string that it makes then (staged_strings.py): an answer for the text that Python sees would be wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from autograph.errors import is_own_file
from autograph.operators.calls import is_library_code
from autograph.operators.choices import Alternatives, Choice
from autograph.operators.staged_strings import staged_methods, unknown
from runtime import dtypes
from runtime.context import ctx
from runtime.ops.control import HOST_CALL
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply
from runtime.ops.strings.staged_string import StagedString, StagedText, shown_with
from runtime.types import TensorType


def install() -> None:
    """Gives `StagedText` the methods of a string that is known when the program runs."""
    for name, method in staged_methods().items():
        setattr(StagedText, name, _forwarded(name, method))
    text: Any = StagedText
    text.__add__ = lambda self, other: _joined(self, other)
    text.__radd__ = lambda self, other: _joined(other, self)
    StagedText.make = _tensor_of
    for name in ("__str__", "__format__"):
        setattr(StagedText, name, _shown_by(name))


def _forwarded(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    of_strings = getattr(str, name, None)

    def forwarded(self: StagedText, *given: Any, **options: Any) -> Any:
        if of_strings is not None and not _is_asked_by_program():
            return of_strings(self, *given, **options)
        return method(StagedString(self.wide()), *given, **options)

    forwarded.__name__ = name
    return forwarded


def _shown_by(name: str) -> Callable[..., Any]:
    """What shows the symbolic tensors to libraries; in the program it would be a text in the place of another."""
    of_strings = getattr(str, name)

    def shown(self: StagedText, *given: Any) -> Any:
        if ctx.builder is not None and _is_users(sys._getframe(1)):
            raise unknown(name.strip("_"))
        return of_strings(self, *given)

    return shown


def _is_users(frame: Any) -> bool:
    return not (is_own_file(frame.f_code.co_filename) or is_library_code(frame.f_code, frame.f_globals))


def _is_asked_by_program() -> bool:
    """Whether it is code of the user's that asks, in a trace; libraries only hand texts on."""
    frame = sys._getframe(2)
    while frame.f_back is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    return ctx.builder is not None and not is_library_code(frame.f_code, frame.f_globals)


def _joined(one: Any, other: Any) -> Any:
    if not (isinstance(one, str) and isinstance(other, str)):
        return NotImplemented
    return StagedText(*[piece for each in (one, other) for piece in _pieces(each)])


def _pieces(text: Any) -> tuple[Any, ...]:
    if isinstance(text, Choice):
        return ((text.ag_index, tuple(text.ag_alternatives)),)
    return getattr(text, "pieces", (text,))


def _tensor_of(text: StagedText) -> Any:
    """The string tensor that holds a text when the program runs."""
    made: Any = None
    for piece in text.pieces:
        found = convert_to_tensor(piece, dtypes.string) if isinstance(piece, str) else _shown(*piece)
        made = found if made is None else made + found
    return convert_to_tensor("", dtypes.string) if made is None else made


def _shown(tensor: Any, spec: Any) -> Any:
    if spec is None:
        return tensor
    if not isinstance(spec, tuple):
        attrs = {
            "function": lambda value: shown_with(value[()], spec),
            "types": (TensorType(dtypes.string, ()),),
        }
        return apply(HOST_CALL, [convert_to_tensor(tensor)], attrs)[0]
    found = Alternatives.of(*spec)
    if len(found) == 1:
        return convert_to_tensor(found[0], dtypes.string)
    return convert_to_tensor(Choice(tensor, Alternatives(spec)))
