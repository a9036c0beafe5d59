"""`tf2onnx`, by which Keras exports models to ONNX: `ag.onnx.export` under its name."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from autograph.onnx_models.export import export, need_onnx
from runtime import nest

_OPSET = 20


def from_function(
    function: Any, input_signature: Any = None, opset: int | None = None, output_path: Any = None, **options: Any
) -> tuple[Any, None]:
    """The ONNX model of a concrete function or function, written to `output_path`, too; None where tf2onnx has tables.

    Inputs are called as the specs of the signature. Raises ValueError for another operator set than the one of
    `ag.onnx.export`, and what that raises.
    """
    if opset not in (None, _OPSET):
        raise ValueError(
            f"autograph writes ONNX models with operator set {_OPSET}, not {opset}: leave out `opset_version`, and "
            "convert the file with onnx.version_converter if you need another one"
        )
    concrete = function
    if not hasattr(function, "structured_outputs"):
        concrete = function.get_concrete_function(*(() if input_signature is None else input_signature))
    names: list[Any] = (
        [getattr(spec, "name", None) for spec in nest.flatten(input_signature)] if input_signature else []
    )
    chosen = names if names and all(names) and len(set(names)) == len(names) else None
    outputs = None if nest.is_nested(concrete.structured_outputs) else ["output_0"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx") if output_path is None else Path(os.fspath(output_path))
        export(concrete, path, input_names=chosen, output_names=outputs)
        return need_onnx("tf2onnx").load(str(path)), None


class _Node:
    """What Keras corrects in tf2onnx for NumPy 2; nothing here uses it."""

    get_value_attr = None


MODULES: dict[str, dict[str, Any]] = {
    "tf2onnx.convert": {"from_function": from_function},
    "tf2onnx.tfonnx": {"rewrite_constant_fold": None},
    "tf2onnx.graph": {"Node": _Node},
}
