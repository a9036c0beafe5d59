"""Arguments and results of functions as JSON: the attributes of nodes (see `runtime.serial.values`), and

    {"spec": [type, name]}  {"object": number}  {"variable_argument": [number, whether its name counts]}
    {"named": [class, [field ...], [value ...]]}  {"composite": [class, metadata, [part ...]]}
    {"complex": [real, imaginary]}  {"range": [start, stop, step]}

Named tuples are read as named tuples of a new class, whose name and fields are the same.
"""

from __future__ import annotations

import collections
import inspect
import keyword
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograph.data.optional import Optional, OptionalSpec
from autograph.function.signature import NumberSpec, VariableArgument, WeakArgument
from runtime import nest
from runtime.errors import UnimplementedError
from runtime.ops.arrays.scatter import IndexedSlices
from runtime.ragged.shape import DynamicRaggedShape
from runtime.ragged.spec import RaggedTensorSpec
from runtime.ragged.tensor import RaggedTensor
from runtime.serial.values import Damaged, Decoder, Encoder
from runtime.sparse import SparseTensor, SparseTensorSpec
from runtime.spec import TensorSpec
from runtime.tensor_array import TensorArray, UnequalTensorArray
from runtime.types import TensorType

_COMPOSITES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        RaggedTensor, RaggedTensorSpec, SparseTensor, SparseTensorSpec, IndexedSlices, TensorArray,
        UnequalTensorArray, DynamicRaggedShape, Optional, OptionalSpec,
    )
}  # fmt: skip


class StructureEncoder(Encoder):
    """object_number: gives an object the number of its place among the saved ones, or None."""

    def __init__(
        self,
        type_number: Callable[[Any], int],
        constant_number: Callable[[Any], int],
        variable_number: Callable[[Any], int],
        object_number: Callable[[Any], int | None],
    ) -> None:
        super().__init__(type_number, constant_number, variable_number)
        self._object_number = object_number

    def to_json(self, value: Any) -> Any:
        if type(value) is TensorSpec:
            return {"spec": [self._type(value.type), value.name]}
        if isinstance(value, VariableArgument):
            variable = value.get()
            if variable is None:
                raise UnimplementedError("a variable among its arguments no longer exists")
            return {"variable_argument": [self._variable(variable), value.name_counts]}
        if isinstance(value, WeakArgument):
            number = self._object_number(value.get())
            if number is None:
                raise UnimplementedError(f"its argument {value!r} isn't part of the saved object")
            return {"object": number}
        if isinstance(value, NumberSpec):
            raise UnimplementedError("one of its arguments is a number of an enclosing trace")
        if type(value) is complex:
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if type(value) is range:
            return {"range": [value.start, value.stop, value.step]}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return {"named": [type(value).__name__, list(value._fields), self.all(value)]}
        if isinstance(value, Mapping) and type(value) is not dict:
            return super().to_json(dict(value))
        if _COMPOSITES.get(type(value).__name__) is type(value):
            metadata, parts = value.__tf_flatten__()
            return {"composite": [type(value).__name__, self.to_json(metadata), self.all(parts)]}
        return super().to_json(value)


