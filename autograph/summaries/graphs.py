"""Graphs for TensorBoard: as `GraphDef`, written by `ag.summary.graph`, or of the functions that ran (`trace_on`).

    y = while(x) { body(x) { z = x * x } }   →   nodes x, while, while/body/x, while/body/z

A `GraphDef` has no regions. Their nodes stand in scopes below their node, which TensorBoard folds: the arguments of a
region read what they stand for, and the node reads the results of its regions.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from autograph.summaries.event_files import ENUM, metadata_of, protos, tensor_proto
from autograph.summaries.profiler import start, stop
from autograph.summaries.write import _write, summary_scope
from autograph.summaries.writers import FileWriter, should_record_summaries, state
from runtime import profiling
from runtime.context import ctx
from runtime.dataclass import dataclass
from runtime.graph.ir import Graph, Node, Value
from runtime.graph.names import operation_names
from runtime.graph.operations import GraphDef
from runtime.graph.printer import attributes, regions, short_span
from runtime.ops.convert import convert_to_tensor
from runtime.ops.facts import get_static_value
from runtime.tensor import Tensor
from runtime.tracebacks import warn
from runtime.types import TensorType

# The version of graphs that TensorFlow 2 writes.
_PRODUCER = 1286
# Constants up to so many elements are written with their values.
_SMALL = 64


def graph_def(graph: Graph) -> Any:
    """The graph as a `GraphDef` of TensorBoard's."""
    from tensorboard.compat.proto import graph_pb2

    protos()
    made = graph_pb2.GraphDef()
    made.versions.producer = _PRODUCER
    _Writer(made, operation_names(graph)).add(graph, "", None)
    return made


class _Writer:
    """Adds the nodes of a graph and its regions to a `GraphDef`."""

    def __init__(self, made: Any, names: dict[Any, str]) -> None:
        self._made, self._names = made, names
        self._paths: dict[Any, str] = {}  # of nodes and of arguments

    def add(self, graph: Graph, scope: str, operands: list[str] | None) -> None:
        """operands: what the arguments of a region read; None for a whole graph."""
        for index, value in enumerate(graph.inputs):
            if not isinstance(value.type, TensorType) and operands is None:
                continue  # the first order token comes from nowhere
            path = self._paths[value] = scope + self._names[value]
            sources = [] if operands is None or index >= len(operands) else [operands[index]]
            self._node(path, "Placeholder" if operands is None else "Identity", sources, [value])
        for node in graph.nodes:
            self._paths[node] = scope + self._names[node]
            inputs = list(filter(None, map(self._output, node.inputs)))
            # A branch's arguments stand for all operands but the condition.
            first = 1 if node.op.name == "cond" else 0
            given = [self._output(value) for value in node.inputs[first:]]
            for label, region in regions(node):
                self.add(region, f"{self._paths[node]}/{label}/", given)
                inputs += filter(None, map(self._output, region.outputs))
            self._add_node(node, list(dict.fromkeys(inputs)))

    def _output(self, value: Value) -> str:
        """What reads a value names it by; "" for what isn't there."""
        path = self._paths.get(value if value.node is None else value.node, "")
        if not path or not isinstance(value.type, TensorType):
            return f"^{path}" if path else ""
        index = 0 if value.node is None else value.node.outputs.index(value)
        return f"{path}:{index}" if index else path

    def _add_node(self, node: Node, inputs: list[str]) -> None:
        made = self._node(self._paths[node], node.op.label, inputs, node.outputs)
        shown = attributes(node, 500)
        if node.op.name == "constant":
            self._add_constant(made, node)
        elif shown:
            made.attr["attributes"].s = shown.encode()
        if node.span:
            made.attr["source"].s = short_span(node.span).encode()

    def _add_constant(self, made: Any, node: Node) -> None:
        array = np.asarray(getattr(node.attrs["value"], "array", node.attrs["value"]))
        if array.size <= _SMALL and array.dtype.kind in "biufc":
            made.attr["value"].tensor.CopyFrom(tensor_proto(array))

    def _node(self, path: str, op: str, inputs: list[str], values: list[Value]) -> Any:
        # Names of inputs that order operations come last.
        made = self._made.node.add(name=path, op=op, input=sorted(inputs, key=lambda each: each.startswith("^")))
        tensors = [value for value in values if isinstance(value.type, TensorType)]
        shapes = made.attr["_output_shapes"].list
        for value in tensors:
            shape = shapes.shape.add()
            if value.type.shape is None:  # type: ignore[union-attr]
                shape.unknown_rank = True
                continue
            for size in value.type.shape:  # type: ignore[union-attr]
                shape.dim.add(size=-1 if size is None else size)
        if tensors:
            kind = _enum(tensors[0].type.dtype)  # type: ignore[union-attr]
            if kind is not None:
                made.attr["dtype"].type = kind
        return made


