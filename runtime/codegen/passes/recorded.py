"""Passes that run while a kernel is lowered, recorded: `autograph graph --kernel-passes` shows what they change.

Each is shown what it looks at: the loop that is being lowered, or the whole kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.kernel_ir import ir
from runtime.kernel_ir.print_python import function, lines
from runtime.pass_log import is_recording, run_pass

_Item = ir.Statement | ir.Function


def run_on_body(name: str, change: Callable[[ir.Block], ir.Block], body: ir.Block) -> ir.Block:
    """What `change` takes out of the body of a loop, to stand before it; the body is changed in place."""
    moved: ir.Block = []

    def run(_: ir.Block) -> ir.Block:
        moved.extend(change(body))
        return [*moved, ir.While(ir.TRUE, body)]

    run_pass("kernel", name, run, [ir.While(ir.TRUE, body)], _text)
    return moved


def run_on_loop(name: str, change: Callable[[ir.While], ir.While], loop: ir.While) -> ir.While:
    """What `change` makes of a loop."""
    result: ir.While = run_pass("kernel", name, change, loop, lambda each, names: _text([each], names))
    return result


def run_on_kernel(name: str, change: Callable[[Any], None], low: Any) -> None:
    """Changes the block and the parts of a kernel in place."""
    run_pass("kernel", name, change, low, _text_of_kernel)


def note(name: str, statements: Callable[[], tuple[Sequence[_Item], Sequence[_Item]]]) -> None:
    """For what puts statements together in the way of a pass as it makes them: gives those before and after."""
    if is_recording():
        before, after = statements()
        run_pass("kernel", name, lambda _: after, before, _text)


def _text(block: Sequence[_Item], names: dict[Any, Any]) -> str:
    return "\n".join(function(item) if isinstance(item, ir.Function) else "\n".join(lines([item], 0)) for item in block)


def _text_of_kernel(low: Any, names: dict[Any, Any]) -> str:
    return "\n\n".join([*map(function, low.parts), _text(low.block, names)])
