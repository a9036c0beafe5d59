"""`saved_model.save`: objects and their functions as files, which load without the program's source."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import re
import secrets
import shutil
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from autograph.function.concrete import ConcreteFunction
from autograph.function.guards import broken
from autograph.function.polymorphic import Function
from autograph.saving.saved_objects import Asset, Things, can_be_saved
from autograph.saving.structures import StructureEncoder, has_foreign_parts, parameters_to_json
from runtime import nest
from runtime.context import ctx
from runtime.dtypes import DType, as_dtype
from runtime.errors import InvalidArgumentError, UnimplementedError
from runtime.generator import Generator
from runtime.serial.graphs import Writer
from runtime.spec import TensorSpec
from runtime.storage import files, tensors
from runtime.tensor import EagerTensor, Tensor
from runtime.tracebacks import warn
from runtime.variable import Variable

KIND, VERSION = "autograph saved model", 1
DOCUMENT, ASSETS = "saved_model.json", "assets"
DATA = re.compile(r"data-[0-9a-f]{16}\.safetensors")
SERVING_DEFAULT = "serving_default"


class SaveOptions:
    """Options of `saved_model.save`.

    `function_aliases` gives functions names under which `load` finds them: `{"name": function}`, functions of
    `ag.function`. Others are accepted for TensorFlow programs, without effect.
    """

    def __init__(self, function_aliases: Mapping[str, Any] | None = None, **options: Any) -> None:
        self.function_aliases = dict(function_aliases or {})
        self.options = options


def save(obj: Any, export_dir: str | os.PathLike[str], signatures: Any = None, options: Any = None) -> None:
    """Saves an object with the variables, tensors, files and functions that it holds.

    It saves modules, lists, tuples, dictionaries, random generators and objects with attributes. Functions (of
    `ag.function`, also methods) are saved with their existing traces, or with the trace of the input signature. All of
    it loads without the program's source, as `load` describes.

    Args:
        obj: the object, usually an `ag.Module`.
        export_dir: the folder; created if it doesn't exist. An existing saved model is replaced in one step.
        signatures: functions to be called by name, with named results: an `ag.function` with an input signature, a
            concrete function, or a dictionary of them by name. One function alone is called "serving_default". By
            default it is the only function of `obj` with an input signature, if there is exactly one.
        options: `SaveOptions`.

    Raises UnimplementedError for functions that call Python (`py_function`) or return objects of the program's classes;
    TypeError for an object that can't hold any; ValueError for signatures that aren't such functions; OSError if files
    can't be written; RuntimeError in a traced function.
    """
    if ctx.builder is not None:
        raise RuntimeError("saved_model.save writes files, which a traced function can't: call it outside")
    if not can_be_saved(obj):
        raise TypeError(
            f"saved_model.save takes an object that holds functions and variables, such as an ag.Module, got {obj!r}"
        )
    _Saver(obj, _signatures(obj, signatures), _aliases(options)).write(Path(os.fspath(export_dir)).absolute())


# --- signatures ------------------------------------------------------------------------------------------------------


def _signatures(obj: Any, given: Any) -> dict[str, Function]:
    if given is None:
        try:
            default = getattr(obj, "_default_save_signature", None)  # what Keras' models have for this
        except TypeError:  # Keras' can't say what a model takes whose `call` has several parameters
            default = None
        if isinstance(default, Function):
            return {SERVING_DEFAULT: _signature(SERVING_DEFAULT, default)}
        things = Things(obj)
        found = {
            id(things.things[number]): things.things[number]
            for _, number in things.held[0]
            if isinstance(things.things[number], Function) and things.things[number].input_signature is not None
        }
        possible = [made for function in found.values() if (made := _possible_signature(function)) is not None]
        return {SERVING_DEFAULT: possible[0]} if len(possible) == 1 else {}
    if not isinstance(given, Mapping):
        given = {SERVING_DEFAULT: given}
    for name in given:
        if not isinstance(name, str):
            raise ValueError(f"The name of a signature must be a string, got {name!r}")
    return {name: _signature(name, function) for name, function in given.items()}


def _aliases(options: Any) -> dict[str, Function]:
    found = dict(getattr(options, "function_aliases", {}))
    for name, function in found.items():
        if not isinstance(name, str) or not isinstance(function, Function):
            raise TypeError(f"function_aliases are functions of ag.function by name, got {name!r}: {function!r}")
    return found


def _possible_signature(function: Function) -> Function | None:
    """A function as the default signature; None if it has no results, or such as can't be named."""
    if not function.get_concrete_function().outputs:
        return None
    try:
        return _signature(SERVING_DEFAULT, function)
    except ValueError:
        return None


