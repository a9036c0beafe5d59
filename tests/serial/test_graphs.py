"""Graphs as JSON and back: the same graph, whatever ops it has; and errors of ours for what no file of ours says."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import autograph as ag
from runtime import dtypes
from runtime.graph.interpreter import interpret
from runtime.graph.ir import Graph
from runtime.ops.table import OPS
from runtime.serial.graphs import Writer, read, short_path
from runtime.serial.values import Damaged
from runtime.types import TensorType, TokenType


def number_among(variables):
    return lambda variable: next(number for number, each in enumerate(variables) if each is variable)


def round_trip(graph, variables=()):
    """The graph, written and read, and the text that it was written as."""
    writer = Writer(number_among(variables))
    writer.add(graph)
    text = json.dumps(writer.program())
    graphs = read(json.loads(text), [c.array for c in writer.constants], variables)
    again = Writer(number_among(variables))
    again.add(graphs[0])
    assert json.dumps(again.program()) == text
    assert [c.array.tolist() for c in again.constants] == [c.array.tolist() for c in writer.constants]
    return graphs[0], text


def samples():
    for op in OPS.values():
        for number, sample in enumerate(op.samples or ()):
            if op.calls_python or op.name == "host_call":
                continue
            yield pytest.param(op, sample, id=f"{op.name}-{number}")


@pytest.mark.parametrize(("op", "sample"), list(samples()))
def test_each_op_with_the_attributes_of_its_samples(op, sample):
    for dtype in (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.bool_, dtypes.complex64, dtypes.string):
        graph = Graph("f")
        types = [TensorType(dtype, shape) for shape in sample.shapes]
        for index, array in sample.fixed.items():
            types[index] = TensorType(dtypes.as_dtype(array.dtype), array.shape)
        try:
            outputs = op.infer(types, sample.attrs)
        except Exception:
            continue
        inputs = [graph.add_input(each) for each in [*types, *[TokenType()] * op.effect]]
        node = graph.add_node(op, inputs, dict(sample.attrs), [*outputs, *[TokenType()] * op.effect])
        graph.outputs = list(node.outputs)
        found, _ = round_trip(graph)
        assert found.nodes[0].attrs.keys() == sample.attrs.keys()
        if op.name != "raise":  # whose error template compares by identity
            assert found.nodes[0].attrs == sample.attrs
        return
    raise AssertionError(f"no dtype goes with the sample of {op.name}")


# --- programs --------------------------------------------------------------------------------------------------------

v = ag.Variable([1.0, 2.0])


def loop(x, n):
    total = x
    for i in ag.range(n):
        if total > 100.0:
            break
        total = total * 1.5 + ag.cast(i, ag.float32)
    return total


def recursive(n):
    if n <= 1:
        return ag.constant(1)
    return n * recursive_(n - 1)


recursive_ = ag.function(recursive)


def variables(x):
    v.assign_add(x)
    ag.debugging.assert_greater(v[0], 0.0, message="must be positive")
    return v * 2.0


def lists(n):
    found = []
    for i in ag.range(n):
        found.append(ag.cast(i, ag.float32) ** 2)
    return ag.stack(found)


def raising(x):
    if x < 0:
        raise ValueError(f"{x} is negative")
    return x


def draws(x):
    return x + ag.random.uniform([2], seed=5) * 0.0 + ag.random.stateless_uniform([2], [1, 2])


def strings(x):
    return ag.strings.join([x, ag.constant("ß\0")], "-")


@ag.custom_gradient
def own(x):
    return x * x, lambda dy: dy * 7.0


def gradients(x):
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = ag.reduce_sum(own(x) + ag.exp(x))
    return tape.gradient(y, x)


PROGRAMS = {
    "loop": (loop, [2.0, 7]),
    "recursive": (recursive, [5]),
    "variables": (variables, [[3.0, 4.0]]),
    "lists": (lists, [5]),
    "raising": (raising, [3.0]),
    "draws": (draws, [1.0]),
    "strings": (strings, ["abc"]),
    "gradients": (gradients, [[1.0, 2.0]]),
    "slices": (lambda x: x[1:, ..., ag.newaxis, ::-1][0], [np.arange(6.0).reshape(3, 2)]),
    "constants": (lambda x: x @ np.arange(6.0).reshape(2, 3) + float("inf"), [np.ones((1, 2))]),
    "nothing": (lambda x: None, [1.0]),
}


def traced(name):
    function, arguments = PROGRAMS[name]
    tensors = [ag.constant(a) for a in arguments]
    return ag.function(function).get_concrete_function(*tensors), tensors


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_stay_the_same(name):
    concrete, tensors = traced(name)
    graph, text = round_trip(concrete.graph, concrete.variables)
    if name != "raising":  # whose error template shows addresses
        assert graph.as_text(spans=True) == concrete.graph.as_text(spans=True)
    inputs = [t._array for t in concrete.inputs_for(tensors)]
    for found, expected in zip(interpret(graph, inputs), interpret(concrete.graph, inputs)):
        if name != "draws":
            np.testing.assert_array_equal(found, expected)


def test_spans_and_names_stay():
    concrete, _ = traced("loop")
    graph, _ = round_trip(concrete.graph)
    spans = [node.span and (short_path(node.span[0]), *node.span[1:]) for node in concrete.graph.walk()]
    assert [node.span for node in graph.walk()] == spans
    assert any(span and span[0].endswith("serial/test_graphs.py") for span in spans)


def test_paths_say_nothing_of_the_machine():
    assert short_path(__file__) == "tests/serial/test_graphs.py"
    assert short_path("/some/where/else.py") == "else.py"
    assert short_path("<stdin>") == "<stdin>"


def test_equal_constants_are_kept_once():
    weights = np.arange(1000.0)
    graph = (
        ag.function(lambda x: (x * weights, x + weights)).get_concrete_function(ag.TensorSpec([1000], ag.float64)).graph
    )
    writer = Writer(number_among(()))
    writer.add(graph)
    assert len(writer.constants) <= 1


@pytest.mark.parametrize("call", [
    lambda x: ag.py_function(lambda y: y, [x], ag.float32),
    lambda x: ag.numpy_function(lambda y: y, [x], ag.float32),
])  # fmt: skip
def test_python_calls_are_refused_with_their_line(call):
    graph = ag.function(call).get_concrete_function(ag.TensorSpec([], ag.float32)).graph
    with pytest.raises(ag.errors.UnimplementedError, match=r"calls Python code.*test_graphs.py:"):
        Writer(number_among(())).add(graph)


def test_an_error_of_the_users_becomes_the_nearest_one():
    class Mine(ValueError):
        pass

    def f(x):
        if x > 0:
            raise Mine("no")
        return x

    graph, _ = round_trip(ag.function(f).get_concrete_function(ag.TensorSpec([], ag.float32)).graph)
    kinds = [node.attrs["error"].kind for node in graph.walk() if node.op.name == "raise"]
    assert kinds == [ValueError]


# --- what no file of ours says ---------------------------------------------------------------------------------------


def written(name):
    concrete, _ = traced(name)
    writer = Writer(number_among(concrete.variables))
    writer.add(concrete.graph)
    return json.dumps(writer.program()), [c.array for c in writer.constants], concrete.variables


@pytest.mark.parametrize(("old", "new"), [
    ('"op": "multiply"', '"op": "host_call"'),
    ('"op": "multiply"', '"op": "py_function"'),
    ('"op": "multiply"', '"op": "no_such_op"'),
    ('"op": "multiply"', '"op": "matmul"'),
    ('"op": "multiply"', '"attributes": {"out": 1}, "op": "multiply"'),
    ('"op": "multiply"', '"attributes": {"axis": 1}, "op": "multiply"'),
    ('"float32"', '"float99"'),
    ('"float32", []', '"float32", [-1]'),
    ('"float32", []', '"float32", [3]'),
    ('"regions"', '"legions"'),
    ('"carries": ', '"carries": 1'),
    ('"carries": ', '"functions": '),
    ('"name": "body"', '"name": 3'),
    ('"outputs": [', '"outputs": [9999, '),
    ('"inputs": [0', '"inputs": [true'),
])  # fmt: skip
def test_changed_by_hand(old, new):
    text, constants, variables = written("loop")
    assert old in text
    with pytest.raises(Damaged):
        read(json.loads(text.replace(old, new, 1)), constants, variables)


@pytest.mark.parametrize("said", [
    {"float": "x"}, {"float": 1.0}, {"bytes": "%"}, {"dict": [[[], 1]]}, {"slice": [1]}, {"dtype": "object"},
    {"type": -1}, {"constant": 99}, {"variable": 0}, {"stream": [0]}, {"call": {"function": "os.system"}},
    {"call": {"function": "arrays.shape_ops.transpose", "arguments": 3}}, {"error": {"class": "SystemExit"}},
    {"apply": {"op": "no"}}, {"formatted": [0]}, {"message": [3]}, {"from_json": 1}, {"_float": "1"}, {"__class__": 1},
    {"budget": [1, 1]}, {"op": "x"}, 1.5, {"a": 1, "b": 2}, 1 << 70, {}, {"message": [{"place": 0}]},
])  # fmt: skip
def test_values_that_are_none(said):
    text, constants, variables = written("loop")
    program = json.loads(text)
    program["graphs"][0]["nodes"][0]["attributes"] = {"message": said}
    with pytest.raises(Damaged):
        read(program, constants, variables)


@pytest.mark.parametrize("call", [
    {"apply": {"op": "write_file", "attributes": {"dict": []}}},
    {"apply": {"op": "host_call", "attributes": {"dict": []}}},
    {"apply": {"op": "reduce_sum", "attributes": {"dict": [["axis", "text"]]}}},
    {"apply": {"op": "reduce_sum", "attributes": {"dict": [["shape", []]]}}},
    {"pull_back": [{"apply": {"op": "read_file", "attributes": {"dict": []}}}, 1, {"list": []}, {"list": []}]},
    {"call": {"function": "random.stateful._drawn", "arguments": [[{"op": "write_file"}], {"dict": []}]}},
    {"call": {"function": "arrays.joining.stack", "arguments": [[{"list": [{"op": "py_function"}]}], {"dict": []}]}},
])  # fmt: skip
def test_calls_of_what_no_file_may_call(call):
    program = {
        "types": [["float32", None]], "texts": [],
        "graphs": [{"name": "f", "inputs": [[0]], "outputs": [1], "nodes": [
            {"op": "late", "inputs": [0], "outputs": [[0]], "attributes": {"call": call, "types": [{"type": 0}]}},
        ]}],
    }  # fmt: skip
    with pytest.raises(Damaged):
        read(program, [], [])
    program["graphs"][0]["nodes"][0]["attributes"]["call"] = {
        "apply": {"op": "reduce_sum", "attributes": {"dict": [["axis", None], ["keepdims", False]]}}
    }
    assert read(program, [], [])[0].nodes[0].op.name == "late"


def mutated(generator, part):
    """Changes one place of a JSON value."""
    strange = [
        None,
        -1,
        0,
        1,
        2,
        3,
        1 << 40,
        True,
        "",
        "axis",
        "float32",
        "cond",
        [],
        {},
        [0],
        [[0]],
        {"dtype": "int32"},
    ]
    while True:
        keys = list(part) if isinstance(part, dict) else list(range(len(part)))
        if not keys:
            return
        key = generator.choice(keys)
        if isinstance(part[key], (dict, list)) and part[key] and generator.random() < 0.85:
            part = part[key]
            continue
        kind = generator.random()
        if kind < 0.6:
            part[key] = generator.choice(strange)
        elif kind < 0.8:
            del part[key]
        elif isinstance(part, list):
            part.insert(key, part[generator.choice(keys)])
        else:
            part[generator.choice(["op", "attributes", "regions", "name", "axis"])] = part[key]
        return


@pytest.mark.parametrize("name", PROGRAMS)
def test_random_changes(name):
    """Each is refused with Damaged, or gives a graph that the verifier accepts."""
    text, constants, variables = written(name)
    generator = random.Random(name)
    refused = 0
    for _ in range(300):
        program = json.loads(text)
        for _ in range(generator.choice([1, 1, 2, 5])):
            mutated(generator, program)
        try:
            graphs = read(program, constants, variables)
        except Damaged:
            refused += 1
        else:
            assert all(graph is None or isinstance(graph, Graph) for graph in graphs)
    assert refused > 100
