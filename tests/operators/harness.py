"""Runs a converted function staged: traced into a graph from symbolic arguments, verified, and interpreted."""

from __future__ import annotations

from types import FunctionType

import numpy as np
import pytest

from autograph.convert.api import converted
from autograph.operators.structure import flatten, map_leaves
from runtime.graph.builder import Builder
from runtime.graph.interpreter import interpret
from runtime.graph.verify import verify
from runtime.ops.convert import convert_to_tensor
from runtime.types import TensorType

# Calls a function as a trace does: searches for who holds an object end at this frame, as they end at the trace's.
_traced = FunctionType(
    (lambda function, arguments: function(*arguments)).__code__, {"__name__": "autograph.function.trace"}
)  # fmt: skip


class Staged:
    """One trace of a function. Arguments that are NumPy arrays or scalars become symbolic, others stay Python values.

    dynamic: leave every dimension of the arguments unknown.
    """

    def __init__(self, function, arguments, dynamic=False):
        builder = Builder(function.__name__)
        self.arrays = []
        given = []
        for index, argument in enumerate(arguments):
            if not isinstance(argument, (np.ndarray, np.generic)):
                given.append(argument)
                continue
            value = convert_to_tensor(argument)
            shape = tuple(None if dynamic else size for size in np.shape(argument))
            given.append(builder.tensor(builder.add_input(TensorType(value.dtype, shape), f"arg{index}")))
            self.arrays.append(argument)
        with builder:
            self.structure = _traced(converted(function), given)
            tensors = [convert_to_tensor(leaf) for _, leaf in flatten(self.structure) if leaf is not None]
            builder.graph.outputs = [builder.use(tensor) for tensor in tensors]
        for tensor, _ in builder.eager_captures.values():
            self.arrays.append(tensor.numpy())
        state = [value for key, value in builder.state_inputs.items()]
        self.state = [None if key == "order token" else key for key in builder.state_inputs]
        assert len(state) == len(self.state)
        self.builder = builder
        self.graph = builder.graph
        verify(self.graph)

    @property
    def ops(self):
        return [node.op.name for node in self.graph.walk()]

    def run(self, *arrays):
        """The results, in the structure that the function returned."""
        arrays = list(arrays) if arrays else self.arrays
        named = iter(arrays)
        inputs = []
        states = set(self.builder.state_inputs.values())
        for value in self.graph.inputs:
            inputs.append(None if value in states else next(named))
        results = iter(interpret(self.graph, inputs))
        return map_leaves(self.structure, lambda leaf: None if leaf is None else next(results))


def run_staged(function, *arguments, dynamic=False):
    return Staged(function, arguments, dynamic).run()


class Table:
    """Functions with the arguments to run them on, staged and in plain Python."""

    def __init__(self):
        self.rows = []

    def case(self, *argument_lists):
        def register(function):
            for index, arguments in enumerate(argument_lists):
                self.rows.append(pytest.param(function, arguments, id=f"{function.__name__}-{index}"))
            return function

        return register


def check_same_as_python(function, arguments, dynamic):
    expected = function(*[a.copy() if isinstance(a, np.ndarray) else a for a in arguments])
    assert_equal(run_staged(function, *arguments, dynamic=dynamic), expected)


def assert_equal(found, expected):
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            assert_equal(a, b)
    else:
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)
