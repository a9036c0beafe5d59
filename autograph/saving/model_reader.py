"""`saved_model.load`: objects and functions from files, without the source that they come from.

Nothing that a file says is run or imported. Everything is checked before anything is made of it; what isn't as
`model_writer.py` writes it is refused with DataLossError.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autograph.function.concrete import ConcreteFunction
from autograph.function.polymorphic import Function
from autograph.function.signature import Arguments
from autograph.module import Module
from autograph.saving.loaded_functions import Original, SignatureFunction, enter, loaded_function
from autograph.saving.model_writer import ASSETS, DATA, DOCUMENT, KIND, VERSION
from autograph.saving.saved_objects import Asset
from autograph.saving.structures import StructureDecoder, is_name, named_tuple, parameters_from_json
from runtime import nest
from runtime.context import ctx
from runtime.dtypes import as_dtype
from runtime.errors import DataLossError, NotFoundError, OpError
from runtime.generator import Generator
from runtime.graph.ir import ConstantArray, Graph
from runtime.graph.verify import fits
from runtime.ops.convert import convert_to_tensor
from runtime.serial.graphs import at, checked, field, read
from runtime.serial.values import Damaged, is_index, type_from_json
from runtime.spec import TensorSpec
from runtime.storage import files, tensors
from runtime.tensor import EagerTensor
from runtime.types import TokenType, Type
from runtime.variable import Variable

_ASSET = re.compile(rf"{ASSETS}/[^/\\\0]+")


class LoadOptions:
    """Options of `saved_model.load`.

    With `experimental_load_function_aliases`, the loaded object's `function_aliases` are the functions by the names
    that `SaveOptions` gave them. Others are accepted for TensorFlow programs, without effect.
    """

    def __init__(self, experimental_load_function_aliases: bool = False, **options: Any) -> None:
        self.experimental_load_function_aliases = experimental_load_function_aliases
        self.options = options


class LoadedModule(Module):
    """An object of a saved model: it has the attributes that were saved. `signatures` are the root's signatures."""

    signatures: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = vars(self).get("__call__")
        if function is None:
            raise TypeError(f"{self!r} can't be called: the saved object has no function __call__")
        return function(*args, **kwargs)


class Signatures(Mapping):
    """The signatures of a saved model by name."""

    def __init__(self, functions: dict[str, SignatureFunction]) -> None:
        self._functions = functions

    def __getitem__(self, name: str) -> SignatureFunction:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __repr__(self) -> str:
        return f"Signatures({self._functions!r})"