def _signature(name: str, function: Any) -> Function:
    """A function of named tensors that gives a dictionary of tensors, traced."""
    if isinstance(function, Function):
        if function.input_signature is None and function._arguments.plain_count != 0:
            raise ValueError(
                f"The signature {name!r} is the function {function._name!r}, which has no input signature: pass "
                f"{function._name}.get_concrete_function(...), or decorate it with ag.function(input_signature=...)"
            )
        function = function.get_concrete_function()
    if not isinstance(function, ConcreteFunction):
        raise ValueError(f"The signature {name!r} must be an ag.function or a concrete function, got {function!r}")
    concrete = function
    names = _input_names(concrete)
    if len(set(names)) < len(names):
        raise ValueError(f"The signature {name!r} has several arguments with the same name: {', '.join(names)}")
    _named_outputs(name, concrete.structured_outputs)

    def signature(**inputs: Any) -> dict[str, Any]:
        return _named_outputs(name, concrete.call_flat([inputs[each] for each in names]))

    signature.__name__ = f"signature_{re.sub(r'[^A-Za-z0-9_]', '_', name)}"
    made = Function(signature, autograph=False, jit_compile=concrete.made_of()["jit_compile"])
    specs = zip(names, concrete.argument_specs)
    made.get_concrete_function(**{each: TensorSpec(spec.shape, spec.dtype, each) for each, spec in specs})
    return made


def _trace_outside_of_replicas(function: Function, concrete: ConcreteFunction) -> None:
    """Traces a function anew for what a replica has called it with: a loaded program has no replicas."""
    args, kwargs = concrete.structured_input_signature
    try:
        function.get_concrete_function(*args, **kwargs)
    except Exception as error:
        warn(f"A trace of '{function._name}' isn't saved, since only replicas can run it: {error}")


def _input_names(concrete: ConcreteFunction) -> list[str]:
    """The tensors of a list or dictionary `x` are x, x_1, x_2, as in TensorFlow's signatures."""
    names = [re.sub(r"\W", "_", spec.name or f"args_{number}") for number, spec in enumerate(concrete.argument_specs)]
    args, kwargs = concrete.structured_input_signature
    first = 0
    for value in (*args, *(kwargs[key] for key in sorted(kwargs))):
        count = sum(isinstance(leaf, TensorSpec) for leaf in nest.flatten(value))
        here = names[first : first + count]
        base = here[0].removesuffix("_0") if here else ""
        if isinstance(value, (list, tuple, dict)) and here == [f"{base}_{number}" for number in range(count)]:
            names[first : first + count] = [base, *here[1:]]
        first += count
    return names


def _named_outputs(name: str, result: Any) -> dict[str, Any]:
    """The results of a signature by name. Raises ValueError for structures in structures."""
    if isinstance(result, Mapping):
        named = dict(result)
    elif isinstance(result, (list, tuple)):
        named = {f"output_{number}": value for number, value in enumerate(result)}
    else:
        named = {} if result is None else {"output_0": result}
    for key, value in named.items():
        if not isinstance(key, str) or not isinstance(value, (Tensor, TensorSpec)):
            raise ValueError(
                f"The function of the signature {name!r} must return a tensor, a list of tensors, or a dictionary of "
                f"tensors by name, got {key!r}: {value!r}"
            )
    return named


# --- saving ----------------------------------------------------------------------------------------------------------


