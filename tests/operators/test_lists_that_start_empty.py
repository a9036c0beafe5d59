"""Lists that are empty before a staged loop, and read at a tensor before, in the text, the first append."""

import numpy as np
import pytest

import autograph as ag


def smooth(x):
    out = []
    for i in ag.range(ag.size(x)):
        if i > 0:
            value = out[i - 1] * 0.5 + x[i]
        else:
            value = x[i]
        out.append(value)
    return ag.stack(out)


def ternary(x):
    out = []
    for i in range(len(x)):
        out.append((out[i - 1] if i > 0 else 0.0) + x[i])
    return ag.stack(out)


def last(x):
    out = []
    for v in x:
        p = out[-1] if len(out) > 0 else 0.0
        out.append(p + v)
    return ag.stack(out)


def last_of_many(x):
    out = []
    for v in x:
        p = out[-1] if out else 0.0
        out.append(p + v)
    return ag.stack(out)


def helper(x):
    out = []

    def get(i):
        return out[i] if i >= 0 else 0.0

    for i in ag.range(ag.size(x)):
        out.append(get(i - 1) + get(i - 2) + x[i])
    return ag.stack(out)


def heaviest_increasing(x):
    best = []
    for i in ag.range(ag.size(x)):
        b = 0.0
        for j in ag.range(i):
            if x[j] < x[i] and best[j] > b:
                b = best[j]
        best.append(b + x[i])
    return ag.reduce_max(ag.stack(best))


def in_a_while_loop(x):
    out, i = [], 0
    while i < ag.size(x):
        if i > 1:
            out.append(out[i - 1] + out[i - 2])
        else:
            out.append(x[i])
        i += 1
    return ag.stack(out)


def slices(x):
    out = []
    for i in ag.range(ag.size(x)):
        s = 0.0
        for v in out[:i]:
            s += v
        out.append(s + x[i])
    return ag.stack(out)


def pairs(x):
    out = []
    for i in ag.range(ag.size(x)):
        if i > 0:
            a, b = out[i - 1]
            out.append((a + 1, b + x[i]))
        else:
            out.append((0, x[i]))
    return out[-1]


def assigned(x):
    out = []
    for i in ag.range(ag.size(x)):
        if i > 0:
            out[i - 1] = out[i - 1] * 2
        out.append(x[i])
    return ag.stack(out)


def popped(x):
    out = []
    s = 0.0
    for i in ag.range(ag.size(x)):
        if i % 2 == 1:
            s += out.pop(i // 2 - i // 2)
        out.append(x[i])
    return s


def deleted(x):
    out = []
    for i in ag.range(ag.size(x)):
        if i % 2 == 1:
            del out[i - i]
        out.append(x[i])
    return ag.stack(out)


def in_an_object(x):
    class M:
        pass

    m = M()
    m.h = []
    for i in ag.range(ag.size(x)):
        p = m.h[i - 1] if i > 0 else x[i]
        m.h.append(p + 1.0)
    return ag.stack(m.h)


def in_a_dictionary(x):
    d = {"a": []}
    for i in ag.range(ag.size(x)):
        p = d["a"][i - 1] if i > 0 else x[i]
        d["a"].append(p + 1.0)
    return ag.stack(d["a"])


def two_tables(x):
    f, g = [], []
    for i in ag.range(ag.size(x)):
        if i > 0:
            f.append(ag.maximum(f[i - 1], g[i - 1] + x[i]))
            g.append(ag.maximum(g[i - 1], f[i - 1] - x[i]))
        else:
            f.append(x[i])
            g.append(0.0 * x[i])
    return f[-1], g[-1]


def grid(x):
    table = []
    for i in ag.range(ag.size(x)):
        row = []
        for j in ag.range(3):
            up = table[i - 1][j] if i > 0 else 0.0
            left = row[j - 1] if j > 0 else 0.0
            row.append(up + left + x[i])
        table.append(ag.stack(row))
    return ag.stack(table)


PROGRAMS = [
    smooth,
    ternary,
    last,
    last_of_many,
    helper,
    heaviest_increasing,
    in_a_while_loop,
    slices,
    pairs,
    assigned,
    popped,
    deleted,
    in_an_object,
    in_a_dictionary,
    two_tables,
    grid,
]
X = ag.constant([3.0, 1.0, 4.0, 1.5, 5.0, 2.0])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_values(program):
    expected = [np.asarray(v) for v in ag.nest.flatten(program(X))]
    for jit in (None, True):
        for found, right in zip(ag.nest.flatten(ag.function(program, jit_compile=jit)(X)), expected):
            np.testing.assert_array_equal(found, right)


def never_filled(x):
    items = []
    s = 0.0
    for i in ag.range(ag.size(x)):
        if x[i] > 100.0:
            s += items[i]
        s += x[i]
    return s


def test_a_list_that_stays_empty():
    for f in (never_filled, ag.function(never_filled)):
        assert float(f(X)) == 16.5
        with pytest.raises(IndexError, match="list index out of range"):
            f(X * 100.0)


def _read(i):
    items = []
    return items[i]


def _popped(i):
    items = []
    return items.pop(i)


def _deleted(i):
    items = []
    del items[i]


@pytest.mark.parametrize("use", [_read, _popped, _deleted])
def test_an_empty_list_outside_of_loops(use):
    with pytest.raises(IndexError) as python:
        use(0)
    with pytest.raises(IndexError) as staged:
        ag.function(lambda i: use(i))(ag.constant(0))
    assert str(staged.value).startswith(str(python.value))


def test_python_takes_such_an_error():
    @ag.function
    def f(i):
        items = []
        try:
            return items[i]
        except IndexError:
            return -1

    assert int(f(ag.constant(0))) == -1
