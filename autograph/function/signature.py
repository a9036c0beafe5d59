"""What tells one trace of a function from another: the arguments' structure, dtypes, shapes and Python values.

A call's arguments are put into one canonical form (positional as far as possible, defaults filled in) and reduced to a
key and a flat list of tensors:

    f(x, scale=2.0)      x: float32 tensor of shape (3,)
    key (float32, (3,), (float, 2.0)), tensors [x]

Tensors count by dtype and shape, Python scalars and strings by type and value, containers by structure, NumPy arrays as
tensors, and any other object by identity.
"""

from __future__ import annotations

import enum
import inspect
import weakref
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from autograph.function.function_type import trace_type_of
from runtime import composites, nest
from runtime.dtypes import as_dtype
from runtime.extension_types.values import ExtensionTypeSpec
from runtime.ops.convert import convert_to_tensor
from runtime.ops.staged_number import StagedNumber, storage
from runtime.ops.strings.staged_string import StandsForString
from runtime.shapes import as_shape, widen
from runtime.signatures import signature_of
from runtime.spec import TensorSpec
from runtime.tensor import DeviceTensor, EagerTensor, SymbolicTensor, Tensor
from runtime.variable import Variable

_VALUES = frozenset({int, float, bool, complex, str, bytes, type(None), type, type(Ellipsis), range})


class InputError(TypeError, ValueError):
    """Arguments that don't fit a function's signature."""


class Arguments:
    """Canonical arguments of one function.

    Raises TypeError from `bind`, which names the function, when a call doesn't fit its parameters.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        self.name: str = name.rpartition("<locals>.")[2]
        try:
            self.signature: inspect.Signature | None = signature_of(function)
        except (TypeError, ValueError):
            self.signature = None
        self.positional: list[str] = []
        self._plain = self.signature is not None  # a call with all arguments by position needs no binding
        self.has_varargs = False
        # Of each positional parameter the name that keywords may give it, and its default.
        self._ways: list[tuple[str | None, Any]] = []
        for parameter in self.signature.parameters.values() if self.signature else ():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                self.positional.append(parameter.name)
                by_name = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
                self._ways.append((parameter.name if by_name else None, parameter.default))
            else:
                self._plain &= parameter.kind is not parameter.KEYWORD_ONLY
                self.has_varargs |= parameter.kind is parameter.VAR_POSITIONAL

    @property
    def plain_count(self) -> int:
        """The number of positional arguments of a call that needs no binding: no defaults, no keywords; -1 if every
        call needs it."""
        return len(self.positional) if self._plain else -1

    def bind(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """The call's arguments as (positional, keyword-only) with defaults filled in."""
        if self._plain and not kwargs:
            count = len(args) - len(self.positional)
            if count == 0 or (count > 0 and self.has_varargs):
                return args, kwargs
        if self.signature is None:
            return args, kwargs
        if self._plain:
            filled = self._filled(args, kwargs)
            if filled is not None:
                return filled, {}
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(self._misfit(str(error))) from None
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _misfit(self, text: str) -> str:
        """What `inspect` says of a call, with the function's name and parameters."""
        verb = "" if text.startswith(("missing", "got")) else "got "
        return f"{self.name}() {verb}{text}; its parameters are {self.signature}"

    def _filled(self, args: tuple, kwargs: dict[str, Any]) -> tuple | None:
        """The positional arguments with keywords and defaults, some ten times faster than `inspect` has them; None for
        calls that don't fit or give more."""
        if len(args) > len(self._ways):
            return None
        values = list(args)
        taken = 0
        for name, default in self._ways[len(args) :]:
            if name in kwargs:
                values.append(kwargs[name])
                taken += 1
            elif default is not inspect.Parameter.empty:
                values.append(default)
            else:
                return None
        return tuple(values) if taken == len(kwargs) else None

    def check_count(self, input_signature: tuple | None) -> None:
        """Raises TypeError for more specs than there are parameters, or none for one that has no default."""
        if input_signature is None or self.signature is None or self.has_varargs:
            return
        # A method's instance, which isn't there yet at decoration, has no spec.
        names = self.positional[1:] if self.positional[:1] == ["self"] else self.positional
        surplus = len(input_signature) - len(names)
        if surplus > 0 and len(input_signature) > len(self.positional):
            raise TypeError(
                f"input_signature contains {surplus} extra type constraints: {len(input_signature)} specs for the "
                f"parameters ({', '.join(names)})"
            )
        for name in names[len(input_signature) :]:
            if self.signature.parameters[name].default is inspect.Parameter.empty:
                raise TypeError(f"input_signature missing type constraint for {name}")

    def name_of(self, index: int) -> str:
        return self.positional[index] if index < len(self.positional) else f"args_{index}"


