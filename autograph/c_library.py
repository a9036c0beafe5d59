"""`ag.export.c_library`: functions as C libraries."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from autograph.function.concrete import ConcreteFunction
from autograph.function.polymorphic import Function
from runtime import nest
from runtime.autodiff.tape import GradientTape
from runtime.errors import InvalidArgumentError, UnimplementedError
from runtime.graph.ir import Graph, Value
from runtime.graph.spans import describe_span
from runtime.ops.api import add_n, cast, reduce_sum
from runtime.spec import TensorSpec

# Of C and C++, and the names of the parameters that all functions have.
_TAKEN = frozenset([
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch",
    "char", "class", "compl", "const", "constexpr", "continue", "default", "delete", "do", "double", "else", "enum",
    "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long",
    "main", "message", "message_size", "mutable", "namespace", "new", "not", "not_eq", "nullptr", "operator", "or",
    "or_eq", "private", "protected", "public", "register", "restrict", "return", "short", "signed", "sizeof",
    "static", "struct", "switch", "template", "this", "throw", "true", "try", "typedef", "typeid", "typename",
    "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
])  # fmt: skip


@dataclass(frozen=True)
class CLibrary:
    """The files of a C library, and the names of its functions. `shared` and `static` are None where no C compiler
    was found: then there is the object file alone."""

    name: str
    functions: tuple[str, ...]
    header: Path
    object: Path
    example: Path
    static: Path | None
    shared: Path | None


def c_library(
    function: ConcreteFunction | Function,
    directory: str | os.PathLike[str],
    name: str | None = None,
    gradient: bool = False,
) -> CLibrary:
    """Compiles a function to a C library, which needs neither Python nor this project.

    The library is for processors like this one; the environment variable AUTOGRAPH_PROCESSOR names another, such as
    `x86-64-v3`. Tensors and variables that the function reads become part of it, with their values now. It allocates
    the memory of array results, which the caller frees. Errors are codes with messages, which name the line in the
    Python source. See docs/c_library.md.

    Args:
        function: what `get_concrete_function` returns, or an `ag.function` with an `input_signature`. Dimensions that
            the signature leaves open become parameters; ranks must be known.
        directory: where the files go; made if it doesn't exist. Files of an earlier library are replaced.
        name: what files and functions are called: a C identifier; by default the function's own name.
        gradient: also define `NAME_gradient`, which returns the results of the function and the gradient of the sum of
            the floating-point ones by each floating-point argument.

    Returns a CLibrary: the header `NAME.h`, the object file `NAME.o`, an example `NAME_main.c`, and, where there is a C
    compiler (`CC`, by default `cc`), the shared library `libNAME.so` and the static one `libNAME.a`.

    Raises UnimplementedError where an operation of the function has no native code, where it assigns a variable, draws
    random numbers without a seed, or prints, with its line; InvalidArgumentError for a name that is no C identifier;
    TypeError for anything but such a function.
    """
    from runtime.codegen.export.c_header import example, header
    from runtime.codegen.export.c_library import compile_object

    if not isinstance(function, (ConcreteFunction, Function)):
        raise TypeError(
            "c_library takes an ag.function or what its get_concrete_function returns, but it was given an object of "
            f"the type {type(function).__name__!r}"
        )
    concrete = function if isinstance(function, ConcreteFunction) else function.get_concrete_function()
    name = _identifier(concrete.graph.name) if name is None else name
    if not name.isidentifier() or not name.isascii() or name in _TAKEN:
        raise InvalidArgumentError(f"{name!r} can't be the name of a C library: it must be an identifier of C")
    arguments, results = _names(concrete), result_names(concrete.structured_outputs)
    functions = [_c_function(name, concrete, _doc(concrete), arguments, results)]
    if gradient:
        doc = [f"The results of {name}, and the gradient of the sum of the floating-point ones by each",
               "floating-point argument."]  # fmt: skip
        specs = concrete.argument_specs
        results = results + [f"d_{each}" for each, spec in zip(arguments, specs) if spec.dtype.is_floating]
        functions.append(_c_function(f"{name}_gradient", _gradient(concrete), doc, arguments, results))
    code = compile_object(name, functions)
    texts = {f"{name}.h": header(name, functions, _version()), f"{name}_main.c": example(name, functions)}
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".autograph-", dir=folder) as work:
        for file, text in texts.items():
            Path(work, file).write_text(text, encoding="utf-8")
        Path(work, f"{name}.o").write_bytes(code)
        linked = _link(Path(work), name)
        for made in sorted(Path(work).iterdir()):
            os.replace(made, folder / made.name)
    static, shared = (folder / each if each else None for each in linked)
    return CLibrary(
        name, tuple(each.name for each in functions), folder / f"{name}.h", folder / f"{name}.o",
        folder / f"{name}_main.c", static, shared,
    )  # fmt: skip


def _link(work: Path, name: str) -> tuple[str | None, str | None]:
    """The names of the static and the shared library of an object file; None without the tool that makes it."""
    compiler, archiver = os.environ.get("CC", "cc"), os.environ.get("AR", "ar")
    static = shared = None
    if shutil.which(archiver):
        static = f"lib{name}.a"
        _call([archiver, "rcs", static, f"{name}.o"], work)
    if shutil.which(compiler):
        shared = f"lib{name}.so"
        _call([compiler, "-shared", "-o", shared, f"{name}.o", "-lm", "-lpthread"], work)
    return static, shared


def _call(command: Sequence[str], work: Path) -> None:
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnimplementedError(f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip()}")


# --- functions -------------------------------------------------------------------------------------------------------


def _c_function(
    name: str, concrete: ConcreteFunction, doc: Sequence[str], arguments: Sequence[str], outputs: Sequence[str]
) -> Any:
    """A trace as `runtime.codegen.export.c_library.CFunction`. arguments, outputs: what their tensors are called."""
    from runtime.codegen.export.c_interface import Parameter, Result
    from runtime.codegen.export.c_library import CFunction
    from runtime.codegen.kernel.source import NotNative, slot_of

    graph = concrete.function.executable.graph
    if concrete.assigned_variables:
        variable = concrete.assigned_variables[0]
        raise UnimplementedError(
            f"{name} can't be part of a C library, which keeps no state: it assigns the variable {variable.name!r}"
            f"{_where(graph, 'assign')}; pass the value as an argument and return the new one"
        )
    given = list(concrete.argument_specs)
    embedded = concrete.inputs_for([None] * len(given))[len(given) :]
    used = _identifiers(arguments, outputs)
    parameters: list[Parameter] = []
    results: list[Result] = []
    try:
        for position, value in enumerate(graph.inputs):
            slot = slot_of(value.type)
            if position < len(given):
                parameters.append(Parameter(next(used), slot, _shape(value)))
            elif slot.kind == "token":
                parameters.append(Parameter("", slot, ()))
            else:
                array = embedded[position - len(given)].numpy()
                parameters.append(Parameter("", slot, array.shape, array))
        for value in graph.outputs:
            slot = slot_of(value.type)
            results.append(Result("", slot, ()) if slot.kind == "token" else Result(next(used), slot, _shape(value)))
    except NotNative as reason:
        raise UnimplementedError(f"{name} can't be part of a C library: {reason}") from None
    return CFunction(name, graph, tuple(parameters), tuple(results), tuple(doc))


def _where(graph: Graph, word: str) -> str:
    """Where the graph's first operation of this kind stands in the user's source."""
    span = next((node.span for node in graph.walk() if word in node.op.name and node.span), None)
    return f" at {describe_span(span)}" if span else ""


def _shape(value: Value) -> tuple[int | None, ...]:
    shape: Any = value.shape
    return tuple(shape)


def _gradient(concrete: ConcreteFunction) -> ConcreteFunction:
    """A trace of the function's results with the gradient of their sum."""
    specs = concrete.argument_specs

    def value_and_gradient(*arguments: Any) -> Any:
        by = [each for each in arguments if each.dtype.is_floating]
        with GradientTape() as tape:
            tape.watch(by)
            result = concrete.call_flat(arguments)
            sums = [reduce_sum(each) for each in nest.flatten(result) if each is not None and each.dtype.is_floating]
            target = add_n([cast(each, sums[0].dtype) for each in sums]) if sums else None
        if target is None or not by:
            raise InvalidArgumentError(
                f"{concrete.graph.name} has no gradient: it needs a floating-point argument and a floating-point result"
            )
        return result, tape.gradient(target, by, unconnected_gradients="zero")

    return Function(value_and_gradient, autograph=False).get_concrete_function(*specs)


