"""`ag.export.c_library`: functions as C libraries."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from autograph.function.concrete import ConcreteFunction
from autograph.function.polymorphic import Function
from autograph.naming import argument_names, result_names, trace_to_export
from runtime import nest, system
from runtime.autodiff.tape import GradientTape
from runtime.dataclass import dataclass
from runtime.errors import InvalidArgumentError, UnimplementedError
from runtime.graph.ir import Graph, Value, copy_graph
from runtime.graph.passes.rewrites.commits import remove_commits
from runtime.graph.spans import describe_span
from runtime.ops.api import add_n, cast, reduce_sum
from runtime.storage.tensors import write_arrays
from runtime.variable import Variable

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
    """The files of a C library, and the names of its functions. `shared` and `static` are None if no C compiler was
    found; then only the object file exists. `weights` is the safetensors file, if there is one."""

    name: str
    functions: tuple[str, ...]
    header: Path
    object: Path
    example: Path
    static: Path | None
    shared: Path | None
    weights: Path | None = None


def c_library(
    function: ConcreteFunction | Function,
    directory: str | os.PathLike[str],
    name: str | None = None,
    gradient: bool = False,
    weights: str | os.PathLike[str] | None = None,
) -> CLibrary:
    """Compiles a function to a C library, which needs neither Python nor this project.

    The library is for processors like this one; set the environment variable AUTOGRAPH_PROCESSOR for another, such as
    `x86-64-v3`. Tensors and variables that the function reads become part of the library, with their current values.
    Functions allocate the memory of array results, and the caller frees it. Errors are codes with messages, which name
    the line in the Python source. See docs/c_library.md.

    Args:
        function: what `get_concrete_function` returns, or an `ag.function` with an `input_signature`. Dimensions that
            the signature leaves open become parameters; ranks must be known.
        directory: the folder for the files; created if it doesn't exist. Files of an earlier library are replaced.
        name: the name of files and functions, a C identifier; by default the function's own name.
        gradient: also define `NAME_gradient`, which returns the results of the function and the gradient of the sum of
            the floating-point ones by each floating-point argument.
        weights: a safetensors file to write the function's tensors and variables to, rather than into the library. The
            library then has `NAME_load`, which loads such a file, and its functions take the loaded weights. Then the
            function may also assign variables: they change there.

    Returns a CLibrary: the header `NAME.h`, the object file `NAME.o`, an example `NAME_main.c`, and, if there is a C
    compiler (`CC`, by default `cc`), the shared library `libNAME.so` (macOS: `libNAME.dylib`) and the static one
    `libNAME.a`.

    Raises UnimplementedError, with the line, if an operation has no native code, draws random numbers without a seed,
    prints, or assigns a variable without `weights`; InvalidArgumentError for a name that isn't a C identifier, and for
    `weights` if the function has none or there is no C compiler; TypeError for anything but such a function.
    """
    from runtime.codegen.export import c_weights
    from runtime.codegen.export.c_header import example, header
    from runtime.codegen.export.c_library import compile_object

    concrete = trace_to_export(function, "ag.export.c_library")
    name = _identifier(concrete.graph.name) if name is None else name
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or name in _TAKEN:
        raise InvalidArgumentError(f"{name!r} can't be the name of a C library: it must be a C identifier")
    arguments, results = argument_names(concrete), result_names(concrete.structured_outputs)
    kept = None if weights is None else _Weights()
    functions = [_c_function(name, concrete, _doc(concrete), arguments, results, kept)]
    if gradient:
        doc = [f"The results of {name}, and the gradient of the sum of the floating-point ones by each",
               "floating-point argument."]  # fmt: skip
        results = _with_gradients(concrete, arguments, results)
        functions.append(_c_function(f"{name}_gradient", _gradient(concrete), doc, arguments, results, kept))
    if kept is not None and not kept.tensors:
        raise InvalidArgumentError(f"{name} has no weights: it reads no tensors or variables other than its arguments")
    code = compile_object(name, functions)
    described = [] if kept is None else kept.described()
    file = None if weights is None else Path(weights)
    texts = {
        f"{name}.h": header(name, functions, _version(), described),
        f"{name}_main.c": example(name, functions, None if file is None else file.name),
    }
    if described:
        texts[f"{name}_weights.c"] = c_weights.text(name, described)
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".autograph-", dir=folder) as work:
        for each, text in texts.items():
            Path(work, each).write_text(text, encoding="utf-8")
        Path(work, f"{name}.o").write_bytes(code)
        linked = _link(Path(work), name, bool(described))
        for made in sorted(Path(work).iterdir()):
            os.replace(made, folder / made.name)
    if kept is not None and file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(file, kept.arrays())
    static, shared = (folder / each if each else None for each in linked)
    return CLibrary(
        name, tuple(each.name for each in functions), folder / f"{name}.h", folder / f"{name}.o",
        folder / f"{name}_main.c", static, shared, file,
    )  # fmt: skip


@dataclass(frozen=True)
class LoadedFunction:
    """A function in this process as C calls it: the address of `int NAME(...)` as `c_library` declares it, and of
    `void NAME_free(void *)`. parameters, results: those of the C function, in its order, before the message."""

    name: str
    address: int
    free_address: int
    parameters: tuple[Any, ...]
    results: tuple[Any, ...]


def load(function: ConcreteFunction | Function, gradient: bool = False) -> LoadedFunction:
    """Compiles a function as `c_library` does, into this process's memory, where it stays.

    gradient: the function of its results and the gradient of the sum of the floating-point ones by each
    floating-point argument, instead.

    Raises UnimplementedError and TypeError as `c_library` does.
    """
    from runtime.codegen.export import loaded

    concrete = trace_to_export(function, "ag.interop")
    name = _identifier(concrete.graph.name)
    arguments, outputs = argument_names(concrete), result_names(concrete.structured_outputs)
    if gradient:
        outputs, concrete = _with_gradients(concrete, arguments, outputs), _gradient(concrete)
    made = _c_function(name, concrete, (), arguments, outputs, None)
    address, free = loaded.load(name, made)
    parameters, results = (tuple([x for x in each if x.is_given]) for each in (made.parameters, made.results))
    return LoadedFunction(name, address, free, parameters, results)


def _link(work: Path, name: str, loads: bool) -> tuple[str | None, str | None]:
    """The names of the static and the shared library of an object file; None without the tool that makes it.

    loads: whether there is a C file to be compiled, too, which loads weights.
    """
    compiler, archiver = os.environ.get("CC", "cc"), os.environ.get("AR", "ar")
    static = shared = None
    objects = [f"{name}.o"]
    if loads:
        if not shutil.which(compiler):
            raise InvalidArgumentError(
                f"`weights` needs a C compiler, and {compiler} wasn't found (set the environment variable CC to use "
                "another). Without `weights`, they become part of the library"
            )
        _call([compiler, "-std=c99", "-O2", "-fPIC", "-c", f"{name}_weights.c"], work)
        objects.append(f"{name}_weights.o")
    if shutil.which(archiver):
        static = f"lib{name}.a"
        _call([archiver, "rcs", static, *objects], work)
    if shutil.which(compiler):
        shared = system.shared_library(name)
        _call([compiler, "-shared", "-o", shared, *objects, "-lm", "-lpthread"], work)
    return static, shared


def _call(command: Sequence[str], work: Path) -> None:
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnimplementedError(f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip()}")


# --- functions -------------------------------------------------------------------------------------------------------


class _Weights:
    """The tensors and variables that functions of a library read, each once, by their names in the file."""

    def __init__(self) -> None:
        self.tensors: dict[str, Any] = {}
        self._places: dict[int, int] = {}

    def place(self, tensor: Any) -> int:
        """Its number. Variables keep their names; tensors are `tensor`, `tensor_1` and so on."""
        if id(tensor) not in self._places:
            given = getattr(tensor, "name", None) if isinstance(tensor, Variable) else None
            base = name = (given or "tensor").removesuffix(":0")
            number = 0
            while name in self.tensors or name == "__metadata__":
                number += 1
                name = f"{base}_{number}"
            self._places[id(tensor)] = len(self.tensors)
            self.tensors[name] = tensor
        return self._places[id(tensor)]

    def shape(self, place: int) -> tuple[int, ...]:
        """The shape of the tensor of that number."""
        return tuple(np.shape(list(self.tensors.values())[place].numpy()))

    def described(self) -> list[Any]:
        """The tensors' names, dtypes and shapes, as `Weight`s of `runtime.codegen.export.c_weights`."""
        from runtime.codegen.export.c_weights import Weight

        shapes = map(self.shape, range(len(self.tensors)))
        return [Weight(name, each.dtype, shape) for (name, each), shape in zip(self.tensors.items(), shapes)]

    def arrays(self) -> dict[str, Any]:
        return {name: np.ascontiguousarray(each.numpy()).reshape(each.shape) for name, each in self.tensors.items()}


