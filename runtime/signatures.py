"""Parameters and annotations of functions and classes; annotations aren't evaluated until somebody asks for them.

From Python 3.14 on, to evaluate them may fail: they may name what is defined later, or only for type checkers.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any


def signature_of(function: Callable[..., Any], *, follow_wrapped: bool = True) -> inspect.Signature:
    """`inspect.signature` without annotations where the callable is a function or method, or wraps one.

    Raises TypeError or ValueError, as it does, where there is no signature.
    """
    bound_to = function.__self__ if isinstance(function, MethodType) else None
    inner: Any = function.__func__ if isinstance(function, MethodType) else function
    if follow_wrapped:
        inner = inspect.unwrap(inner, stop=lambda each: hasattr(each, "__signature__"))
    if type(inner) is not FunctionType or hasattr(inner, "__signature__"):
        return signature_as_written(function, follow_wrapped=follow_wrapped)
    bare = FunctionType(inner.__code__, inner.__globals__, argdefs=inner.__defaults__, closure=inner.__closure__)
    bare.__kwdefaults__ = inner.__kwdefaults__
    return inspect.signature(MethodType(bare, bound_to) if bound_to is not None else bare)


def signature_as_written(function: Callable[..., Any], *, follow_wrapped: bool = True) -> inspect.Signature:
    """`inspect.signature`, in which an annotation that can't be evaluated is a forward reference."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, follow_wrapped=follow_wrapped, annotation_format=Format.FORWARDREF)
    return inspect.signature(function, follow_wrapped=follow_wrapped)


def annotations_of(thing: Any) -> dict[str, Any]:
    """`inspect.get_annotations`, in which one that can't be evaluated is a forward reference."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        return get_annotations(thing, format=Format.FORWARDREF)
    return inspect.get_annotations(thing)


def share_annotations(made: FunctionType, original: FunctionType) -> None:
    """Gives a function the annotations of another one."""
    annotate: Any = getattr(original, "__annotate__", None)  # Python 3.14 on; None where they have been assigned
    if annotate is None:
        made.__annotations__ = original.__annotations__
    else:
        made.__annotate__ = annotate  # type: ignore[attr-defined]


class WrappedAnnotations:
    """The attribute `__annotations__` of objects that `functools.update_wrapper` has made like a function.

    Up to Python 3.13 that copies the annotations. Later it copies what evaluates them, and this evaluates the wrapped
    function's own. It stands below the annotations of the class, in whose place it comes.
    """

    def __get__(self, instance: Any, owner: type) -> dict[str, Any]:
        found: dict[str, Any] = {} if instance is None else instance.__wrapped__.__annotations__
        return found


def full_arg_spec(function: Callable[..., Any]) -> inspect.FullArgSpec:
    """`inspect.getfullargspec`; of a function of this project without annotations, and without what is around it.

    TensorFlow's functions have no annotations, and libraries compare.
    """
    modules = getattr(function, "__module__", None) or "", type(function).__module__
    if not any(module.partition(".")[0] in ("autograph", "runtime") for module in modules):
        return inspect.getfullargspec(function)
    inner = inspect.unwrap(function, stop=lambda each: hasattr(each, "__signature__"))
    return inspect.getfullargspec(inner)._replace(annotations={})
