"""Functions from lists of tensors to lists of tensors, with their derivatives: what other libraries' operators call.

A `Program` has a number, by which an operator of another library names it, and knows the programs made of it: the
pullback, the pushforward, the program over rows. These are programs too, so there are derivatives of every order.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from autograph.function.polymorphic import Function
from autograph.operators.calls import converted_argument
from autograph.transforms import vmap
from runtime import nest
from runtime.autodiff.forward import ForwardAccumulator
from runtime.autodiff.tape import GradientTape
from runtime.ops.arrays.creation import zeros_like
from runtime.ops.convert import convert_to_tensor
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor, Tensor
from runtime.variable import Variable

_numbers = itertools.count()
# By number. Whoever holds a wrapped function holds its programs.
PROGRAMS: weakref.WeakValueDictionary[int, Program] = weakref.WeakValueDictionary()


class Program:
    """`run` takes tensors and gives a structure of tensors. The program compiles as an `ag.function` does."""

    def __init__(self, run: Callable[..., Any], name: str, count: int, jit_compile: bool | None = None) -> None:
        """count: how many tensors it takes. jit_compile: as of an `ag.function`, also of the programs made of it."""
        self.count = count
        self.name = name
        self._run = run
        self._jit_compile = jit_compile
        self._derived: dict[Hashable, Program] = {}
        self._lock = threading.Lock()
        self.function = Function(self._called, name=name, autograph=False, jit_compile=jit_compile)
        self._traces, self._captured = 0, list[Any]()
        self.number = next(_numbers)
        PROGRAMS[self.number] = self

    def __call__(self, tensors: Sequence[EagerTensor]) -> Any:
        """The structure of the results."""
        return self.function(*tensors)

    def held(self) -> list[Any]:
        """The arrays of the tensors and variables that the traces read beside their arguments."""
        if self._traces != (count := self.function.experimental_get_tracing_count()):
            traces = self.function._list_all_concrete_functions()
            self._captured, self._traces = [each for trace in traces for each in trace.captured_inputs], count
        values = [each.read_value() if isinstance(each, Variable) else each for each in self._captured]
        return [each._array for each in values if each.__class__ is EagerTensor]

    def types(self, specs: Sequence[TensorSpec]) -> Any:
        """The specs of the results, by the rules of the operations; dimensions that depend on values are None."""
        return self.function.get_concrete_function(*specs).structured_outputs

    def _called(self, *tensors: Any) -> Any:
        return converted_argument(self._run)(*tensors)

    def _results(self, tensors: Sequence[Any]) -> list[Any]:
        return [convert_to_tensor(leaf) for leaf in leaves(self._called(*tensors))]

    def _made_of(self, run: Callable[..., Any], key: tuple, count: int) -> Program:
        """The program made of this one under this key, of which the first part is its kind."""
        with self._lock:
            if key not in self._derived:
                self._derived[key] = Program(run, f"{self.name}_{key[0]}", count, self._jit_compile)
            return self._derived[key]

    def pullback(self, wanted: tuple[int, ...], arrived: int) -> Program:
        """From the arguments, and cotangents of the floating-point results, to those of the arguments `wanted`.

        arrived: how many cotangents there are."""

        def run(*flat: Any) -> list[Any]:
            arguments, cotangents = flat[: self.count], flat[self.count :]
            sources = [arguments[position] for position in wanted]
            with GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(sources)
                results = [y for y in self._results(arguments) if y.dtype.is_differentiable]
            if not results:
                return [zeros_like(source) for source in sources]
            return tape.gradient(
                results, sources, output_gradients=list(cotangents), unconnected_gradients="zero"
            )  # fmt: skip

        return self._made_of(run, ("pullback", wanted, arrived), self.count + arrived)

    def pushforward(self, moved: tuple[int, ...]) -> Program:
        """From the arguments, and tangents of those at `moved`, to tangents of the floating-point results."""

        def run(*flat: Any) -> list[Any]:
            arguments, tangents = list(flat[: self.count]), list(flat[self.count :])
            with ForwardAccumulator([arguments[position] for position in moved], tangents) as accumulator:
                results = [y for y in self._results(arguments) if y.dtype.is_differentiable]
            return accumulator.jvp(results, unconnected_gradients="zero")

        return self._made_of(run, ("pushforward", moved), self.count + len(moved))

    def over_rows(self, axes: tuple[int | None, ...]) -> Program:
        """The program for each row of the arguments whose axis is a number; the results' rows come first."""

        def run(*tensors: Any) -> Any:
            results: list[Any] = []

            def of_row(*row: Any) -> list[Any]:
                results[:] = [self._called(*row)]
                return leaves(results[0])

            rows = vmap(of_row, in_axes=axes)(*tensors)
            return with_leaves(results[0], rows)

        return self._made_of(run, ("rows", axes), self.count)


