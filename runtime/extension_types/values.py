"""`ag.experimental.ExtensionType`: classes of values that are made of tensors, declared by annotations.

    class MaskedTensor(ExtensionType):        MaskedTensor([1, 2], [True, False])
        values: Tensor                        MaskedTensor.Spec(TensorSpec([2], int32), TensorSpec([2], bool_))
        mask: Tensor

A value is a structure of its parts, as a ragged tensor is (`runtime.composites`), so it goes in and out of traced
functions, through loops and branches. What it holds beside them is part of a trace's key. Like `dataclasses`, a class
gets its constructor when it is defined; the class of its specs, `Spec`, is made from it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from runtime import nest
from runtime.extension_types.fields import (
    NO_DEFAULT,
    Field,
    as_part,
    as_spec,
    convert_all,
    fields_of,
    names_later_class,
)
from runtime.extension_types.static import Static, is_reserved
from runtime.ops.api import equal, logical_not, reduce_all, shape, stack
from runtime.signatures import annotations_of
from runtime.spec import TensorSpec
from runtime.tensor import Tensor
from runtime.tracebacks import shows_no_frames

T = TypeVar("T")
_MUTABLE = "_keras_mask"  # which Keras sets on what goes through its layers


def spec_of(part: Any) -> Any:
    """The spec of a tensor or composite."""
    if isinstance(part, Tensor):
        return TensorSpec(part.shape, part.dtype)
    own = getattr(part, "_type_spec", None)
    return nest.map_structure(spec_of, part) if own is None else own


class _Fields:
    """What values and specs have in common: their fields, which only a constructor sets."""

    __ag_exact__ = True  # values with other metadata have another structure
    _ag_is_open = False  # while a constructor runs
    _ag_static: Static | None = None

    @classmethod
    def _ag_fields(cls) -> tuple[Field, ...]:
        raise NotImplementedError

    @classmethod
    def _ag_made(cls: type[T], static: Static, parts: Sequence[Any]) -> T:
        """An instance of what it consists of. The constructor, which may be the user's, has checked that before."""
        made = object.__new__(cls)
        made.__dict__.update(static.filled(parts), _ag_static=static)
        return made

    def _ag_values(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not is_reserved(name)}

    def _ag_check(self, part: Callable[[Any, Any, str], Any]) -> None:
        """Ends a constructor: the fields are converted and validated."""
        values = self._ag_values()
        convert_all(self._ag_fields(), values, part)
        self.__dict__.update(values)
        self.__validate__()

    def __validate__(self) -> None:
        """Called at the end of the constructor, when all fields have their types. Override it to check them."""

    def _ag_known(self) -> Static:
        """What isn't a part; of a value under construction what there is so far."""
        if self._ag_static is not None:
            return self._ag_static
        # In the order of the class, whatever the order in which a constructor has set them.
        values = self._ag_values()
        static = Static.of({field.name: values[field.name] for field in self._ag_fields() if field.name in values})
        if not self._ag_is_open:
            self.__dict__["_ag_static"] = static
        return static

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        static = self._ag_known()
        return static, tuple(static.parts(self.__dict__))

    @shows_no_frames
    def __setattr__(self, name: str, value: Any) -> None:
        self._ag_refuse(name)
        self.__dict__[name] = value

    @shows_no_frames
    def __delattr__(self, name: str) -> None:
        self._ag_refuse(name)
        del self.__dict__[name]

    def _ag_refuse(self, name: str) -> None:
        is_field = name in {field.name for field in self._ag_fields()}
        if name != _MUTABLE and not (self._ag_is_open and is_field):
            why = "is immutable; make another with the changed field" if is_field else "has no such field"
            kind = type(self).__qualname__
            raise AttributeError(
                f"Cannot mutate attribute `{name}` outside the custom constructor of ExtensionType: {kind} {why}."
            )

    def __repr__(self) -> str:
        shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self._ag_fields())
        return f"{type(self).__qualname__}({shown})"