# --- names -----------------------------------------------------------------------------------------------------------


def _names(concrete: ConcreteFunction) -> list[str]:
    """A name for each tensor among the arguments: the parameter's, with the way to it in a structure."""
    positional, keywords = concrete.structured_input_signature
    signature = concrete.parameters.signature
    parameters = [] if signature is None else list(signature.parameters.values())
    found: list[str] = []
    for index, argument in enumerate(positional):
        last = min(index, len(parameters) - 1)
        name = parameters[last].name if parameters else "x"
        several = not parameters or parameters[last].kind is inspect.Parameter.VAR_POSITIONAL
        found += _paths(argument, f"{name}_{index - max(last, 0)}" if several else name)
    for key in sorted(keywords):
        found += _paths(keywords[key], key)
    return found


def result_names(structure: Any) -> list[str]:
    """A name for each tensor of a result: `result`, or the way to it in a structure, such as `loss` or `result_0`."""
    if isinstance(structure, TensorSpec):
        return ["result"]
    return [each.removeprefix("result_") if not each[7:8].isdigit() else each for each in _paths(structure, "result")]


def _paths(structure: Any, base: str) -> Iterator[str]:
    """The ways to the tensors of a structure, in the order in which it is flattened."""
    leaves = nest.flatten(structure)
    numbered = nest.pack_sequence_as(structure, [_Leaf(each) for each in leaves])
    by_leaf: dict[int, str] = {}
    _walk(numbered, base, by_leaf)
    for leaf in nest.flatten(numbered):
        if isinstance(leaf.value, TensorSpec):
            yield by_leaf.get(id(leaf), base)


