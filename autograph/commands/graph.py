"""`autograph graph`: the program of a function at each stage of its compilation. Runs the file."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
import sysconfig
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograph.commands.files import UsageError, read, split
from autograph.function.polymorphic import Function
from runtime import dtypes
from runtime.engine.stages import STAGES, chosen
from runtime.errors import OpError, is_own_file
from runtime.signatures import signature_of
from runtime.spec import TensorSpec

_TENSOR = re.compile(r"(\w+)(?:\[(.*)\])?$", re.DOTALL)


def function_of(options: Any) -> tuple[str, Any, dict[str, Any]]:
    """The name, the Python function and the arguments that a command line asks for, or the function's own
    `input_signature`. Raises UsageError."""
    path, name = split(options.target)
    if name is None or path == "-":
        raise UsageError(f"expected FILE.py:function, got {options.target!r}")
    function, own = _look_up(_run_file(path), name, path)
    if own is not None and not options.signature:
        arguments = dict(zip(signature_of(function).parameters, own))
    else:
        arguments = parse_signature(options.signature)
    _check(function, name, arguments)
    return name, function, arguments


def run(options: Any) -> int:
    """Prints a stage, or writes a picture or page; exit code 1 where tracing fails or there is nothing to show."""
    name, function, arguments = function_of(options)
    traced = Function(function)
    try:
        concrete = traced.get_concrete_function(**arguments)
    except Exception as error:
        return untraceable(name, error)
    stage = next((each for each in STAGES if getattr(options, each.replace("-", "_"), False)), "graph")
    try:
        if stage != "graph":
            print(concrete.as_text(stage, options.gradient), flush=True)
            return 0
        graph = chosen(concrete.function, options.gradient).graph
    except (LookupError, OpError, ValueError) as error:
        print(f"autograph: {error}", file=sys.stderr)
        return 1
    for form, show in _FORMS.items():
        file = getattr(options, form)
        if file is not None:
            try:
                return _write(show(graph), file)
            except FileNotFoundError as error:  # Graphviz is missing
                raise UsageError(str(error)) from None
    print(graph.as_text(spans=options.lines), flush=True)
    return 0


def untraceable(name: str, error: Exception) -> int:
    """Says why a function can't be traced, and gives the exit code: what its Python code raises counts, too."""
    installed = sysconfig.get_path("stdlib")
    frames = traceback.extract_tb(error.__traceback__)
    users = [each for each in frames if not is_own_file(each.filename) and not each.filename.startswith(installed)]
    where = f" ({users[-1].filename}:{users[-1].lineno})" if users and users[-1].filename not in str(error) else ""
    print(f"autograph: {name} can't be traced: {type(error).__name__}: {error}{where}", file=sys.stderr)
    return 1


_FORMS: dict[str, Callable[[Any], str]] = {
    "dot": lambda graph: graph.to_dot(),
    "svg": lambda graph: graph.to_svg(),
    "html": lambda graph: graph.to_html(),
}


def _check(function: Any, name: str, arguments: dict[str, Any]) -> None:
    """Raises UsageError when the signature doesn't give the arguments that the function takes."""
    try:
        parameters = signature_of(function)
    except (TypeError, ValueError):  # C code
        return
    try:
        parameters.bind(**arguments)
    except TypeError as error:
        raise UsageError(
            f"{name}{parameters} can't be called with this signature: {error}; name its arguments, as in --signature \""
            + ", ".join(f"{key}: float32[None]" for key in [*parameters.parameters][:2])
            + '"'
        ) from None


def _write(text: str, file: str) -> int:
    if file == "-":
        print(text, flush=True)
        return 0
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from None
    return 0


def parse_signature(text: str) -> dict[str, Any]:
    """Arguments from text like ``x: float32[None, 3], n: int32, steps=4``. Raises UsageError."""
    found: dict[str, Any] = {}
    for part in _split_outside_brackets(text):
        name, separator, rest = part.partition(":") if re.match(r"\s*\w+\s*:", part) else part.partition("=")
        name, rest = name.strip(), rest.strip()
        if not (separator and name.isidentifier() and rest):
            raise UsageError(f"in the signature, expected `name: dtype[shape]` or `name=value`, got {part.strip()!r}")
        found[name] = _spec(name, rest) if separator == ":" else _literal(rest)
    return found


def _spec(name: str, text: str) -> TensorSpec:
    match = _TENSOR.match(text)
    try:
        if match is None:
            raise ValueError
        dtype = dtypes.as_dtype(match[1])
        sizes = () if match[2] is None else ast.literal_eval(f"({match[2]},)" if match[2].strip() else "()")
        if match[2] is not None and match[2].strip() == "...":
            return TensorSpec(None, dtype, name)
        if not all(size is None or (type(size) is int and size >= 0) for size in sizes):
            raise ValueError
    except (TypeError, ValueError, SyntaxError):
        raise UsageError(f"in the signature, {text!r} isn't a dtype and shape, such as float32[None, 3]") from None
    return TensorSpec(sizes, dtype, name)


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise UsageError(f"in the signature, {text!r} isn't a Python literal") from None


def _split_outside_brackets(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        if character in "[({":
            depth += 1
        elif character in "])}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [part for part in [*parts, text[start:]] if part.strip()]


def _run_file(path: str) -> Any:
    """The module that a file makes when it is imported."""
    file = Path(path).resolve()
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise UsageError(f"cannot read {path}: no such Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UsageError(f"running {path} failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(file.parent))
    return module


def _look_up(module: Any, name: str, path: str) -> tuple[Any, Any]:
    """The Python function, and the `input_signature` that it was decorated with."""
    owner, value = None, module
    for part in name.split("."):
        owner = value
        try:
            value = getattr(owner, part)
        except AttributeError:
            read(path).definition(name)  # its message tells what there is
            raise UsageError(f"no function {name!r} in {path}: it is defined inside another function") from None
    if (
        isinstance(owner, type)
        and (inspect.isfunction(value) or isinstance(value, Function))
        and type(inspect.getattr_static(owner, part)) is not staticmethod
    ):
        try:
            instance = owner()
        except Exception as error:
            raise UsageError(
                f"{name} is a method, but {owner.__name__}() can't be created: {type(error).__name__}: {error}; "
                "name a function, or an instance that the file keeps in a variable (cell.call)"
            ) from None
        if not isinstance(value, Function):
            return getattr(instance, part), None
        # A method that is an ag.function doesn't keep its object.
        return types.MethodType(value.python_function, instance), value.input_signature
    if not callable(value):
        raise UsageError(f"{name!r} in {path} isn't a function")
    return getattr(value, "python_function", value), getattr(value, "input_signature", None)
