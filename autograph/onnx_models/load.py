"""`ag.onnx.load`: ONNX models as functions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from autograph.module import Module
from autograph.onnx_models.export import need_onnx
from runtime.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from runtime.ops.api import convert_to_tensor
from runtime.shapes import format_shape
from runtime.spec import TensorSpec
from runtime.tensor import Tensor
from runtime.variable import Variable


class OnnxFunction(Module):
    """A loaded model: call it with tensors, by position or by name.

    It runs eagerly, node by node; `ag.function(model)` compiles it as one program. Tapes record it. The result is a
    tensor, or a tuple if the model has several outputs; a sequence is a list.

    Attributes: `input_names` and `output_names`; `input_specs`, a TensorSpec by name; `weights`, the variables by name
    where it was loaded with `trainable=True`.
    """

    def __init__(self, plan: Any, specs: dict[str, TensorSpec | None], optional: set[str], trainable: bool) -> None:
        super().__init__("onnx_function")
        self._plan = plan
        self._optional = optional
        self.input_specs = specs
        self.input_names = tuple(specs)
        self.output_names = tuple(plan.results)
        self.weights: dict[str, Variable] = {}
        if trainable:
            for name, value in plan.constants.items():
                if value.dtype.is_floating and name not in specs:
                    self.weights[name] = Variable(value, name=_variable_name(name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs. Raises InvalidArgumentError for an input that the model doesn't have, a missing one, and a wrong
        dtype or shape; UnimplementedError for an operator that isn't translated."""
        if len(args) > len(self.input_names):
            raise InvalidArgumentError(f"the model takes {len(self.input_names)} inputs, not {len(args)}")
        given = dict(zip(self.input_names, args))
        for name, value in kwargs.items():
            if name not in self.input_specs or name in given:
                raise InvalidArgumentError(
                    f"the model has no input {name!r}, or it was given twice; it has {', '.join(self.input_names)}"
                )
            given[name] = value
        missing = [name for name in self.input_names if name not in given and name not in self._optional]
        if missing:
            raise InvalidArgumentError(f"the model needs values for {', '.join(missing)}")
        values = {name: self._checked(name, value) for name, value in given.items()}
        around = {name: variable.read_value() for name, variable in self.weights.items()}
        results = self._run(values, around)
        return results[0] if len(results) == 1 else tuple(results)

    def _run(self, values: dict[str, Any], weights: dict[str, Any]) -> list[Any]:
        found: dict[str, Any] = {**self._plan.constants, **weights, **values}
        for step in self._plan.steps:
            step.run(found)
        return [found[name] for name in self._plan.results]

    def _checked(self, name: str, value: Any) -> Any:
        spec = self.input_specs[name]
        if spec is None or value is None:  # a sequence or an optional value
            return value if value is None or isinstance(value, Tensor) else [convert_to_tensor(each) for each in value]
        tensor = convert_to_tensor(value, dtype=None if isinstance(value, Tensor) else spec.dtype)
        if tensor.dtype is not spec.dtype or not _fits(spec._shape, tensor._shape):
            raise InvalidArgumentError(
                f"input {name!r} must be {spec.dtype.name} of shape {format_shape(spec._shape)}, got "
                f"{tensor.dtype.name} of shape {format_shape(tensor._shape)}"
            )
        return tensor


def _fits(wanted: Any, given: Any) -> bool:
    if wanted is None or given is None:
        return True
    return len(wanted) == len(given) and all(a is None or b is None or a == b for a, b in zip(wanted, given))


def _variable_name(name: str) -> str:
    return "".join(each if each.isalnum() or each in "_./" else "_" for each in name) or "weight"


