"""`ag.onnx.export`: functions as ONNX models."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from autograph.function.concrete import ConcreteFunction
from autograph.function.polymorphic import Function
from autograph.naming import argument_names, result_names, trace_to_export
from runtime import nest
from runtime.dataclass import dataclass
from runtime.errors import UnimplementedError
from runtime.staged_list import StagedList
from runtime.storage.files import write_atomically
from runtime.tensor_array import TensorArray
from runtime.tracebacks import warn

# A protocol buffer can't be larger than 2 GiB; what isn't weights needs some room.
_MOST_BYTES = 2**31 - 2**26


@dataclass(frozen=True)
class OnnxModel:
    """The result of an export.

    Attributes:
        path: the model's file.
        inputs, outputs: the names of the model's inputs and outputs, in the order of the function's.
        state: for each variable that the function assigns, the name of the input for its value (by default, the value
            at export) and the name of the output with its new value.
        dropped: the checks and prints that were left out, each with its line.
    """

    path: Path
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    state: tuple[tuple[str, str], ...]
    dropped: tuple[str, ...]


def export(
    function: ConcreteFunction | Function,
    path: str | os.PathLike[str],
    external_data: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> OnnxModel:
    """Writes a function as an ONNX model, which ONNX Runtime and others run without Python and this project.

    Loops become `Loop` and `Scan`, branches `If`, the stacks of gradients sequences. Tensors and variables that the
    function reads become weights, with their current values. Dimensions that the signature leaves open stay open. A
    variable that the function assigns becomes an input with a default and an output. A list that staged code builds
    becomes one tensor with a row for each element. `ag.debugging` checks, `assert`, `raise` and `print` have no form in
    ONNX and are left out, with a warning. The model is of opset 20, and has passed `onnx.checker`. See docs/deploy.md.

    Args:
        function: what `get_concrete_function` returns, or an `ag.function` with an `input_signature`. Ranks of
            arguments and results must be known.
        path: the model's file.
        external_data: whether weights go to a second file, `PATH.data`, beside the model; by default if the model would
            be larger than ONNX allows (2 GiB).
        input_names, output_names: the names of the model's inputs and outputs; by default those of the function's
            parameters, and the path to a result in its structure.

    Returns an `OnnxModel`.

    Raises UnimplementedError if an operation of the function can't be exported to ONNX, with its line; ImportError if
    the package `onnx` isn't installed; TypeError for anything but such a function; ValueError for names that don't fit.
    """
    concrete = trace_to_export(function, "ag.onnx.export")
    onnx = need_onnx("ag.onnx.export")
    from runtime.onnx_export.model import model_of

    names = argument_names(concrete)
    concrete = _with_stacked_lists(concrete)
    inputs = _chosen(input_names, names, "input_names")
    outputs = _chosen(output_names, result_names(concrete.structured_outputs), "output_names")
    arguments, states = _arguments(concrete, inputs)
    graph = concrete.graph_on_its_variables()
    made = model_of(graph, arguments, [*outputs, *[f"{name}_next" for name in states]], _version(), _doc(concrete))
    _say_dropped(concrete.graph.name, made.dropped)
    target = Path(path)
    _write(onnx, made.model, target, external_data)
    count = len(made.outputs) - len(states)
    named_states = [name for name in made.inputs if name not in made.inputs[: len(inputs)]]
    return OnnxModel(
        target, made.inputs[: len(inputs)], made.outputs[:count], tuple(zip(named_states, made.outputs[count:])),
        made.dropped,
    )  # fmt: skip


def _with_stacked_lists(concrete: ConcreteFunction) -> ConcreteFunction:
    """A function whose results are tensors where those of the given one are lists and TensorArrays of them."""
    if not _has_lists(concrete.structured_outputs):
        return concrete

    def function(*arguments: Any) -> Any:
        return _stacked(concrete.call_flat(arguments))

    function.__name__, function.__doc__ = concrete.graph.name, _doc(concrete)
    return Function(function, autograph=False).get_concrete_function(*concrete.argument_specs)


def _has_lists(structure: Any) -> bool:
    if isinstance(structure, (StagedList, TensorArray)):
        return True
    return nest.is_nested(structure) and any(map(_has_lists, nest.children(structure)))


def _stacked(structure: Any) -> Any:
    if isinstance(structure, StagedList):
        return structure.stacked()
    if isinstance(structure, TensorArray):
        return structure.stack()
    if not nest.is_nested(structure):
        return structure
    return nest.rebuild(structure, [_stacked(each) for each in nest.children(structure)])


def need_onnx(who: str) -> Any:
    """The package `onnx`. Raises ImportError, which says how to get it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError(f"{who} needs the package onnx: python -m pip install 'onnx>=1.17,<2'") from error
    return onnx


def _chosen(names: Sequence[str] | None, usual: list[str], what: str) -> list[str]:
    if names is None:
        return usual
    if len(names) != len(usual) or len(set(names)) != len(names) or not all(isinstance(n, str) and n for n in names):
        raise ValueError(f"{what} must be {len(usual)} different names (for {', '.join(usual)}), got {list(names)}")
    return list(names)


def _arguments(concrete: ConcreteFunction, names: Sequence[str]) -> tuple[list[Any], list[str]]:
    """What the graph takes, and the names of the variables that it assigns, in the order of its outputs."""
    from runtime.onnx_export.model import Argument

    if concrete.symbolic_captures:
        raise UnimplementedError(
            f"{concrete.graph.name} can't be exported: it uses tensors of a function that is being traced. Pass them "
            "as arguments."
        )
    arguments = [Argument(name) for name in names]
    captured = concrete.captured_inputs
    variables = concrete.variables
    assigned = {id(v) for v in concrete.assigned_variables}
    for number, each in enumerate(captured[: len(captured) - len(variables)]):
        arguments.append(Argument(f"constant_{number}", each._array))
    for variable in variables:
        arguments.append(Argument(_plain(variable), variable.read_value()._array, id(variable) in assigned))
    return arguments, [_plain(v) for v in concrete.assigned_variables]


def _plain(variable: Any) -> str:
    name: str = variable.name.partition(":")[0]
    return name or "variable"


def _say_dropped(name: str, dropped: Sequence[str]) -> None:
    if dropped:
        shown = "\n".join(f"  {each}" for each in dropped[:5])
        more = f"\n  and {len(dropped) - 5} more" if len(dropped) > 5 else ""
        warn(f"The ONNX model of {name} leaves out what can't be exported to ONNX:\n{shown}{more}")


def _write(onnx: Any, model: Any, path: Path, external_data: bool | None) -> None:
    size = sum(len(each.raw_data) for each in model.graph.initializer)
    apart = size > _MOST_BYTES if external_data is None else external_data
    if not apart:
        onnx.checker.check_model(model, full_check=True)
        content = model.SerializeToString()

        def write(name: str) -> None:
            Path(name).write_bytes(content)

        write_atomically(path, write)
        return
    data = path.with_name(f"{path.name}.data")
    data.unlink(missing_ok=True)  # onnx appends to it
    onnx.save_model(model, str(path), save_as_external_data=True, location=data.name, size_threshold=1024)
    onnx.checker.check_model(str(path), full_check=size <= _MOST_BYTES)


def _doc(concrete: ConcreteFunction) -> str:
    function = concrete.python_function
    return (inspect.getdoc(function) or "") if function is not None else ""


def _version() -> str:
    try:
        return metadata.version("autograph-numba")
    except metadata.PackageNotFoundError:
        return ""
