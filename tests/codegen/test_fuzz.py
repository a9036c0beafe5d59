"""A short slice of `python -m tests.fuzz_kernels`; and the fuzzer itself sees differences and makes them small."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.codegen.lower import state
from tests.fuzz_kernels.compare import at_most, difference, shrink
from tests.fuzz_kernels.generate import make
from tests.fuzz_kernels.program import Program, Statement


@pytest.mark.parametrize("seed", range(5))
def test_programs_agree(seed: int) -> None:
    program = make(f"slice/{seed}", longest=4)
    found = difference(program)
    assert found is None or found[0] == "invalid", f"{found}\n{program.script()}"


def test_programs_are_the_same_for_the_same_seed_and_stand_alone() -> None:
    assert make("x/1").source() == make("x/1").source() != make("x/2").source()
    compile(make("x/1").script(), "script", "exec")


def test_most_programs_are_valid_and_use_much() -> None:
    texts = "".join(make(f"words/{seed}").source() for seed in range(60))
    for word in (
        "while",
        "for i0",
        "if ",
        "v.assign",
        "TensorArray",
        "reduce_",
        "tensor_scatter",
        "gather",
        "matmul",
        "//",
    ):
        assert word in texts, word


def test_a_difference_is_seen_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    expression = state.Lowering.expression

    def wrong(self: Any, node: Any, *rest: Any, **options: Any) -> Any:
        right = expression(self, node, *rest, **options)
        return right + 1 if node.op.name == "maximum" else right

    monkeypatch.setattr(state.Lowering, "expression", wrong)
    lines = ["x1 = a * 2", "x2 = ag.maximum(x1, 3)", "x3 = x2 - a", "x4 = ag.reduce_sum(a)"]
    loop = Statement("for i0 in ag.range(3):", [Statement("x3 = x3 + x2"), Statement("x1 = x1 + 1")])
    program = Program({"a": "np.arange(4)", "n": "np.int32(2)"}, [*map(Statement, lines), loop], ["x3", "x4"])
    found = difference(program)
    assert found is not None and found[0] == "interpreted/compiled value"
    small = shrink(program, found[0])
    body = [statement.text for statement in small.body]
    assert "x2 = ag.maximum(x1, 3)" in body and len(body) <= 3 and small.results == ["x3"]


def test_a_program_without_an_end_is_left() -> None:
    """Shrinking may take the line out of a loop that ends it."""
    loop = Statement("while x1 < 3:", [Statement("x1 = x1 * x1")])
    program = Program({"a": "np.int32(1)", "n": "np.int32(2)"}, [Statement("x1 = a"), loop], ["x1"])
    with pytest.raises(TimeoutError), at_most(1.0):
        difference(program)
