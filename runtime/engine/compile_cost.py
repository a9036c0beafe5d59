"""How long compiling a graph will keep the interpreter lock: the part in Python, before LLVM works without it.

Python runs one thread at a time, so that a call that is interpreted meanwhile waits for about as long. How long a
program will go on isn't known. It is interpreted for four fifths of that time before it is compiled; the total is then
at most about two and a half times that of the better choice, and what has run that long usually continues.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from runtime.graph.ir import Node

# Estimated seconds: once per process, per kernel, per scalar node, per array node.
_STARTING, _KERNEL, _NUMBER, _ARRAY = 0.03, 0.008, 0.0005, 0.002
_SHARE = 0.8  # the fraction of this time for which a program is interpreted first
# The most nodes in one kernel; a longer straight run is split into subgraphs that share kernels (run_splitting.py). A
# call costs about a microsecond, compiling a loop nest some 10 ms, and more in a longer kernel.
SEGMENT_LIMIT = 100


def python_seconds(nodes: Iterable[Node]) -> float:
    """The estimate for a kernel of these nodes."""
    return _KERNEL + sum(_ARRAY if _is_of_arrays(node) else _NUMBER for node in nodes)


def counted(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes of a graph that count: all of its first kernel, and of the others one for each operation with its
    dtypes and ranks that is new. Parts of a long graph share kernels where they repeat (run_splitting.py), as layers
    and the updates of variables do: all nodes of a transformer's training step would give six times too much."""
    seen = set()
    for number, node in enumerate(nodes):
        types = [v.type for v in (*node.inputs, *node.outputs)]
        form = node.op.name, *((getattr(each, "dtype", None), getattr(each, "rank", None)) for each in types)
        if number < SEGMENT_LIMIT or form not in seen:
            yield node
        seen.add(form)


def threshold(seconds: float) -> float:
    """The seconds of interpretation after which it pays to compile; seconds: what `python_seconds` gives."""
    return _SHARE * (seconds + (0.0 if "runtime.engine.partition" in sys.modules else _STARTING))


def _is_of_arrays(node: Node) -> bool:
    return any(getattr(v.type, "rank", 0) != 0 for v in node.outputs)
