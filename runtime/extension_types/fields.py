"""Fields of extension types: what annotations may say, and the conversion of values to that.

values: Tensor                 a tensor, by `convert_to_tensor`
tags: Mapping[str, Tensor]     an `ImmutableDict`
sizes: tuple[int, ...]         a tuple
weight: Optional[Tensor]       a tensor or None
"""

from __future__ import annotations

import collections.abc
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from runtime import dtypes
from runtime.extension_types.static import ImmutableDict, is_reserved
from runtime.ops.convert import convert_to_tensor
from runtime.ops.staged_number import StagedNumber
from runtime.shapes import TensorShape
from runtime.spec import TensorSpec
from runtime.tensor import Tensor

NO_DEFAULT: Any = object()
_SCALARS = (int, float, str, bytes, bool, type(None))
_UNIONS = (typing.Union, types.UnionType)


class Field(NamedTuple):
    """A field by its name, annotation, and default (`NO_DEFAULT` if it has none)."""

    name: str
    kind: Any
    default: Any


def fields_of(cls: type) -> tuple[Field, ...]:
    """The fields of a class, those of its bases first. Names that don't exist yet stay strings or forward references.

    Raises TypeError for annotations that no field may have, and for defaults of another type.
    """
    own = {name: kind for name, kind in _hints(cls).items() if not is_reserved(name)}  # not those of our base classes
    return tuple(_field(name, kind, getattr(cls, name, NO_DEFAULT)) for name, kind in own.items())


def _hints(cls: type) -> dict[str, Any]:
    own_name = {cls.__name__: cls}
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return typing.get_type_hints(cls, localns=own_name, format=Format.FORWARDREF)
    try:
        return typing.get_type_hints(cls, localns=own_name)
    except (NameError, AttributeError):  # some class is defined later
        hints: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            hints.update(inspect.get_annotations(base))
        return hints


def _field(name: str, kind: Any, default: Any) -> Field:
    try:
        check_annotation(kind)
    except TypeError as error:
        raise TypeError(f"In field {name!r}: {error}") from None
    if default is not NO_DEFAULT and not names_later_class(kind):
        default = convert(default, kind, f"default value for {name}", _default_part)
    return Field(name, kind, default)


def names_later_class(kind: Any) -> bool:
    """Whether an annotation has a name of a class that isn't defined yet."""
    return isinstance(kind, (str, typing.ForwardRef)) or any(map(names_later_class, typing.get_args(kind)))


def is_composite_class(kind: Any) -> bool:
    """Whether an annotation names a class of values that consist of tensors."""
    return isinstance(kind, type) and hasattr(kind, "__tf_flatten__")


def check_annotation(kind: Any, in_key: bool = False) -> None:
    """Raises TypeError for an annotation that no field may have."""
    if isinstance(kind, (str, typing.ForwardRef)) or kind is None or kind in (*_SCALARS, dtypes.DType):
        return
    if kind in (Tensor, TensorShape) or is_composite_class(kind):
        if in_key:
            raise TypeError(f"Mapping had a key of type {kind.__name__!r}; keys are Python values")
        return
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple or origin in _UNIONS:
        for argument in arguments:
            if argument is not Ellipsis:
                check_annotation(argument, in_key)
    elif origin is collections.abc.Mapping:
        check_annotation(arguments[0], True)
        check_annotation(arguments[1], in_key)
    else:
        shown = kind.__name__ if isinstance(kind, type) and origin is None else kind
        raise TypeError(
            f"Unsupported type annotation {shown!r}. Fields are tensors (also ragged and sparse ones), extension "
            "types, int, float, str, bytes, bool, None, TensorShape, DType, or typing.Tuple, Mapping, Union and "
            "Optional of these"
        )


# Converts a value to what is annotated as a class of tensors; gets the value, the annotation and the field's name.
ConvertPart = Callable[[Any, Any, str], Any]


