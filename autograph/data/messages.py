"""`ag.train.Example` and the messages it consists of: what records of TensorFlow's files usually hold.

The classes behave as those that `protobuf` makes of TensorFlow's `example.proto` and `feature.proto`, without needing
it: fields are made when they are first looked at, lists and dictionaries of them are changed in place, and of a
`Feature`'s three lists it has the one that was set or filled last."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, MutableSequence
from typing import Any, ClassVar

import numpy as np

from runtime.ops.strings import example_parsing, wire


class DecodeError(ValueError):
    """Raised for bytes that aren't a message of the wanted kind."""


class Message:
    """Base of all messages. _fields: for each field its number and what makes an empty value of it."""

    _fields: ClassVar[dict[str, tuple[int, Callable[[Any], Any]]]] = {}
    _oneof: ClassVar[str] = ""  # the name of the group of which one field at most is set: all of them

    def __init__(self, **given: Any) -> None:
        self._set: dict[str, Any] = {}
        for name, value in given.items():
            if name not in self._fields:
                raise ValueError(f'Protocol message {type(self).__name__} has no "{name}" field.')
            if value is not None:
                self._field(name)._fill(value)

    def _field(self, name: str) -> Any:
        """A field that is being set."""
        if self._oneof:
            self._set = {key: value for key, value in self._set.items() if key == name}
        if name not in self._set:
            self._set[name] = self._fields[name][1](self)
        return self._set[name]

    def __getattr__(self, name: str) -> Any:
        if name not in type(self)._fields:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        if name in self._set:
            return self._set[name]
        made = self._fields[name][1](self)
        made._attach(lambda: self._adopt(name, made))
        return made

    def _adopt(self, name: str, made: Any) -> None:
        """Takes a field that was looked at before anything was in it."""
        if self._set.get(name) is not made:
            if self._oneof:
                self._set.clear()
            self._set[name] = made
        self._changed()

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise AttributeError(
                f'Assignment not allowed to field "{name}" in protocol message object: use CopyFrom, or change its '
                "contents"
            )
        super().__setattr__(name, value)

    def _attach(self, parent: Callable[[], None]) -> None:
        self._parent: Callable[[], None] | None = parent

    def _changed(self) -> None:
        parent = self.__dict__.pop("_parent", None)
        if parent is not None:
            parent()

    def _fill(self, value: Any) -> None:
        if isinstance(value, Mapping):
            value = type(self)(**value)
        self.CopyFrom(value)

    def _is_empty(self) -> bool:
        return False  # a message that is set is written, even without content

    # --- protobuf's names ----------------------------------------------------------------------------------------

    def HasField(self, name: str) -> bool:
        """Whether a field is set. Raises ValueError for lists and dictionaries, and unknown names."""
        if name == self._oneof and name:
            return bool(self._set)
        if name not in self._fields or self._fields[name][1] in _CONTAINERS:
            raise ValueError(f'Protocol message {type(self).__name__} has no singular "{name}" field.')
        return name in self._set

    def WhichOneof(self, name: str) -> str | None:
        """The field of a group that is set; None: none is."""
        if name != self._oneof or not name:
            raise ValueError(f'Protocol message {type(self).__name__} has no oneof "{name}" field.')
        return next(iter(self._set), None)

    def ClearField(self, name: str) -> None:
        """Unsets a field."""
        if name not in self._fields:
            raise ValueError(f'Protocol message has no "{name}" field.')
        self._set.pop(name, None)

    def Clear(self) -> None:
        """Unsets all fields."""
        self._set.clear()

    def CopyFrom(self, other: Any) -> None:
        """Makes this message equal to another one."""
        if type(other) is not type(self):
            raise TypeError(f"Parameter to CopyFrom() must be {type(self).__name__}, got {type(other).__name__}")
        if other is not self:
            self.ParseFromString(other.SerializeToString())

    def MergeFrom(self, other: Any) -> None:
        """Adds what another message has."""
        if type(other) is not type(self):
            raise TypeError(f"Parameter to MergeFrom() must be {type(self).__name__}, got {type(other).__name__}")
        self.MergeFromString(other.SerializeToString())

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """The message as bytes; entries of dictionaries in the order of their keys."""
        return b"".join(self._set[name]._encode(self._fields[name][0]) for name in self._fields if name in self._set)

    def ByteSize(self) -> int:
        """How many bytes `SerializeToString` gives."""
        return len(self.SerializeToString())

    def ParseFromString(self, serialized: Any) -> int:
        """Makes this message what the bytes say; gives their number. Raises DecodeError."""
        self.Clear()
        return self.MergeFromString(serialized)

    def MergeFromString(self, serialized: Any) -> int:
        """Adds what the bytes say; gives their number. Raises DecodeError."""
        content = bytes(serialized)
        names = {number: name for name, (number, _) in self._fields.items()}
        try:
            for number, kind, value in wire.fields(content):
                if number in names:
                    self._field(names[number])._decode(kind, value)
        except wire.WireError as error:
            raise DecodeError(f"Error parsing message with type 'tensorflow.{type(self).__name__}': {error}") from None
        self._changed()
        return len(content)

    @classmethod
    def FromString(cls, serialized: Any) -> Any:
        """The message of some bytes. Raises DecodeError."""
        made = cls()
        made.ParseFromString(serialized)
        return made

    def SetInParent(self) -> None:
        """Sets this message where it belongs, even if it is empty."""
        self._changed()

    def IsInitialized(self) -> bool:
        """True: no field is required."""
        return True

    def ListFields(self) -> list[tuple[str, Any]]:
        """The fields that are set: names and values."""
        return [(name, self._set[name]) for name in self._fields if name in self._set]

    def _encode(self, number: int) -> bytes:
        return wire.field(number, self.SerializeToString())

    def _decode(self, kind: int, value: Any) -> None:
        if kind != wire.BYTES:
            raise wire.WireError("a message was expected")
        self.MergeFromString(value)

    def _lines(self, indent: str) -> Iterator[str]:
        for name, value in self.ListFields():
            yield from value._text(name, indent)

    def _text(self, name: str, indent: str) -> Iterator[str]:
        yield f"{indent}{name} {{"
        yield from self._lines(indent + "  ")
        yield f"{indent}}}"

    def __str__(self) -> str:
        return "".join(line + "\n" for line in self._lines(""))

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.SerializeToString() == other.SerializeToString()

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, memo: Any) -> Any:
        return type(self).FromString(self.SerializeToString())

    def __copy__(self) -> Any:
        return type(self).FromString(self.SerializeToString())

    def __reduce__(self) -> tuple:
        return _parsed, (type(self), self.SerializeToString())


