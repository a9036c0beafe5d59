"""Calls in converted code: which callee is converted, replaced or left as it is.

    converted_call(f)(x)

Left as they are: built-in functions and C code, classes and functions of the standard library, of the numerical
libraries and of this project, functions without source. Converted: the user's functions, lambdas and methods, the
functions behind ``functools.partial``, ``custom_gradient`` and callable objects, and the constructors of the user's
classes.

How a function is converted is told by `install_converter`, so that this package needs no compiler to be imported.
"""

from __future__ import annotations

import functools
import sysconfig
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import is_dataclass
from enum import EnumMeta
from types import BuiltinMethodType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from autograph.operators.builtins import OVERLOADS
from autograph.operators.frames import warn
from autograph.operators.libraries import CHECKERS, LIBRARIES, package_of
from runtime.autodiff.custom import DECORATED
from runtime.context import ctx
from runtime.staged_list import moved

# Makes from a function the maker of its converted form, or None if it must be called as it is.
Maker = Callable[[FunctionType], Callable[..., Any]]
Converter = Callable[[FunctionType], "Maker | None"]

_STANDARD = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_THIRD_PARTY = ("site-packages", "dist-packages")
# Methods of Python's lists that have a staged form.
_STAGED_METHODS = frozenset({"count", "extend", "index", "insert", "pop", "remove", "sort"})

_WARN = warnings.warn
OVERLOADS[_WARN] = warn

_converter: Converter | None = None
# By id of the code object; the weak reference clears its entry when the code object goes, so that no id is taken twice.
_makers: dict[int, tuple[Any, Maker | None]] = {}
_forced: dict[int, tuple[Any, Maker | None]] = {}  # the same for functions whose conversion was asked for by name


# Gives what to call in place of a function's converted form in a trace.
Watcher = Callable[[FunctionType, Callable[..., Any]], Callable[..., Any]]
_recursion: Watcher | None = None


def install_watcher(watcher: Watcher) -> None:
    """Sets what notices that functions call themselves; `recursion.py`, which uses this module, does so."""
    global _recursion
    _recursion = watcher


# Gives what to call in place of a function that gives something else at each call, or None.
_impure: Callable[[Any], Callable[..., Any] | None] = lambda callee: None  # noqa: E731
_IMPURE_MODULES = frozenset({"secrets", "uuid", "time", "random"})


def install_impure(find: Callable[[Any], Callable[..., Any] | None]) -> None:
    """Sets the function that finds impure functions: it returns a replacement for a callee that gives another result at
    each call, or None."""
    global _impure
    _impure = find


# Refuses what methods of containers that search or hash would compare wrongly.
_refuse_search: Callable[[str, Any], None] = lambda name, value: None  # noqa: E731
_SEARCHING = frozenset({"add", "count", "discard", "index", "pop", "remove", "setdefault"})


def install_search(refuse: Callable[[str, Any], None]) -> None:
    """Sets what knows the objects that methods of containers can't search for."""
    global _refuse_search
    _refuse_search = refuse


# Gives the form in a trace of a method of strings, or None.
_method_of_strings: Callable[[str], Callable[..., Any] | None] = lambda name: None  # noqa: E731


def install_methods(find: Callable[[str], Callable[..., Any] | None]) -> None:
    """Sets what knows the methods of strings whose arguments may be known only when the program runs."""
    global _method_of_strings
    _method_of_strings = find


def install_converter(converter: Converter) -> None:
    """Sets what converts functions. The conversion's API does this when it is imported."""
    global _converter
    _converter = converter


# Whether the running code is converted: True in a function that is traced, False in one that `do_not_convert` made,
# None where nobody has said.
CONVERTING: ContextVar[bool | None] = ContextVar("CONVERTING", default=None)


def converted_argument(function: Any, by_default: bool = True) -> Any:
    """What a function of this project calls in place of a function that it was given.

    It is converted where the caller is, isn't where `do_not_convert` keeps the caller from it, and else ``by_default``.
    """
    converting = CONVERTING.get()
    return converted_call(function) if (by_default if converting is None else converting) else function


