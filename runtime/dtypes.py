"""Data types of tensors and TensorFlow's rules for turning Python and NumPy values into them.

>>> float32.name, float32.size, float32.is_floating
('float32', 4, True)
>>> as_dtype('int32') is int32, as_dtype(np.float64) is float64
(True, True)
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

_OTHER_FLOATS = ("bfloat16", "float8_e4m3fn", "float8_e5m2")  # those of ml_dtypes
_LABELS = {"float16": "half", "float32": "float", "float64": "double"}


def article(word: str) -> str:
    """The word with its article: "an int32", "a float32"."""
    return f"{'an' if word[0] in 'aei' else 'a'} {word}"


class DType:
    """An element type. There is one instance per type; compare with `==` or `is`."""

    # `kind` is NumPy's letter: b bool, i int, u unsigned int, f float, c complex, O string. (NumPy's own kind of
    # bfloat16 and the like is "V", as for every type that another package adds.)
    # `label` is the name that TensorFlow's op errors use: "float" for float32, "double", "half".
    # `is_narrow`: whether it is float16, bfloat16 or the like, in which nothing is computed: operations use float32 and
    # round their results.
    __slots__ = ("name", "kind", "label", "is_narrow", "_np", "__weakref__")

    def __init__(self, name: str, numpy_type: Any) -> None:
        self.name = name
        self._np = np.dtype(numpy_type)
        self.is_narrow = name in ("float16", *_OTHER_FLOATS)
        self.kind = "f" if self.is_narrow else self._np.kind
        self.label = _LABELS.get(name, name)

    @property
    def as_numpy_dtype(self) -> type:
        """The NumPy scalar type, such as `numpy.float32` (`object` for strings, as in TensorFlow)."""
        return self._np.type

    @property
    def np(self) -> np.dtype:
        """The `numpy.dtype` that holds elements of this type."""
        return self._np

    @property
    def size(self) -> int:
        """Bytes per element."""
        return self._np.itemsize

    @property
    def is_floating(self) -> bool:
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    @property
    def is_unsigned(self) -> bool:
        return self.kind == "u"

    @property
    def is_bool(self) -> bool:
        return self.kind == "b"

    @property
    def is_numeric(self) -> bool:
        return self.kind in "iufc"

    @property
    def is_differentiable(self) -> bool:
        return self.kind in "fc"

    @property
    def min(self) -> Any:
        """Smallest representable value; raises TypeError for types that have none."""
        return False if self.is_bool else self._limits().min

    @property
    def max(self) -> Any:
        """Largest representable value; raises TypeError for types that have none."""
        return True if self.is_bool else self._limits().max

    def _limits(self) -> Any:
        if self.is_integer:
            return np.iinfo(self._np)
        if self.is_floating:
            return finfo(self)
        raise TypeError(f"Cannot find minimum or maximum value of {self!r}.")

    @property
    def base_dtype(self) -> DType:
        return self

    @property
    def real_dtype(self) -> DType:
        """The dtype of the real part of a complex number; a dtype that isn't complex is its own."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    @property
    def limits(self) -> tuple[Any, Any]:
        """`(min, max)` of an integer dtype, (0, 1) of others: the range of images of that dtype."""
        return (self.min, self.max) if self.is_integer else (0, 1)

    @property
    def is_quantized(self) -> bool:
        """Always False: there are no quantised dtypes here."""
        return False

    @property
    def is_numpy_compatible(self) -> bool:
        """Always True: each dtype has a NumPy dtype that holds its elements."""
        return True

    def is_compatible_with(self, other: Any) -> bool:
        return as_dtype(other) is self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other is None or isinstance(other, DType):
            return False
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: '{self.name}'>"

    def __reduce__(self) -> tuple:
        return as_dtype, (self.name,)


bool_ = DType("bool", np.bool_)
int8, int16, int32, int64 = (DType(f"int{n}", f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (DType(f"uint{n}", f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (DType(f"float{n}", f"float{n}") for n in (16, 32, 64))
bfloat16 = DType("bfloat16", ml_dtypes.bfloat16)
float8_e4m3fn, float8_e5m2 = (DType(name, getattr(ml_dtypes, name)) for name in ("float8_e4m3fn", "float8_e5m2"))
complex64, complex128 = DType("complex64", np.complex64), DType("complex128", np.complex128)
string = DType("string", object)

half, double = float16, float64

ALL: tuple[DType, ...] = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, float16, float32, float64,
    complex64, complex128, string,
)  # fmt: skip

# Dtypes to keep numbers in, which have few operations besides `cast`.
STORED = (float8_e4m3fn, float8_e5m2)
# NumPy's types of the narrow ones.
NARROW = frozenset(dtype.np for dtype in (*ALL, *STORED) if dtype.is_narrow)
# TensorFlow's numbers of the dtypes, which stand for them.
_BY_NUMBER = {
    1: float32, 2: float64, 3: int32, 4: uint8, 5: int16, 6: int8, 7: string, 8: complex64, 9: int64, 10: bool_,
    14: bfloat16, 17: uint16, 18: complex128, 19: float16, 22: uint32, 23: uint64, 24: float8_e5m2, 25: float8_e4m3fn,
}  # fmt: skip

DTypeLike = DType | str | type | np.dtype | None

_BY_KEY: dict[Any, DType] = {}
for _dtype in (*ALL, *STORED):
    _BY_KEY[_dtype.name] = _dtype
    if _dtype is not string:
        _BY_KEY[_dtype._np] = _dtype
        _BY_KEY[_dtype._np.type] = _dtype
_BY_KEY.update(
    {"half": float16, "double": float64, "float": float32, bool: bool_, int: int32, float: float32, complex: complex128}
)
_BY_KEY.update({str: string, bytes: string, object: string, np.dtype(object): string})
_BY_KEY.update({np.str_: string, np.bytes_: string})


def as_dtype(type_value: Any) -> DType:
    """The `DType` for a name, a NumPy type or dtype, a Python type, or TensorFlow's number for it.

    Raises TypeError if there is none; the message lists the known ones.
    """
    if isinstance(type_value, DType):
        return type_value
    if type(type_value) is int and type_value in _BY_NUMBER:
        return _BY_NUMBER[type_value]
    try:
        return _BY_KEY[type_value]
    except (KeyError, TypeError):
        pass
    try:
        dtype = np.dtype(type_value)
    except (TypeError, ValueError):  # NumPy reads dictionaries and lists as descriptions of structures
        dtype = None
    if dtype is not None:
        if dtype.kind in "SU":
            return string
        found = _BY_KEY.get(dtype.newbyteorder("="))
        if found is not None:
            return found
    known = ", ".join(d.name for d in ALL)
    raise TypeError(f"Cannot convert {type_value!r} to a dtype. Known dtypes: {known}.")


def finfo(dtype: DTypeLike) -> Any:
    """The machine limits of a floating or complex dtype, as `numpy.finfo`."""
    kind = as_dtype(dtype)
    return ml_dtypes.finfo(kind.np) if kind.name in _OTHER_FLOATS else np.finfo(kind.np)
