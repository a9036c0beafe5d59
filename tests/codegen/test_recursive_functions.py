"""Recursive functions in native code: which have a form, what their text is, and that they never overflow the stack."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.lower import recursion
from runtime.codegen.lower.lower_graph import lower, why_interpreted
from runtime.graph.ir import Graph

INT = ag.TensorSpec([], ag.int32)


def fib(n: Any) -> Any:
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def halves(x: Any) -> Any:
    """Arrays of sizes that only a run knows, as arguments and results."""
    if ag.size(x) < 2:
        return x * 2.0
    middle = ag.size(x) // 2
    return ag.concat([halves(x[middle:]), halves(x[:middle])], 0)


def same_or_changed(x: Any, n: Any) -> Any:
    """What comes back may be the argument itself, which is still in use."""
    if n == 0:
        return x
    y = same_or_changed(x, n - 1)
    z = ag.tensor_scatter_nd_update(y, [[0]], [-1.0])
    return x + y + z


def graph_of(function: Any, *arguments: Any) -> Graph:
    return ag.function(function).get_concrete_function(*arguments).graph


def test_the_text_is_a_function_that_calls_itself() -> None:
    text = lower(graph_of(fib, INT)).text
    assert 'def recursive_fib(depth, base, calls, n_1) -> "(int64, int32)":' in text
    assert "= recursive_fib(depth + 1, base, calls, " in text
    assert "__" not in text
    assert "np.empty" not in text[: text.index("def kernel")]  # a call takes no memory


def test_arrays_are_handed_over_without_copies() -> None:
    def search(x: Any, low: Any, high: Any) -> Any:
        if low >= high:
            return low
        middle = (low + high) // 2
        return search(x, middle + 1, high) if x[middle] < 0.5 else search(x, low, middle)

    def find(x: Any) -> Any:
        return search(x, 0, ag.size(x))

    text = lower(graph_of(find, ag.TensorSpec([None], ag.float32))).text
    assert "np.float32)" not in text.split("def kernel")[0].replace("np.float32(0.5)", "")
    x = np.linspace(0, 1, 1001, dtype=np.float32)
    assert int(ag.function(find, jit_compile=True)(x)) == np.searchsorted(x, 0.5)


@pytest.mark.parametrize("size", [1, 2, 5, 8, 33])
def test_sizes_that_calls_change(size: int) -> None:
    f = ag.function(halves, input_signature=[ag.TensorSpec([None], ag.float32)], jit_compile=True)
    x = np.arange(size, dtype=np.float32)
    np.testing.assert_array_equal(f(x), halves(ag.constant(x)))


@pytest.mark.parametrize("n", range(4))
def test_results_that_are_arguments_are_not_written_into(n: int) -> None:
    x = ag.constant([3.0, 4.0])
    f = ag.function(same_or_changed, jit_compile=True)
    np.testing.assert_array_equal(f(x, ag.constant(n)), same_or_changed(x, n))
    np.testing.assert_array_equal(x, [3.0, 4.0])


def put(x: Any, place: Any, value: Any) -> Any:
    return ag.tensor_scatter_nd_update(x, [[place]], [value])


def updates(x: Any, n: Any) -> Any:
    return x if n == 0 else updates(put(x, n % 3, x[0] + 1.0), n - 1)


def exchanges(x: Any, y: Any, n: Any) -> Any:
    if n == 0:
        return x, y
    return exchanges(put(y, 0, x[1]), put(x, 1, y[2] + 1.0), n - 1)


def gives_one_twice(x: Any, n: Any) -> Any:
    if n == 0:
        return x, x
    a, b = gives_one_twice(put(x, 0, x[1]), n - 1)
    a = put(a, 1, 9.0)
    return put(b, 2, a[1] + b[1]), a


def needs_the_old_one(x: Any, n: Any) -> Any:
    if n == 0:
        return put(x, 0, -1.0)
    y = needs_the_old_one(x, n - 1)
    return needs_the_old_one(put(y, 1, 5.0), n - 1) + x + y


def two_of_one(x: Any, n: Any) -> Any:
    return exchanges(x, x, n)


def in_a_loop(x: Any, n: Any) -> Any:
    total = x
    for i in ag.range(n):
        x = updates(x, i)
        total += x
        if i > 1:
            total, x = updates(total, 2), total
    return total, x


def with_a_loop(x: Any, n: Any) -> Any:
    if n == 0:
        return x
    before = x
    for i in ag.range(n):
        x = put(with_a_loop(x, n - 1), i % 3, x[0] * 0.5)
    return x + before


def updates_a_capture(x: Any, n: Any) -> Any:
    def go(n: Any) -> Any:
        if n == 0:
            return put(x, 0, 7.0)
        return go(n - 1) + put(x, 1, 8.0)

    return go(n)


ALIASES = [
    updates, lambda x, n: exchanges(x, 2.0 * x, n), two_of_one, gives_one_twice, needs_the_old_one, in_a_loop,
    with_a_loop, updates_a_capture,
]  # fmt: skip


@pytest.mark.parametrize("n", range(4))
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("index", range(len(ALIASES)))
def test_updates_in_place_are_seen_by_nobody_else(index: int, dynamic: bool, n: int) -> None:
    function, x = ALIASES[index], np.float32([1, 2, 3])
    signature = [ag.TensorSpec([None if dynamic else 3], ag.float32), INT]
    # Twice: a kernel must not write into what it is given.
    for _ in range(2):
        found = ag.function(lambda x, n: function(x, n), signature, jit_compile=True)(x, n)
        for a, b in zip(ag.nest.flatten(found), ag.nest.flatten(function(ag.constant([1.0, 2.0, 3.0]), n))):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(x, [1, 2, 3])


def test_an_array_that_is_handed_on_is_updated_without_a_copy() -> None:
    def swap(x: Any, low: Any, high: Any) -> Any:
        if low >= high:
            return x
        a, b = x[low], x[high]
        return swap(ag.tensor_scatter_nd_update(x, [[low], [high]], [b, a]), low + 1, high - 1)

    def mirrored(x: Any) -> Any:
        return swap(x, 0, ag.size(x) - 1)

    text = lower(graph_of(mirrored, ag.TensorSpec([None], ag.float32))).text
    function, kernel = text.split("def kernel")
    assert "np.empty" not in function.replace("np.empty(0, np.float32)", "")
    assert kernel.count("np.empty(") == 3  # the copy of the argument, the counter of calls, what a failure returns
    x = np.arange(9, dtype=np.float32)
    np.testing.assert_array_equal(ag.function(mirrored, jit_compile=True)(x), x[::-1])


def test_numbers_in_errors_come_through_calls() -> None:
    def find(x: Any, i: Any) -> Any:
        if i == 0:
            return x[5]
        ag.debugging.assert_less(i, 100, message="far")
        return find(x, i - 1)

    f = ag.function(find, [ag.TensorSpec([None], ag.float32), INT], jit_compile=True)
    with pytest.raises(ag.errors.InvalidArgumentError, match="slice index 5 of dimension 0 out of bounds"):
        f(ag.constant([1.0, 2.0]), ag.constant(3))
    with pytest.raises(ag.errors.InvalidArgumentError, match="far"):
        f(ag.constant([1.0] * 8), ag.constant(200))
    assert float(f(ag.constant([1.0] * 8), ag.constant(3))) == 1.0


def test_calls_ask_for_the_room_that_is_left(monkeypatch: Any) -> None:
    monkeypatch.setattr(recursion, "_ROOM", 0)

    def deep(n: Any) -> Any:
        return 0 if n == 0 else 1 + deep(n - 1)

    f = ag.function(deep, jit_compile=True)
    assert int(f(ag.constant(0))) == 0
    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        f(ag.constant(5))


def test_what_has_no_native_form_says_why() -> None:
    counter = ag.Variable(0)

    def assigns(n: Any) -> Any:
        counter.assign_add(1)
        return n if n <= 0 else assigns(n // n - 1)

    def draws(n: Any) -> Any:
        return 0.0 if n == 0 else draws(n - 1) + ag.random.uniform([])

    for function, why in ((assigns, "assigns a variable"), (draws, "draws random numbers")):
        (node,) = [n for n in graph_of(function, INT).nodes if n.op.name == "letrec"]
        reason = why_interpreted(node)
        assert reason is not None
        assert why in reason[0]
    ag.function(assigns, jit_compile=True)(ag.constant(3))
    assert int(counter) == 2


PROGRAM = """
import autograph as ag

@ag.function(jit_compile=True)
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)

print(int(fib(ag.constant(15))))
"""


@pytest.mark.parametrize("compiler", ["llvm", "numba"])
def test_either_compiler_and_the_next_process(compiler: str, tmp_path: Any) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    chosen = {} if compiler == "llvm" else {"AUTOGRAPH_COMPILER": compiler}
    environment = {**os.environ, **chosen, "AUTOGRAPH_CACHE_DIR": str(tmp_path / "cache"), "AUTOGRAPH_STRICT": "1"}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == ["610"]
        assert done.stderr == ""