class StructureDecoder(Decoder):
    """Reads arguments and results of functions from JSON. things: the objects of the model, by number."""

    tags = Decoder.tags | {"spec", "object", "variable_argument", "named", "composite", "complex", "range"}

    def __init__(
        self, types: Sequence[Any], constants: Sequence[Any], variables: Sequence[Any], things: Sequence[Any]
    ) -> None:
        super().__init__(types, constants, variables)
        self._things = things

    def _spec(self, said: Any) -> TensorSpec:
        if not isinstance(said, list) or len(said) != 2 or not isinstance(said[1], (str, type(None))):
            raise Damaged("a spec is damaged")
        type_ = self._type(said[0])
        if not isinstance(type_, TensorType):
            raise Damaged("a spec isn't a tensor's")
        return TensorSpec(type_.shape, type_.dtype, said[1])

    def _object(self, said: Any) -> WeakArgument:
        thing = self._at(said, self._things, "object")
        if thing is None:
            raise Damaged("a function's argument is defined after the function")
        return WeakArgument(thing)

    def _variable_argument(self, said: Any) -> VariableArgument:
        if not isinstance(said, list) or len(said) != 2 or type(said[1]) is not bool:
            raise Damaged("a variable among arguments is damaged")
        return VariableArgument(self._at(said[0], self._variables, "variable"), said[1])

    def _named(self, said: Any) -> Any:
        if not isinstance(said, list) or len(said) != 3 or not isinstance(said[1], list):
            raise Damaged("a named tuple is damaged")
        values = self._all(said[2])
        if not all(map(is_name, [said[0], *said[1]])) or len(values) != len(said[1]):
            raise Damaged("a named tuple is damaged")
        return named_tuple(said[0], tuple(said[1]))(*values)

    def _composite(self, said: Any) -> Any:
        if not isinstance(said, list) or len(said) != 3 or said[0] not in _COMPOSITES:
            raise Damaged("a ragged or sparse tensor is damaged")
        return _COMPOSITES[said[0]].__tf_unflatten__(self.from_json(said[1]), tuple(self._all(said[2])))

    def _complex(self, said: Any) -> complex:
        if not isinstance(said, list) or len(said) != 2:
            raise Damaged("a complex number is damaged")
        return complex(self._float(said[0]), self._float(said[1]))

    def _range(self, said: Any) -> range:
        if not isinstance(said, list) or len(said) != 3 or not all(type(n) is int for n in said) or not said[2]:
            raise Damaged("a range is damaged")
        return range(*said)


_named_tuples: dict[tuple, Any] = {}


def named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    """The class of the named tuples that were read with this name and these fields."""
    key = name, fields
    if key not in _named_tuples:
        _named_tuples[key] = collections.namedtuple(name, fields)
    return _named_tuples[key]


def is_name(value: Any) -> bool:
    """Whether this may be the name of a parameter or of a named tuple's field."""
    plain = isinstance(value, str) and value.isidentifier() and not keyword.iskeyword(value)
    return plain and not value.startswith("_") and len(value) < 200


# --- parameters ------------------------------------------------------------------------------------------------------


class LostDefault:
    """Stands for a parameter's default that has no form in files."""

    def __repr__(self) -> str:
        return "<default that wasn't saved>"


_KINDS = {kind.name: kind for kind in inspect._ParameterKind}


def parameters_to_json(signature: inspect.Signature | None, encoder: StructureEncoder) -> Any:
    """A function's parameters: their names, kinds and defaults."""
    if signature is None:
        return None
    found = []
    for parameter in signature.parameters.values():
        said: dict[str, Any] = {"name": parameter.name, "kind": parameter.kind.name}
        if parameter.default is not parameter.empty:
            try:
                said["default"] = encoder.to_json(parameter.default)
            except UnimplementedError:
                said["lost_default"] = True
        found.append(said)
    return found


def parameters_from_json(said: Any, decoder: StructureDecoder) -> inspect.Signature | None:
    """Raises Damaged, or ValueError for parameters in an order that no function has."""
    if said is None:
        return None
    found = []
    for one in said if isinstance(said, list) else [None]:
        if not isinstance(one, dict):
            raise Damaged("a parameter is damaged")
        name, kind = one.get("name"), one.get("kind")
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or str(kind) not in _KINDS:
            raise Damaged("a parameter is damaged")
        default: Any = inspect.Parameter.empty
        if "default" in one:
            default = decoder.from_json(one["default"])
        elif one.get("lost_default"):
            default = LostDefault()
        found.append(inspect.Parameter(name, _KINDS[str(kind)], default=default))
    return inspect.Signature(found)


def has_foreign_parts(structure: Any) -> str | None:
    """What of a structure is an instance of a class that loading doesn't know: its name."""
    if not nest.is_nested(structure):
        return None
    kind = type(structure)
    known = isinstance(structure, (list, tuple, Mapping)) or _COMPOSITES.get(kind.__name__) is kind
    if not known:
        return kind.__qualname__.rpartition("<locals>.")[2]
    return next((found for part in nest.children(structure) if (found := has_foreign_parts(part))), None)