def _add_constructor(cls: Any, part: Callable[[Any, Any, str], Any], takes_defaults: bool) -> None:
    """Gives a class its constructor, or makes the user's convert and check the fields that it sets."""
    own = cls.__dict__.get("__init__")
    if own is None:
        cls.__init__ = shows_no_frames(_constructor(cls, part, takes_defaults))
        return

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        # A constructor that is called by that of a subclass leaves the end to it.
        is_outer = not self._ag_is_open
        self.__dict__["_ag_is_open"] = True
        try:
            own(self, *args, **kwargs)
        finally:
            if is_outer:
                del self.__dict__["_ag_is_open"]
        if is_outer:
            self._ag_check(part)

    __init__.__wrapped__ = own  # type: ignore[attr-defined]
    __init__.__doc__, __init__.__qualname__ = own.__doc__, own.__qualname__
    cls.__init__ = shows_no_frames(__init__)


def _constructor(cls: Any, part: Callable[[Any, Any, str], Any], takes_defaults: bool) -> Callable[..., None]:
    parameters = []
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    has_default = False
    for field in cls._ag_fields():
        default = inspect.Parameter.empty
        if takes_defaults and field.default is not NO_DEFAULT:
            default, has_default = field.default, True
        elif has_default:
            kind = inspect.Parameter.KEYWORD_ONLY  # from here on, as in TensorFlow
        parameters.append(inspect.Parameter(field.name, kind, default=default, annotation=field.kind))
    signature = inspect.Signature(parameters)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{cls.__qualname__}: {error}; its fields are {signature}") from None
        bound.apply_defaults()
        self.__dict__.update(bound.arguments)
        if not self._ag_is_open:
            self._ag_check(part)

    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = inspect.Signature([itself, *parameters])  # type: ignore[attr-defined]
    return __init__


class ExtensionTypeSpec(_Fields):
    """Base of the classes `Spec` of extension types: the fields of a value, with a spec in place of each tensor."""

    value_type: ClassVar[Any] = None
    spec_text = True

    @classmethod
    def _ag_fields(cls) -> tuple[Field, ...]:
        return cls.value_type._ag_fields()

    @classmethod
    def from_value(cls, value: Any) -> Any:
        """The spec of a value. Raises TypeError for a value of another class."""
        if not isinstance(value, cls.value_type):
            expected, got = cls.value_type.__qualname__, type(value).__qualname__
            raise TypeError(f"{cls.__qualname__}.from_value expects a {expected}, got a {got}")
        static, parts = value.__tf_flatten__()
        return type(value).Spec._ag_made(static, list(map(spec_of, parts)))

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value, or a spec of values, has the same fields, and tensors that are compatible with the specs."""
        other = (
            spec_or_value
            if isinstance(spec_or_value, ExtensionTypeSpec)
            else getattr(spec_or_value, "_type_spec", None)
        )
        if type(other) is not type(self) or not self._ag_known().is_compatible_with(other._ag_known()):
            return False
        mine, others = nest.flatten(self), nest.flatten(other)
        return len(mine) == len(others) and all(one.is_compatible_with(another) for one, another in zip(mine, others))

    def covers(self, value: Any) -> bool:
        """Whether what isn't a tensor in a value, or in a spec of values, is as this spec says."""
        kind = type(value) if isinstance(value, ExtensionTypeSpec) else getattr(value, "Spec", None)
        return kind is type(self) and self._ag_known().covers(value._ag_known())

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Any:
        return cls.value_type.__tf_unflatten__(metadata, components)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__tf_flatten__() == other.__tf_flatten__()

    def __hash__(self) -> int:
        return hash(self.__tf_flatten__())


