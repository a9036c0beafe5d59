"""`tf.TypeSpec` and `CompositeTensor`: values made of tensors whose classes programs write, with specs of their own.

    class IntervalSpec(TypeSpec):                        class Interval(CompositeTensor):
        value_type = property(lambda self: Interval)         _type_spec = property(lambda self: IntervalSpec(...))
        def _serialize(self): ...
        _component_specs = property(...)
        def _to_components(self, value): ...
        def _from_components(self, components): ...

A composite tensor is a structure to traced functions, loops and branches, as a ragged tensor is (`runtime.composites`):
its parts are the components that its spec names, and its spec is what the parts are put together by. The classes of
specs that are there already (`TensorSpec` and so on) are subclasses of `TypeSpec` by registration.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from runtime import composites, dtypes, nest
from runtime.extension_types.values import ExtensionType, ExtensionTypeSpec
from runtime.ops.convert import convert_to_tensor
from runtime.ops.facts import is_own_tensor
from runtime.ragged.api import RaggedTensor
from runtime.ragged.spec import RaggedTensorSpec
from runtime.shapes import TensorShape
from runtime.sparse import SparseTensor, SparseTensorSpec
from runtime.spec import TensorSpec
from runtime.variable import Variable


class _Structure:
    """What a composite tensor is beside its components, by its spec. The sizes of tensors aren't part of it."""

    __slots__ = ("_relaxed", "spec")

    def __init__(self, spec: Any) -> None:
        self.spec = spec
        self._relaxed: Any = None

    @property
    def relaxed(self) -> Any:
        if self._relaxed is None:
            self._relaxed = self.spec._with_tensor_ranks_only()._without_tensor_names()
        return self._relaxed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Structure) and (self.spec is other.spec or self.relaxed == other.relaxed)

    def __hash__(self) -> int:
        return hash(self.relaxed)

    def __repr__(self) -> str:
        return f"the structure of {self.spec!r}"


class _Composite:
    """What values, their specs, and structures in their form have in common."""

    __slots__ = ()
    __ag_composite__ = "composite"
    __ag_exact__ = True

    @classmethod
    def __tf_unflatten__(cls, metadata: _Structure, components: Sequence[Any]) -> Any:
        (parts,) = components
        if all(is_own_tensor(leaf) or isinstance(leaf, (np.ndarray, np.generic)) for leaf in nest.flatten(parts)):
            return metadata.spec._from_components(parts)
        return _InItsForm(metadata, parts)


class _InItsForm(_Composite):
    """Something else than tensors in the places of a composite tensor's components: specs, indices, marks."""

    __slots__ = ("_metadata", "_parts")
    spec_text = True

    def __init__(self, metadata: _Structure, parts: Any) -> None:
        self._metadata, self._parts = metadata, parts

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return self._metadata, (self._parts,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InItsForm) and (self._metadata, self._parts) == (other._metadata, other._parts)

    def __hash__(self) -> int:
        return hash((self._metadata, tuple(nest.flatten(self._parts))))

    def __repr__(self) -> str:
        return f"{self._metadata!r} with {self._parts!r}"


