"""Attributes of nodes as JSON values, and back.

None, booleans, integers and texts are themselves, tuples are lists. Everything else is an object with one key, its tag:

    {"float": "0x1.8p+0"}  {"bytes": "base64"}  {"list": [...]}  {"dict": [[key, value] ...]}  {"slice": [a, b, c]}
    {"dtype": name}  {"type": number}  {"constant": number}  {"variable": number}  {"stream": [number, place]}
    {"place": index}  {"datum": index}  {"formatted": [index, format or texts]}  {"message": [piece ...]}
    {"error": {...}}  {"call": {...}}  {"apply": {...}}  {"budget": [bytes, strict]}  {"pull_back": [...]}
    {"ellipsis": []}  {"op": name}

Reading makes these values only: it imports nothing, calls nothing and looks nothing up by names but dtypes, errors, ops
and the functions marked `deferrable`.
"""

from __future__ import annotations

import base64
import builtins
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from runtime import dtypes, errors
from runtime.autodiff.budget import Budget
from runtime.autodiff.deferred_gradients import PulledBack
from runtime.dtypes import DType
from runtime.errors import UnimplementedError
from runtime.graph.ir import ConstantArray
from runtime.ops.control import Datum, ErrorTemplate, Message
from runtime.ops.deferred_calls import Applied, Call, OperandIndex, name_of
from runtime.ops.random.stateful import Site
from runtime.ops.strings.staged_string import Formatted
from runtime.ops.table import OpDef
from runtime.serial.names import function_called, op_called
from runtime.tensor import TensorReference
from runtime.types import StackType, TensorType, TokenType, Type


class Damaged(Exception):
    """The content of a file isn't what this project writes: it is damaged, or made by hand."""


# --- types -----------------------------------------------------------------------------------------------------------

_DTYPES = {dtype.name: dtype for dtype in (*dtypes.ALL, *dtypes.STORED)}


def type_to_json(type_: Type) -> Any:
    """`"token"`, `[dtype, shape]` or `["stack", dtype, shape]`; a shape is a list with null for unknown sizes, or
    null."""
    if isinstance(type_, TokenType):
        return "token"
    if isinstance(type_, StackType):
        return ["stack", *type_to_json(type_.element)]
    return [type_.dtype.name, None if type_.shape is None else list(type_.shape)]


def type_from_json(said: Any) -> Type:
    if said == "token":
        return TokenType()
    if isinstance(said, list) and len(said) == 3 and said[0] == "stack":
        return StackType(_tensor_type(said[1:]))
    return _tensor_type(said)


def _tensor_type(said: Any) -> TensorType:
    if not isinstance(said, list) or len(said) != 2 or not isinstance(said[0], str) or said[0] not in _DTYPES:
        raise Damaged(f"{said!r} is no type")
    shape = said[1]
    if shape is not None:
        if not isinstance(shape, list) or len(shape) > 32 or not all(d is None or is_index(d, 1 << 48) for d in shape):
            raise Damaged(f"{shape!r} is not a shape")
        shape = tuple(shape)
    return TensorType(_DTYPES[said[0]], shape)


def is_index(value: Any, stop: int) -> bool:
    """Whether this is an int from 0 to before `stop`."""
    return type(value) is int and 0 <= value < stop


# --- errors ----------------------------------------------------------------------------------------------------------

_ERRORS: dict[str, type[Exception]] = {
    name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)
}
_ERRORS.update({name: getattr(errors, name) for name in errors.CODES})
_ERRORS.update(errors.BY_NAME)


def _known_error(kind: type[BaseException]) -> str:
    """The name of an error's class or, of a class of the user's, of the nearest one above it that everybody has."""
    for each in kind.__mro__:
        name = next((name for name, known in _ERRORS.items() if known is each), None)
        if name is not None:
            return name
    return "Exception"


# --- attributes ------------------------------------------------------------------------------------------------------


