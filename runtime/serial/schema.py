"""What attributes the nodes of a file may have: which, and of which kinds.

A node's attributes are those that the op's kernel takes; of what kind each is, its name says, here. Type rules and
kernels trust the functions that make nodes in a program; of a file, this is what may be trusted then.
"""

from __future__ import annotations

import codecs
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from runtime import errors
from runtime.autodiff.budget import Budget
from runtime.autodiff.deferred_gradients import PulledBack
from runtime.dtypes import DType
from runtime.graph.ir import ConstantArray
from runtime.ops.control import ErrorTemplate
from runtime.ops.deferred_calls import Applied, Call
from runtime.ops.random.stateful import Site
from runtime.ops.strings.staged_string import Formatted
from runtime.ops.table import OpDef
from runtime.serial.values import Damaged
from runtime.tensor import TensorReference
from runtime.types import StackType, TensorType, TokenType

Check = Callable[[Any], bool]

_WORD = re.compile(r"[A-Za-z0-9_\-]{0,40}")
_DEVICE = re.compile(r"/device:[A-Z]{1,20}:[0-9]{1,6}")


def _is(*kinds: type) -> Check:
    return lambda value: type(value) in kinds


def _tuple_of(*checks: Check) -> Check:
    return lambda value: type(value) is tuple and all(any(check(part) for check in checks) for part in value)


def _either(*checks: Check) -> Check:
    return lambda value: any(check(value) for check in checks)


def _one_of(*values: Any) -> Check:
    return lambda value: value in values


def _encoding(value: Any) -> bool:
    """Whether it is an encoding of text that Python knows. (Others decompress, for instance.)"""
    if type(value) is not str or not _WORD.fullmatch(value):
        return False
    try:
        return not value or bool(codecs.lookup(value)._is_text_encoding)
    except LookupError:
        return False


_bool, _int, _str, _bytes, _none = _is(bool), _is(int), _is(str), _is(bytes), _is(type(None))
_ints, _word = _tuple_of(_int), lambda value: type(value) is str and bool(_WORD.fullmatch(value))
_types = _tuple_of(_is(TensorType, StackType, TokenType))


def _feature(value: Any) -> bool:
    """Whether a value is a feature of messages (`ops/strings/example_parsing.py`)."""
    if type(value) is not tuple or len(value) != 6:
        return False
    kind, key, dtype, shape, default, partitions = value
    return (
        kind in ("fixed", "sequence", "list", "ragged", "steps") and type(key) is str and type(dtype) is DType
        and _either(_none, _ints)(shape)
        and (type(default) is bool or _either(_none, _tuple_of(_is(bytes, int, float)))(default))
        and _tuple_of(_tuple_of(_is(str, int)))(partitions)
    )  # fmt: skip


