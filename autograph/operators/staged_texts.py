"""What a program asks of an f-string of symbolic tensors, which Python takes for the text that shows these.

`print`, errors and assertions put the values in when the program gets there. Comparisons with strings are staged, where
all that is in the text are strings of the program. Anything else is refused: the answer would be that of another text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from autograph.errors import StagingTypeError, is_own_file, user_location
from autograph.operators.calls import is_library_code
from runtime import dtypes
from runtime.context import ctx
from runtime.ops.arrays.gather import gather
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.compare import equal, logical_not
from runtime.ops.flags import flagged
from runtime.ops.strings.staged_string import StagedText
from runtime.tensor import SymbolicTensor, Tensor

_SPECIAL = ("__contains__", "__getitem__", "__hash__", "__iter__", "__len__", "__mul__", "__rmul__", "__mod__",
            "__lt__", "__le__", "__gt__", "__ge__")  # fmt: skip


def install() -> None:
    """Gives `StagedText` its comparisons, and refuses the rest of what strings can do."""
    methods: dict[str, Callable[..., Any]] = {
        name: _refused(name, getattr(str, name))
        for name in (*_SPECIAL, *[name for name in dir(str) if not name.startswith("_")])
        if name != "maketrans"
    }
    methods["__add__"] = lambda self, other: _joined(self, other)
    methods["__radd__"] = lambda self, other: _joined(other, self)
    methods["__eq__"] = lambda self, other: _equal(self, other)
    methods["__ne__"] = lambda self, other: _negated(_equal(self, other))
    for name, method in methods.items():
        setattr(StagedText, name, method)


def _refused(name: str, of_strings: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: StagedText, *arguments: Any, **options: Any) -> Any:
        if _is_asked_by_program():
            raise _unknown(self, name)
        return of_strings(self, *arguments, **options)

    method.__name__ = name
    return method


def _is_asked_by_program() -> bool:
    """Whether it is code of the user's that asks, in a trace; libraries only hand texts on."""
    frame = sys._getframe(2)
    while frame.f_back is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    return ctx.builder is not None and not is_library_code(frame.f_code, frame.f_globals)


def _unknown(text: StagedText, name: str) -> StagingTypeError:
    return StagingTypeError(
        f"`{name}` of a text with tensors or numbers in it that are known only when the program runs",
        location=user_location(),
        cause="while tracing, the text shows the symbolic tensors in place of their values",
        fix="compare what is put into the text instead, or make a string tensor with ag.strings.format or ag.as_string",
    )


def _joined(one: Any, other: Any) -> Any:
    if not (isinstance(one, str) and isinstance(other, str)):
        return NotImplemented
    return StagedText(*[piece for each in (one, other) for piece in getattr(each, "pieces", (each,))])


def _equal(text: StagedText, other: Any) -> Any:
    if not _is_asked_by_program():
        return str.__eq__(text, other)
    if not isinstance(other, (str, Tensor)):
        return False
    return flagged(equal(_as_tensor(text), _as_tensor(other)))


def _negated(equality: Any) -> Any:
    if equality is NotImplemented or isinstance(equality, bool):
        return equality if equality is NotImplemented else not equality
    return flagged(logical_not(equality))


def _as_tensor(text: Any) -> Any:
    """A string, or a text of the program's strings, as a string tensor."""
    if not isinstance(text, StagedText):
        return convert_to_tensor(text, dtypes.string)
    made: Any = None
    for piece in text.pieces:
        if not isinstance(piece, str):
            tensor, spec = piece
            if isinstance(spec, tuple):  # an index of texts
                piece = gather(convert_to_tensor(list(spec), dtypes.string), tensor)
            elif spec == "" and _is_string(tensor):
                piece = tensor
            else:
                raise _unknown(text, "==")
        made = convert_to_tensor(piece, dtypes.string) if made is None else made + piece
    return made


def _is_string(value: Any) -> bool:
    """Whether a value is a string of Python's, now or when the program runs: one that branches have chosen."""
    if isinstance(value, str):
        return True
    return type(value) is SymbolicTensor and value.chosen is not None and all(map(_is_string, value.chosen[1:]))