def key_of_call(args: tuple, kwargs: dict[str, Any], tensors: list) -> Hashable:
    """The key of canonical arguments; appends their tensors to `tensors`, in the order of `nest.flatten`."""
    key: list[Any] = []
    for value in args:
        # The commonest arguments by far are worth not recursing for.
        if type(value) is EagerTensor:
            tensors.append(value)
            key.append(value.dtype.name)  # a string's hash is at hand
            key.append(value._array.shape)
        elif type(value) is DeviceTensor:
            tensors.append(value)
            key.append(value.dtype.name)
            key.append(value.held.shape)
        else:
            _add_key(value, key, tensors)
    if kwargs:
        for name in sorted(kwargs):
            key.append(name)
            _add_key(kwargs[name], key, tensors)
    return tuple(key)


def _add_key(value: Any, key: list[Any], tensors: list) -> None:
    kind = type(value)
    if kind is EagerTensor or kind is SymbolicTensor or kind is DeviceTensor:
        tensors.append(value)
        key += (value.dtype.name, value._shape)
    elif kind is list or kind is tuple:
        key += (kind, len(value))
        for item in value:
            _add_key(item, key, tensors)
    elif hasattr(kind, "__ag_number__"):
        tensors.append(value.wide())
        key += (NumberSpec, value.default.name)
    elif kind in _VALUES:
        # -0.0 == 0.0 and nan != nan, but a trace bakes in which one it is.
        key += (kind, repr(value) if kind in (float, complex) else value)
    elif kind is dict:
        _add_dict(value, key, tensors)
    elif isinstance(value, (np.ndarray, np.generic)):
        tensor = convert_to_tensor(np.asarray(value))
        tensors.append(tensor)
        key += (tensor.dtype.name, tensor._shape)
    elif isinstance(value, TensorSpec):
        tensors.append(value)
        key += (value.dtype.name, value._shape)
    elif isinstance(value, Variable):
        key += (Variable, Identity(value))
    elif isinstance(value, dict):
        _add_dict(value, key, tensors)
    elif isinstance(value, (list, tuple)):
        key += (kind, len(value))
        for item in value:
            _add_key(item, key, tensors)
    elif hasattr(kind, "__tf_tracing_type__"):
        key += (kind, trace_type_of(value))
    elif hasattr(kind, "__tf_flatten__"):
        metadata, parts = value.__tf_flatten__()
        key += (kind, _hashable(metadata))
        if hasattr(kind, "set_shape"):  # what its tensors don't say, a trace is told of it: `trace._say_shapes`
            key.append(as_shape(value.shape))
        for part in parts:
            _add_key(part, key, tensors)
    elif nest.is_nested(value):  # dataclasses, attrs classes, other mappings
        key.append(kind)
        if isinstance(value, Mapping):
            key.append(tuple(nest.sorted_keys(value)))
        for part in nest.children(value):
            _add_key(part, key, tensors)
    elif isinstance(value, (np.dtype, frozenset)) or _is_enum(value) or hasattr(value, "as_numpy_dtype"):
        key += (kind, value)
    else:
        key += (kind, Identity(value))


def _add_dict(value: Any, key: list[Any], tensors: list) -> None:
    for name in value:
        if type(name) is not str:
            names = sorted(value, key=_sort_key)
            break
    else:
        names = sorted(value)
    key += (type(value), tuple(names))
    for name in names:
        _add_key(value[name], key, tensors)


def _hashable(metadata: Any) -> Hashable:
    try:
        hash(metadata)
    except TypeError:
        return key_of_call((metadata,), {}, [])
    return metadata


def _sort_key(name: Any) -> tuple[str, Any]:
    return type(name).__name__, name


def _is_enum(value: Any) -> bool:
    return isinstance(value, enum.Enum)


class Identity:
    """Stands for an object in a key: equal only for the same object, and for none once the object is gone."""

    __slots__ = ("_id", "_reference", "_strong")

    def __init__(self, value: Any) -> None:
        self._id = id(value)
        self._strong = None
        try:
            self._reference: Any = weakref.ref(value)
        except TypeError:
            self._reference = None
            self._strong = value

    def is_dead(self) -> bool:
        """Whether the object is gone."""
        return self._reference is not None and self._reference() is None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Identity) or self._id != other._id:
            return False
        if self._reference is None or other._reference is None:
            return self._strong is other._strong
        mine = self._reference()
        return mine is not None and mine is other._reference()

    def __hash__(self) -> int:
        return self._id


class WeakArgument:
    """Stands for an object among the arguments of a trace, which must not keep it alive."""

    __slots__ = ("_reference", "_text")

    def __init__(self, value: Any) -> None:
        self._reference = weakref.ref(value)
        self._text = f"<{type(value).__name__} object>"

    def get(self) -> Any:
        """The object, or None when it is gone."""
        return self._reference()

    def __repr__(self) -> str:
        return self._text


class VariableArgument(WeakArgument):
    """Stands for a variable among the arguments of a trace. `id` tells it from the others while it lives."""

    __slots__ = ("_facts", "_name", "id", "name_counts")

    def __init__(self, variable: Variable, name_counts: bool = False) -> None:
        super().__init__(variable)
        self.id = id(variable)
        self._facts = variable.facts()
        self._name = variable._name
        self.name_counts = name_counts  # whether the trace read the name

    def looks_like(self, value: Any) -> bool:
        """Whether `value` is a variable of the same class, dtype, shape and options (and name, if that counts)."""
        return (
            isinstance(value, Variable)
            and value.facts() == self._facts
            and (not self.name_counts or value._name == self._name)
        )