_BOOLEANS = [
    "adjoint", "again", "compute_uv", "compute_v", "controls", "descending", "everywhere", "exclusive", "fixed",
    "full_matrices", "keep_short", "keepdims", "little_endian", "lower", "normalize", "overlaps", "padded",
    "reverse", "scientific", "shortest", "slices", "transpose_a", "transpose_b", "unique", "whole", "within",
]  # fmt: skip
_INTEGERS = [
    "attempts", "beam_width", "buckets", "captures", "carries", "channels", "derivative", "desired_channels",
    "desired_samples", "hash_key", "k", "limit", "maxsplit", "order", "precision", "rank", "ratio", "results",
    "sources", "summarize", "tape", "top_paths", "type", "width",
]  # fmt: skip
_CHECKS: dict[str, Check] = {
    **dict.fromkeys(_BOOLEANS, _bool),
    **dict.fromkeys(_INTEGERS, _int),
    **dict.fromkeys(["key", "perm", "rates", "sizes", "strides", "widths"], _ints),
    **dict.fromkeys(["length", "num", "size", "static", "seed"], _either(_int, _none)),
    **dict.fromkeys(["dtype", "output_type"], _is(DType)),
    **dict.fromkeys(["encoding", "source", "target"], _encoding),
    **dict.fromkeys(["errors", "errors_"], _one_of("strict", "replace", "ignore")),
    **dict.fromkeys(["end", "equation", "function", "message", "named", "replacement"], _str),
    **dict.fromkeys(["how", "method", "side", "unit"], _word),
    "kind": lambda value: type(value) is str and all(map(_word, value.split(" "))),
    **dict.fromkeys(["pattern", "rewrite", "sep", "separator"], _bytes),
    **dict.fromkeys(["multiples", "shape"], _either(_none, _tuple_of(_int, _none))),
    **dict.fromkeys(["area", "ratios"], _tuple_of(_is(float))),
    "axis": _either(_int, _none, _ints),
    "call": _is(Call, Applied, PulledBack),
    "constant_values": _is(int, float, bool),
    "device": lambda value: type(value) is str and bool(_DEVICE.fullmatch(value)),
    "memory": _is(Budget),
    "error": lambda value: type(value) is ErrorTemplate or (type(value) is str and value in errors.BY_NAME),
    "joint": _either(_bytes, _none),
    "named": _word,
    "options": _tuple_of(_tuple_of(_is(str, int, bool, float))),
    "sparse": _tuple_of(_bool),
    "fill": _is(int, float, bool, str),
    "functions": _tuple_of(_str),
    "given": _tuple_of(_bool, _int),
    "norm": _either(_none, _word),
    "padding": _either(_word, _tuple_of(_ints), _int, _none),
    "paddings": _tuple_of(_ints),
    "pads": _either(_none, _tuple_of(_bytes)),
    "pieces": _tuple_of(_str),
    "rcond": _is(type(None), float, int),
    "site": _is(type(None), Site),
    "spec": _tuple_of(_tuple_of(_is(str, int, type(None)))),
    "stream": _one_of("stdout", "stderr"),
    "template": _tuple_of(_is(str, int, Formatted)),
    "types": _types,
    "value": _is(ConstantArray),
    **dict.fromkeys(["delimiter", "na_value"], _bytes),
    "defaults": _tuple_of(_is(bytes, int, float, type(None))),
    "features": _tuple_of(_feature),
    "kinds": _tuple_of(_word),
    "quotes": _bool,
    "select": _either(_none, _ints),
    "variable": _is(TensorReference),
}

_signatures: dict[str, inspect.Signature | None] = {}


def is_refused(op: OpDef) -> bool:
    """Whether an op can't be part of a graph in a file."""
    return bool(op.not_in_files) or op.calls_python or op.is_collective


def reason(op: OpDef) -> str:
    """Why an op can't be part of a graph in a file, as the end of a sentence."""
    return op.not_in_files or ("talks to other replicas" if op.is_collective else "calls Python code")


def check(op: OpDef, inputs: int | None, attrs: Mapping[str, Any]) -> None:
    """Raises Damaged where the op takes no such attributes. inputs: how many operands it has, if that is known."""
    if is_refused(op):
        raise Damaged(f"{op.name} {reason(op)}, which is not allowed in a file")
    for name, value in attrs.items():
        known = _CHECKS.get(name)
        if known is None or not known(value):
            raise Damaged(f"{op.name} has no attribute {name} = {value!r}")
    if "call" in attrs:
        _check_call(attrs["call"])
    if op.attrs:
        if not attrs.keys() <= set(op.attrs):
            raise Damaged(f"{op.name} has other attributes than {sorted(attrs)}")
        return
    signature = _signature(op)
    if signature is None:
        if attrs:
            raise Damaged(f"{op.name} has no attributes")
        return
    try:
        if inputs is None:
            signature.bind_partial(**attrs)
        else:
            signature.bind(*[None] * (inputs - op.effect), **attrs)
    except TypeError as error:
        raise Damaged(f"{op.name}: {error}") from None


def _check_call(call: Any) -> None:
    """Raises Damaged for a call that runs an op which no file may have a say of."""
    if isinstance(call, PulledBack):
        _check_call(call.call)
    elif isinstance(call, Applied):
        check(call.op, None, call.attrs)
    else:
        pending: list[Any] = [call.args, call.kwargs]
        for part in pending:
            if isinstance(part, OpDef) and is_refused(part):
                raise Damaged(f"{part.name} {reason(part)}, which is not allowed in a file")
            if isinstance(part, (tuple, list)):
                pending += part
            elif isinstance(part, dict):
                pending += part.values()


def _signature(op: OpDef) -> inspect.Signature | None:
    """The signature of an op's kernel; None if the kernel is a NumPy ufunc or takes any keywords, so that nothing can
    be checked."""
    if op.name not in _signatures:
        found: inspect.Signature | None = None
        if not isinstance(op.kernel, np.ufunc):
            found = inspect.signature(op.kernel)
            if any(each.kind is each.VAR_KEYWORD for each in found.parameters.values()):
                found = None
        _signatures[op.name] = found
    return _signatures[op.name]