class _Saver:
    def __init__(self, root: Any, signatures: dict[str, Function], aliases: dict[str, Function]) -> None:
        self._arrays: dict[str, tuple[Any, DType]] = {}
        self._variables: list[Variable] = []
        self._variable_numbers: dict[int, int] = {}
        self._tensors: list[dict[str, Any]] = []
        self._tensor_numbers: dict[int, int] = {}
        self._files: dict[str, Path] = {}  # the files to copy, by their names in the folder
        self._traces: list[dict[str, Any]] = []
        self._functions: list[dict[str, Any]] = []
        self._trace_numbers: dict[int, int] = {}
        self._function_numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # what ids stand for
        self._writer = Writer(self._variable)
        self._encoder = StructureEncoder(
            self._writer.type_number, self._writer.constant_number, self._variable, self._object
        )
        self._root = root
        self._signatures = signatures
        self._aliases = aliases
        self._things = Things(root)

    # --- what is numbered ----------------------------------------------------------------------------------------

    def _object(self, thing: Any) -> int | None:
        return self._things.numbers.get(id(thing))

    def _variable(self, variable: Variable) -> int:
        number = self._variable_numbers.get(id(variable))
        if number is None:
            number = self._variable_numbers[id(variable)] = len(self._variables)
            self._variables.append(variable)
            self._arrays[f"variables/{number}"] = variable.array_to_save(), variable.dtype
        return number

    def _tensor(self, tensor: EagerTensor) -> int:
        number = self._tensor_numbers.get(id(tensor))
        if number is None:
            number = self._tensor_numbers[id(tensor)] = len(self._tensors)
            self._kept.append(tensor)
            self._arrays[f"tensors/{number}"] = tensor._array, tensor.dtype
            self._tensors.append({"array": f"tensors/{number}"})
        return number

    def _asset(self, asset: Asset, taken: Callable[[str, Path], str]) -> int:
        number = self._tensor_numbers.get(id(asset.asset_path))
        if number is None:
            number = self._tensor_numbers[id(asset.asset_path)] = len(self._tensors)
            source = Path(os.fspath(asset))
            name = taken(source.name, source)
            self._files[name] = source
            self._tensors.append({"asset": name})
        return number

    # --- functions -----------------------------------------------------------------------------------------------

    def _function(self, function: Function) -> int:
        number = self._function_numbers.get(id(function))
        if number is not None:
            return number
        number = self._function_numbers[id(function)] = len(self._functions)
        self._kept.append(function)
        if function.input_signature is not None and not len(function._cache):
            function.get_concrete_function()
        for concrete in list(function._cache.traces()):
            if concrete.of_replica:
                _trace_outside_of_replicas(function, concrete)
        traces = []
        for concrete in function._cache.traces():
            if broken(concrete.guards) is not None or concrete.here is not None or concrete.symbolic_captures:
                continue
            try:
                traces.append(self._trace(concrete))
            except _NotCallable as reason:
                warn(
                    f"A trace of '{function._name}' isn't saved, since no program that loads it could call it: "
                    f"{reason}. Only arguments that loading can recreate are supported."
                )
        signature = function.input_signature
        self._functions.append(
            {
                "name": function._name,
                "doc": inspect.getdoc(function.python_function),
                "parameters": parameters_to_json(function._arguments.signature, self._encoder),
                "input_signature": None if signature is None else self._encoder.to_json(signature),
                "jit_compile": function._jit_compile,
                "traces": traces,
            }
        )
        return number

    def _trace(self, concrete: ConcreteFunction) -> int:
        parts = concrete.made_of()
        number = self._trace_numbers.get(id(parts["graph"]))
        if number is not None:
            return number
        if parts["symbolic_captures"]:
            raise _NotCallable("it uses tensors of an enclosing trace")
        foreign = has_foreign_parts(parts["arguments"])
        if foreign is not None:
            raise _NotCallable(f"an argument is of the class {foreign}")
        try:
            arguments = self._encoder.to_json(parts["arguments"])
            specs = self._encoder.all(parts["specs"])
        except UnimplementedError as error:
            raise _NotCallable(error.message) from None
        foreign = has_foreign_parts(parts["result"])
        if foreign is not None:
            raise UnimplementedError(
                f"{concrete.graph.name} can't be saved: it returns an object of the class {foreign}, which a program "
                "without the source doesn't have; return a dictionary or a named tuple"
            )
        said = {
            "arguments": arguments,
            "specs": specs,
            "parameters": parameters_to_json(parts["parameters"].signature, self._encoder),
            "captures": list(map(self._tensor, parts["captures"])),
            "variables": list(map(self._variable, parts["variables"])),
            "written": list(parts["written"]),
            "result": self._encoder.to_json(parts["result"]),
            "is_none": list(parts["is_none"]),
            "jit_compile": parts["jit_compile"],
            "graph": self._writer.add(parts["graph"]),
        }
        self._kept.append(parts["graph"])
        number = self._trace_numbers[id(parts["graph"])] = len(self._traces)
        self._traces.append(said)
        return number

    # --- objects -------------------------------------------------------------------------------------------------

    def _said(self, number: int, taken: Callable[[str, Path], str]) -> dict[str, Any]:
        thing, held = self._things.things[number], self._things.held[number]
        if isinstance(thing, Variable):
            return {"kind": "variable", "variable": self._variable(thing)}
        if isinstance(thing, Function):
            return {"kind": "function", "function": self._function(thing)}
        if isinstance(thing, ConcreteFunction):
            try:
                return {"kind": "concrete function", "trace": self._trace(thing)}
            except _NotCallable as reason:
                raise UnimplementedError(f"{thing.graph.name} can't be saved: {reason}") from None
        if isinstance(thing, Asset):
            return {"kind": "asset", "tensor": self._asset(thing, taken)}
        if isinstance(thing, EagerTensor):
            return {"kind": "tensor", "tensor": self._tensor(thing)}
        if isinstance(thing, Generator):
            return {"kind": "generator", "children": [[name, other] for name, other in held]}
        if isinstance(thing, tuple) and hasattr(thing, "_fields"):
            kept = [[thing._fields[index], other] for index, other in held]
            fields = list(thing._fields)
            return {"kind": "named tuple", "name": type(thing).__name__, "fields": fields, "children": kept}
        kind = next((name for base, name in _CONTAINERS.items() if isinstance(thing, base)), "object")
        for name, _ in held:
            if type(name) not in (str, int):
                raise InvalidArgumentError(f"{thing!r} can't be saved: its keys must be strings or ints, got {name!r}")
        return {"kind": kind, "class": type(thing).__name__, "children": [[name, other] for name, other in held]}

    def write(self, folder: Path) -> None:
        """Writes the files: those that the document refers to first, then the document."""
        before = _earlier(folder)
        taken = functools.partial(_free_name, folder, self._files)
        # Assets first, so that tensors which functions have captured are known to be their paths.
        for thing in self._things.things:
            if isinstance(thing, Asset):
                self._asset(thing, taken)
        objects = [self._said(number, taken) for number in range(len(self._things.things))]
        signatures = {name: self._function(function) for name, function in self._signatures.items()}
        aliases = {name: self._function(function) for name, function in self._aliases.items()}
        variables = [_described(variable) for variable in self._variables]
        for number, constant in enumerate(self._writer.constants):
            self._arrays[f"constants/{number}"] = constant.array, as_dtype(constant.array.dtype)
        arrays, descriptions = {}, {}
        for key, (array, dtype) in self._arrays.items():
            parts = tensors.stored(key, array, dtype)
            descriptions[key] = tensors.described(parts, np.shape(array), dtype)
            arrays.update(parts)
        data = f"data-{secrets.token_hex(8)}.safetensors"
        content = {
            "producer": _producer(), "data": data, "arrays": descriptions, "constants": len(self._writer.constants),
            "variables": variables, "tensors": self._tensors, "program": self._writer.program(),
            "traces": self._traces, "functions": self._functions, "objects": objects, "signatures": signatures,
            **({"aliases": aliases} if aliases else {}),
        }  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        for name, source in self._files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            files.write_atomically(folder / name, functools.partial(shutil.copyfile, source))
        tensors.write_arrays(folder / data, arrays)
        files.write_document(folder / DOCUMENT, KIND, VERSION, content, compact=True)
        for path in before - {folder / name for name in self._files}:
            path.unlink(missing_ok=True)