class NumberSpec(TensorSpec):
    """What a trace takes for a number or string of the trace around it. No tensor fits."""

    __slots__ = ()

    def __init__(self, number: StagedNumber | StandsForString, name: str | None = None) -> None:
        super().__init__((), storage(number.default), name)

    def covers(self, dtype: Any, shape: Any) -> bool:
        return False


def remembered(arguments: Any) -> Any:
    """Arguments as a trace remembers them: specs for tensors, weak references for objects, other values as they are."""

    def remember(value: Any) -> Any:
        if isinstance(value, TensorSpec) or type(value) in _VALUES:
            return value
        if hasattr(type(value), "__ag_number__"):
            return NumberSpec(value)
        if is_tensor_like(value):
            return TensorSpec(as_shape(value.shape), as_dtype(value.dtype))
        if isinstance(value, Variable):
            return VariableArgument(value)
        try:
            return WeakArgument(value)
        except TypeError:
            return value

    return nest.map_structure(remember, arguments)


def recalled(value: Any) -> Any:
    """Undoes `remembered` for one value; None if the object has been garbage collected."""
    return value.get() if isinstance(value, WeakArgument) else value


def is_tensor_like(value: Any) -> bool:
    """Whether an argument becomes a symbolic input of the trace."""
    return isinstance(value, (Tensor, np.ndarray, np.generic, TensorSpec))


def checked_signature(input_signature: Any) -> tuple | None:
    """An `input_signature` as a tuple. Raises TypeError for something that isn't a sequence of specs."""
    if input_signature is None:
        return None
    if not isinstance(input_signature, (tuple, list)):
        raise TypeError(
            f"input_signature must be either a tuple or a list, got {type(input_signature).__name__}: "
            f"{input_signature!r}"
        )
    for spec in nest.flatten(list(input_signature)):
        if not isinstance(spec, TensorSpec):
            raise TypeError(
                f"Invalid input_signature {input_signature!r}; it must be a possibly nested sequence of TensorSpec "
                f"objects, got {spec!r} of type {type(spec).__name__}."
            )
    return tuple(input_signature)


def check_input_signature(args: tuple, input_signature: tuple, arguments: Arguments) -> tuple:
    """Arguments converted to tensors of the declared dtypes.

    Raises InputError when they don't fit the input signature.
    """
    if len(args) > len(input_signature):
        defaults = args[len(input_signature) :]
        args = args[: len(input_signature)]
    else:
        defaults = ()
    try:
        if len(args) != len(input_signature):
            raise ValueError(f"{len(args)} arguments for {len(input_signature)} specs")
        converted = tuple(map(_fit, args, input_signature))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Python inputs incompatible with input_signature:\n  inputs: ({_indented(args)})\n"
            f"  input_signature: ({_indented(input_signature)}).\n  {error}"
        ) from None
    return (*converted, *defaults)


def _fit(value: Any, spec: Any) -> Any:
    """`value` with a tensor wherever `spec` has a `TensorSpec`; there, a list of numbers is a tensor too."""
    if isinstance(spec, TensorSpec):
        return _convert_to_spec(value, spec)
    if not nest.is_nested(spec):
        return value
    value = composites.as_composite(value, spec)
    parts, specs = nest.children(value) if nest.is_nested(value) else [], nest.children(spec)
    if len(parts) != len(specs) or (isinstance(spec, dict) and sorted(spec) != sorted(value)):
        raise ValueError(f"{value!r} doesn't have the structure of {spec!r}")
    if isinstance(spec, ExtensionTypeSpec):
        if not spec.covers(value):
            raise ValueError(f"{value!r} doesn't fit {spec!r}")
        value = spec
    return nest.rebuild(value, list(map(_fit, parts, specs)))


def _convert_to_spec(value: Any, spec: TensorSpec) -> Any:
    if isinstance(value, TensorSpec):
        dtype, shape = value.dtype, value._shape
    else:
        value = convert_to_tensor(value, dtype=None if isinstance(value, Tensor) else spec.dtype)
        dtype, shape = value.dtype, value._shape
    if not spec.covers(dtype, shape):
        raise ValueError(f"{value!r} doesn't fit {spec}")
    return value


def relax(before: tuple[tuple, dict], now: tuple[tuple, dict]) -> tuple[tuple, dict]:
    """`now` with each tensor whose shape differs from the one in `before` as a spec that covers both."""
    try:
        nest.assert_same_structure(before, now)
    except (TypeError, ValueError):
        return now

    def merge(old: Any, new: Any) -> Any:
        if not (is_tensor_like(old) and is_tensor_like(new)) or as_dtype(old.dtype) is not as_dtype(new.dtype):
            return new
        old_shape, new_shape = as_shape(old.shape), as_shape(new.shape)
        return new if old_shape == new_shape else TensorSpec(widen(old_shape, new_shape), as_dtype(new.dtype))

    return nest.map_structure(merge, before, now)


def _indented(values: tuple) -> str:
    return ",".join(f"\n    {value!s}" for value in values)
