"""``match`` on symbolic tensors: Python does the matching, once for every way that its comparisons can turn out."""

from __future__ import annotations

from autograph.operators.deciding import decided
from autograph.operators.frame import Frame
from autograph.operators.state import Block, slots
from autograph.operators.unbound import run
from runtime.context import ctx


def match_stmt(body: Block, names: tuple[str, ...] = ()) -> None:
    """Runs a block that does nothing but match a pattern and note the outcome.

    names: the variables set in it that matter afterwards.
    """
    if ctx.builder is None:
        run(body)
    else:
        decided(lambda: run(body), "match", slots(names, (body,)), Frame((body,)))