def _parsed(kind: type[Message], content: bytes) -> Message:
    made: Message = kind.FromString(content)
    return made


class _Contents:
    """What is in a field that isn't a single message."""

    _parent: Callable[[], None] | None = None

    def __init__(self, owner: Any) -> None:
        pass

    def _attach(self, parent: Callable[[], None]) -> None:
        self._parent = parent

    def _changed(self) -> None:
        if self._parent is not None:
            parent, self._parent = self._parent, None
            parent()


class _Values(_Contents, MutableSequence):
    """The values of a list, all of one kind."""

    def __init__(self, owner: Any) -> None:
        self._items: list[Any] = []

    def _checked(self, value: Any) -> Any:
        raise NotImplementedError

    def _fill(self, values: Any) -> None:
        self.extend(values)

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._items[index] = [*map(self._checked, value)] if isinstance(index, slice) else self._checked(value)
        self._changed()

    def __delitem__(self, index: Any) -> None:
        del self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def insert(self, index: int, value: Any) -> None:
        self._items.insert(index, self._checked(value))
        self._changed()

    def extend(self, values: Iterable[Any]) -> None:
        if values is not None:
            self._items.extend(map(self._checked, values))
            self._changed()

    MergeFrom = extend

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Iterable) else NotImplemented

    def __repr__(self) -> str:
        return repr(self._items)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self._items, dtype)

    def _encode(self, number: int) -> bytes:
        return wire.field(number, self._packed()) if self._items else b""

    def _packed(self) -> bytes:
        raise NotImplementedError

    def _shown(self, value: Any) -> str:
        return str(value)

    def _text(self, name: str, indent: str) -> Iterator[str]:
        for value in self._items:
            yield f"{indent}{name}: {self._shown(value)}"


