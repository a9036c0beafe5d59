"""Lowerings of ops on strings."""

from __future__ import annotations

import re
from typing import Any

from runtime import dtypes
from runtime.graph.ir import Node
from runtime.onnx_export.emitter import Emitter, NoForm, Ref, lowering


@lowering("string_add")
def _string_add(e: Emitter, node: Node) -> Ref:
    return e.emit("StringConcat", *e.inputs(node))


@lowering("string_lower", "string_upper")
def _case(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    flat = e.emit("Reshape", x, e.ints(-1))
    # Without an encoding only ASCII letters change, as in the locale "C".
    locale: dict[str, Any] = {} if node.attrs["encoding"] else {"locale": "C"}
    made = e.emit("StringNormalizer", flat, case_change_action=node.op.name.removeprefix("string_").upper(), **locale)
    return e.reshape(made, e.shape(x))


@lowering("regex_full_match")
def _regex_full_match(e: Emitter, node: Node) -> Ref:
    pattern = node.attrs["pattern"].decode()
    if re.search(r"\(\?[=!<]|\\[1-9]", pattern):
        raise NoForm(
            node, "its patterns (RE2's) know no look-around and no references to groups", "Rewrite the pattern"
        )
    return e.emit("RegexFullMatch", e.inputs(node)[0], dtype=dtypes.bool_, pattern=pattern)


@lowering("string_to_number")
def _to_number(e: Emitter, node: Node) -> Ref:
    return e.cast(e.inputs(node)[0], node.attrs["dtype"])


@lowering("as_string")
def _as_string(e: Emitter, node: Node) -> Ref:
    (x,) = e.inputs(node)
    if not x.dtype.is_integer or node.attrs["width"] != -1:
        raise NoForm(node, "it writes numbers in another format", "Write integers, without a width")
    return e.cast(x, dtypes.string)
