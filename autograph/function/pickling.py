"""Functions and traces in pickles.

A function that others can import is pickled by its name, a method by its object. Others are pickled by what they were
made from, a Python function: `cloudpickle` takes that apart, `pickle` says that it can't. The text that it was written
in goes along, since a function is converted from its source. A concrete function is pickled as its graph.
"""

from __future__ import annotations

import inspect
import json
import linecache
import sys
import types
from collections.abc import Callable
from typing import Any

from autograph.function.signature import Arguments, NumberSpec, VariableArgument, WeakArgument
from autograph.syntax.source import carry, written_in
from runtime import nest
from runtime.errors import UnimplementedError
from runtime.graph.ir import ConstantArray
from runtime.serial.graphs import Writer, read
from runtime.variable import Variable

# --- functions -------------------------------------------------------------------------------------------------------


def reduced_function(function: Any, make: Callable[..., Any]) -> str | tuple:
    """The result of `Function.__reduce_ex__`. make: the class."""
    original = function.python_function
    if hasattr(original, "reduce_function"):  # it was loaded from a saved model
        return original.reduce_function(function)
    if hasattr(type(original), "__self__") or isinstance(original, types.MethodType):
        return _method, (original.__self__, _name_in_class(original))
    name = getattr(original, "__qualname__", "")
    module = getattr(original, "__module__", None) or ""
    if _imported(module, name) is function and not (module == "__main__" and _is_for_elsewhere()):
        return name
    options = {
        "input_signature": function.input_signature, "autograph": function._autograph,
        "jit_compile": function._jit_compile, "name": function._name, "reduce_retracing": function._reduce_retracing,
        "gradient_memory": function._gradient_memory, "features": function._features,
    }  # fmt: skip
    return _made_function, (make, original, options, *_source_of(original))


def _method(instance: Any, name: str) -> Any:
    """A method that keeps its object alive, since in a pickle or copy of the method alone nothing else does."""
    keeping: Any = getattr(getattr(type(instance), name, None), "keeping", None)
    return getattr(instance, name) if keeping is None else keeping(instance)


def _name_in_class(method: Any) -> str:
    """The name by which a bound function is an attribute of its object."""
    owner, plain = method.__self__, method.__func__
    for kind in type(owner).__mro__:
        for name, value in vars(kind).items():
            if getattr(value, "python_function", None) is plain:
                return name
    return plain.__name__


def _imported(module: str, name: str) -> Any:
    """What stands under a dotted name in an imported module."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _is_for_elsewhere() -> bool:
    """Whether cloudpickle is at work, which carries functions of `__main__` to processes with another `__main__`."""
    frame: Any = sys._getframe()
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if "cloudpickle" in name.split("."):
            return True
        if name not in (__name__, "pickle", "copy") and not name.startswith("autograph.function."):
            return False
        frame = frame.f_back
    return False


def _source_of(original: Any) -> tuple[str, str]:
    """The file that a Python function stands in, and its text; empty where neither is known."""
    code = getattr(original, "__code__", None)
    if code is None:
        return "", ""
    return code.co_filename, "".join(linecache.getlines(code.co_filename, original.__globals__))


def _made_function(
    make: Callable[..., Any], original: Any, options: dict[str, Any], filename: str, text: str
) -> Any:  # fmt: skip
    if text:
        here = carry(filename, text)
        if original.__code__.co_filename != here:
            written_in(original, here)
    return make(original, **options)


# --- concrete functions ----------------------------------------------------------------------------------------------


class _Held:
    """An object among the arguments of a trace, which isn't held weakly in a pickle."""

    def __init__(self, value: Any, name_counts: bool | None = None) -> None:
        self.value, self.name_counts = value, name_counts


class _Parameters:
    """Stands for the Python function of a trace: its name and parameters."""

    def __init__(self, name: str, signature: inspect.Signature | None) -> None:
        self.__name__ = self.__qualname__ = name
        if signature is not None:
            self.__signature__ = signature

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"only a trace of {self.__name__} is here, not the function")


def reduced_trace(concrete: Any, make: Callable[..., Any]) -> tuple:
    """What `__reduce__` of a concrete function gives. make: the class.

    Raises UnimplementedError if its graph calls Python, or it serves only in the trace around it; ReferenceError
    where an argument that it was traced for is gone.
    """
    if concrete.symbolic_captures:
        raise UnimplementedError(f"{concrete.graph.name} uses tensors of the trace around it, so it can't be pickled")
    parts = concrete.made_of()
    variables = list(concrete.variables)
    numbers = {id(variable): number for number, variable in enumerate(variables)}
    writer = Writer(lambda variable: numbers[id(variable)])
    writer.add(concrete.graph_on_its_variables())
    state = {
        "program": json.dumps(writer.program(), separators=(",", ":")),
        "constants": [constant.array for constant in writer.constants],
        "specs": parts["specs"],
        "arguments": nest.map_structure(_held, concrete.arguments),
        "captures": parts["captures"],
        "variables": variables,
        "written": parts["written"],
        "result": parts["result"],
        "is_none": parts["is_none"],
        "jit_compile": parts["jit_compile"],
        "name": parts["parameters"].name,
        "signature": parts["parameters"].signature,
    }
    return _made_trace, (make, state)


def _held(value: Any) -> Any:
    if isinstance(value, NumberSpec):
        raise UnimplementedError("a trace for a number of the trace around it can't be pickled")
    if not isinstance(value, WeakArgument):
        return value
    thing = value.get()
    if thing is None:
        raise ReferenceError(f"{value!r}, which the trace was made for, is gone, so the trace can't be pickled")
    return _Held(thing, value.name_counts if isinstance(value, VariableArgument) else None)


def _weakly(value: Any) -> Any:
    if not isinstance(value, _Held):
        return value
    if value.name_counts is not None and isinstance(value.value, Variable):
        return VariableArgument(value.value, value.name_counts)
    return WeakArgument(value.value)


def _made_trace(make: Callable[..., Any], state: dict[str, Any]) -> Any:
    constants = [ConstantArray(array).array for array in state["constants"]]
    graph = read(json.loads(state["program"]), constants, state["variables"])[0]
    assert graph is not None, "the first graph of a program is no region"
    concrete = make(
        graph=graph, specs=state["specs"], arguments=nest.map_structure(_weakly, state["arguments"]),
        captures=state["captures"], symbolic_captures=[], variables=state["variables"], written=state["written"],
        commits=any(node.op.name == "commit" for node in graph.walk()), result=state["result"],
        is_none=state["is_none"], jit_compile=state["jit_compile"],
        parameters=Arguments(_Parameters(state["name"], state["signature"])),
    )  # fmt: skip
    concrete.kept_alive = state["arguments"]  # nothing else may hold what it was traced for
    return concrete