def _c_function(
    name: str,
    concrete: ConcreteFunction,
    doc: Sequence[str],
    arguments: Sequence[str],
    outputs: Sequence[str],
    weights: _Weights | None,
) -> Any:
    """A trace as `runtime.codegen.export.c_library.CFunction`. arguments, outputs: what their tensors are called."""
    from runtime.codegen.export.c_interface import Parameter, Result
    from runtime.codegen.export.c_library import CFunction
    from runtime.codegen.kernel.source import NotNative, slot_of

    graph = concrete.function.executable.graph
    written = concrete.assigned_variables
    if written and weights is None:
        raise UnimplementedError(
            f"{name} can't be compiled as a C function, which keeps no state: it assigns the variable "
            f"{written[0].name!r}{_where(graph, 'assign')}; pass the value as an argument and "
            "return the new one, or pass `weights`, so that the library loads its variables from a file and keeps "
            "them"
        )
    if written:
        graph = copy_graph(graph)
        remove_commits(graph)  # after an error all variables are as they were
    given = list(concrete.argument_specs)
    embedded = concrete.inputs_for([None] * len(given))[len(given) :]
    used = _identifiers(arguments, outputs, {"weights"} if weights is not None else set())
    parameters: list[Parameter] = []
    results: list[Result] = []
    try:
        for position, value in enumerate(graph.inputs):
            slot = slot_of(value.type)
            if position < len(given):
                parameters.append(Parameter(next(used), slot, _shape(value)))
            elif slot.kind == "token":
                parameters.append(Parameter("", slot, ()))
            elif weights is not None:
                place = weights.place(concrete.captured_inputs[position - len(given)])
                parameters.append(Parameter("", slot, weights.shape(place), weight=place))
            else:
                array = embedded[position - len(given)].numpy()
                parameters.append(Parameter("", slot, array.shape, array))
        count = sum(slot_of(value.type).kind != "token" for value in graph.outputs) - len(written)
        for position, value in enumerate(graph.outputs):
            slot = slot_of(value.type)
            if slot.kind == "token":
                results.append(Result("", slot, ()))
            elif position < count:
                results.append(Result(next(used), slot, _shape(value)))
            else:
                results.append(_new_value(name, written[position - count], slot, _shape(value), weights))
    except NotNative as reason:
        raise UnimplementedError(f"{name} can't be compiled as a C function: {reason}") from None
    return CFunction(name, graph, tuple(parameters), tuple(results), tuple(doc))