_ESCAPES = {**{byte: f"\\{byte:03o}" for byte in range(256) if not 32 <= byte < 127}, 9: r"\t", 10: r"\n", 13: r"\r"}
_ESCAPES |= {ord('"'): r"\"", ord("'"): r"\'", ord("\\"): r"\\"}


def _quoted(text: bytes) -> str:
    return '"' + "".join(_ESCAPES.get(byte, chr(byte)) for byte in text) + '"'


class _Strings(_Values):
    def _checked(self, value: Any) -> bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(f"{value!r} has type {type(value).__name__}, but expected one of: (bytes,)")
        return bytes(value)

    def _encode(self, number: int) -> bytes:
        return b"".join(wire.field(number, item) for item in self._items)

    def _decode(self, kind: int, value: Any) -> None:
        if kind != wire.BYTES:
            raise wire.WireError("bytes were expected")
        self._items.append(bytes(value))

    def _shown(self, value: Any) -> str:
        return _quoted(value)


class _Floats(_Values):
    def _checked(self, value: Any) -> float:
        if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
            raise TypeError(f"{value!r} has type {type(value).__name__}, but expected one of: (int, float)")
        with np.errstate(over="ignore"):
            return float(np.float32(float(value)))

    def _packed(self) -> bytes:
        return np.array(self._items, "<f4").tobytes()

    def _decode(self, kind: int, value: Any) -> None:
        if kind not in (wire.BYTES, wire.FIXED32):
            raise wire.WireError("floats were expected")
        self._items += wire.packed_floats(value).tolist()

    def _shown(self, value: Any) -> str:
        text = f"{value:.6g}"
        return text if float(np.float32(text)) == value else f"{value:.9g}"


class _Integers(_Values):
    def _checked(self, value: Any) -> int:
        try:
            number = operator.index(value)
        except TypeError:
            raise TypeError(f"{value!r} has type {type(value).__name__}, but expected one of: (int,)") from None
        if not -(1 << 63) <= number < 1 << 63:
            raise ValueError(f"Value out of range: {number}")
        return number

    def _packed(self) -> bytes:
        return wire.varints(self._items)

    def _decode(self, kind: int, value: Any) -> None:
        if kind == wire.VARINT:
            self._items.append(wire.signed(value))
        elif kind == wire.BYTES:
            self._items += wire.packed_integers(value).tolist()
        else:
            raise wire.WireError("integers were expected")


class _Map(_Contents, MutableMapping):
    """Messages by strings; one that isn't there is made when it is looked at."""

    _kind: type[Message]

    def __init__(self, owner: Any) -> None:
        self._items: dict[str, Any] = {}

    def _checked(self, key: Any) -> str:
        if isinstance(key, bytes):
            key = key.decode()
        if not isinstance(key, str):
            raise TypeError(f"{key!r} has type {type(key).__name__}, but expected one of: (bytes, str)")
        return key

    def _fill(self, entries: Any) -> None:
        for key, value in entries.items():
            self[key]._fill(value)

    def __getitem__(self, key: Any) -> Any:
        name = self._checked(key)
        if name not in self._items:
            self._items[name] = self._kind()
            self._changed()
        return self._items[name]

    def get_or_create(self, key: Any) -> Any:
        """The message of a key."""
        return self[key]

    def get(self, key: Any, default: Any = None) -> Any:
        return self._items.get(self._checked(key), default)

    def __contains__(self, key: object) -> bool:
        return self._checked(key) in self._items

    def __setitem__(self, key: Any, value: Any) -> None:
        raise ValueError("May not set values directly: use map[key].CopyFrom(value)")

    def __delitem__(self, key: Any) -> None:
        del self._items[self._checked(key)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)

    def _encode(self, number: int) -> bytes:
        return b"".join(
            wire.field(number, wire.field(1, key.encode()) + self._items[key]._encode(2)) for key in sorted(self._items)
        )

    def _decode(self, kind: int, value: Any) -> None:
        if kind != wire.BYTES:
            raise wire.WireError("an entry was expected")
        for key, content in example_parsing.feature_map(wire.field(1, value)).items():
            made = self._items[key.decode(errors="replace")] = self._kind()
            made.MergeFromString(content)

    def _text(self, name: str, indent: str) -> Iterator[str]:
        for key in sorted(self._items):
            yield f"{indent}{name} {{"
            yield f"{indent}  key: {_quoted(key.encode())}"
            yield from self._items[key]._text("value", indent + "  ")
            yield f"{indent}}}"


