"""Why Python code asks a symbolic tensor for its value: what an OperatorNotAllowedInGraphError says beside its message.

That is the user's line, the reason and the way out. Where the code that stands there isn't converted, these are its
own: of the getter of a property, a special method, a comprehension that stays Python's.
"""

from __future__ import annotations

import ast
import sys
from types import FrameType
from typing import Any

from autograph.errors import AutographError, Location, is_own_file, location_of, raised_at, user_location
from autograph.operators.live import TRACE
from autograph.operators.raising import AlwaysRaises, refused
from autograph.operators.swallowing import hides, tree_of
from runtime.context import ctx
from runtime.errors import NO_VALUE, OperatorNotAllowedInGraphError, explain_refusals, place
from runtime.graph.spans import at_span
from runtime.interpreter import is_raise
from runtime.staged_list import IN_PYTHON, IS_STAGED
from runtime.tensor import FORMAT_LATER
from runtime.tracebacks import is_ours, user_frame

_COMPREHENSIONS = {
    "<genexpr>": "a generator expression with `:=`, or one deep in others",
    "<listcomp>": "a list comprehension with `:=`, or one deep in others",
    "<setcomp>": "a set comprehension",
    "<dictcomp>": "a dictionary comprehension",
}


def explanation(cause: str, fix: str) -> str:
    """The lines that follow the message; with this cause and fix, unless the code has reasons of its own."""
    location = user_location()
    lines = [] if location is None else location.describe().splitlines()
    frame = user_frame(sys._getframe(1))
    own = _reason(frame) if frame is not None else []
    caller = user_frame(frame.f_back) if frame is not None and frame.f_code.co_filename == "<string>" else None
    if own and caller is not None:  # what `dataclass` has made is at no place
        location = location_of(caller.f_code, caller.f_lineno, caller.f_lasti)
        lines = location.describe().splitlines()
    if not own and location is not None:
        own = _of_display(location)
    return "".join(f"\n  {line}" for line in [*lines, *(own or _cause_and_fix(cause, fix))])


def _keep(error: Exception) -> None:
    """Makes a refusal last if a handler in converted code would hide it: the program would take a way that it doesn't
    take otherwise. What libraries, and this project, try out is their own affair."""
    frame: FrameType | None = sys._getframe(1)
    if ctx.builder is None or isinstance(error, AlwaysRaises):
        return
    while frame is not None and frame.f_globals.get("__name__") != TRACE:
        if hides(frame, error):
            if _is_converted(frame):
                refused(ctx.builder, error)
            return
        frame = frame.f_back


def _is_converted(frame: FrameType) -> bool:
    """Whether a frame is one of converted code; a block in it needs not call operators itself."""
    outer: FrameType | None = frame
    while outer is not None and "ag__" not in outer.f_code.co_freevars:
        outer = user_frame(outer.f_back)
        if outer is None or outer.f_code.co_name != frame.f_code.co_name:
            return False
    return outer is not None and outer.f_code.co_filename == frame.f_code.co_filename


def _variable_of(tensor: Any) -> str | None:
    frame = user_frame(sys._getframe(1))
    held = {} if frame is None else frame.f_locals
    return next((name for name, value in held.items() if value is tensor), None)


explain_refusals(explanation, _keep, _variable_of)


def _reason(frame: FrameType) -> list[str]:
    """Cause and fix for code that isn't converted although converted code led to it."""
    code = frame.f_code
    if "ag__" in code.co_freevars:
        return []
    kind = _COMPREHENSIONS.get(code.co_name)
    if kind is not None:
        return _cause_and_fix(f"{kind} isn't staged: Python runs it", "write a `for` statement that fills a list")
    caller = user_frame(frame.f_back)
    if caller is None or "ag__" not in caller.f_code.co_freevars:
        return []
    name = code.co_name
    member = _property_of(frame)
    if member is not None and getattr(member.fget, "__code__", None) is code:
        return _cause_and_fix(
            f"the getter of the property '{name}' isn't converted where it is read: no name of the function's module, "
            "or of a function around it, is its class or an instance of that",
            "make it a method, or define its class where the function can see it by name",
        )
    if member is not None:
        return _cause_and_fix(
            f"what assigning or deleting the property '{name}' does isn't converted here: only plain assignments are, "
            "where a name of the function's module, or of a function around it, is its class or an instance of that",
            "make it a method, or use ag.where or ag.cond in it",
        )
    if name.startswith("__") and name.endswith("__"):
        return _cause_and_fix(
            f"Python calls the special method '{name}' itself: converted are those of operators, items and `with`, "
            "where a name of the function's module, or of a function around it, is the class or an instance of that",
            "call a method with a name of its own, or use ag.where or ag.cond in it",
        )
    return []


