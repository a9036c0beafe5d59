"""`Variable`: a value that can be assigned, kept between calls of functions.

Eager, it holds a NumPy array; assigning replaces the array, so a tensor that was read before keeps its value. Adding
and subtracting write into the array where nothing else holds it. While a function is traced, reads and assignments go
to the builder (`ctx.builder`), for which a variable is state: an input and, when assigned, an output of the graph.
A compiled step writes beside the old value, which is what stays if the step fails: two buffers take turns.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from runtime import dtypes
from runtime.context import ctx, init_scope, placing
from runtime.device import CPU, VariableAggregation, VariableSynchronization
from runtime.dtypes import DType, DTypeLike
from runtime.gpu.memory import DeviceArray, on_gpu
from runtime.interpreter import ALONE
from runtime.locks import one_at_a_time
from runtime.ops.api import add, subtract
from runtime.ops.arrays import scatter
from runtime.ops.arrays.assignment import change_in_place, sliced_update
from runtime.ops.arrays.gather import gather_slices
from runtime.ops.arrays.joining import stack
from runtime.ops.arrays.scatter import IndexedSlices
from runtime.ops.arrays.segments import unsorted_segment_prod
from runtime.ops.arrays.slicing import getitem
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import call
from runtime.ops.operators import install
from runtime.ops.rules import dims, shape_attr
from runtime.shapes import Shape, TensorShape, as_shape, format_shape, merge, public_shape
from runtime.tensor import (
    EagerTensor,
    Operators,
    SymbolicTensor,
    Tensor,
    TensorLike,
    TensorReference,
    eager,
    held_by,
)
from runtime.tracebacks import shows_no_frames
from runtime.types import TensorType

_ids = itertools.count()
# What a function is told that makes variables more than once.
CREATED_ONCE = (
    "A variable is created once: make it outside of the function, or keep it in an attribute that is None on the first "
    "call: `if self.v is None: self.v = ag.Variable(...)`."
)
# Of `Variable`, with their defaults.
_PARAMETERS: dict[str, Any] = {
    "initial_value": None, "trainable": None, "validate_shape": True, "caching_device": None, "name": None,
    "variable_def": None, "dtype": None, "import_scope": None, "constraint": None, "synchronization": None,
    "aggregation": None, "shape": None,
}  # fmt: skip
_ATTRIBUTES = {*"_array _place _id _name _shape _trainable aggregation constraint dtype synchronization".split()}  # noqa: SIM905


class Handle:
    """Stands for a variable."""

    __slots__ = ("variable",)

    def __init__(self, variable: Variable) -> None:
        self.variable = variable


def variable_of(value: Any) -> Any:
    """The variable that an object acts as, by TensorFlow's protocol `_should_act_as_resource_variable`; else itself."""
    if isinstance(value, Variable):
        return value.component()
    if not getattr(type(value), "_should_act_as_resource_variable", False):
        return value
    handle = value.handle
    return handle.variable if isinstance(handle, Handle) else value


class _MadeByCreators(type):
    """Asks the functions of open `variable_creator_scope`s, the innermost first, to make a variable."""

    if not TYPE_CHECKING:  # where `Variable(...)` is a variable

        @shows_no_frames
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if not ctx.creators or cls is not Variable:
                return super().__call__(*args, **kwargs)
            given = dict(zip(_PARAMETERS, args), **kwargs)

            def make(**options: Any) -> Any:
                return type.__call__(cls, **{name: each for name, each in options.items() if name in _PARAMETERS})

            for creator in ctx.creators:
                make = functools.partial(creator, make)
            return make(**{name: given.get(name, default) for name, default in _PARAMETERS.items()})


@contextlib.contextmanager
def variable_creator_scope(variable_creator: Callable[..., Any]) -> Iterator[None]:
    """A block in which `variable_creator(next_creator, **options)` makes variables.

    options: the arguments of `Variable`, by name. The function returns the variable, usually `next_creator(**options)`
    with other options. Scopes nest; the innermost is called first.
    """
    before = ctx.creators
    ctx.creators = (*before, variable_creator)
    try:
        yield
    finally:
        ctx.creators = before