class TypeSpec(_Composite, metaclass=abc.ABCMeta):
    """Base of what describes values: their class, the shapes and dtypes of the tensors in them, and what else they are.

    A subclass defines the property `value_type`, `_serialize` (what its constructor takes, as a tuple of Python values
    and specs), `_component_specs` (a structure of specs), `_to_components(value)` and `_from_components(components)`.
    """

    __slots__ = ()
    spec_text = True

    @property
    @abc.abstractmethod
    def value_type(self) -> Any:
        """The class of the values."""

    @abc.abstractmethod
    def _serialize(self) -> Any:
        """What the constructor takes, as a tuple."""

    @property
    @abc.abstractmethod
    def _component_specs(self) -> Any:
        """The specs of the components, in a structure."""

    @abc.abstractmethod
    def _to_components(self, value: Any) -> Any:
        """The components of a value, in the structure of `_component_specs`."""

    @abc.abstractmethod
    def _from_components(self, components: Any) -> Any:
        """A value of its components."""

    @classmethod
    def _deserialize(cls, serialization: Any) -> Any:
        return cls(*serialization)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value, or a spec, is of this class and everything in it is compatible with this spec."""
        other = spec_or_value
        if not isinstance(other, TypeSpec):
            try:
                other = type_spec_from_value(other)
            except TypeError:
                return False
        return type(other) is type(self) and self.__is_compatible(self._serialize(), other._serialize())

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every value of this spec is one of the other spec."""
        if type(self) is not type(other):
            return False
        try:
            mine, others = _leaves_beside(self._serialize(), [other._serialize()])
        except (TypeError, ValueError):
            return False
        return all(_is_subtype(one, another) for one, (another,) in zip(mine, others))

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        """The most specific spec of which this one and the others are subtypes; None where there is none."""
        if any(type(other) is not type(self) for other in others):
            return None
        mine = self._serialize()
        try:
            leaves, theirs = _leaves_beside(mine, [other._serialize() for other in others])
        except (TypeError, ValueError):
            return None
        common = [_supertype(one, list(each)) for one, each in zip(leaves, theirs)]
        if any(made is None and one is not None for made, one in zip(common, leaves)):
            return None
        return self._deserialize(composites.pack_sequence_as(mine, common))

    def most_specific_compatible_type(self, other: Any) -> Any:
        """The most specific spec that both are compatible with. Raises ValueError where there is none."""
        found = self.most_specific_common_supertype([other])
        if found is None:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return found

    def _with_tensor_ranks_only(self) -> Any:
        """The spec without the sizes of dimensions."""

        def relaxed(value: Any) -> Any:
            if isinstance(value, TypeSpec):
                return _relaxed_spec(value)
            if isinstance(value, TensorShape) and value.rank is not None:
                return TensorShape([None] * value.rank)
            return value

        return self._deserialize(composites.map_structure(relaxed, self._serialize()))

    def _without_tensor_names(self) -> Any:
        """The spec without the names of tensors."""

        def nameless(value: Any) -> Any:
            return value._without_tensor_names() if isinstance(value, TypeSpec) else value

        return self._deserialize(composites.map_structure(nameless, self._serialize()))

    @property
    def _flat_tensor_specs(self) -> list[Any]:
        return nest.flatten(self._component_specs)

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return _Structure(self), (self._component_specs,)

    # Subclasses that libraries define call these two by the names that Python gives them, as in TensorFlow.
    @staticmethod
    def __is_compatible(a: Any, b: Any) -> bool:
        if isinstance(a, TypeSpec):
            return isinstance(b, TypeSpec) and a.is_compatible_with(b)
        if isinstance(a, TensorShape):
            return isinstance(b, TensorShape) and a.is_compatible_with(b)
        if type(a) is not type(b):
            return False
        if isinstance(a, (list, tuple)):
            return len(a) == len(b) and all(map(TypeSpec.__is_compatible, a, b))
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(TypeSpec.__is_compatible(a[key], b[key]) for key in a)
        return bool(np.all(a == b))

    def __make_cmp_key(self, value: Any) -> Any:
        """Something hashable that is equal for equal values of the same types."""
        if isinstance(value, (list, tuple)):
            return type(value), tuple(map(self.__make_cmp_key, value))
        if isinstance(value, Mapping):
            keys = nest.sorted_keys(value)
            return dict, tuple((self.__make_cmp_key(key), self.__make_cmp_key(value[key])) for key in keys)
        if isinstance(value, np.ndarray):
            return np.ndarray, value.shape, value.dtype, tuple(value.ravel().tolist())
        if isinstance(value, TensorShape):
            return TensorShape, None if value.rank is None else tuple(value)
        try:
            hash(value)
        except TypeError:
            return type(value), id(value)
        return type(value), value

    def __key(self) -> Any:
        return type(self), self.__make_cmp_key(self._serialize())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__key() == other.__key()

    def __hash__(self) -> int:
        return hash(self.__key())

    def __reduce__(self) -> tuple:
        return type(self)._deserialize, (self._serialize(),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._serialize()}"


