"""Warnings that the compiler failed, with the operation, the user's line, the kernel's file."""

from __future__ import annotations

import warnings
from typing import Any

from runtime import errors
from runtime.codegen.backends.driver import compile_kernel
from runtime.codegen.cache import kernel_cache
from runtime.codegen.kernel.source import NotNative
from runtime.codegen.lower.lower_graph import lower
from runtime.graph.ir import Graph, Node, Substitution, copy_nodes
from runtime.graph.spans import describe_span

_MOST_TRIED = 40  # operations compiled alone to find the one that fails


def warn(graph: Graph, error: Exception, warned: set[str]) -> str:
    """Warns at the user's line that a graph is interpreted, unless `warned` has the cause already; returns the text,
    which `f.explain` shows, too."""
    why = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    node = getattr(error, "node", None)
    if node is None and isinstance(error, errors.KernelError):
        node = _culprit(graph)
    lines = [f"'{graph.name}' stays on the interpreter, because its native code could not be made: {why}"]
    if node is not None:
        lines.append(f"  operation: {node.op.name}, at {describe_span(node.span) or 'an unknown line'}")
    path = _text(graph)
    if path is not None:
        lines.append(f"  kernel text: {path}")
    lines.append("  Results are right, only slower. Please report this with the lines above.")
    text = "\n".join(lines)
    cause = f"{why} {node.op.name if node is not None else ''}"  # gradients have it at other lines
    if cause not in warned:
        warned.add(cause)
        warn_at(text, graph, node)
    return text


# The registry by which Python shows a warning once for each line and text.
_shown: dict[Any, Any] = {}


def warn_at(text: str, graph: Graph, node: Node | None = None) -> None:
    """Warns at the user's line: the node's, or the graph's first."""
    spans = [each.span for each in ([node] if node is not None else []) if each.span]
    spans += [each.span for each in graph.nodes if each.span][:1]
    file, line = spans[0][:2] if spans else (__file__, 1)
    warnings.warn_explicit(text, errors.CompilationWarning, file, line, registry=_shown)


def _culprit(graph: Graph) -> Node | None:
    """The first operation whose compilation fails on its own, too."""
    tried: set[tuple] = set()
    for node in graph.walk():
        key = (node.op.name, *[str(v.type) for v in (*node.inputs, *node.outputs)])
        if node.op.name == "constant" or node.regions or node.op.effect or key in tried:
            continue
        tried.add(key)
        if len(tried) > _MOST_TRIED:
            return None
        alone = Graph(graph.name)
        mapping = Substitution()
        for value in dict.fromkeys(node.inputs):
            mapping[value] = alone.add_input(value.type)
        copy_nodes([node], alone, mapping)
        alone.outputs = [mapping[v] for v in node.outputs]
        try:
            compile_kernel(lower(alone))
        except NotNative:
            continue
        except Exception:
            return node
    return None


def _text(graph: Graph) -> str | None:
    """The file with the kernel's text, where it could be printed and written."""
    try:
        source = lower(graph)
    except Exception:  # the failure that is being reported
        return None
    paths = [
        kernel_cache.text_file(kernel_cache.kernel_name(source.text, each.key)) for each in (source, source.hurried())
    ]
    return next((str(path) for path in paths if path.exists()), None)