def load(path: str | os.PathLike[str], trainable: bool = False) -> OnnxFunction:
    """Reads an ONNX model as a function of tensors, which can be called, differentiated and traced.

    No code from the file is run: only the standard's operators, by public operations of this project. Weights may be in
    files in the model's folder. The model's author decides what it computes: it can run for a long time and use much
    memory.

    Args:
        path: the model's file.
        trainable: whether floating-point weights become variables (`model.weights`, `model.trainable_variables`).

    Returns an OnnxFunction.

    Raises NotFoundError if there is no such file, DataLossError if it is no valid ONNX model or names weights
    outside of its folder, UnimplementedError if it uses types or operators that aren't translated (for some
    operators, only when called), ImportError if the package `onnx` isn't installed.
    """
    onnx = need_onnx("ag.onnx.load")
    from autograph.onnx_models.evaluate import Plan

    model = _read(onnx, Path(path))
    versions = {"" if each.domain == "ai.onnx" else each.domain: each.version for each in model.opset_import}
    functions = {(each.domain, each.name): each for each in model.functions}
    try:
        plan = Plan(model.graph, versions, functions)
        optional = set(plan.constants)
        specs = {each.name: _spec(each) for each in model.graph.input if each.name not in optional}
        specs |= {each.name: _spec(each) for each in model.graph.input if each.name in optional}
    except (ValueError, TypeError) as error:
        raise DataLossError(f"{path} holds damaged values: {error}") from error
    _need_operators(onnx, plan)
    return OnnxFunction(plan, specs, optional, trainable)


def _read(onnx: Any, path: Path) -> Any:
    from google.protobuf.message import DecodeError

    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {path}") from None
    except OSError as error:
        raise InvalidArgumentError(f"{path} can't be read: {error.strerror or error}") from None
    try:
        model = onnx.ModelProto.FromString(content)
    except (DecodeError, RecursionError) as error:
        raise DataLossError(f"{path} isn't an ONNX model: {error}") from None
    _load_weights(onnx, model, path)
    try:
        onnx.checker.check_model(model if model.ByteSize() < 2**31 - 1 else str(path))
    except (onnx.checker.ValidationError, UnicodeDecodeError) as error:
        raise DataLossError(f"{path} isn't a valid ONNX model: {str(error).strip()}") from None
    return model


def _load_weights(onnx: Any, model: Any, path: Path) -> None:
    """Loads the weights that are stored in separate files, which must be in the model's folder."""
    helper = onnx.external_data_helper
    folder = path.resolve().parent
    for tensor in helper._get_all_tensors(model):
        if not helper.uses_external_data(tensor):
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        file = (folder / location).resolve()
        if not location or not file.is_relative_to(folder) or not file.is_file():
            raise DataLossError(f"{path} refers to weights in {location!r}, which isn't a file in its folder")
        size = file.stat().st_size
        try:
            offset = int(entries.get("offset", "0"))
            length = int(entries.get("length", str(size - offset)))
        except ValueError:
            raise DataLossError(
                f"{path} has an invalid offset or length for the weights {tensor.name!r} in {location!r}"
            ) from None
        if offset < 0 or length < 0 or offset + length > size:
            raise DataLossError(f"{path} places the weights {tensor.name!r} beyond the end of {location!r}")
        with open(file, "rb") as data:
            data.seek(offset)
            tensor.raw_data = data.read(length)
        del tensor.external_data[:]
        tensor.data_location = onnx.TensorProto.DEFAULT


def _spec(info: Any) -> TensorSpec | None:
    from autograph.onnx_models.operators.registry import dtype_of

    if not info.type.HasField("tensor_type"):
        return None
    type_ = info.type.tensor_type
    shape = None
    if type_.HasField("shape"):
        shape = [d.dim_value if d.HasField("dim_value") else None for d in type_.shape.dim]
    return TensorSpec(shape, dtype_of(type_.elem_type))


def _need_operators(onnx: Any, plan: Any) -> None:
    """Raises UnimplementedError for operators that neither we nor the standard's definitions explain."""
    from autograph.onnx_models.evaluate import EXPANDED

    for step in plan.steps:
        if step.operator is None and step.function is None:
            domain = "" if step.node.domain in ("", "ai.onnx") else step.node.domain
            try:
                schema = onnx.defs.get_schema(step.node.op_type, step.version, domain)
            except onnx.defs.SchemaError:
                schema = None
            if schema is None or not (schema.has_function or step.node.op_type in EXPANDED):
                what = f"{domain}.{step.node.op_type}" if domain else step.node.op_type
                raise UnimplementedError(
                    f"the model uses ONNX' operator {what} (version {step.version}), which isn't translated"
                )
        for value in step.attrs.values():
            if hasattr(value, "steps"):
                _need_operators(onnx, value)