def as_part(value: Any, kind: Any, path: str) -> Any:
    """A tensor, or a value of a composite class. Raises TypeError for others."""
    if kind is Tensor:
        if isinstance(value, Tensor):
            return value
        try:
            return convert_to_tensor(value)
        except (ValueError, TypeError):
            raise TypeError(f"{path}: expected a Tensor, got {type(value).__name__!r}") from None
    if not isinstance(value, kind):
        raise TypeError(f"{path}: expected {kind.__name__!r}, got {type(value).__name__!r}")
    return value


def as_spec(value: Any, kind: Any, path: str) -> Any:
    """The spec of a tensor, or of a value of a composite class. Raises TypeError for others."""
    if kind is Tensor:
        if not isinstance(value, TensorSpec):
            raise TypeError(f"{path}: expected a TensorSpec, got {type(value).__name__!r}")
        return value
    described = getattr(type(value), "value_type", None)
    same_name = getattr(type(value), "__ag_composite__", value) is getattr(kind, "__ag_composite__", kind)
    is_spec = issubclass(described, kind) if described is not None else same_name and not isinstance(value, kind)
    if not is_spec:
        raise TypeError(f"{path}: expected a TypeSpec for {kind.__name__!r}, got {type(value).__name__!r}")
    return value


def _default_part(value: Any, kind: Any, path: str) -> Any:
    # A tensor would be made before anything else is: constants stay as they are until a value takes them.
    return value if kind is Tensor else as_part(value, kind, path)


def convert(value: Any, kind: Any, path: str, part: ConvertPart) -> Any:
    """A field's value as its annotation says. Raises TypeError where it can't be."""
    if kind is None:
        kind = type(None)
    if kind is Tensor or is_composite_class(kind):
        return part(value, kind, path)
    if kind is TensorShape or kind is dtypes.DType:
        make = TensorShape if kind is TensorShape else dtypes.as_dtype
        try:
            return make(value)
        except (TypeError, ValueError):
            raise TypeError(f"{path}: expected 'tf.{kind.__name__}', got {type(value).__name__!r}") from None
    if kind in _SCALARS:
        if not isinstance(value, kind):
            raise TypeError(f"{path}: expected {kind.__name__!r}, got {_named(value)}")
        return value
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return _as_tuple(value, arguments, path, part)
    if origin is collections.abc.Mapping:
        if not isinstance(value, Mapping):
            raise TypeError(f"{path}: expected mapping, got {type(value).__name__!r}")
        key_kind, value_kind = arguments
        return ImmutableDict(
            (convert(key, key_kind, f"{path}[<key>]", part), convert(item, value_kind, f"{path}[{key!r}]", part))
            for key, item in value.items()
        )
    if origin in _UNIONS:
        for option in arguments:
            try:
                return convert(value, option, path, part)
            except TypeError:
                continue
        raise TypeError(f"{path}: expected {kind!r}, got {_named(value)}")
    written = kind.__forward_arg__ if isinstance(kind, typing.ForwardRef) else kind
    raise TypeError(f"{path}: the annotation {written!r} names a class that isn't defined, or not in this module")


def _named(value: Any) -> str:
    if type(value) is StagedNumber:
        return "a number that the traced function computes (annotate the field as a Tensor)"
    return repr(type(value).__name__)


def _as_tuple(value: Any, kinds: tuple, path: str, part: ConvertPart) -> tuple:
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise TypeError(f"{path}: expected tuple, got {type(value).__name__!r}")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        raise TypeError(f"{path}: expected tuple with length {len(kinds)}, got one with length {len(value)}")
    return tuple([convert(item, kind, f"{path}[{i}]", part) for i, (item, kind) in enumerate(zip(value, kinds))])


def convert_all(fields: Sequence[Field], values: dict[str, Any], part: ConvertPart) -> None:
    """Converts the values of an object's fields in place. Raises ValueError unless each has one, TypeError where a
    value isn't what the annotation says."""
    expected = {field.name for field in fields}
    if missing := expected - set(values):
        raise ValueError(f"Missing required fields: {missing}")
    if extra := set(values) - expected:
        raise ValueError(f"Got unexpected fields: {extra}")
    values.update({field.name: convert(values[field.name], field.kind, field.name, part) for field in fields})
