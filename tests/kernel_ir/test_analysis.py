"""The analyses of kernels, on small texts; liveness also against all ways through random programs."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.accesses import accesses, read_by, written_by
from runtime.kernel_ir.analysis.aliases import (
    Unaliased,
    copied_from,
    memory_classes,
    parameters_named,
    possible_sources,
    viewed,
)
from runtime.kernel_ir.analysis.effects import Effects
from runtime.kernel_ir.analysis.liveness import Liveness
from runtime.kernel_ir.analysis.loops import counter_of, jumps_out
from runtime.kernel_ir.analysis.subscripts import Subscripts, fixed_sizes, is_in_row, offset_from, unit_stride_store
from runtime.kernel_ir.analysis.uses import Uses, called, mentions
from runtime.kernel_ir.parse_python import parse_functions

N = ir.size_variable("n")


def function(text: str) -> ir.Function:
    (found,) = parse_functions(text)
    return found


def body(*lines: str) -> ir.Block:
    return function("\n".join(["def kernel(x):", *(f"    {line}" for line in lines), ""])).body


# --- accesses --------------------------------------------------------------------------------------------------------


def test_accesses() -> None:
    found = accesses(ir.walk(body(
        "n = x.size",
        "for i in range(n):",
        "    a[i] = x[i + 1] * b[a[i]]",
        "lib.top_of_row(x, 0, n, v, p, 0, k)",
        "c = lib.flat(y)",
        "d = e",
    )))  # fmt: skip
    assert {name: list(map(str, items)) for name, items in found.loads.items()} == {
        "x": ["(i + 1)"],
        "b": ["a[i]"],
        "a": ["i"],
    }
    assert {name: list(map(str, items)) for name, items in found.stores.items()} == {"a": ["i"]}
    assert (found.read, found.written) == ({"x", "v", "p"}, {"v", "p"})
    assert (found.sizes, found.kept) == ({"x"}, {"y"})
    assert found.others == {"n", "i", "k", "e"}
    assert found.arrays_read == {"x", "a", "b", "v", "p"}
    assert not found.of_views


def test_unknown_functions_may_do_anything() -> None:
    items = body("y = some_function(a, b)")
    assert read_by(items) == written_by(items) == {"a", "b"}
    known = Effects({"some_function": function("def some_function(a, b):\n    a[0] = b[1]\n    return a\n")})
    found = accesses(items, known.of)
    assert (found.read, found.written, found.kept) == ({"b"}, {"a"}, {"a"})


def test_stores_through_views_count() -> None:
    assert written_by(body("gpu.view(a, 3)[i] = 2.0")) == {"a"}


def test_uses() -> None:
    items = body("while i < n:", "    if c:", "        i = i + lib.exp(y)")
    assert Uses().counts(items) == {"i": 3, "n": 1, "c": 1, "y": 1}
    assert called(ir.walk(items)) == {"lib.exp"}
    assert [type(each) for each in mentions(ir.walk(items))["i"]] == [ir.While, ir.Assign]


# --- aliases ---------------------------------------------------------------------------------------------------------


def test_memory_classes() -> None:
    items = body(
        "b = lib.flat(a)", "c = lib.copied(a, n)", "d = b if t else e", "f, g = g, f", "h = lib.resized(g, 1, n)"
    )
    arrays = set("abcdefgh")
    for exchanges in (False, True):
        classes = memory_classes(items, arrays, exchanges)
        assert classes["a"] == classes["b"] == classes["d"] == classes["e"] != classes["c"]
        assert classes["g"] == classes["h"]
        assert (classes["f"] == classes["g"]) == exchanges
    assert possible_sources(items, {"d"}) == {"d", "b", "e", "a"}
    assert copied_from(body("a = b")[0]) == "b"
    assert copied_from(body("a = b[0]")[0]) is None
    assert viewed(ir.call("lib.shaped", ir.Tuple((N,)), ir.call("lib.flat", ir.Var("a")))) == ir.Var("a")


def test_parameters_with_other_names() -> None:
    text = "def kernel(a, b, c):\n    d = lib.flat(a)\n    e = b\n    b = c\n    f = c\n    f = a\n"  # b isn't only c
    assert parameters_named(function(text)) == {"d"}


def test_unaliased_arrays() -> None:
    arrays = set("abcx")
    state = Unaliased(arrays)
    names = []
    for item in body("a = np.empty(n, np.float32)", "b = lib.copied(x, n)", "a, b = b, a", "c = b", "b = x"):
        state.step(item)
        names.append("".join(sorted(state.names)))
    assert names == ["a", "ab", "ab", "a", "a"]
    state = Unaliased(arrays, {"a", "b", "c"})
    state.enter_loop(body("a, b = b, a", "if t:", "    c = a"))
    assert state.names == {"b"}
    one, other = state.branch(), state.branch()
    one.names.clear()
    state.join(one, other)
    assert not state.names


# --- liveness --------------------------------------------------------------------------------------------------------


def test_live_behind_loops() -> None:
    items = body(
        "while i < n:",
        "    for j in range(n):",
        "        t = t + y",
        "        if t > u:",
        "            break",
        "    i = t",
        "return x",
    )
    found = Liveness().behind_loops(items)
    outer, inner = (item for item in ir.walk(items) if isinstance(item, (ir.For, ir.While)))
    assert found[outer] == {"x"}
    assert found[inner] == {"t", "i", "n", "y", "u", "x"} - {"i"}
    assert Liveness().exposed([outer]) == {"i", "n", "t", "y", "u"}


def _block(choose: random.Random, depth: int, in_loop: bool) -> ir.Block:
    found: ir.Block = []
    for _ in range(choose.randint(1, 3)):
        kind = choose.choice(["assign"] * 3 + (["if", "while", "for"] if depth else []))
        a, b = (choose.choice("abcd") for _ in range(2))
        if kind == "assign":
            found.append(ir.assign(a, ir.Var(b)))
        elif kind == "if":
            found.append(ir.If(ir.Var(a), _block(choose, depth - 1, in_loop), _block(choose, depth - 1, in_loop)))
        elif kind == "while":
            found.append(ir.While(ir.Var(a), _block(choose, depth - 1, True)))
        else:
            found.append(ir.For(a, ir.ZERO, ir.Var(b), ir.ONE, _block(choose, depth - 1, True)))
    last = choose.random()
    if last < 0.15:
        found.append(ir.Return((ir.Var(choose.choice("abcd")),)))
    elif in_loop and last < 0.4:
        found.append(choose.choice([ir.Break, ir.Continue])())
    return found


State = tuple[frozenset[str], frozenset[str]]  # assigned; read before that


def _ways(block: ir.Block, state: State) -> Iterator[tuple[str, State]]:
    """All ways through a block, with at most two trips of each loop: how it is left, and the state then."""
    if not block:
        yield "end", state
        return
    item, rest = block[0], block[1:]
    assigned, read = state
    read |= ir.variables(item) - assigned
    if isinstance(item, ir.If):
        inner = [way for each in (item.body, item.orelse) for way in set(_ways(each, (assigned, read)))]
    elif isinstance(item, (ir.For, ir.While)):
        inner, starts = [("end", (assigned, read))], {(assigned, read)}
        for _ in range(2):
            trips = {way for known, seen in starts for way in _ways(item.body, (known.union(ir.targets(item)), seen))}
            starts = {
                (after[0], after[1] | (ir.variables(item) - after[0]))
                for how, after in trips
                if how in ("end", "continue")
            }
            inner += [("end", after) for after in starts]
            inner += [
                ("return" if how == "return" else "end", after) for how, after in trips if how in ("return", "break")
            ]
    elif isinstance(item, (ir.Return, ir.Break, ir.Continue)):
        inner = [(type(item).__name__.lower(), (assigned, read))]
    else:
        inner = [("end", (assigned.union(ir.targets(item)), read))]
    for how, after in set(inner):
        if how == "end":
            yield from _ways(rest, after)
        else:
            yield how, after


@pytest.mark.parametrize("seed", range(60))
def test_liveness_of_all_ways(seed: int) -> None:
    block = _block(random.Random(seed), 2, in_loop=False)
    ways = set(_ways(block, (frozenset(), frozenset())))
    liveness = Liveness()
    assert liveness.exposed(block) == frozenset().union(*(read for _, (_, read) in ways))
    ends = [assigned for how, (assigned, _) in ways if how == "end"]
    assert liveness.surely_assigned(block) == (frozenset.intersection(*ends) if ends else frozenset())


def test_liveness_visits_each_statement_of_a_nest_once(monkeypatch: pytest.MonkeyPatch) -> None:
    block: ir.Block = [ir.assign("x", ir.Var("y"))]
    for depth in range(40):
        block = [ir.While(ir.Var(f"n{depth}"), block)]
    count = 0
    variables = ir.variables

    def counted(item: ir.Expr | ir.Statement) -> set[str]:
        nonlocal count
        count += 1
        return variables(item)

    monkeypatch.setattr(ir, "variables", counted)
    assert len(Liveness().behind_loops(block)) == 40
    assert count == 41


# --- loops and subscripts --------------------------------------------------------------------------------------------


def test_counters() -> None:
    (loop,) = body("while i < n:", "    t = i", "    i = i + 1", "    a[i] = t")
    assert isinstance(loop, ir.While)
    found = counter_of(loop)
    assert found is not None
    assert (str(found.variable), str(found.limit), found.step) == ("i", "n", 1)
    for line in (
        "    i = i + 2",
        "    if t:\n            i = i + 1",
        "    i = i + 1\n        i = i + 1",
        "    n = i + 1",
    ):
        (other,) = body("while i < n:", line)
        assert isinstance(other, ir.While)
        assert counter_of(other) is None
    breaks, continues = [ir.If(N.compare("<", 1), [ir.Break()])], [ir.Continue()]
    assert jumps_out(breaks)
    assert jumps_out(continues)
    assert not jumps_out([ir.While(ir.TRUE, breaks)])


def test_subscripts() -> None:
    whole = function(
        "def kernel(x, m, k):\n"
        "    size = m * k\n"
        "    for i in range(m):\n"
        "        row = i * k\n"
        "        for j in range(k):\n"
        "            a[row + j] = x[row + j] + x[j]\n"
    )
    outer = whole.body[1]
    assert isinstance(outer, ir.For)
    inner = outer.body[1]
    assert isinstance(inner, ir.For)
    store = inner.body[0]
    assert isinstance(store, ir.Store)
    subscripts = Subscripts(outer, fixed_sizes(whole))
    terms = subscripts.terms(store.index)
    assert terms is not None
    assert subscripts.depends(terms)
    assert subscripts.are_apart([terms])
    column = subscripts.terms(ir.Var("j"))
    assert column is not None
    assert not subscripts.depends(column)
    found = unit_stride_store(inner)
    assert found is not None
    assert (found[0], str(found[1])) == ("a", "(row + 0)")  # without types, it isn't simplified
    assert unit_stride_store(outer) is None


def test_offsets_and_rows() -> None:
    i, j, m = (ir.size_variable(name) for name in "ijm")
    assert offset_from(i, i) == ir.ZERO
    assert offset_from(j + i - 1, i) == j - 1
    assert offset_from(i * 2, i) is None
    assert is_in_row([i, i], i)
    assert is_in_row([i * m + j, i * m], i)
    assert not is_in_row([i * m, i * j], i)
    assert not is_in_row([j], i)