def _new_value(name: str, variable: Variable, slot: Any, shape: tuple[int | None, ...], weights: Any) -> Any:
    """The result that becomes a variable's value. Raises UnimplementedError if its size may change."""
    from runtime.codegen.export.c_interface import Result

    place = weights.place(variable)
    if shape != weights.shape(place):
        raise UnimplementedError(
            f"{name} can't be compiled as a C function: it assigns a value of unknown size to the variable "
            f"{variable.name!r}. Specify the dimensions in the signature"
        )
    return Result("", slot, shape, weight=place)


def _where(graph: Graph, word: str) -> str:
    """The user's line of the graph's first operation of this kind."""
    span = next((node.span for node in graph.walk() if word in node.op.name and node.span), None)
    return f" at {describe_span(span)}" if span else ""


def _shape(value: Value) -> tuple[int | None, ...]:
    shape: Any = value.shape
    return tuple(shape)


def _with_gradients(concrete: ConcreteFunction, arguments: Sequence[str], results: Sequence[str]) -> list[str]:
    """The names of the results of `_gradient`."""
    floats = [each for each, spec in zip(arguments, concrete.argument_specs) if spec.dtype.is_floating]
    return [*results, *(f"d_{each}" for each in floats)]


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


def _identifiers(arguments: Sequence[str], outputs: Sequence[str], seen: set[str]) -> Iterator[str]:
    """The names as identifiers of C that differ from each other, and from those that were `seen`."""
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