class BatchableTypeSpec(TypeSpec):
    """Base of specs whose values can be put together to batches, with `_batch(batch_size)` and `_unbatch()`."""

    __slots__ = ()

    @abc.abstractmethod
    def _batch(self, batch_size: int | None) -> Any:
        """The spec of a batch of such values."""

    @abc.abstractmethod
    def _unbatch(self) -> Any:
        """The spec of an element of a batch."""


class DenseSpec(TypeSpec):
    """Base of specs of what is like a tensor, with its shape and dtype. Tensors' own is one of them."""

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        self._shape, self._dtype, self._name = TensorShape(shape), dtypes.as_dtype(dtype), name

    @property
    def shape(self) -> TensorShape:
        """The shape of the values."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The name of the values."""
        return self._name


class CompositeTensor(_Composite, metaclass=abc.ABCMeta):
    """Base of classes whose values are made of tensors; the property `_type_spec` gives a value's `TypeSpec`.

    Values go in and out of traced functions, and through loops and branches. `ag.nest` takes them apart where
    `expand_composites` is True.
    """

    @property
    @abc.abstractmethod
    def _type_spec(self) -> Any:
        """The spec of the value."""

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        spec = self._type_spec
        if spec is None:
            raise TypeError(f"{type(self).__name__}._type_spec is None: its class has to define it")
        return _Structure(spec), (spec._to_components(self),)

    def _shape_invariant_to_type_spec(self, shape: Any) -> Any:
        """The spec for a loop in which the value has a shape invariant. Raises NotImplementedError."""
        raise NotImplementedError(f"{type(self).__name__} defines no _shape_invariant_to_type_spec")


class VariableSpec(TensorSpec):
    """Describes a variable: the shape and dtype of its value, and whether tapes watch it."""

    __slots__ = ("alias_id", "trainable")

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, trainable: bool = True, alias_id: Any = None) -> None:
        super().__init__(shape, dtype)
        self.trainable, self.alias_id = trainable, alias_id

    @property
    def value_type(self) -> Any:
        return Variable

    @classmethod
    def from_value(cls, value: Variable) -> VariableSpec:
        """The spec of a variable."""
        return cls(value.shape, value.dtype, value.trainable)

    def _serialize(self) -> tuple:
        return self.shape, self.dtype, self.trainable, self.alias_id

    def _with_shape(self, shape: Any) -> VariableSpec:
        return VariableSpec(shape, self.dtype, self.trainable, self.alias_id)

    def _without_tensor_names(self) -> VariableSpec:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VariableSpec) and self._serialize() == other._serialize()

    def __hash__(self) -> int:
        return hash((self._shape, self.dtype, self.trainable))

    def __repr__(self) -> str:
        return f"VariableSpec(shape={self.shape}, dtype={self.dtype!r}, trainable={self.trainable!r})"

    def __reduce__(self) -> tuple:
        return VariableSpec, self._serialize()


def _leaves_beside(mine: Any, others: Sequence[Any]) -> tuple[list[Any], list[tuple[Any, ...]]]:
    """The leaves of a serialization, and those of others in the same places. Raises ValueError or TypeError where
    they have another structure."""
    for other in others:
        composites.assert_same_structure(mine, other)
    leaves = composites.flatten(mine)
    columns = [composites.flatten(other) for other in others]
    return leaves, list(zip(*columns)) if columns else [()] * len(leaves)


def _is_subtype(one: Any, other: Any) -> bool:
    asked = getattr(one, "is_subtype_of", None)
    return bool(np.all(one == other)) if asked is None else bool(asked(other))