def converted_call(callee: Any) -> Any:
    """What to call in place of ``callee``.

    While nothing is being traced that is the callee itself: nothing it does could need staging, and Python is faster.
    """
    if ctx.builder is None:
        return warn if callee is _WARN else callee
    return converted_form(callee)


def converted_form(callee: Any) -> Any:
    """What stands for ``callee`` in a trace: its converted form, an overload, or itself."""
    kind = type(callee)
    if kind is not FunctionType or callee.__module__ in _IMPURE_MODULES:
        anew = _impure(callee)
        if anew is not None:
            return anew
    if kind is FunctionType:
        entry = _makers.get(id(callee.__code__))
        maker = maker_of(callee) if entry is None else entry[1]
        if maker is None:
            decorator = DECORATED.get(callee)
            if decorator is not None:
                return decorator(converted_form(callee.__wrapped__))
            # A function that a converted one has made is converted already.
            return OVERLOADS.get(callee, callee) if is_library(callee) else _watched(callee, callee)
        return _watched(callee, maker(callee))
    if kind is MethodType:
        function = callee.__func__
        if type(function) is FunctionType:
            if function in OVERLOADS:
                return MethodType(OVERLOADS[function], callee.__self__)
            maker = maker_of(function)
            return callee if maker is None else MethodType(_watched(function, maker(function)), callee.__self__)
        return callee
    try:
        overload = OVERLOADS.get(callee)
    except TypeError:  # an unhashable callable object
        overload = None
    if overload is not None:
        return overload
    if kind is BuiltinMethodType:
        owner = callee.__self__
        if type(owner) is str:
            method = _method_of_strings(callee.__name__)
            return callee if method is None else functools.partial(method, owner)
        if callee.__name__ in _SEARCHING and isinstance(owner, (list, tuple, set, dict, deque)):
            return functools.partial(_search, callee)
        if isinstance(owner, dict) and callee.__name__ == "get":
            return functools.partial(OVERLOADS[dict.get], owner)
        if type(owner) is np.ndarray and callee.__name__ == "copy":
            return functools.partial(OVERLOADS[np.ndarray.copy], owner)
        return functools.partial(_of_list, owner, callee.__name__) if type(owner) is list else callee
    if isinstance(callee, functools.partial):
        return _partial(callee)
    if isinstance(callee, EnumMeta) and kind.__call__ is EnumMeta.__call__:
        return functools.partial(OVERLOADS[EnumMeta.__call__], callee)
    if isinstance(callee, type):
        return _constructor(callee)
    if callable(callee):
        return _callable_object(callee)
    return callee


def _search(callee: Any, *arguments: Any, **options: Any) -> Any:
    """A method of a container that compares an argument with its items, or hashes it."""
    owner, name = callee.__self__, callee.__name__
    for each in arguments:
        _refuse_search(name, each)
    if name in ("count", "index", "remove") and isinstance(owner, (list, tuple)):
        _refuse_search(name, owner)
    return _of_list(owner, name, *arguments, **options) if type(owner) is list else callee(*arguments, **options)


def _of_list(items: list[Any], name: str, *arguments: Any, **options: Any) -> Any:
    """A method of a list, which may have become a staged one while the arguments were computed."""
    owner = moved(items)
    if owner is not None:
        return converted_form(getattr(owner, name))(*arguments, **options)
    if name in _STAGED_METHODS:
        return OVERLOADS[getattr(list, name)](items, *arguments, **options)
    return getattr(items, name)(*arguments, **options)


def attribute(owner: Any, name: str) -> Any:
    """``owner.name``: in a trace the getter of a property of the user's class is converted."""
    if ctx.builder is not None and not hasattr(type(owner), "__getattr__"):
        instance: Any = owner
        classes = type(owner).__mro__
        if type(owner) is super:
            instance, here = instance.__self__, instance.__thisclass__
            classes = type(instance).__mro__
            classes = classes[classes.index(here) + 1 :] if here in classes else ()
        member = next((vars(each)[name] for each in classes if name in vars(each)), None)
        if type(member) is property and type(member.fget) is FunctionType:
            return converted_form(member.fget)(instance)
    return getattr(owner, name)