class _NotCallable(Exception):
    """A trace has arguments that no other program could give."""


_CONTAINERS: dict[type, str] = {list: "list", tuple: "tuple", dict: "dict"}


def _described(variable: Variable) -> dict[str, Any]:
    return {
        "name": variable._name, "trainable": variable.trainable, "dtype": variable.dtype.name,
        "shape": None if variable._shape is None else list(variable._shape),
    }  # fmt: skip


def _earlier(folder: Path) -> set[Path]:
    """The files of a saved model that is in a folder already, but for its document."""
    if not (folder / DOCUMENT).is_file():
        return set()
    assets = folder / ASSETS
    found = {path for path in folder.iterdir() if DATA.fullmatch(path.name)}
    return found | ({path for path in assets.iterdir() if path.is_file()} if assets.is_dir() else set())


def _free_name(folder: Path, own: Mapping[str, Path], name: str, source: Path) -> str:
    """The name of an asset's copy: one that no other file has, now or before, unless its content is the same."""
    stem, suffix = os.path.splitext(name)
    number = 0
    while True:
        found = f"{ASSETS}/{stem}{f'_{number}' if number else ''}{suffix}"
        other = own.get(found, folder / found)
        if not other.exists() or _digest(other) == _digest(source):
            return found
        number += 1


def _digest(path: Path) -> bytes:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest() if hasattr(hashlib, "file_digest") else _sha256(file)


def _sha256(file: Any) -> bytes:
    digest = hashlib.sha256()
    for block in iter(lambda: file.read(1 << 20), b""):
        digest.update(block)
    return digest.digest()


def _producer() -> str:
    try:
        return f"autograph-numba {metadata.version('autograph-numba')}"
    except metadata.PackageNotFoundError:
        return "autograph-numba (from a checkout)"