class Encoder:
    """Attributes to JSON. The callbacks give types, constants and variables their numbers."""

    encoders: ClassVar[dict[type, Callable[[Any, Any], Any]]] = {}  # filled below

    def __init__(
        self,
        type_number: Callable[[Type], int],
        constant_number: Callable[[ConstantArray], int],
        variable_number: Callable[[Any], int],
    ) -> None:
        self._type, self._constant, self._variable = type_number, constant_number, variable_number
        self._sites: dict[int, tuple[int, Site]] = {}

    def to_json(self, value: Any) -> Any:
        """Raises UnimplementedError for what has no form in files."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        encode = self.encoders.get(kind)
        if encode is None and isinstance(value, np.generic):
            encode = _number
        if encode is None:
            raise UnimplementedError(f"an object of type {kind.__name__!r} can't be stored in a file: {value!r}")
        return encode(self, value)

    def all(self, values: Any) -> list[Any]:
        return [self.to_json(value) for value in values]

    def site(self, site: Site) -> Any:
        number, _ = self._sites.setdefault(id(site), (len(self._sites), site))
        return {"stream": [number, site.place]}

    def error(self, template: ErrorTemplate) -> Any:
        return {
            "error": {
                "class": _known_error(template.kind),
                "arguments": self.all(template.arguments),
                "attributes": [[name, self.to_json(value)] for name, value in template.attributes],
                "is_from": bool(template.is_from),
                "cause": self.to_json(template.cause),
            }
        }

    def call(self, call: Call) -> Any:
        name = name_of(call.function)
        if name is None:
            raise UnimplementedError(f"a call of {call!r} can't be stored in a file")
        arguments = [self.to_json(tuple(call.args)), self.to_json(dict(call.kwargs))]
        return {"call": {"function": name, "arguments": arguments}}

    def pulled_back(self, call: PulledBack) -> Any:
        return {"pull_back": self.all((call.call, call.count, list(call.wanted), list(call.seeds)))}

    def applied(self, call: Applied) -> Any:
        return {"apply": {"op": call.op.name, "attributes": self.to_json(dict(call.attrs))}}


def _float(encoder: Encoder, value: Any) -> Any:
    return {"float": float(value).hex()}


def _number(encoder: Encoder, value: Any) -> Any:
    return {"constant": encoder._constant(ConstantArray(value))}


_ENCODERS: dict[type, Callable[[Encoder, Any], Any]] = {
    tuple: lambda encoder, value: encoder.all(value),
    float: _float,
    bytes: lambda encoder, value: {"bytes": base64.b64encode(value).decode("ascii")},
    list: lambda encoder, value: {"list": encoder.all(value)},
    dict: lambda encoder, value: {"dict": [encoder.all(item) for item in value.items()]},
    slice: lambda encoder, value: {"slice": encoder.all((value.start, value.stop, value.step))},
    np.ndarray: _number,
    DType: lambda encoder, value: {"dtype": value.name},
    TensorType: lambda encoder, value: {"type": encoder._type(value)},
    StackType: lambda encoder, value: {"type": encoder._type(value)},
    TokenType: lambda encoder, value: {"type": encoder._type(value)},
    ConstantArray: lambda encoder, value: {"constant": encoder._constant(value)},
    TensorReference: lambda encoder, value: {"variable": encoder._variable(value.deref())},
    Site: lambda encoder, value: encoder.site(value),
    Budget: lambda encoder, value: {"budget": [value.bytes, value.strict]},
    OperandIndex: lambda encoder, value: {"place": value.index},
    Datum: lambda encoder, value: {"datum": value.index},
    Formatted: lambda encoder, value: {
        "formatted": [value.index, list(value.spec) if isinstance(value.spec, tuple) else value.spec]
    },
    Message: lambda encoder, value: {"message": encoder.all(value.pieces)},
    ErrorTemplate: lambda encoder, value: encoder.error(value),
    OpDef: lambda encoder, value: {"op": value.name},
    type(...): lambda encoder, value: {"ellipsis": []},
    PulledBack: lambda encoder, value: encoder.pulled_back(value),
    Call: lambda encoder, value: encoder.call(value),
    Applied: lambda encoder, value: encoder.applied(value),
}

Encoder.encoders = _ENCODERS


class Decoder:
    """Reads attributes from JSON. types, constants, variables: the objects that numbers in the JSON refer to."""

    tags = frozenset([
        "float", "bytes", "list", "dict", "slice", "dtype", "type", "constant", "variable", "stream", "place", "datum",
        "formatted", "message", "error", "call", "apply", "budget", "pull_back", "ellipsis", "op",
    ])  # fmt: skip

    def __init__(self, types: Sequence[Type], constants: Sequence[ConstantArray], variables: Sequence[Any]) -> None:
        self._types, self._constants, self._variables = types, constants, variables
        self._sites: dict[int, Site] = {}

    def from_json(self, said: Any) -> Any:
        """Raises Damaged for what `Encoder.to_json` doesn't give."""
        if said is None or type(said) in (bool, str):
            return said
        if type(said) is int:
            if not -(1 << 63) <= said < 1 << 64:
                raise Damaged("an integer has more than 64 bits")
            return said
        if isinstance(said, list):
            return tuple(map(self.from_json, said))
        if isinstance(said, dict) and len(said) == 1:
            ((tag, content),) = said.items()
            decode = getattr(self, f"_{tag}", None) if tag in self.tags else None
            if decode is not None:
                return decode(content)
        raise Damaged(f"{str(said)[:100]} is not a value")

    def _all(self, said: Any) -> list[Any]:
        if not isinstance(said, list):
            raise Damaged("a list is missing")
        return list(map(self.from_json, said))

    def _float(self, said: Any) -> float:
        try:
            return float.fromhex(said)
        except (TypeError, ValueError, OverflowError):
            raise Damaged(f"{said!r} is not a float") from None

    def _bytes(self, said: Any) -> bytes:
        try:
            return base64.b64decode(said, validate=True)
        except (TypeError, ValueError):
            raise Damaged("base64 is damaged") from None

    _list = _all

    def _dict(self, said: Any) -> dict[Any, Any]:
        pairs = [tuple(self._all(item)) for item in said] if isinstance(said, list) else [()]
        if not all(len(pair) == 2 and type(pair[0]) in (str, int) for pair in pairs):
            raise Damaged("a dictionary is damaged")
        return dict(pairs)  # type: ignore[arg-type]

    def _slice(self, said: Any) -> slice:
        parts = self._all(said)
        if len(parts) != 3:
            raise Damaged("a slice has three parts")
        return slice(*parts)

    def _dtype(self, said: Any) -> DType:
        if not isinstance(said, str) or said not in _DTYPES:
            raise Damaged(f"{said!r} is not a dtype")
        return _DTYPES[said]

    def _at(self, said: Any, among: Sequence[Any], what: str) -> Any:
        if not is_index(said, len(among)):
            raise Damaged(f"there is no {what} {said!r}")
        return among[said]

    def _type(self, said: Any) -> Type:
        return self._at(said, self._types, "type")

    def _constant(self, said: Any) -> ConstantArray:
        return self._at(said, self._constants, "constant")

    def _variable(self, said: Any) -> TensorReference:
        return self._at(said, self._variables, "variable").ref()

    def _stream(self, said: Any) -> Site:
        if not isinstance(said, list) or len(said) != 2 or not all(is_index(each, 1 << 31) for each in said):
            raise Damaged("a stream of random numbers is damaged")
        site = self._sites.setdefault(said[0], Site(said[1]))
        if site.place != said[1]:
            raise Damaged("a stream of random numbers has two places")
        return site

    def _budget(self, said: Any) -> Budget:
        if not isinstance(said, list) or len(said) != 2 or not is_index(said[0], 1 << 63) or type(said[1]) is not bool:
            raise Damaged("a memory budget is damaged")
        return Budget(*said)

    def _index(self, said: Any) -> int:
        if not is_index(said, 1 << 20):
            raise Damaged("a place is not an index")
        return said

    def _place(self, said: Any) -> OperandIndex:
        return OperandIndex(self._index(said))

    def _datum(self, said: Any) -> Datum:
        return Datum(self._index(said))

    def _formatted(self, said: Any) -> Formatted:
        if not isinstance(said, list) or len(said) != 2:
            raise Damaged("a formatted value is damaged")
        texts = said[1] if isinstance(said[1], list) else [said[1]]
        if said[1] is not None and not all(isinstance(each, str) for each in texts):
            raise Damaged("a formatted value is damaged")
        return Formatted(self._index(said[0]), tuple(texts) if isinstance(said[1], list) else said[1])

    def _message(self, said: Any) -> Message:
        pieces = tuple(self._all(said))
        if not all(isinstance(piece, (str, Formatted)) for piece in pieces):
            raise Damaged("a message is damaged")
        return Message(pieces)

    def _error(self, said: Any) -> ErrorTemplate:
        if not isinstance(said, dict) or said.keys() != {"class", "arguments", "attributes", "is_from", "cause"}:
            raise Damaged("an error is damaged")
        kind = _ERRORS.get(said["class"]) if isinstance(said["class"], str) else None
        arguments, attributes = self._all(said["arguments"]), self._all(said["attributes"])
        cause = self.from_json(said["cause"])
        named = all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in attributes)
        if kind is None or not named or type(said["is_from"]) is not bool:
            raise Damaged("an error is damaged")
        if not isinstance(cause, (ErrorTemplate, type(None))):
            raise Damaged("the cause of an error is damaged")
        return ErrorTemplate(kind, tuple(arguments), tuple(attributes), said["is_from"], cause)

    def _call(self, said: Any) -> Call:
        if not isinstance(said, dict) or said.keys() != {"function", "arguments"}:
            raise Damaged("a call is damaged")
        function = function_called(said["function"])
        arguments = self._all(said["arguments"])
        if function is None:
            raise Damaged(f"there is no function {said['function']!r}")
        if len(arguments) != 2 or not isinstance(arguments[0], tuple) or not isinstance(arguments[1], dict):
            raise Damaged("a call is damaged")
        if not all(isinstance(name, str) for name in arguments[1]):
            raise Damaged("a call is damaged")
        return Call(function, arrays(arguments[0]), arrays(arguments[1]))

    def _pull_back(self, said: Any) -> PulledBack:
        parts = self._all(said)
        places = parts[2:]
        if len(parts) != 4 or not isinstance(parts[0], _CALLS) or not is_index(parts[1], 1 << 20):
            raise Damaged("a gradient is damaged")
        if not all(isinstance(each, list) and all(is_index(n, 1 << 20) for n in each) for each in places):
            raise Damaged("a gradient is damaged")
        return PulledBack(*parts)

    def _op(self, said: Any) -> OpDef:
        op = op_called(said)
        if op is None:
            raise Damaged(f"there is no operation {said!r}")
        return op

    def _ellipsis(self, said: Any) -> Any:
        return ...

    def _apply(self, said: Any) -> Applied:
        if not isinstance(said, dict) or said.keys() != {"op", "attributes"} or not isinstance(said["op"], str):
            raise Damaged("a call is damaged")
        attrs, op = self.from_json(said["attributes"]), op_called(said["op"])
        if op is None or not isinstance(attrs, dict):
            raise Damaged("a call is damaged")
        return Applied(op, attrs)


_CALLS = (Call, Applied, PulledBack)


def arrays(value: Any) -> Any:
    """Arguments of a call, in which constants are arrays."""
    if isinstance(value, ConstantArray):
        return value.array
    if type(value) in (tuple, list):
        return type(value)(map(arrays, value))
    return {key: arrays(item) for key, item in value.items()} if type(value) is dict else value