def _of_display(location: Location) -> list[str]:
    """Cause and fix where the tensor at a place is what a set or dictionary comprehension goes through."""
    if location.column is None:  # Python 3.10
        return []
    for node in ast.walk(tree_of(location.filename)):
        if not isinstance(node, (ast.SetComp, ast.DictComp)):
            continue
        first = node.generators[0].iter
        start, end = (first.lineno, first.col_offset), (first.end_lineno or 0, first.end_col_offset or 0)
        here = location.line, location.column
        if start <= here < end or here == (node.lineno, node.col_offset):
            kind = "set" if isinstance(node, ast.SetComp) else "dictionary"
            return _cause_and_fix(
                f"a {kind} comprehension isn't staged: tensors can't be looked up by value while a function is traced",
                "make a list or tensor of it, and choose from that by an index; of a set, ag.unique",
            )
    return []


# What an error about a value of the program says, whoever raises it.
_STAND_INS = ("Tensor", "StagedNumber", "StagedString", "StagedList")
# What Python says when an operand has the wrong type, in traces as everywhere: not that a value is missing.
_HOLDS_EAGERLY = ("unsupported operand type", "not callable", "not subscriptable", "object does not support")


def explain_type_error(error: TypeError) -> None:
    """Raises the error for a symbolic tensor that C code asked for its value and said so in its own words.

    ``"%d" % t``: Python replaces what ``int(t)`` raises by "a real number is required, not SymbolicTensor". And for a
    staged list that is given to C code, which wants a list of Python's.
    """
    text = str(error)
    names_list = "StagedList" in text
    names_tensor = "SymbolicTensor" in text or "<tf.Tensor '" in text
    if type(error) is not TypeError or not (names_list or names_tensor) or any(each in text for each in _HOLDS_EAGERLY):
        return
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or is_own_file(last.tb_frame.f_code.co_filename):
        return
    location = location_of(last.tb_frame.f_code, last.tb_lineno, last.tb_lasti)
    formats = " format:" in text or text.startswith("format argument:")  # the latter since Python 3.15
    fix = FORMAT_LATER if formats else "use the function of `ag` that does this, or ag.py_function"
    reason = _cause_and_fix(IS_STAGED, IN_PYTHON) if names_list else _cause_and_fix(NO_VALUE, fix)
    lines = [*location.describe().splitlines(), *reason]
    explained = OperatorNotAllowedInGraphError("\n  ".join([text, *lines]))
    raise explained.with_traceback(error.__traceback__) from None


def say_place(error: Exception) -> None:
    """Adds to an error of a trace the user's line that it came from, if it doesn't name one.

    That is for what this project raises, and for what Python says about its tensors: other errors are the user's own.
    """
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or isinstance(error, (AutographError, OperatorNotAllowedInGraphError)):
        return
    is_raised = is_raise(last.tb_frame.f_code, last.tb_lasti)  # by the user, unless it is ours
    is_about_ours = not is_raised and any(name in str(error) for name in _STAND_INS)
    in_pythons_words = any(each in str(error) for each in _HOLDS_EAGERLY)
    location = raised_at(error) if is_about_ours or (is_ours(error) and not in_pythons_words) else None
    if location is not None and place(location.filename, location.line) not in str(error):
        at_span(error, (location.filename, location.line, location.function))


def _cause_and_fix(cause: str, fix: str) -> list[str]:
    return [f"cause: {cause}", f"fix: {fix}"]


def _property_of(frame: FrameType) -> Any:
    """The property whose getter or setter a frame runs, or None."""
    code = frame.f_code
    if code.co_argcount == 0:
        return None
    owner = frame.f_locals.get(code.co_varnames[0])
    for base in type(owner).__mro__:
        member = vars(base).get(code.co_name)
        if isinstance(member, property):
            functions = (member.fget, member.fset, member.fdel)
            if any(getattr(each, "__code__", None) is code for each in functions):
                return member
    return None
