"""What a warning says when the compiler fails: the function, the operation, the user's line, the kernel's text."""

from __future__ import annotations

from runtime import errors
from runtime.codegen import cache
from runtime.codegen.compile import compile_kernel
from runtime.codegen.lower import lower
from runtime.codegen.source import NotNative
from runtime.graph.ir import Graph, Node, Substitution, copy_nodes
from runtime.graph.spans import describe_span

_MOST_TRIED = 40  # operations that are compiled alone to find the one that fails


def report(graph: Graph, error: Exception) -> str:
    """The text of the warning."""
    first = str(error).partition("\n")[0]
    lines = [
        f"'{graph.name}' stays on the interpreter, because its native code could not be made: "
        f"{type(error).__name__}: {first}"
    ]
    node = getattr(error, "node", None)
    if node is None and isinstance(error, errors.KernelError):
        node = _culprit(graph)
    if node is not None:
        lines.append(f"  operation: {node.op.name}, at {describe_span(node.span) or 'an unknown line'}")
    path = _text(graph)
    if path is not None:
        lines.append(f"  kernel text: {path}")
    lines.append("  Results are right, only slower. Please report this with the lines above.")
    return "\n".join(lines)


def _culprit(graph: Graph) -> Node | None:
    """The first operation that can't be compiled alone either."""
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
    except Exception:  # the failure that is being told
        return None
    paths = [cache.text_file(cache.kernel_name(source.text, each.key)) for each in (source, source.hurried())]
    return next((str(path) for path in paths if path.exists()), None)
