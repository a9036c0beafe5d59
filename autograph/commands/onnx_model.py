"""`autograph onnx`: a function as an ONNX model. Runs the file."""

from __future__ import annotations

from typing import Any

from autograph.commands.exporting import exported
from autograph.onnx_models.export import export


def run(options: Any) -> int:
    """Writes the model and prints its inputs and outputs; exit code 1 where tracing or exporting fails."""
    external = True if options.external_data else None
    return exported(options, lambda concrete: export(concrete, options.output, external_data=external), _show)


def _show(made: Any) -> None:
    print(made.path)
    inputs = [*made.inputs, *[before for before, _ in made.state]]
    outputs = [*made.outputs, *[after for _, after in made.state]]
    print(f"inputs: {', '.join(inputs) or 'none'}")
    print(f"outputs: {', '.join(outputs) or 'none'}")
