"""Numbers of layers that become state of a program, and are numbers again when its trace ends.

A number that staged code changes is a tensor of the trace. If an attribute of an object from outside of the function
holds it, TensorFlow leaves the tensor there, whose use is an error later, and so do we. But TensorFlow doesn't convert
the methods of Keras' layers, so that a count of calls stays a number there: such an attribute gets back what it was.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from autograph.operators.attributes import attributes_of
from autograph.operators.libraries import library_attributes
from runtime.context import ctx
from runtime.ops.staged_number import StagedNumber
from runtime.ops.strings.staged_string import StagedString
from runtime.tensor import SymbolicTensor

SYMBOLIC = frozenset({SymbolicTensor, StagedNumber, StagedString})

# By root builder, in the order of the first changes: attributes that have become state, and what they were.
_numbers: WeakKeyDictionary[Any, list[tuple[Any, str, Any]]] = WeakKeyDictionary()


def note_number(owner: Any, name: str, value: Any) -> None:
    """Remembers the number that an attribute holds, if a value of the trace is going to take its place and the object
    is of a library's class, or one derived from it."""
    attributes = attributes_of(owner) if ctx.builder is not None and type(value) in SYMBOLIC else None
    number = None if attributes is None else attributes.get(name)
    if type(number) in (int, float, str) and library_attributes(type(owner)):
        root = ctx.builder
        while root.parent is not None:
            root = root.parent
        _numbers.setdefault(root, []).append((owner, name, number))


def restore_numbers(builder: Any) -> None:
    """Ends a trace: attributes that still hold a value of it hold the numbers again that they held before."""
    for owner, name, number in _numbers.pop(builder, ()):
        attributes = attributes_of(owner)
        if attributes is not None and type(attributes.get(name)) in SYMBOLIC:
            attributes[name] = number