def _supertype(one: Any, others: list[Any]) -> Any:
    if isinstance(one, TensorShape):
        return functools.reduce(TensorShape.most_specific_compatible_shape, others, one)
    asked = getattr(one, "most_specific_common_supertype", None)
    if asked is not None:
        return asked(others)
    return one if all(bool(np.all(one == other)) for other in others) else None


def _relaxed_spec(spec: Any) -> Any:
    return spec._with_tensor_ranks_only()


# Names of classes of specs, as saved models have them.
NAME_TO_TYPE_SPEC: dict[str, type] = {}
TYPE_SPEC_TO_NAME: dict[type, str] = {}


def register_name(name: str) -> Callable[[type], type]:
    """A class decorator that gives a class of specs a name. Raises ValueError for a name or class that has one."""

    def decorate(cls: type) -> type:
        if name in NAME_TO_TYPE_SPEC:
            raise ValueError(f"Name {name} has already been registered for class {NAME_TO_TYPE_SPEC[name].__name__}.")
        if cls in TYPE_SPEC_TO_NAME:
            raise ValueError(f"Class {cls.__name__} has already been registered with name {TYPE_SPEC_TO_NAME[cls]}.")
        NAME_TO_TYPE_SPEC[name], TYPE_SPEC_TO_NAME[cls] = cls, name
        return cls

    return decorate


def registered_name(cls: type) -> str:
    """The name that a class of specs was given. Raises ValueError for one without."""
    if cls not in TYPE_SPEC_TO_NAME:
        raise ValueError(f"TypeSpec {cls!r} has not been registered.")
    return TYPE_SPEC_TO_NAME[cls]


def registered_class(name: str) -> type:
    """The class of specs with a name. Raises ValueError for a name that no class has."""
    if name not in NAME_TO_TYPE_SPEC:
        raise ValueError(f"No TypeSpec has been registered with name {name!r}")
    return NAME_TO_TYPE_SPEC[name]


def convert_variables_to_tensors(structure: Any) -> Any:
    """A structure with the values of its variables, also of those in composite tensors."""

    def converted(value: Any) -> Any:
        if isinstance(value, Variable):
            return convert_to_tensor(value)
        asked = getattr(value, "_convert_variables_to_tensors", None)
        return value if asked is None else asked()

    return composites.map_structure(converted, structure)


# By class, what gives the spec of its instances.
_converters: list[tuple[type, Callable[[Any], Any]]] = []


def register_type_spec_from_value_converter(
    type_object: type, converter_fn: Callable[[Any], Any], allow_subclass: bool = False
) -> None:
    """Has `type_spec_from_value` ask `converter_fn` for the spec of a class's instances (of its subclasses, too)."""
    matches = type_object if allow_subclass else _exactly(type_object)
    _converters.append((matches, converter_fn))


def _exactly(kind: type) -> type:
    class Exactly(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return type(instance) is kind

    return Exactly(f"exactly {kind.__name__}", (), {})


def type_spec_from_value(value: Any) -> Any:
    """The spec of a tensor, a composite, or of anything that converts to a tensor.

    Raises TypeError for other values.
    """
    own = getattr(value, "_type_spec", None)
    if own is not None and hasattr(type(value), "__ag_composite__"):
        return own
    if isinstance(value, Variable):
        return VariableSpec.from_value(value)
    if is_own_tensor(value):
        if isinstance(value, (SparseTensor, RaggedTensor)):
            return value._type_spec
        return TensorSpec(value.shape, value.dtype)
    for kind, convert in reversed(_converters):
        if isinstance(value, kind):
            return convert(value)
    try:
        tensor = convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"Could not build a TypeSpec for {value!r} of type {type(value).__name__}") from error
    return TensorSpec(tensor.shape, tensor.dtype)


for _spec in (TensorSpec, SparseTensorSpec, RaggedTensorSpec, ExtensionTypeSpec):
    TypeSpec.register(_spec)
DenseSpec.register(TensorSpec)
BatchableTypeSpec.register(TensorSpec)
for _value in (SparseTensor, RaggedTensor, ExtensionType):
    CompositeTensor.register(_value)