class _Leaf:
    def __init__(self, value: Any) -> None:
        self.value = value


def _walk(structure: Any, path: str, found: dict[int, str]) -> None:
    if isinstance(structure, _Leaf):
        found[id(structure)] = path
    elif isinstance(structure, dict):
        for key, value in structure.items():
            _walk(value, f"{path}_{key}", found)
    elif hasattr(structure, "_fields"):
        for key in structure._fields:
            _walk(getattr(structure, key), f"{path}_{key}", found)
    elif isinstance(structure, (list, tuple)):
        for index, value in enumerate(structure):
            _walk(value, f"{path}_{index}", found)


def _identifiers(arguments: Sequence[str], outputs: Sequence[str]) -> Iterator[str]:
    """The names as identifiers of C that differ from each other."""
    seen: set[str] = set()
    for names, prefix in ((arguments, ""), (outputs, "result_")):
        for name in names:
            name = _identifier(name)
            name = base = f"{prefix}{name}" if name in seen else name
            number = 1
            while name in seen:
                number += 1
                name = f"{base}_{number}"
            seen.add(name)
            yield name


def _identifier(name: str) -> str:
    name = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
    return f"{name}_" if name in _TAKEN else f"_{name}" if name[0].isdigit() else name


def _doc(concrete: ConcreteFunction) -> list[str]:
    text = inspect.getdoc(concrete.python_function) if concrete.python_function is not None else None
    return (text or "").splitlines()


def _version() -> str:
    try:
        return metadata.version("autograph-numba")
    except metadata.PackageNotFoundError:
        return "(from a checkout)"