def contains_saved_model(export_dir: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a saved model."""
    return (Path(os.fspath(export_dir)) / DOCUMENT).is_file()


def load(export_dir: str | os.PathLike[str], tags: Any = None, options: Any = None) -> Any:
    """Loads a model that `save` has written, without the source of the program that made it.

    Returns the object: a module, list, tuple or dictionary as it was saved, objects of all classes as modules.
    Functions accept the arguments they had been traced for when they were saved; they are differentiable and assign
    variables. Its `signatures` holds the signatures by name; these take tensors by name and return dictionaries of
    tensors. No code from the files is run or imported, and nothing is written.

    Args:
        export_dir: the folder.
        tags: accepted, without effect.
        options: `LoadOptions`.

    Raises NotFoundError if there is no saved model, DataLossError if it is damaged, UnimplementedError for a newer
    version, RuntimeError in a traced function.
    """
    if ctx.builder is not None:
        raise RuntimeError("saved_model.load reads files, which a traced function can't: call it outside")
    folder = Path(os.fspath(export_dir)).absolute()
    try:
        document = files.read_document(folder / DOCUMENT, KIND, VERSION)
    except NotFoundError:
        raise NotFoundError(f"There is no saved model in {folder}: the file {DOCUMENT} is missing") from None
    try:
        return _Loader(folder, document).root(getattr(options, "experimental_load_function_aliases", False))
    except (OpError, MemoryError):
        raise
    # Names, structures and graphs may be wrong in more ways than checks foresee.
    except Exception as error:
        kind = "" if isinstance(error, Damaged) else f"{type(error).__name__}: "
        raise DataLossError(f"The saved model in {folder} is damaged: {kind}{str(error)[:1000]}") from None


class _Loader:
    def __init__(self, folder: Path, document: dict[str, Any]) -> None:
        self._folder, self._document = folder, document
        data = field(document, "data", str)
        if not DATA.fullmatch(data):
            raise Damaged(f"{data!r} isn't the name of a data file")
        self._said_arrays = field(document, "arrays", dict)
        if not all(map(tensors.is_description, self._said_arrays.values())):
            raise Damaged("the description of an array is damaged")
        try:
            self._file = tensors.ArrayFile(self._inside(data))
        except NotFoundError as error:
            raise DataLossError(f"The saved model in {folder} is incomplete: {error}") from None
        self._variables = [
            self._variable(number, said) for number, said in enumerate(field(document, "variables", list))
        ]
        self._tensors = list(map(self._tensor, field(document, "tensors", list)))
        count: Any = document.get("constants")
        if not is_index(count, len(self._said_arrays) + 1):
            raise Damaged("the number of constants is wrong")
        self._constants = [self._array(f"constants/{number}")[0] for number in range(count)]
        program = field(document, "program", dict)
        self._graphs = read(program, self._constants, self._variables)
        self._types: list[Type] = list(map(type_from_json, field(program, "types", list)))
        self._said_objects = field(document, "objects", list)
        self._things: list[Any] = [None] * len(self._said_objects)
        self._shells()
        constants = list(map(ConstantArray, self._constants))
        self._decoder = StructureDecoder(self._types, constants, self._variables, self._things)
        self._used_graphs: set[int] = set()
        self._traces = list(map(self._trace, field(document, "traces", list)))
        self._functions = list(map(self._function, field(document, "functions", list)))
        self._fill()

    def _inside(self, name: str) -> Path:
        """A file of the folder. Raises DataLossError for a link that leads out of it."""
        path = self._folder / name
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self._folder)):
            raise DataLossError(
                f"{path} is a link out of the saved model: replace links by files when copying the model"
            )
        return path

    def root(self, with_aliases: bool) -> Any:
        aliases = self._document.get("aliases", {})
        named = {name: at(self._functions, number) for name, number in checked(aliases, dict).items()}
        signatures = {}
        for name, number in field(self._document, "signatures", dict).items():
            function = at(self._functions, number)
            traces = field(self._document["functions"][number], "traces", list)
            concrete = at(self._traces, traces[0] if traces else None)
            signatures[name] = SignatureFunction(name, function, concrete)
        root = at(self._things, 0)
        if isinstance(root, LoadedModule):
            vars(root)["signatures"] = Signatures(signatures)
            if with_aliases:
                vars(root)["function_aliases"] = named
        return root

    # --- values --------------------------------------------------------------------------------------------------

    def _array(self, key: str) -> tuple[Any, Any]:
        if key not in self._said_arrays:
            raise Damaged(f"there is no array {key}")
        return self._file.read(key, self._said_arrays[key])

    def _variable(self, number: int, said: Any) -> Variable:
        array, dtype = self._array(f"variables/{number}")
        type_ = type_from_json([field(said, "dtype", str), said.get("shape")])
        if dtype is not type_.dtype:  # type: ignore[union-attr]
            raise Damaged("a variable's value has the wrong dtype")
        name, trainable = field(said, "name", str), field(said, "trainable", bool)
        variable = Variable(convert_to_tensor(array, dtype), trainable, shape=type_.shape)  # type: ignore[union-attr]
        variable._name = name
        return variable

    def _tensor(self, said: Any) -> Any:
        if isinstance(said, dict) and "asset" in said:
            name = checked(said["asset"], str)
            if not _ASSET.fullmatch(name) or name.endswith(("/.", "/..")):
                raise Damaged(f"{name!r} isn't the name of an asset")
            path = self._inside(name)
            if not path.is_file():
                raise DataLossError(f"The saved model in {self._folder} is incomplete: there is no file {name}")
            return Asset(path)
        array, dtype = self._array(field(said, "array", str))
        return EagerTensor(array if array.shape or array.dtype == object else array[()], dtype)

    def _captured(self, number: Any) -> EagerTensor:
        tensor: Any = at(self._tensors, number)
        path: Any = tensor.asset_path if isinstance(tensor, Asset) else tensor
        return path

    # --- functions -----------------------------------------------------------------------------------------------

    def _graph(self, number: Any) -> Graph:
        graph = at(self._graphs, number)
        if graph is None or number in self._used_graphs:
            raise Damaged("a graph is nested in another, or shared by two traces")
        self._used_graphs.add(number)
        return graph

    def _trace(self, said: Any) -> ConcreteFunction:
        graph = self._graph(said.get("graph") if isinstance(said, dict) else None)
        specs = list(map(self._decoder.from_json, field(said, "specs", list)))
        arguments = self._decoder.from_json(said.get("arguments"))
        if not all(type(spec) is TensorSpec for spec in specs):
            raise Damaged("the specs of a trace are damaged")
        if not isinstance(arguments, tuple) or [type(part) for part in arguments] != [tuple, dict]:
            raise Damaged("the arguments of a trace are damaged")
        given = [leaf for leaf in nest.flatten(arguments) if isinstance(leaf, TensorSpec)]
        # What a ragged tensor's specs say of its parts is less than the trace knows.
        if len(given) != len(specs) or not all(fits(one.type, other.type) for one, other in zip(given, specs)):
            raise Damaged("the specs of a trace don't match its arguments")
        captures = list(map(self._captured, field(said, "captures", list)))
        variables = [at(self._variables, number) for number in field(said, "variables", list)]
        written = field(said, "written", list)
        result = self._decoder.from_json(said.get("result"))
        is_none = [checked(each, bool) for each in field(said, "is_none", list)]
        jit_compile = said.get("jit_compile")
        if jit_compile not in (None, True, False) or len({id(variable) for variable in variables}) != len(variables):
            raise Damaged("a trace is damaged")
        if not all(is_index(each, len(variables)) for each in written) or len(set(written)) != len(written):
            raise Damaged("a trace assigns a variable that it doesn't have")
        if len(nest.flatten(result)) != len(is_none) or any(leaf is not None for leaf in nest.flatten(result)):
            raise Damaged("the result of a trace is damaged")
        _check_ends(graph, specs, captures, variables, written, is_none.count(False))
        parameters = Arguments(Original(graph.name, None, parameters_from_json(said.get("parameters"), self._decoder)))
        concrete: ConcreteFunction = ConcreteFunction(
            graph=graph, specs=specs, arguments=arguments, captures=captures, symbolic_captures=[],
            variables=variables, written=written, commits=any(node.op.name == "commit" for node in graph.walk()),
            result=result, is_none=is_none, jit_compile=jit_compile, parameters=parameters,
        )  # fmt: skip
        return concrete

    def _function(self, said: Any) -> Function:
        traces = [at(self._traces, number) for number in field(said, "traces", list)]
        signature = parameters_from_json(said.get("parameters"), self._decoder)
        input_signature = said.get("input_signature")
        if input_signature is not None:
            input_signature = self._decoder.from_json(input_signature)
            if not isinstance(input_signature, tuple):
                raise Damaged("an input signature is damaged")
        doc, jit_compile = said.get("doc"), said.get("jit_compile")
        if not isinstance(doc, (str, type(None))) or jit_compile not in (None, True, False):
            raise Damaged("a function is damaged")
        original = Original(field(said, "name", str), doc, signature)
        function = loaded_function(original, traces, input_signature, jit_compile)
        enter(function, traces)
        return function

    # --- objects -------------------------------------------------------------------------------------------------

    def _shells(self) -> None:
        """Makes the objects that others are put into; functions may have them as arguments."""
        for number, said in enumerate(self._said_objects):
            kind = field(said, "kind", str)
            if kind == "object":
                self._things[number] = LoadedModule()
                self._things[number]._name = said["class"] if is_name(said.get("class")) else "loaded"
            elif kind == "list":
                self._things[number] = []
            elif kind == "dict":
                self._things[number] = {}
            elif kind == "variable":
                self._things[number] = at(self._variables, said.get("variable"))

    def _fill(self) -> None:
        tuples = []
        for number, said in enumerate(self._said_objects):
            kind = said["kind"]
            if kind == "function":
                self._things[number] = at(self._functions, said.get("function"))
            elif kind == "concrete function":
                self._things[number] = at(self._traces, said.get("trace"))
            elif kind in ("tensor", "asset"):
                tensor = at(self._tensors, said.get("tensor"))
                self._things[number] = self._captured(said["tensor"]) if kind == "tensor" else tensor
            elif kind == "generator":
                children = self._children(said)
                self._things[number] = _generator(at(self._things, children[0][1] if children else None))
            elif kind in ("tuple", "named tuple"):
                tuples.append(number)
            elif kind not in ("object", "list", "dict", "variable"):
                raise Damaged(f"the kind of object {kind!r} is unknown")
        # Tuples after what they hold, the innermost first; a circle of tuples can't be.
        while tuples:
            ready = [
                n for n in tuples if not any(other in tuples for _, other in self._children(self._said_objects[n]))
            ]
            if not ready:
                raise Damaged("tuples contain each other")
            for number in ready:
                self._things[number] = self._tuple(self._said_objects[number])
            tuples = [number for number in tuples if number not in ready]
        for number, said in enumerate(self._said_objects):
            if said["kind"] in ("object", "list", "dict"):
                self._put(self._things[number], self._children(said))

    def _children(self, said: Any) -> list[tuple[Any, int]]:
        found = []
        for pair in field(said, "children", list):
            if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) not in (str, int):
                raise Damaged("an object's parts are damaged")
            if not is_index(pair[1], len(self._said_objects)):
                raise Damaged("an object's part is missing")
            found.append((pair[0], pair[1]))
        return found

    def _tuple(self, said: Any) -> tuple:
        children = {name: self._things[other] for name, other in self._children(said)}
        if said["kind"] == "tuple":
            return tuple(children.get(index) for index in range(1 + max(map(_place, children), default=-1)))
        name, fields = said.get("name"), tuple(field(said, "fields", list))
        if not all(map(is_name, (name, *fields))) or not children.keys() <= set(fields):
            raise Damaged("a named tuple is damaged")
        return named_tuple(name, fields)(*map(children.get, fields))

    def _put(self, holder: Any, children: Sequence[tuple[Any, int]]) -> None:
        for name, other in children:
            if isinstance(holder, list):
                # Where something stood that isn't saved, None stands.
                holder += [None] * (1 + _place(name) - len(holder))
                holder[name] = self._things[other]
            elif isinstance(holder, dict):
                holder[name] = self._things[other]
            else:
                vars(holder)[checked(name, str)] = self._things[other]  # not by setattr, which may mean something


def _place(name: Any) -> int:
    if not is_index(name, 1 << 20):
        raise Damaged("a list index is damaged")
    return name


def _generator(state: Any) -> Generator:
    if not isinstance(state, Variable) or state.dtype is not as_dtype("int64") or state._shape != (3,):
        raise Damaged("the state of a random generator is damaged")
    generator = Generator.from_seed(0)
    generator._state = state
    return generator


def _check_ends(
    graph: Graph, specs: list[Any], captures: list[Any], variables: list[Any], written: list[int], results: int
) -> None:
    """Raises Damaged unless the types of a graph's inputs and outputs are those of its trace."""
    takes = [spec.type for spec in specs] + [tensor.type for tensor in captures]
    takes += [variable._state_type() for variable in variables]
    inputs, outputs = list(graph.inputs), list(graph.outputs)
    if inputs and isinstance(inputs[-1].type, TokenType):
        takes.append(inputs[-1].type)
        if outputs and isinstance(outputs[-1].type, TokenType):
            outputs.pop()
    if len(inputs) != len(takes) or not all(fits(value.type, type_) for value, type_ in zip(inputs, takes)):
        raise Damaged(f"the graph {graph.name} takes inputs that don't match its trace")
    if len(outputs) != results + len(written) or not all(value.is_tensor for value in outputs):
        raise Damaged(f"the graph {graph.name} returns outputs that don't match its trace")
    for index, value in zip(written, outputs[results:]):
        if not fits(variables[index]._state_type(), value.type):
            raise Damaged(f"the graph {graph.name} assigns a value that its variable can't hold")
