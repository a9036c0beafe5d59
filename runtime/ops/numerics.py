"""Watching for NaN and infinity: `check_numerics` for one tensor, `enable_check_numerics` for every operation.

check_numerics(x; message, label)    x; raises InvalidArgumentError when an element isn't finite

With the checks on, each operation that computes floating-point numbers is followed by a check. In a graph that is a
node, so it works on every tier, in loops and in gradients; in eager code a recorder sees each op that runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import errors
from runtime.context import PassiveRecorder, ctx
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply
from runtime.ops.rules import infer_same
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType

NONFINITE = {1: "NaN", 2: "Inf", 3: "Inf and NaN"}


def words(message: str, found: int) -> str:
    """The error's text; found: a key of `NONFINITE`."""
    return f"{message} : Tensor had {NONFINITE[found]} values [Op:CheckNumerics]"


def _kernel(x: Any, message: str) -> Any:
    finite = np.isfinite(x)
    if not finite.all():
        found = (1 if np.isnan(x).any() else 0) + (2 if np.isinf(x).any() else 0)
        raise errors.InvalidArgumentError(words(message, found), "check_numerics")
    return x


def _grad(call: Any, dy: Any) -> Sequence[Any]:
    message = "Not a number (NaN) or infinity (Inf) values detected in gradient. "
    known = call.attrs["message"]
    return (apply(CHECK, (dy,), {"message": known if known.startswith(message) else message + known}),)


CHECK = register(
    OpDef(
        "check_numerics", infer_same, _kernel, grad=_grad, kinds="fc", label="CheckNumerics",
        doc="x; raises an error unless all its elements are finite.",
        samples=tuple(Sample((shape,), {"message": "x"}) for shape in ((3,), (), (2, 0))),
        is_quiet=True,
    )
)  # fmt: skip


def check_numerics(tensor: TensorLike, message: str, name: str | None = None) -> Tensor:
    """The tensor itself; raises InvalidArgumentError with `message` if an element is NaN or infinite.

    tensor: floating-point or complex, of any shape. Its gradient is checked too.
    """
    x = convert_to_tensor(tensor)
    if x.dtype.kind not in CHECK.kinds:
        raise errors.InvalidArgumentError(
            f"check_numerics needs a floating-point tensor, got {x.dtype.name} [Op:CheckNumerics]", "check_numerics"
        )
    return apply(CHECK, (x,), {"message": message})


# --- every operation -----------------------------------------------------------------------------------------------


def _description(op: Any, inputs: Sequence[Any], index: int) -> str:
    shapes = ", ".join(str(tensor.type) for tensor in inputs)
    label = getattr(op, "label", op.name)
    return f'Detected Infinity or NaN in output {index} of op "{label}" (inputs: {shapes or "none"})'


def _is_quiet(op: Any) -> bool:
    """Whether what isn't finite in an op's results was reported where it arose."""
    return op.is_quiet or op.is_move


class NumericsRecorder(PassiveRecorder):
    """Sees each op of eager code, as a tape does."""

    builder = None

    def record(self, op: Any, inputs: tuple, attrs: dict, outputs: tuple) -> None:
        if not isinstance(op, OpDef) or _is_quiet(op):
            return
        for index, tensor in enumerate(outputs):
            if getattr(tensor, "dtype", None) is not None and tensor.dtype.kind in CHECK.kinds:
                _kernel(tensor._array, _description(op, inputs, index))


def checked(builder: Any, op: Any, inputs: Sequence[Any], outputs: tuple) -> tuple:
    """The outputs of a node that is being added to a graph, each through a check where it needs one."""
    if op.effect or _is_quiet(op):
        return outputs
    found = list(outputs)
    for index, tensor in enumerate(outputs):
        if isinstance(tensor.type, TensorType) and tensor.dtype.kind in CHECK.kinds:
            (found[index],) = builder.emit(CHECK, (tensor,), {"message": _description(op, inputs, index)})
    return tuple(found)


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """From now on, every operation of this thread raises InvalidArgumentError if its result has a NaN or an infinity.

    The message names the op, the shapes of its inputs and, in functions, the user's line. Functions are traced again,
    with checks, also in loops, gradients and native code. The limits are accepted without effect: the whole traceback
    is shown. The checks cost time; `disable_check_numerics` ends them.
    """
    if ctx.numerics is None:
        ctx.numerics = checked
        ctx.recorders = (*ctx.recorders, NumericsRecorder())


def disable_check_numerics() -> None:
    """Ends the checks of `enable_check_numerics` in this thread."""
    ctx.numerics = None
    ctx.recorders = tuple(r for r in ctx.recorders if not isinstance(r, NumericsRecorder))
