"""Graphs that TensorBoard's graph plugin reads."""

import importlib.util

import numpy as np
import pytest

import autograph as ag

pytestmark = pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None, reason="needs the tensorboard extra")


@ag.function
def steps(x, n):
    with ag.name_scope("prepare"):
        y = x * 2.0
    while n > 0:
        if ag.reduce_sum(y) > 0.0:
            y = y @ y
        n -= 1
    return y, n


def plugin(folder):
    """TensorBoard's graph plugin over the folder."""
    from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
    from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
    from tensorboard.context import RequestContext
    from tensorboard.plugins.base_plugin import TBContext
    from tensorboard.plugins.graph.graphs_plugin import GraphsPlugin

    multiplexer = EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(folder))
    multiplexer.Reload()
    provider = MultiplexerDataProvider(multiplexer, str(folder))
    return GraphsPlugin(TBContext(logdir=str(folder), data_provider=provider)), RequestContext()


def read_graph(folder, tag=None):
    """The nodes that the plugin hands to its page, by name."""
    from google.protobuf import text_format
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    found, context = plugin(folder)
    text, kind = found.graph_impl(context, ".", tag, False, experiment="")
    assert kind == "text/x-protobuf"
    return {node.name: node for node in text_format.Parse(text, GraphDef()).node}


def check_edges(nodes):
    for node in nodes.values():
        for source in node.input:
            assert source.lstrip("^").partition(":")[0] in nodes, (node.name, source)


def written(folder, graph):
    with ag.summary.create_file_writer(folder).as_default():
        assert ag.summary.graph(graph)


def test_the_plugin_reads_a_graph(tmp_path):
    concrete = steps.get_concrete_function(ag.TensorSpec([3, 3]), ag.TensorSpec([], ag.int32))
    written(tmp_path, concrete.graph)
    nodes = read_graph(tmp_path)
    check_edges(nodes)
    assert nodes["x"].op == "Placeholder"
    assert [d.size for d in nodes["x"].attr["_output_shapes"].list.shape[0].dim] == [3, 3]
    assert nodes["x"].attr["dtype"].type == 1  # DT_FLOAT
    assert nodes["prepare/y"].op == "Mul"
    assert nodes["prepare/y"].attr["source"].s.startswith(b"test_graphs.py:")
    loop = nodes["while"]
    assert loop.op == "While"
    body = [name for name in nodes if name.startswith("while/body/")]
    (branch,) = [name for name in body if nodes[name].op == "If"]
    assert any(name.startswith("while/test/") for name in nodes)
    (product,) = [node for name, node in nodes.items() if node.op == "MatMul"]
    assert product.name.startswith(f"{branch}/then/")
    # The loop reads the results of its regions, and those read the loop's operands.
    assert branch in loop.input
    assert "prepare/y" in {source for name in body for source in nodes[name].input}


def test_open_shapes_strings_and_effects(tmp_path):
    @ag.function
    def report(x, text):
        ag.print(text)
        ag.print(x)
        return x + ag.constant([1, 2])

    specs = ag.TensorSpec(None, ag.int32), ag.TensorSpec([], ag.string)
    written(tmp_path, report.get_concrete_function(*specs).graph.as_graph_def())
    nodes = read_graph(tmp_path)
    check_edges(nodes)
    assert nodes["x"].attr["_output_shapes"].list.shape[0].unknown_rank
    assert nodes["text"].attr["dtype"].type == 7
    first, second = (node for node in nodes.values() if node.op.startswith("Print"))
    assert f"^{first.name}" in second.input
    (constant,) = (node for node in nodes.values() if node.op == "Const")
    assert np.frombuffer(constant.attr["value"].tensor.tensor_content, np.int32).tolist() == [1, 2]


def test_without_writer_and_with_what_is_no_graph(tmp_path):
    graph = steps.get_concrete_function(ag.TensorSpec([3, 3]), ag.TensorSpec([], ag.int32)).graph
    assert not ag.summary.graph(graph)
    with ag.summary.create_file_writer(tmp_path).as_default():
        with ag.summary.record_if(False):
            assert not ag.summary.graph(graph)
        with pytest.raises(ValueError, match=r"'graph_data' is not .* of type int"):
            ag.summary.graph(3)
        with pytest.raises(ValueError, match="inside a graph context"):
            ag.function(lambda: ag.summary.graph(graph))()
        from tensorboard.compat.proto.graph_pb2 import GraphDef

        made = GraphDef()
        made.node.add(name="a", op="Const")
        assert ag.summary.graph(made)
    assert list(read_graph(tmp_path)) == ["a"]


@pytest.mark.parametrize("profiled", [False, True])
def test_trace_export_writes_the_graphs_that_ran(tmp_path, profiled):
    other = ag.function(lambda x: x - 1.0)
    other(ag.constant(1.0))
    with ag.summary.create_file_writer(tmp_path).as_default():
        ag.summary.trace_on(profiler=profiled, profiler_outdir=tmp_path if profiled else None)
        for _ in range(2):
            steps(ag.eye(2), ag.constant(1))
        ag.summary.trace_export("ran", step=3)
        other(ag.constant(1.0))
    found, context = plugin(tmp_path)
    tag = found.info_impl(context, experiment="")["."]["tags"]["ran"]
    assert (tag["op_graph"], tag["profile"]) == (True, profiled)
    nodes = read_graph(tmp_path, "ran")
    check_edges(nodes)
    assert {node.op for node in nodes.values()} >= {"MatMul", "While"}
    assert "Sub" not in {node.op for name, node in nodes.items() if "/" not in name}
    assert len([node for node in nodes.values() if node.op == "While"]) == 1
    assert len(list(tmp_path.glob("plugins/profile/*/*.trace.json.gz"))) == profiled


def test_traces_that_are_on_or_off_already(tmp_path):
    with pytest.raises(ValueError, match="Must enable trace before export"):
        ag.summary.trace_export("x", step=1)
    ag.summary.trace_on()
    try:
        with pytest.warns(UserWarning, match="Trace already enabled"):
            ag.summary.trace_on()
        with ag.summary.create_file_writer(tmp_path).as_default(), pytest.raises(ValueError, match="No step set"):
            ag.summary.trace_export("x")
        ag.summary.trace_export("x")  # nothing to write to
    finally:
        ag.summary.trace_off()
    ag.summary.trace_off()
    with pytest.warns(UserWarning, match="No `profiler_outdir`"):
        ag.summary.trace_on(profiler=True)
    ag.summary.trace_off()
    with pytest.warns(UserWarning, match="inside a traced function"):
        ag.function(lambda: ag.summary.trace_on())()
