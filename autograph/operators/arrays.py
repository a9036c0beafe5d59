"""NumPy arrays whose elements converted code sets to tensors, at tensors, or in branches and loops on tensors.

    best = np.zeros(5)
    best[c] = 3.0               # `c` is a tensor

A function is traced with arrays of NumPy's, until it comes to such a write. Then it is traced once more, and what NumPy
makes in it are arrays of the program (`StagedArray`). So nothing changes for functions without such writes. An array
from outside of the function stays NumPy's, and can't be written to in this way.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from autograph.errors import StagingError, StagingTypeError, user_location
from autograph.operators.symbolic import symbolic
from runtime.context import ctx
from runtime.ops.convert import convert_to_tensor
from runtime.ops.host_array import HostArray
from runtime.staged_array import ArrayView, as_array
from runtime.tensor import SymbolicTensor


class NeedsStagedArrays(BaseException):
    """The trace writes to an array of NumPy's what exists only in the program: it is void, and starts again with arrays
    of the program. No handler of the user's is to catch it."""


# The root builders of traces with arrays of the program.
_staging: WeakSet[Any] = WeakSet()
# By root builder and id the arrays of NumPy's of which the program has chosen one, and that may be another.
_chosen: WeakKeyDictionary[Any, dict[int, np.ndarray]] = WeakKeyDictionary()
# By root builder and id the tensors that functions of NumPy's have made in place of arrays.
_made: WeakKeyDictionary[Any, dict[int, SymbolicTensor]] = WeakKeyDictionary()


def stage_arrays(builder: Any) -> None:
    """Lets what NumPy makes in the trace of a builder be arrays of the program."""
    _staging.add(builder)


def stages_arrays() -> bool:
    """Whether what NumPy makes in the current trace are arrays of the program."""
    return _root() in _staging


def _root() -> Any:
    root = ctx.builder
    while root.parent is not None:
        root = root.parent
    return root


def note_made(tensor: SymbolicTensor) -> None:
    """Notes that a function of NumPy's has made a tensor in place of an array."""
    _made.setdefault(_root(), {})[id(tensor)] = tensor


def note_chosen(*values: Any) -> None:
    """Notes values with equal contents of which the program uses one: a write to one isn't one to the other."""
    arrays = {id(each): each for each in values if type(each) is np.ndarray}
    if len(arrays) > 1:
        _chosen.setdefault(_root(), {}).update(arrays)


def made_by_numpy(value: Any) -> Any:
    """What NumPy gives in a trace, as an array of the program if the trace has such."""
    return as_array(value.tensor) if type(value) is HostArray and stages_arrays() else value


# --- writes ----------------------------------------------------------------------------------------------------------


def is_array(owner: Any) -> bool:
    """Whether an object is an array of NumPy's, or a tensor that stands for one, whose elements the program may set."""
    kind = type(owner)
    if kind is SymbolicTensor:
        return id(owner) in _made.get(_root(), ())
    return kind is np.ndarray or (kind is HostArray and owner.tensor._shape != ())


class ArrayItems:
    """The elements of an array of NumPy's in a trace."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __getitem__(self, key: Any) -> Any:
        return element(self.owner, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        owner = self.owner
        is_plain = type(owner) is np.ndarray and (owner.flags.writeable or ctx.builder.parent is None)
        is_plain = is_plain and id(owner) not in _chosen.get(_root(), ())
        if is_plain and (owner.dtype.kind == "O" or not (is_staged(key) or is_staged(value))):
            owner[key] = value
        elif stages_arrays():
            raise _refused()
        else:
            raise NeedsStagedArrays


def element(owner: Any, key: Any) -> Any:
    """``owner[key]`` of an array of NumPy's, at tensors of the program too."""
    if type(owner) is not np.ndarray or not is_staged(key):
        return owner[key]
    if not stages_arrays():
        raise NeedsStagedArrays  # what it selects may be written to
    return HostArray(convert_to_tensor(owner))[key]


def is_staged(value: Any) -> bool:
    """Whether a value, or a part of it, is known only when the program runs."""
    if isinstance(value, (tuple, list)):
        return any(map(is_staged, value))
    if isinstance(value, slice):
        return is_staged((value.start, value.stop, value.step))
    return symbolic(value) is not None


def _refused() -> StagingError:
    return StagingError(
        "a NumPy array is written to at an index that is a tensor, or the value is a tensor, or a branch or loop on "
        "tensors does it",
        location=user_location(),
        cause="what it holds then is known only when the program runs, and the array was made outside of the function, "
        "or by code that isn't converted, and stays one of Python's",
        fix="make it in the function: `a = np.array(a)` copies it there, np.zeros and np.full make new ones; for state "
        "that remains after the call, use an ag.Variable: `v[i].assign(x)`",
    )


def view_error(label: str, *values: Any) -> StagingTypeError | None:
    """The error for a variable that may be a view of an array or something else; None if neither is a view."""
    if not any(type(each) is ArrayView for each in values):
        return None
    return StagingTypeError(
        f"{label} is a view of an array, or something else, depending on a tensor",
        location=user_location(),
        cause="a view (what an index, a slice or reshape gives) reads and sets the elements of its array; which array, "
        "and how, must be known while the function is traced: only the numbers in its index may depend on tensors",
        fix="take a copy: `row = a[i].copy()`",
    )