class ExtensionType(_Fields):
    """Base of classes of immutable values that are made of tensors: arguments and results of traced functions, loops
    and branches.

    A subclass declares its fields by annotations: `Tensor`, `RaggedTensor`, `SparseTensor` and other extension types;
    int, float, str, bytes, bool, None, `TensorShape`, `DType`; and typing's Tuple, Mapping, Union and Optional of
    these. A value in the class is a default. It gets a constructor with a parameter for each field, which converts
    what it is given and calls `__validate__`; a constructor of its own has to set each field. Its class `Spec`
    describes values; a nested class `Spec` adds to it.

    A function is traced once for each `Spec`. Raises TypeError for values that aren't what their field's annotation
    says and for annotations that no field may have, AttributeError when a field is set outside of the constructor,
    ValueError for a field without annotation or with a reserved name, and for one that the constructor hasn't set.
    """

    _ag_own_fields: ClassVar[tuple[Field, ...] | None] = None
    Spec: ClassVar[Any] = ExtensionTypeSpec

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.Spec.value_type is not cls:
            raise TypeError(f"{cls.__name__} is abstract: derive a class that declares fields")
        return object.__new__(cls)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _check_names(cls)
        cls._ag_own_fields = None
        cls.__ag_composite__ = cls  # type: ignore[attr-defined]
        _add_constructor(cls, as_part, takes_defaults=True)
        cls.Spec = _spec_class(cls)

    @classmethod
    def _ag_fields(cls) -> tuple[Field, ...]:
        if cls._ag_own_fields is not None:
            return cls._ag_own_fields
        found = fields_of(cls)
        if not any(names_later_class(field.kind) for field in found):
            cls._ag_own_fields = found
        return found

    @property
    def _type_spec(self) -> Any:
        return type(self).Spec.from_value(self)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Any:
        of_specs = any(isinstance(leaf, TensorSpec) for leaf in nest.flatten(list(components)))
        return (cls.Spec if of_specs else cls)._ag_made(metadata, components)

    def __eq__(self, other: object) -> Any:
        """A boolean scalar: whether all fields are equal; False for another class, other Python values or specs."""
        if type(self) is not type(other) or self._type_spec != other._type_spec:
            return False
        conditions = []
        for one, another in zip(nest.flatten(self), nest.flatten(other)):
            sizes = equal(shape(one), shape(another)) if one._shape is None or None in one._shape else None
            conditions += [] if sizes is None else [reduce_all(sizes)]
            conditions.append(reduce_all(equal(one, another)))
        return reduce_all(stack(conditions)) if conditions else True

    def __ne__(self, other: object) -> Any:
        found = self == other
        return logical_not(found) if isinstance(found, Tensor) else not found

    __hash__ = None  # type: ignore[assignment]


def batch_encoder(value: Any) -> Any:
    """What makes batches of the values of an extension type, given one of them or their spec; None for what can't be
    batched, and for everything else."""
    if not isinstance(value, (ExtensionType, ExtensionTypeSpec)):
        return None
    specs = type(value) if isinstance(value, ExtensionTypeSpec) else type(value).Spec
    return getattr(specs, "__batch_encoder__", None) or getattr(specs.value_type, "__batch_encoder__", None)


def _check_names(cls: Any) -> None:
    """Raises ValueError for a field that has no annotation, or a name that means something else."""
    annotations = annotations_of(cls)
    for name, value in {**dict.fromkeys(annotations), **cls.__dict__}.items():
        if name == "Spec":
            if not isinstance(value, type) or not all(issubclass(ExtensionTypeSpec, base) for base in value.__bases__):
                raise ValueError(f"{cls.__qualname__}.Spec must be a nested class without a base; got {value}.")
        elif is_reserved(name):
            raise ValueError(f"The field annotations for {cls.__name__} are invalid. Field '{name}' is reserved.")
        is_member = callable(value) or isinstance(value, (property, classmethod, staticmethod))
        is_special = name.startswith(("__", "_abc_")) and (name.endswith("__") or name.startswith("_abc_"))
        if not (name in annotations or is_member or is_special):
            raise ValueError(
                f"The field annotations for {cls.__name__} are invalid. Field {name} is missing a type annotation."
            )


def _spec_class(cls: Any) -> type[ExtensionTypeSpec]:
    """The class `Spec` of an extension type, with what the user's nested class adds."""
    given = dict(vars(cls.__dict__["Spec"])) if "Spec" in cls.__dict__ else {}
    names = {field.name for field in cls._ag_fields()}
    for name in given:
        if is_reserved(name):
            raise ValueError(f"{cls.__qualname__}.Spec uses the reserved name '{name}'.")
        if name in names:
            raise ValueError(f"{cls.__qualname__}.Spec defines '{name}', which is a field of {cls.__qualname__}.")
    given = {name: value for name, value in given.items() if name not in ("__dict__", "__weakref__")}
    given.update(value_type=cls, __ag_composite__=cls)
    given.update(__module__=cls.__module__, __qualname__=f"{cls.__qualname__}.Spec")
    made = type("Spec", (ExtensionTypeSpec,), given)
    _add_constructor(made, as_spec, takes_defaults=False)
    return made