def _enum(dtype: Any) -> int | None:
    """The number of a dtype in TensorFlow's enumeration; None where it has none."""
    types = protos().types_pb2
    return dict(types.DataType.items()).get(ENUM.get(dtype.name, f"DT_{dtype.name.upper()}"))


def graph(graph_data: Any) -> Tensor:
    """Writes a graph to the default writer, for TensorBoard's page of graphs; returns whether it did.

    graph_data: the `graph` of a concrete function, its `as_graph_def()`, or a `GraphDef` of TensorBoard's.

    Raises ValueError in a traced function, and for something else.
    """
    if ctx.builder is not None:
        raise ValueError("graph() cannot be invoked inside a graph context: call it where nothing is traced")
    writer = state.writer
    if not isinstance(writer, FileWriter) or not get_static_value(should_record_summaries()):
        return convert_to_tensor(False)
    found = graph_data.graph if isinstance(graph_data, GraphDef) else graph_data
    if isinstance(found, Graph):
        found = graph_def(found)
    if getattr(getattr(found, "DESCRIPTOR", None), "full_name", "").rpartition(".")[2] != "GraphDef":
        raise ValueError(
            "Argument 'graph_data' is not the graph of a concrete function or a GraphDef. Received "
            f"graph_data={graph_data!r} of type {type(graph_data).__name__}."
        )
    writer.file.add_graph(found.SerializeToString())
    return convert_to_tensor(True)


# --- graphs of what ran --------------------------------------------------------------------------------------------


@dataclass
class _Tracing:
    graph: bool
    profiler: bool
    profile: profiling.Profile


_lock = threading.Lock()
_tracing: _Tracing | None = None


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: Any = None) -> None:
    """Collects the graphs that functions run from now on, in all threads, for `trace_export`.

    graph: whether graphs are collected. profiler: whether a profile is made as well (`profiler.experimental.start`),
    which collects graphs in any case. profiler_outdir: the folder of the profile; without it, none is made.

    Warns and does nothing in a traced function, and while another trace is on. Raises AlreadyExistsError if a
    profile is running.
    """
    global _tracing
    if ctx.builder is not None:
        warn("Cannot enable trace inside a traced function: summary.trace_on() has no effect there.")
        return
    with _lock:
        if _tracing is not None:
            warn("Trace already enabled: summary.trace_export() or trace_off() ends it.")
            return
        if profiler and profiler_outdir is None:
            warn("No `profiler_outdir` passed to trace_on(). Profiler won't be enabled.")
            profiler = False
        if profiler:
            start(profiler_outdir)
        _tracing = _Tracing(graph, profiler, profiling.start(level=0, graphs=graph or profiler))


def trace_export(name: str, step: Any = None, profiler_outdir: Any = None) -> None:
    """Ends the trace of `trace_on` and writes it: the graphs to the default writer, if there is one, the profile to its
    folder.

    name: the tag. step: an integer, by default that of `as_default` or `set_step`. profiler_outdir: has no effect;
    `trace_on` takes it.

    Warns and does nothing in a traced function. Raises ValueError if no trace is on, and where there is a writer
    and no step.
    """
    if ctx.builder is not None:
        warn("Cannot export trace inside a traced function: summary.trace_export() has no effect there.")
        return
    with _lock:
        tracing = _tracing
    if tracing is None:
        raise ValueError("Must enable trace before export through summary.trace_on.")
    if profiler_outdir is not None:
        warn("Ignoring `profiler_outdir` passed to trace_export(). Please pass it to trace_on() instead.")
    if isinstance(state.writer, FileWriter) and tracing.profile.graphs is not None:
        plugin = "graph_run_metadata" if tracing.profiler else "graph_run_metadata_graph"
        _write_graphs(name, list(tracing.profile.graphs), step, plugin)
    _end(save=True)


def trace_off() -> None:
    """Ends the trace of `trace_on` and discards it. Does nothing where no trace is on."""
    _end(save=False)


def _end(save: bool) -> None:
    global _tracing
    with _lock:
        tracing, _tracing = _tracing, None
    if tracing is not None:
        profiling.stop(tracing.profile)
        if tracing.profiler:
            stop(save)


def _write_graphs(name: str, graphs: list[Graph], step: Any, plugin: str) -> None:
    from tensorboard.compat.proto import config_pb2

    data = config_pb2.RunMetadata()
    for each in graphs:
        made = graph_def(each)
        found = data.function_graphs.add()
        found.pre_optimization_graph.CopyFrom(made)
    metadata = metadata_of(plugin, None)
    metadata.plugin_data.content = b"1"  # the version that TensorBoard takes
    with summary_scope(name, f"{plugin}_summary") as (tag, _):
        _write(tag, lambda: convert_to_tensor(data.SerializeToString()), step, metadata)
