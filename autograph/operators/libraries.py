"""Packages whose functions aren't converted, and what their classes keep of objects: `built` of a Keras layer."""

from __future__ import annotations

import sys
from types import FunctionType
from weakref import WeakKeyDictionary

from runtime.bytecode import attributes_set

# Packages whose functions run as they are: the second line is TensorFlow's list, and the third run users' tests.
LIBRARIES = frozenset({
    "autograph", "runtime", "numpy", "scipy", "numba", "llvmlite", "gast", "astunparse",
    "PIL", "keras", "matplotlib", "mock", "pandas", "tensorflow", "tensorflow_probability", "tf_keras",
    "_pytest", "coverage", "execnet", "hypothesis", "pluggy", "pytest", "xdist",
})  # fmt: skip
# Packages that check what functions get, or parse text. They are converted, since functions of the user's run inside
# their wrappers; but they decide no value, so traces aren't guarded against changes of what they keep.
CHECKERS = frozenset({"check_shapes", "dropstackframe", "lark"})
# Modules of ours that are written to be converted.
TEXTS = "autograph.standard_library"
_OURS = frozenset({"autograph", "runtime"})  # methods of our `Module`s are the user's


def package_of(module: str) -> str:
    """The top-level package of a module; what is written to be converted is a package of its own."""
    return TEXTS if module.startswith(TEXTS) else module.partition(".")[0]


def is_library_module(name: str) -> bool:
    """Whether a module belongs to the standard library, the numerical libraries or this project."""
    root = package_of(name)
    return root in LIBRARIES or root in sys.stdlib_module_names


def library_attributes(kind: type) -> frozenset[str]:
    """The attributes that the methods of libraries' classes set on objects of a class that is derived from these.

    The private ones, and flags such as `built`, say how far the library has come with the object, whatever the program
    does: a change of them is no state of the program.
    """
    found = _known.get(kind)
    if found is None:
        bases = [base for base in kind.__mro__ if base.__module__.partition(".")[0] in LIBRARIES - _OURS]
        methods = [_function(member) for base in bases for member in vars(base).values()]
        codes = [each.__code__ for each in methods if each is not None]
        found = _known[kind] = frozenset().union(*[attributes_set(each) for each in codes])
    return found


def _function(member: object) -> FunctionType | None:
    if isinstance(member, property):
        member = member.fset
    return member if isinstance(member, FunctionType) else None


_known: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()
