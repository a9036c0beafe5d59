"""NumPy arrays whose elements converted code sets to tensors, at tensors, or in branches and loops on tensors.

    best = np.zeros(5)
    best[c] = 3.0               # `c` is a tensor

A function is traced with arrays of NumPy's, until it comes to such a write. Then it is traced once more, and what NumPy
makes in it are arrays of the program (`StagedArray`). So nothing changes for functions without such writes. An array
from outside of the function stays NumPy's, and can't be written to in this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from autograph.errors import StagingTypeError, StagingValueError, raised_at, user_location
from autograph.operators.symbolic import symbolic
from runtime.context import ctx
from runtime.errors import OperatorNotAllowedInGraphError
from runtime.ops.convert import convert_to_tensor
from runtime.ops.host_array import HostArray
from runtime.ops.numpy.protocol import install_in_place
from runtime.staged_array import ArrayView, as_array
from runtime.tensor import SymbolicTensor


class NeedsStagedArrays(BaseException):
    """The trace writes to an array of NumPy's what exists only in the program: it is void, and starts again with arrays
    of the program. No handler of the user's is to catch it."""


class _Trace:
    """What is known of arrays in a trace.

    is_staged   whether what NumPy makes are arrays of the program
    makes_arrays  whether NumPy makes any
    needs_them  whether it should have been, although a handler of the user's has hidden that
    chosen      by id the arrays of NumPy's that the program has chosen one of, and that may be another
    made        by id the tensors that functions of NumPy's have made in place of arrays
    """

    def __init__(self, is_staged: bool) -> None:
        self.is_staged = is_staged
        self.makes_arrays = self.needs_them = False
        self.chosen: dict[int, np.ndarray] = {}
        self.made: dict[int, SymbolicTensor] = {}


# By root builder; only of those that can start again.
_traces: WeakKeyDictionary[Any, _Trace] = WeakKeyDictionary()


def begin_arrays(builder: Any, is_staged: bool) -> None:
    """Tells, when a function is going to be traced, whether what NumPy makes in it are arrays of the program."""
    _traces[builder] = _Trace(is_staged)


def end_arrays(builder: Any) -> None:
    """Raises NeedsStagedArrays at the end of a trace if a handler of the user's has caught it."""
    if _traces[builder].needs_them:
        raise NeedsStagedArrays


def check_arrays(builder: Any, error: BaseException) -> None:
    """Raises NeedsStagedArrays for an error that a trace with such arrays may not raise.

    NumPy has asked a tensor for its value, perhaps as the index of an array.
    """
    trace = _traces[builder]
    asks = isinstance(error, (NotImplementedError, OperatorNotAllowedInGraphError))
    if asks and trace.makes_arrays and not trace.is_staged:
        raise NeedsStagedArrays from None


def _trace() -> _Trace | None:
    root = ctx.builder
    while root.parent is not None:
        root = root.parent
    return _traces.get(root)


def stages_arrays() -> bool:
    """Whether an array that NumPy is about to make in the current trace is one of the program."""
    trace = _trace()
    if trace is None:
        return False
    trace.makes_arrays = True
    return trace.is_staged


def needs_arrays() -> NeedsStagedArrays | None:
    """What is raised where only an array of the program will do.

    None where the trace has these, or can't start again.
    """
    trace = _trace()
    if trace is None or trace.is_staged:
        return None
    trace.needs_them = True
    return NeedsStagedArrays()


def written_in_block(error: ValueError) -> BaseException:
    """What is raised where a block that is being traced has written to an array of NumPy's."""
    return needs_arrays() or StagingValueError(
        "a NumPy array is written to in a branch or loop on tensors",
        location=raised_at(error) or user_location(),
        cause="whether and how often that happens is known only at run time, and an array isn't a tensor",
        fix="make it in the function, as np.zeros or np.array(a) does, or make it a tensor or a list",
    )


def make_writable(arrays: Sequence[np.ndarray]) -> None:
    """Makes arrays writable again: first those with memory of their own, then views of them."""
    for array in sorted(arrays, key=_depth):
        array.flags.writeable = True


def _depth(array: np.ndarray) -> int:
    return 0 if not isinstance(array.base, np.ndarray) else 1 + _depth(array.base)


def _memory(array: np.ndarray) -> np.ndarray:
    """The array that a view is one of."""
    return _memory(array.base) if isinstance(array.base, np.ndarray) else array


def _changes_in_place() -> None:
    """Starts again where ``array += tensor`` would write what has no value yet into an array of NumPy's."""
    restart = needs_arrays() if ctx.builder is not None else None
    if restart is not None:
        raise restart


def note_made(tensor: SymbolicTensor) -> None:
    """Notes that a function of NumPy's has made a tensor in place of an array."""
    trace = _trace()
    if trace is not None:
        trace.made[id(tensor)] = tensor


def note_chosen(*values: Any) -> None:
    """Notes values of which the program uses one, or its contents: a write to one isn't one to the other."""
    arrays = {id(_memory(each)): _memory(each) for each in values if type(each) is np.ndarray}
    trace = _trace() if arrays and any(each is not values[0] for each in values) else None
    if trace is not None:
        trace.chosen.update(arrays)


def made_by_numpy(value: Any) -> Any:
    """What NumPy gives in a trace, as an array of the program if the trace has such."""
    return as_array(value.tensor) if type(value) is HostArray and stages_arrays() else value


# --- writes ----------------------------------------------------------------------------------------------------------


def is_array(owner: Any) -> bool:
    """Whether an object is an array of NumPy's, or a tensor that stands for one, whose elements the program may set."""
    kind = type(owner)
    if kind is SymbolicTensor:
        trace = _trace()
        return trace is not None and id(owner) in trace.made
    return kind is np.ndarray or (kind is HostArray and owner.tensor._shape != ())


class ArrayItems:
    """The elements of an array of NumPy's in a trace."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __getitem__(self, key: Any) -> Any:
        return element(self.owner, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self._is_plain() or (self.owner.dtype.kind != "O" and (is_staged(key) or is_staged(value))):
            raise needs_arrays() or _refused()
        self.owner[key] = value

    def _is_plain(self) -> bool:
        """Whether Python may write to the array now, once."""
        owner = self.owner
        if type(owner) is not np.ndarray or not (owner.flags.writeable or ctx.builder.parent is None):
            return False
        trace = _trace()
        return trace is None or id(_memory(owner)) not in trace.chosen


def element(owner: Any, key: Any) -> Any:
    """``owner[key]`` of an array of NumPy's, at tensors of the program too."""
    if type(owner) is not np.ndarray or not is_staged(key):
        return owner[key]
    if not stages_arrays():
        raise needs_arrays() or _refused()  # what it selects may be written to
    return HostArray(convert_to_tensor(owner))[key]


def is_staged(value: Any) -> bool:
    """Whether a value, or a part of it, is known only when the program runs."""
    if isinstance(value, (tuple, list)):
        return any(map(is_staged, value))
    if isinstance(value, slice):
        return is_staged((value.start, value.stop, value.step))
    return symbolic(value) is not None


def _refused() -> StagingValueError:
    return StagingValueError(
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


install_in_place(_changes_in_place)