class Programs:
    """The programs of a Python function: one for each structure of its arguments, and values of those of them that
    aren't tensors."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name
        self._made: dict[Hashable, Program] = {}
        self._lock = threading.Lock()

    def of(self, key: Hashable, rebuilt: Callable[[Sequence[Any]], tuple[Any, Any]], count: int) -> Program:
        """rebuilt: gives the arguments (positional, by name) from the tensors among them."""

        def run(*tensors: Any) -> Any:
            args, kwargs = rebuilt(tensors)
            return converted_argument(self._function)(*args, **kwargs)

        with self._lock:
            if key not in self._made:
                jit_compile = self._function._jit_compile if isinstance(self._function, Function) else None
                self._made[key] = Program(run, self._name, count, jit_compile)
            return self._made[key]


def numbered(number: int) -> Program:
    """Raises ReferenceError if it is gone."""
    found = PROGRAMS.get(number)
    if found is None:
        raise ReferenceError(
            "a compiled program calls a function whose wrapper has been deleted. Keep what ag.interop's wrap gives for "
            "as long as the programs that call it"
        )
    return found


def stateless(function: Callable[..., Any], variables: Sequence[Variable]) -> Callable[..., Any]:
    """`function` as one of the values of these variables too: it takes a list of them, the positional arguments and
    those by name, and gives the result and a list of the values that the variables would get, None for the same."""

    def call(values: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
        given = nest.flatten((list(args), kwargs))
        places = [place for place, leaf in enumerate(given) if isinstance(leaf, Tensor)]
        tensors = [given[place] for place in places]

        def on_tensors(*own: Any) -> Any:
            parts = list(given)
            for place, tensor in zip(places, own):
                parts[place] = tensor
            positional, named = nest.pack_sequence_as((list(args), kwargs), parts)
            return converted_argument(function)(*positional, **named)

        specs = [TensorSpec(tensor.shape, tensor.dtype) for tensor in tensors]
        trace = Function(on_tensors, autograph=False).get_concrete_function(*specs)
        references = [variable.ref() for variable in variables]
        result, assigned = trace.inline_on(tensors, dict(zip(references, values)))
        return result, [assigned.get(reference) for reference in references]

    return call


def leaves(structure: Any) -> list[Any]:
    """The tensors in the structure of a program's results."""
    return [leaf for leaf in nest.flatten(structure) if leaf is not None]


def with_leaves(structure: Any, given: Sequence[Any]) -> Any:
    """The structure with other tensors."""
    rest = iter(given)
    return nest.map_structure(lambda leaf: None if leaf is None else next(rest), structure)


def owned(array: Any, others: Sequence[Any]) -> Any:
    """The array, or a copy, whose memory nobody else has: neither constants nor these other arrays.

    Constants of the interpreter are read-only. A kernel's are views of arrays, which what it computes isn't.
    """
    array = np.asarray(array)
    is_view = not array.flags.writeable or isinstance(array.base, np.ndarray)
    if is_view or any(np.may_share_memory(array, other) for other in others):
        return array.copy()
    return array
