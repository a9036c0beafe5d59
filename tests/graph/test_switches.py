"""Each pass, and each plan of native code, has a switch in `ag.config.optimizer.set_experimental_options`."""

from __future__ import annotations

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.backends.call_stub import load
from runtime.codegen.lower.lower_graph import lower
from runtime.graph.passes import options, pipeline
from runtime.graph.verify import verify
from tests.graph.tracing import F32, I32, MATRIX, ops


def two_counters(x, n):
    i, j = ag.constant(0), ag.constant(0)
    while i < n:
        x = x + ag.cast(j, ag.float32)
        i, j = i + 1, j + 1
    return x


@ag.function(input_signature=[ag.TensorSpec([None, None], ag.float32)])
def rows_of(x):
    return ag.shape(x)[0]


# option, program, what is in the graph only without it
SWITCHES = {
    "constant_folding": (lambda x: x * (ag.constant(2.0) + ag.constant(3.0)), [MATRIX], "add"),
    "common_subgraph_elimination": (lambda x: ag.exp(x) * ag.exp(x), [MATRIX], ("exp", 2)),
    "arithmetic_optimization": (lambda x: x * 1.0, [MATRIX], "multiply"),
    "strength_reduction": (lambda x: x / 8.0, [MATRIX], "divide"),
    "move_optimization": (lambda x: ag.transpose(ag.exp(ag.transpose(x))), [MATRIX], "transpose"),
    "conditional_optimization": (
        lambda x, n: ag.cond(ag.logical_not(n > 2), lambda: ag.exp(x), lambda: x), [F32, I32], "logical_not",
    ),
    "loop_optimization": (two_counters, [F32, I32], ("carry", 3)),
    "shape_optimization": (lambda x: rows_of(x) + 1, [MATRIX], "shape"),
    "dead_code_elimination": (lambda x: (ag.exp(x), x)[1], [MATRIX], "exp"),
}  # fmt: skip


def test_every_option_of_a_pass_has_a_case():
    passes = {option for _, option, _ in (*pipeline.PASSES, *pipeline.REGION_PASSES, *pipeline.LAST)}
    rules = {option for chosen, _ in pipeline.RULES for option in chosen}
    missing = (passes | rules) - SWITCHES.keys() - {"fast_math"}  # tests/graph/test_simplification.py
    assert not missing, f"add to SWITCHES a program in whose graph these leave fewer nodes: {missing}"


@pytest.mark.parametrize("option", SWITCHES)
def test_each_pass_has_a_switch(option):
    program, specs, only = SWITCHES[option]
    name, count = only if isinstance(only, tuple) else (only, 1)
    found = []
    for on in (True, False):
        ag.config.optimizer.set_experimental_options({option: on})
        try:
            graph = ag.function(program).get_concrete_function(*specs).graph
        finally:
            options._chosen.clear()
        verify(graph)
        carries = sum(node.attrs["carries"] for node in graph.walk() if node.op.name == "while")
        found.append(carries if name == "carry" else ops(graph).count(name))
    assert found[0] < count <= found[1]


@pytest.mark.parametrize("option", ["remapping", "memory_optimization"])
def test_native_code_has_switches(option):
    def f(x, n):
        for _ in ag.range(n):
            x = ag.exp(x) * 2.0 + ag.reduce_sum(ag.sin(x), 1, keepdims=True)
        return x

    graph = ag.function(f).get_concrete_function(ag.TensorSpec([40, 30]), I32).graph
    texts, results = [], []
    x = np.linspace(0, 1, 1200, dtype=np.float32).reshape(40, 30)
    for on in (True, False):
        options.set_options({option: on})
        try:
            source = lower(graph)
            results.append(load(source)([x, np.int32(2)])[0])
        finally:
            options._chosen.clear()
        loop = source.text[source.text.index("while") :]
        texts.append((loop.count("for "), loop.count("np.empty")))
    # Sums of products in another order, of vectors as long as the processor has them.
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-6)
    assert texts[0][option == "memory_optimization"] < texts[1][option == "memory_optimization"]
