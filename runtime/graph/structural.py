"""Rows of the op table that only graphs use: constants, control flow, variable assignment.

They have no NumPy kernel of their own where they hold regions: the interpreter and the code generator give them
their meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime import dtypes
from runtime.context import commit
from runtime.ops.table import OpDef, register
from runtime.types import TensorType


def _constant_type(inputs: Sequence[Any], attrs: dict) -> tuple:
    array = attrs["value"].array
    return (TensorType(dtypes.as_dtype(array.dtype), array.shape),)


def _regions_run_elsewhere(*arrays: Any, **attrs: Any) -> Any:
    raise AssertionError("an op with regions is run by the interpreter, not by a kernel")


CONSTANT = register(
    OpDef(
        "constant",
        _constant_type,
        lambda value: value.array,
        cheap=True,
        doc="A value known while tracing.",
        can_fail=False,
        is_quiet=True,
        label="Const",
        cost=0,
    )
)

COND = register(
    OpDef(
        "cond",
        lambda inputs, attrs: attrs["types"],
        _regions_run_elsewhere,
        multiple=True,
        doc="Runs the first region when the predicate holds, else the second.",
        is_quiet=True,
        regions=("then", "else"),
        label="If",
        attrs=("types",),
    )
)

WHILE = register(
    OpDef(
        "while",
        lambda inputs, attrs: tuple(inputs[: attrs["carries"]]),
        _regions_run_elsewhere,
        multiple=True,
        doc="Runs the body region as long as the test region holds.",
        is_quiet=True,
        regions=("test", "body"),
        attrs=("carries", "memory"),
    )
)

LETREC = register(
    OpDef(
        "letrec",
        lambda inputs, attrs: attrs["types"],
        _regions_run_elsewhere,
        multiple=True,
        doc="Calls the first of its regions, functions that `call` nodes inside of them may call by name.",
        is_quiet=True,
        regions=None,
        label="PartitionedCall",
        attrs=("functions", "captures", "types"),
    )
)

CALL = register(
    OpDef(
        "call",
        lambda inputs, attrs: attrs["types"],
        _regions_run_elsewhere,
        multiple=True,
        doc="Calls a function of a `letrec` around it.",
        is_quiet=True,
        label="PartitionedCall",
        attrs=("function", "types"),
    )
)

# The first operand is the variable's value before; that the gradient flows to it alone is what makes the gradient
# with respect to a variable the sum over all its reads, and cuts it at assignments, as TensorFlow documents.
ASSIGN = register(
    OpDef(
        "assign",
        lambda inputs, attrs: (inputs[0],),
        lambda old, new, variable=None: new,
        grad=lambda call, dy: (dy, None),
        cheap=True,
        doc="A variable's value after an assignment.",
        can_fail=False,
        is_quiet=True,
        label="AssignVariableOp",
        cost=0,
    )
)

# Placed by `passes/rewrites/commits.py`; native code keeps the value in a variable that it returns with its error.
COMMIT = register(
    OpDef(
        "commit",
        lambda inputs, attrs: (),
        commit,
        multiple=True,
        doc="What a variable holds from here on, should the graph fail.",
        can_fail=False,
        cost=0,
    )
)