class Variable(Operators, metaclass=_MadeByCreators):
    """A tensor-like object whose value can change.

    initial_value   anything that `convert_to_tensor` accepts, or a function without arguments that returns it
    trainable       whether gradient tapes watch it automatically (default: True for floats)
    dtype           of the value; default: the initial value's
    shape           the shape of assigned values (None: any size); default: the initial value's shape

    Raises ValueError for a missing or symbolic initial value.
    """

    __array_priority__ = 100
    __ag_tensor__ = True  # for `is_tensor`

    def __init__(
        self,
        initial_value: TensorLike | Callable[[], TensorLike] | None = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: DTypeLike = None,
        import_scope: str | None = None,
        constraint: Callable | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        if initial_value is None:
            raise ValueError("The `initial_value` arg to `tf.Variable` must be specified: it can't be None.")
        self._id = next(_ids)
        ctx.created += 1
        self._name = ctx.scope + (name or "Variable")
        self.constraint = constraint
        self.synchronization = _choice(VariableSynchronization, synchronization, "synchronization")
        self.aggregation = _choice(VariableAggregation, aggregation, "aggregation")
        self._array: Any = None
        self._place: Any = None
        if ctx.builder is not None:
            if ctx.lifting is None:
                raise ValueError(
                    "tf.function-decorated function tried to create variables on a call that is not its first. "
                    f"{CREATED_ONCE}"
                )
            # The function that is tracing says when and how its variables come to be.
            self._declare(ctx.lifting.create_variable(self, initial_value, dtype), shape, trainable)
            if placing:
                self._settle(placing[0].home(EagerTensor(self._array, self.dtype)))
            return
        with init_scope():
            if callable(initial_value):
                initial_value = initial_value()
            value = convert_to_tensor(initial_value, dtype)
        if isinstance(value, SymbolicTensor):
            raise ValueError(f"The initial value of a variable must not be a symbolic tensor: {value}")
        place = placing[0].home(value) if placing else None
        if place is None:
            self._array = np.array(value._array) if value._shape else value._array  # type: ignore[attr-defined]
        else:  # nobody writes into a GPU's arrays
            self._array = held_by(value)
        self._declare(value.type, shape, trainable)  # type: ignore[attr-defined]
        if place is not None:
            self._settle(place)

    def _settle(self, place: Any) -> None:
        """Makes the variable one of a GPU (None: of the CPU)."""
        self._place = place
        if place is not None:
            self._array = self._at_home(self._array)

    def _at_home(self, array: Any) -> Any:
        """An array where the variable is."""
        if self._place is None:
            return array.on_host() if array.__class__ is DeviceArray else array
        if array.__class__ is not DeviceArray or array.place is not self._place:
            array = on_gpu(array, self._place)
        array.describe(f"the variable '{self._name}'")
        return array

    def _declare(self, type_: TensorType, shape: Any, trainable: bool | None) -> None:
        self.dtype: DType = type_.dtype
        self._shape: Shape = type_.shape if shape is None else as_shape(shape)
        if shape is not None:
            try:
                merge(self._shape, type_.shape)
            except ValueError:
                raise ValueError(
                    f"Initial value's shape ({format_shape(type_.shape)}) is not compatible with the explicitly "
                    f"supplied `shape` argument ({format_shape(self._shape)})."
                ) from None
        self._trainable = True if trainable is None else bool(trainable)

    # --- facts ---------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        if ctx.builder is not None:
            ctx.builder.note_name(self)
        return f"{self._name}:0"

    @property
    def shape(self) -> TensorShape:
        """The static shape that values must fit."""
        return public_shape(self._shape)

    @property
    def trainable(self) -> bool:
        return self._trainable

    @property
    def handle(self) -> Handle:
        """The attribute by which `variable_of` finds the variable in objects that wrap one, such as Keras'
        variables."""
        return Handle(self.component())

    def component(self) -> Variable:
        """The variable that holds the value here: this one, unless each replica has its own."""
        return self

    @property
    def _shared_name(self) -> str:
        return self._name

    @property
    def _unique_id(self) -> str:
        """Libraries keep state for each variable under this."""
        return f"{self._name}_{self._id}"

    @property
    def ndim(self) -> int | None:
        return None if self._shape is None else len(self._shape)

    @property
    def device(self) -> str:
        """The variable's device, in TensorFlow's long form: that of the `device` block or of the initial value it was
        made with."""
        return CPU if self._place is None else self._place.name

    def get_shape(self) -> TensorShape:
        return self.shape

    def _state_type(self) -> TensorType:
        """The type of the value as state of a graph."""
        return TensorType(self.dtype, self._shape)

    def facts(self) -> tuple:
        """All by which a function may tell this variable from another, but its name, its value and which one it is."""
        extra = tuple(sorted((k, id(v)) for k, v in self.__dict__.items() if k not in _ATTRIBUTES))
        options = (self._trainable, id(self.constraint), self.synchronization, self.aggregation)
        return type(self), self.dtype, self._shape, options, extra

    def ref(self) -> TensorReference:
        """A hashable reference that compares by identity."""
        return TensorReference(self)

    def __hash__(self) -> int:
        raise TypeError(f"Variable is unhashable. Instead, use variable.ref() as the key. (Variable: {self!r})")

    # --- reading -------------------------------------------------------------------------------------------------

    def read_value(self) -> Tensor:
        """The current value as a tensor, which later assignments don't change."""
        builder = ctx.builder
        if builder is not None:
            return builder.read_variable(self)
        if self._array is None:
            raise self._no_value()
        tensor = eager(self._array, self.dtype)
        if ctx.recorders:
            for recorder in ctx.recorders:
                if recorder.builder is None:
                    recorder.record_read(self, tensor)
        return tensor

    # What a call of a traced function hands to its graph, also where a subclass reads and assigns otherwise.
    own_value = read_value
    is_plain = True  # whether that is the array that it has

    @property
    def place(self) -> Any:
        """The GPU that it is on; None: the CPU."""
        return self._place

    def array_in_place(self) -> Any:
        """The value's array, on its device. Raises RuntimeError if there is no value yet."""
        if self._array is None:
            raise self._no_value()
        return self._array

    def value(self) -> Tensor:
        return self.read_value()

    def array_to_save(self) -> Any:
        """The array that a checkpoint holds."""
        return self.current_array()

    def current_array(self) -> Any:
        """The array of the value; it must not be written to. Raises RuntimeError if there is no value yet."""
        array = self.array_in_place()
        return array if self._place is None else array.on_host()

    def _no_value(self) -> RuntimeError:
        return RuntimeError(f"The variable {self.name} has no value yet: the function that creates it hasn't run.")

    def numpy(self) -> Any:
        """The current value: a NumPy scalar for rank 0, else a copy as an array."""
        if ctx.builder is not None:
            raise NotImplementedError("numpy() is only available when eager execution is enabled.")
        return EagerTensor(self.current_array(), self.dtype).numpy()

    def __tf_tensor__(self, dtype: DTypeLike = None, name: str | None = None) -> Tensor:
        if dtype is not None and self.dtype is not dtypes.as_dtype(dtype):
            raise ValueError(
                f"Incompatible type conversion requested to type {dtypes.as_dtype(dtype).name} for `tf.Variable` of "
                f"type {self.dtype.name}; ag.cast converts its value. (Variable: {self!r})"
            )
        return self.read_value()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.read_value().__array__(dtype)

    # --- assigning -----------------------------------------------------------------------------------------------

    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Sets the value, which must have the variable's dtype and a compatible shape; returns the variable.

        Raises ValueError for a tensor of another dtype or shape, TypeError for a Python value that doesn't fit.
        """
        tensor = convert_to_tensor(value, self.dtype)
        if ctx.builder is not None:
            self._check_shape(tensor._shape)
            ctx.builder.assign_variable(self, tensor)
        else:
            self.set_array(held_by(tensor))
            if ctx.recorders:
                ctx.assigned(self, tensor)
        return self if read_value else None

    assign_own = assign

    def set_array(self, array: Any) -> None:
        """Sets the value, unseen by tapes, to an array of its dtype that nobody writes to. Raises as `assign`."""
        if array.shape != self._shape:
            self._check_shape(array.shape)
        if self._place is not None or array.__class__ is DeviceArray:
            array = self._at_home(array)
        base = getattr(array, "base", None)  # which a view of it would keep alive
        self._array = array.copy() if type(base) is np.ndarray and base.nbytes > array.nbytes else array

    def assign_add(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to the value; returns the variable. Raises the errors of `assign`."""
        return self._update(add, delta, "assign_add", read_value)

    def assign_sub(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the value; returns the variable. Raises the errors of `assign`."""
        return self._update(subtract, delta, "assign_sub", read_value)

    @one_at_a_time
    def _update(self, function: Callable[..., Tensor], delta: Any, what: str, read_value: bool) -> Any:
        change = convert_to_tensor(delta, self.dtype)
        self._check_shape(change._shape)
        if ctx.builder is None and not ctx.recorders and self._update_in_place(function, change):
            return self if read_value else None
        updated = self._computed(lambda value: function(value, change))
        if ctx.recorders and ctx.builder is None:
            ctx.assigned(self, change)
        return self.assign(updated, read_value=read_value)

    def _update_in_place(self, function: Callable[..., Tensor], change: Any) -> bool:
        """Computes the new value where the old one lies, if nothing but this variable holds that memory."""
        # Tensors that were read, and views, hold it too.
        if type(self._array) is not np.ndarray or sys.getrefcount(self._array) > ALONE:
            return False
        return change_in_place(np.add if function is add else np.subtract, self._array, change._array)

    # --- assigning parts -----------------------------------------------------------------------------------------

    def _assign_slice(self, key: Any, value: Any) -> Any:
        """`v[key].assign(value)`. The value broadcasts to the slice."""
        return self._replace(lambda current: sliced_update(current, key, convert_to_tensor(value, self.dtype)))

    @one_at_a_time
    def _replace(self, function: Callable[[Tensor], Tensor]) -> Any:
        """Assigns a function of the current value."""
        return self.assign(self._computed(function))

    def _computed(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """A function of the current value, unseen by tapes: gradients don't flow through a variable's state."""
        recorders, ctx.recorders = ctx.recorders, ()
        try:
            return function(self.read_value())
        finally:
            ctx.recorders = recorders

    def _scatter(self, function: Callable[..., Tensor], indices: Any, updates: Any) -> Any:
        values = convert_to_tensor(updates, self.dtype)
        return self._replace(lambda current: function(current, convert_to_tensor(indices), values))

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replaces the slices at the index vectors in the last dimension of `indices`; returns the variable."""
        return self._scatter(scatter.tensor_scatter_nd_update, indices, updates)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Adds to the slices at index vectors."""
        return self._scatter(scatter.tensor_scatter_nd_add, indices, updates)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtracts from the slices at index vectors."""
        return self._scatter(scatter.tensor_scatter_nd_sub, indices, updates)

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Takes the larger of the slices at index vectors and the updates."""
        return self._scatter(scatter.tensor_scatter_nd_max, indices, updates)

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Takes the smaller of the slices at index vectors and the updates."""
        return self._scatter(scatter.tensor_scatter_nd_min, indices, updates)

    def _scatter_rows(self, function: Callable[..., Any], sparse_delta: Any) -> Any:
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(f"sparse_delta is not IndexedSlices: {sparse_delta}")
        rows = convert_to_tensor(sparse_delta.indices)
        return function(call("expand_dims", rows, axis=(len(rows._shape or ()),)), self._row_updates(sparse_delta))

    def _row_updates(self, sparse_delta: IndexedSlices) -> Tensor:
        """The updates of rows: one number stands for all of their elements."""
        values = convert_to_tensor(sparse_delta.values, self.dtype)
        if values._shape != ():
            return values
        shape, extra = shape_attr([*dims(convert_to_tensor(sparse_delta.indices)), *dims(self.read_value())[1:]])
        return call("broadcast_to", values, *extra, shape=shape)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replaces the rows given by `sparse_delta` (IndexedSlices); returns the variable."""
        return self._scatter_rows(self.scatter_nd_update, sparse_delta)

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Adds to rows."""
        return self._scatter_rows(self.scatter_nd_add, sparse_delta)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtracts from rows."""
        return self._scatter_rows(self.scatter_nd_sub, sparse_delta)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Takes the larger of rows and updates."""
        return self._scatter_rows(self.scatter_nd_max, sparse_delta)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Takes the smaller of rows and updates."""
        return self._scatter_rows(self.scatter_nd_min, sparse_delta)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Multiplies rows."""
        return self._replace(lambda current: current * self._factors(sparse_delta))

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Divides rows."""
        return self._replace(lambda current: current / self._factors(sparse_delta))

    def _factors(self, sparse_delta: Any) -> Tensor:
        """For each row the product of its updates, 1 where there is none."""
        values = self._row_updates(sparse_delta)
        size = call("dim", self.read_value(), axis=0)
        return unsorted_segment_prod(values, sparse_delta.indices, size)

    def batch_scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replaces rows batch by batch: `v[b..., indices[b..., j]] = values[b..., j]` for each b and j."""
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(f"sparse_delta is not IndexedSlices: {sparse_delta}")
        rows = convert_to_tensor(sparse_delta.indices)
        lead = rows._shape
        if lead is None or None in lead:
            raise ValueError(f"batch_scatter_update needs indices of known shape, got {rows.shape}")
        grids = np.indices([int(d) for d in lead]).astype(rows.dtype.np)[:-1]  # type: ignore[arg-type]
        vectors = stack([*[convert_to_tensor(grid) for grid in grids], rows], -1)
        return self.scatter_nd_update(vectors, sparse_delta.values)

    def count_up_to(self, limit: Any) -> Tensor:
        """Adds 1; returns the value before. Raises OutOfRangeError if that would exceed `limit`."""
        before = self.read_value()
        assert_op(before < limit, f"Reached limit of {limit}", "OutOfRangeError")
        self.assign_add(1)
        return before

    @property
    def initial_value(self) -> Tensor:
        """Raises RuntimeError: as in TensorFlow 2, it isn't kept."""
        raise RuntimeError("`initial_value` is not stored: read the variable before you assign to it.")

    def set_shape(self, shape: Any) -> None:
        """Narrows the static shape. Raises ValueError if it doesn't fit."""
        self._shape = merge(self._shape, as_shape(shape))

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """The slices at index vectors."""
        return scatter.gather_nd(self, indices)

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """The rows at `indices`."""
        return gather_slices(self.read_value(), convert_to_tensor(indices))

    def _check_shape(self, shape: Shape) -> None:
        try:
            merge(self._shape, shape)
        except ValueError:
            raise ValueError(
                f"Cannot assign value to variable '{self.name}': Shape mismatch. The variable shape "
                f"{format_shape(self._shape)} and the assigned value shape {format_shape(shape)} are incompatible; a "
                "variable made with shape=... accepts values of other shapes."
            ) from None

    # --- Python protocols ----------------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        return bool(self.read_value())

    def __int__(self) -> int:
        return int(self.read_value())

    def __float__(self) -> float:
        return float(self.read_value())

    def __index__(self) -> int:
        return self.read_value().__index__()

    def __len__(self) -> int:
        return len(self.read_value())

    def __iter__(self) -> Any:
        return iter(self.read_value())

    def __format__(self, spec: str) -> str:
        return format(self.read_value(), spec) if spec else str(self)

    def __copy__(self) -> Variable:
        """The variable itself, as in TensorFlow: a shallow copy shares the value. `copy.deepcopy` has its own."""
        return self

    def __deepcopy__(self, memo: dict) -> Variable:
        twin = Variable(eager(self._array), self.trainable, name=self._name, dtype=self.dtype, shape=self._shape)
        memo[id(self)] = twin
        return twin

    def __reduce__(self) -> tuple:
        state = self.current_array(), self.dtype, self._shape, self._trainable, self._name
        return _restored, (*state, self.constraint, self.synchronization, self.aggregation)

    def __repr__(self) -> str:
        facts = f"<tf.Variable '{self.name}' shape={format_shape(self._shape)} dtype={self.dtype.name}"
        if ctx.builder is not None or self._array is None:
            return facts + ">"
        return f"{facts}, numpy={eager(self._array, self.dtype)._text(repr)}>"


def _restored(
    array: Any, dtype: DType, shape: Shape, trainable: bool, name: str, constraint: Any, *distribution: Any
) -> Variable:
    """A variable out of a pickle."""
    variable = Variable.__new__(Variable)
    variable._id, variable._name, variable._array, variable._place = next(_ids), name, array, None
    variable.dtype, variable._shape, variable._trainable = dtype, shape, trainable
    variable.constraint = constraint
    variable.synchronization, variable.aggregation = distribution
    return variable


def _choice(kind: type[enum.Enum], value: Any, what: str) -> enum.Enum:
    """A member of TensorFlow's enums of distribution: all variables are in one place here, so it changes nothing."""
    if value is None:
        return next(iter(kind))
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"Invalid variable {what} mode: {value!r} for variable.") from None


install(Variable)


def _getitem(self: Variable, key: Any) -> Tensor:
    """A slice of the value, which `.assign`, `.assign_add` and `.assign_sub` write back to the variable."""
    tensor = getitem(self.read_value(), key)
    tensor._origin = (self, key)  # type: ignore[attr-defined]
    return tensor


setattr(Variable, "__getitem__", _getitem)  # noqa: B010 - after `install` has put its own there