class BytesList(Message):
    """A list of strings: `value`."""

    _fields: ClassVar = {"value": (1, _Strings)}


class FloatList(Message):
    """A list of 32-bit floats: `value`."""

    _fields: ClassVar = {"value": (1, _Floats)}


class Int64List(Message):
    """A list of 64-bit integers: `value`."""

    _fields: ClassVar = {"value": (1, _Integers)}


class Feature(Message):
    """One of three lists: `bytes_list`, `float_list`, `int64_list`; `WhichOneof("kind")` says which."""

    _oneof = "kind"
    _fields: ClassVar = {
        "bytes_list": (1, lambda owner: BytesList()), "float_list": (2, lambda owner: FloatList()),
        "int64_list": (3, lambda owner: Int64List()),
    }  # fmt: skip


class _FeatureMap(_Map):
    _kind = Feature


class Features(Message):
    """Features by their names: `feature`, a dictionary."""

    _fields: ClassVar = {"feature": (1, _FeatureMap)}


class _FeatureLists(_Contents, MutableSequence):
    """The features of a list."""

    def __init__(self, owner: Any) -> None:
        self._items: list[Feature] = []

    def _fill(self, values: Any) -> None:
        self.extend(values)

    def add(self, **given: Any) -> Feature:
        """Adds a feature with these fields, and gives it."""
        made = Feature(**given)
        self._items.append(made)
        self._changed()
        return made

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("'RepeatedCompositeContainer' object does not support item assignment")

    def __delitem__(self, index: Any) -> None:
        del self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def insert(self, index: int, value: Any) -> None:
        made = Feature()
        made._fill(value)
        self._items.insert(index, made)
        self._changed()

    def __repr__(self) -> str:
        return repr(self._items)

    def _encode(self, number: int) -> bytes:
        return b"".join(item._encode(number) for item in self._items)

    def _decode(self, kind: int, value: Any) -> None:
        made = Feature()
        made._decode(kind, value)
        self._items.append(made)

    def _text(self, name: str, indent: str) -> Iterator[str]:
        for item in self._items:
            yield from item._text(name, indent)


class FeatureList(Message):
    """Features one after another: `feature`, a list."""

    _fields: ClassVar = {"feature": (1, _FeatureLists)}


class _FeatureListMap(_Map):
    _kind = FeatureList


class FeatureLists(Message):
    """Lists of features by their names: `feature_list`, a dictionary."""

    _fields: ClassVar = {"feature_list": (1, _FeatureListMap)}


class Example(Message):
    """A record of named `features`. `SerializeToString` and `FromString` convert it to and from bytes, in TensorFlow's
    format; `ag.io.parse_example` makes tensors of them."""

    _fields: ClassVar = {"features": (1, lambda owner: Features())}


class SequenceExample(Message):
    """A record of a sequence: the features of the whole, `context`, and those of its steps, `feature_lists`."""

    _fields: ClassVar = {"context": (1, lambda owner: Features()), "feature_lists": (2, lambda owner: FeatureLists())}


_CONTAINERS = (_Strings, _Floats, _Integers, _FeatureMap, _FeatureLists, _FeatureListMap)