def maker_of(function: FunctionType, even_library: bool = False) -> Maker | None:
    """The maker of a function's converted form, or None if it is called as it is; found once for every code object.

    even_library: convert library code too.
    """
    code = function.__code__
    known = _forced if even_library else _makers
    entry = known.get(id(code))
    if entry is not None:
        return entry[1]
    left_alone = _converter is None or (not even_library and is_library(function))
    maker = None if left_alone else _converter(function)  # type: ignore[misc]
    key = id(code)
    known[key] = (weakref.ref(code, lambda _: known.pop(key, None)), maker)
    return maker


def is_library(function: FunctionType) -> bool:
    """Whether a function belongs to the standard library, the numerical libraries or this project."""
    return is_library_code(function.__code__, function.__globals__)


def is_checker(function: FunctionType) -> bool:
    """Whether a function belongs to a package that checks what others get, and decides no value."""
    return package_of(function.__globals__.get("__name__") or "") in CHECKERS


def is_library_code(code: CodeType, namespace: dict[str, Any]) -> bool:
    """Whether code that runs with these globals belongs to the standard library, the numerical libraries or this
    project."""
    module = namespace.get("__name__") or ""
    if package_of(module) in LIBRARIES:
        return True
    filename = code.co_filename
    if filename.startswith("<frozen "):
        return True
    return filename.startswith(_STANDARD) and not any(part in filename for part in _THIRD_PARTY)


def _partial(callee: functools.partial[Any]) -> Any:
    if type(callee) is not functools.partial:
        return callee
    function = converted_form(callee.func)
    return callee if function is callee.func else functools.partial(function, *callee.args, **callee.keywords)


def _callable_object(callee: Any) -> Any:
    """An object with a ``__call__`` of the user's."""
    function = type(callee).__call__
    if type(function) is not FunctionType:
        return callee
    maker = maker_of(function)
    return callee if maker is None else MethodType(_watched(function, maker(function)), callee)


def _watched(function: FunctionType, made: Callable[..., Any]) -> Callable[..., Any]:
    """The converted form of a function, which is watched in a trace if it may call itself."""
    return _recursion(function, made) if ctx.builder is not None and _recursion is not None else made


def _constructor(cls: type) -> Any:
    """The construction of an instance with the ``__init__`` of the user's class converted.

    Of a dataclass, whose ``__init__`` is generated, with its ``__post_init__`` converted.
    """
    if type(cls).__call__ is not type.__call__:
        return cls
    init: Any = cls.__init__  # type: ignore[misc]
    if type(init) is not FunctionType:
        return cls
    post: Any = getattr(cls, "__post_init__", None) if is_dataclass(cls) else None
    if type(post) is FunctionType and "__init__" in vars(cls):
        return _dataclass_constructor(cls, init, maker_of(post))
    maker = maker_of(init)
    if maker is None:
        return cls

    def construct(*args: Any, **kwargs: Any) -> Any:
        made = cls.__new__(cls, *args, **kwargs)
        if isinstance(made, cls):
            function = type(made).__init__
            if type(function) is FunctionType:
                its_maker = maker_of(function)
                function = function if its_maker is None else its_maker(function)
            result = function(made, *args, **kwargs)
            if result is not None:
                raise TypeError(f"__init__() should return None, not '{type(result).__name__}'")
        return made

    return construct


def _dataclass_constructor(cls: Any, init: Callable[..., None], post: Maker | None) -> Any:
    if post is None or cls.__new__ is not object.__new__ or not cls.__dictoffset__:
        return cls

    def construct(*args: Any, **kwargs: Any) -> Any:
        made = object.__new__(cls)
        # The generated `__init__` finds it here, before the class's own.
        made.__dict__["__post_init__"] = MethodType(post(cls.__post_init__), made)
        try:
            init(made, *args, **kwargs)
        finally:
            made.__dict__.pop("__post_init__", None)
        return made

    return construct
