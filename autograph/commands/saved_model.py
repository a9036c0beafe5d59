"""`autograph saved-model`: what a saved model holds, and what its signatures give. Runs no code of the model's author:
a saved model is a program of this project's operations alone."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import numpy as np

from autograph.commands.files import UsageError
from autograph.function.polymorphic import Function
from autograph.saving.model_reader import LoadedModule, load
from autograph.saving.saved_objects import Things
from runtime import dtypes
from runtime.errors import OpError
from runtime.ops.convert import convert_to_tensor
from runtime.storage.files import write_atomically
from runtime.variable import Variable


def run(options: Any) -> int:
    """Shows a saved model or runs a signature; exit code 1 where it is damaged or the run fails."""
    try:
        model = load(options.folder)
        return _show(model, options.program) if options.action == "show" else _run(model, options)
    except OpError as error:
        print(f"autograph: {error}", file=sys.stderr)
        return 1


def _signatures(model: Any) -> dict[str, Any]:
    return dict(model.signatures) if isinstance(model, LoadedModule) else {}


# --- show ------------------------------------------------------------------------------------------------------------


def _show(model: Any, program: str | None) -> int:
    functions, variables = _parts(model)
    signatures = _signatures(model)
    if program is not None:
        found = [signatures[program].graph] if program in signatures else []
        if program in functions:
            found += [concrete.graph for concrete in functions[program]._cache.traces()]
        if not found:
            names = ", ".join([*signatures, *functions]) or "none"
            raise UsageError(f"there is no function or signature {program!r}; there are: {names}")
        print("\n\n".join(graph.as_text(spans=True) for graph in found))
        return 0
    print("Signatures:" if signatures else "Signatures: none")
    for name, signature in signatures.items():
        print(f"  {name}")
        for label, specs in (
            ("takes", signature.structured_input_signature[1]),
            ("gives", signature.structured_outputs),
        ):
            for key, spec in specs.items():
                print(f"    {label} {key}: {_spec(spec)}")
    print("Functions:" if functions else "Functions: none")
    for name, function in functions.items():
        print(f"  {name}")
        for concrete in function._cache.traces():
            print(f"    {concrete.function_type}")
    print("Variables:" if variables else "Variables: none")
    for name, variable in variables.items():
        trains = "" if variable.trainable else ", not trainable"
        print(f"  {name}: {_spec(variable)}{trains}")
    return 0


def _parts(model: Any) -> tuple[dict[str, Function], dict[str, Variable]]:
    """The functions and variables of a loaded object by the shortest ways to them."""
    things = Things(model)
    names = {0: ""}
    for number, held in enumerate(things.held):
        for name, other in held:
            names.setdefault(other, f"{names[number]}.{name}".lstrip("."))
    functions, variables = {}, {}
    for number, thing in enumerate(things.things):
        if isinstance(thing, Function):
            functions[names[number]] = thing
        elif isinstance(thing, Variable):
            variables[names[number]] = thing
    return functions, variables


def _spec(value: Any) -> str:
    shape = value._shape
    return f"{value.dtype.name}[{'...' if shape is None else ', '.join('?' if n is None else str(n) for n in shape)}]"


# --- run -------------------------------------------------------------------------------------------------------------


def _run(model: Any, options: Any) -> int:
    signatures = _signatures(model)
    signature = signatures.get(options.signature)
    if signature is None:
        names = ", ".join(signatures) or "none"
        raise UsageError(f"there is no signature {options.signature!r}; there are: {names}")
    specs = signature.structured_input_signature[1]
    inputs = {}
    for each in options.inputs:
        name, equals, text = each.partition("=")
        if not equals or name not in specs:
            raise UsageError(f"{each!r}: expected NAME=VALUE, where NAME is one of: {', '.join(specs) or 'no inputs'}")
        inputs[name] = _value(name, text, specs[name])
    missing = [name for name in specs if name not in inputs]
    if missing:
        raise UsageError(f"the input {missing[0]!r} is missing: pass {missing[0]}={_spec(specs[missing[0]])}")
    try:
        results = signature(**inputs)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None
    for name, tensor in results.items():
        print(f"{name}: {_spec(tensor)}\n{tensor.numpy()}")
    if options.output is not None:
        _write(results, Path(options.output))
    return 0


def _value(name: str, text: str, spec: Any) -> Any:
    """An input as a tensor of its dtype."""
    try:
        if text.startswith("@"):
            value = np.load(text[1:], allow_pickle=False)
        else:
            value = ast.literal_eval(text)
    except (OSError, ValueError, SyntaxError, MemoryError, RecursionError) as error:
        if spec.dtype is dtypes.string and not text.startswith("@"):
            value = text
        else:
            raise UsageError(f"the input {name!r} can't be read: {error}") from None
    try:
        return convert_to_tensor(value, spec.dtype)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the input {name!r} must be {_spec(spec)}: {error}") from None


def _write(results: dict[str, Any], folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, tensor in results.items():
            array = np.asarray(tensor.numpy())
            if array.dtype == object:
                array = array.astype(bytes)

            def write(path: str, array: np.ndarray = array) -> None:
                with open(path, "wb") as file:
                    np.save(file, array, allow_pickle=False)

            safe = "".join(each if each.isalnum() or each in "-_." else "_" for each in name)
            write_atomically(folder / f"{safe}.npy", write)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}") from None
