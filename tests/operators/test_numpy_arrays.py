"""NumPy arrays made in traced functions and written to at tensors: as in NumPy, whose arrays eager code has."""

import copy

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingError, StagingTypeError
from tests.autodiff.work import lines_run

XS = np.array([1.0, 2.0, 3.0, 4.0])
OUTSIDE = np.zeros(5)


def at_a_tensor(c, xs, n):
    best = np.zeros(5)
    best[c] = 3.0
    best[-c] += 1.5
    return best


def values_that_are_tensors(c, xs, n):
    out = np.empty(3)
    for i in range(3):
        out[i] = xs[i]
    return out.sum(), np.max(out), out, len(out), out.shape, out.size, out.ndim


def read_and_written_in_a_loop(c, xs, n):
    best = np.zeros(5)
    for i in ag.range(n):
        best[i] = best[i - 1] + xs[i]
    return best


def two_dimensions(c, xs, n):
    table = np.zeros((4, 5))
    for i in ag.range(n):
        for j in range(1, 5):
            table[i, j] = table[i - 1, j] + table[i][j - 1] + xs[i]
        table[i, i - 1] += xs[i]
        table[i][0] -= 1
    return table, table[1:3].sum(), table.T.shape


def one_position_of_a_knapsack(c, xs, n):
    weights, values = [1, 2, 3], [10.0, 20.0, 35.0]
    best = np.zeros(8)
    for k in range(3):
        for room in range(7, weights[k] - 1, -1):
            best[room] = max(best[room], best[room - weights[k]] + values[k] * xs[0])
    return best[n], best


def many_ways_to_index(c, xs, n):
    a = np.zeros((4, 4))
    a[c, :] = 2
    a[:, c] = 3
    a[1:3, c] += 1
    a[c, [0, 1]] = 9
    a[[0, 1], [c, c]] -= 1
    a[a == 3] = 0
    a[..., 0] = c
    a[-c:, -1] = 8
    a[None][0, 0, 0] = 77
    inner = a[1:, 1:]
    inner[0][0] = 55
    inner[c - 1, 1] = 66
    inner[inner > 50] = 1
    marked = np.zeros((4, 4), bool)
    marked[c] = True
    a[marked] = 4
    a[~marked] += 1
    a[marked[:, 0]] = [1, 2, 3, 4]
    a[[3, 0]] = a[[0, 3]]
    return a


def masks_that_are_tensors(c, xs, n):
    a = np.ones(4)
    a[xs > 3] = xs[0]
    a[xs < 2] += 1
    return a


def integers_cut_off_what_is_stored(c, xs, n):
    a = np.arange(6)
    a[c] = 3.7
    a[0] = xs[1]
    a[-1] += c
    a += 1
    return a, a * 2.0, a / 2, a // 2, a % 3, a**2, -a, a.mean(), a.sum(), a.max(), a > 2, a & 1


def functions_of_numpy(c, xs, n):
    a = np.array([3.0, 1.0, 2.0, 5.0])
    a[c] = 4.0
    b = np.array([[1, 2], [3, 4]], np.int32)
    b[c - 1] = c
    return (
        np.sqrt(a), np.maximum(a, 2), np.where(a > 1, a, 0.0), np.argmax(a), a.argmin(), np.cumsum(b), b.sum(0),
        np.any(a > 2), a @ a, np.dot(a, a), np.abs(a), a.std(), b.T, np.outer(a, a).trace(), np.sort(a),
        np.concatenate([a, a[1:]]), np.array([a[0], a[c], 1.5]), a.tolist(), a.astype(np.int32), np.full((2,), a[c]),
        a.copy().reshape(2, 2),
    )  # fmt: skip


def builtins_of_python(c, xs, n):
    a = np.array([3.0, 1.0, 2.0])
    a[c] = 4.0
    return sum(a), max(a), min(a[0], a[c]), [2 * x for x in a], list(zip(a, range(3)))[2], float(a[c]), int(a[c])


def two_names(c, xs, n):
    a = np.zeros(4)
    b = a
    a[c] = 1.0
    b += 1
    b[0] = xs[0]
    return a, b, a.copy()


def a_helper_writes(c, xs, n):
    def put(array, index, value):
        array[index] = value

    a = np.full(4, -1)
    put(a, c, 8)
    if xs[0] > 0:
        put(a, 0, 7)
    else:
        put(a, 1, 9)
    return a


def views_read_and_write_their_array(c, xs, n):
    a = np.zeros((2, 3))
    flat, turned, row = a.reshape(-1), a.T, a[c - 2]
    backwards = row[::-1]
    flat[c] = 1.0
    turned[0, 1] = 4.0
    row *= 3.0
    backwards[0] += xs[1]
    a[1, 1] = 2.0
    return a, flat, turned, row, backwards


def rows_of_a_loop(c, xs, n):
    a = np.zeros((3, 4))
    for row in a:
        row[n - 1] = xs[0]
    for row in a:
        for j in range(4):
            row[j] += 1
    for i in ag.range(3):
        row = a[i]
        row[1:3] = xs[i] * 2
    return a


def a_view_that_moves(c, xs, n):
    a = np.zeros((4, 4))
    row = a[0]
    for k in ag.range(n):
        row = a[k]
        row[k] = xs[k]
    other = a[0] if xs[0] > 5 else a[1]
    other[0] = 7.0
    row[0] = 9
    return a, row


def anew_in_each_trip(c, xs, n):
    before = np.zeros(4)
    for _ in ag.range(n):
        now = np.zeros(4)
        for j in range(1, 4):
            now[j] = before[j - 1] + xs[j]
        before = now
    return before


def exchanged_in_each_trip(c, xs, n):
    before, now = np.zeros(4), np.zeros(4)
    for _ in ag.range(n):
        for j in range(1, 4):
            now[j] = before[j - 1] + xs[j]
        before, now = now, before
    return before, now


def in_objects_lists_and_dictionaries(c, xs, n):
    class Table:
        def __init__(self):
            self.cells = np.zeros(4)

        def put(self, i, value):
            self.cells[i] = value

    table, held, listed = Table(), {"a": np.zeros(4)}, [np.zeros(4), np.ones(4)]
    table.put(c, xs[0])
    for i in ag.range(n):
        table.put(i, xs[i] * 2)
        held["a"][i] = xs[i]
        listed[0][i] -= 1
        listed[1][:] = listed[0]
    return table.cells, held["a"], listed


def branches(c, xs, n):
    a = np.zeros(4)
    if xs[0] > 0:
        a[1] = 5
    else:
        a[c] = 2
    row = a[1:3]
    if xs[1] > 10:
        row[0] = 7
    else:
        row[:] = xs[2]
    return a, row


def while_it_is_not_full(c, xs, n):
    seen, order, waiting, k = np.zeros(5, bool), np.full(5, -1), [0], 0
    while len(waiting) > 0 and k < n:
        u = waiting.pop()
        if not seen[u]:
            seen[u] = True
            order[k] = u
            k += 1
            if u + 1 < 5:
                waiting.append(u + 1)
            if u + 2 < 5:
                waiting.append(u + 2)
    return order, seen


def slices_with_steps(c, xs, n):
    prime = np.ones(30, dtype=bool)
    prime[:2] = False
    for i in ag.range(2, 6):
        if prime[i]:
            prime[i * i :: i] = False
    return prime, prime.sum()


def counted(c, xs, n):
    counts = np.zeros(4, int)
    for x in xs:
        counts[ag.cast(x, ag.int32) - 1] += 1
    np.add.at(counts, [0, 0, c], [5, 5, 5])
    return counts


def sizes_that_are_tensors(c, xs, n):
    a, b = np.zeros(n), np.full((n, 2), 3)
    for i in ag.range(n):
        a[i] = i
        b[i, 1] = i
    return a, b


def like_a_tensor(c, xs, n):
    a, b = np.zeros_like(xs), np.array(xs)
    a[c] = xs[0]
    b[: c + 1] *= 2
    return a, b, a + xs


def numbers_carried_by_loops(c, xs, n):
    a = np.zeros(4)
    a[c] = 2.0
    largest, total, chosen = 0.0, 0.0, a[0]
    for i in ag.range(n):
        largest = max(largest, a[i])
        total += a[i]
    if xs[0] > 0:
        chosen = a[2]
    return largest, total, chosen, chosen * ag.cast(xs[1], ag.float32)


def tensors_beside_arrays(c, xs, n):
    a, total = np.ones(4), np.zeros(4)
    a += xs
    column = np.ones((4, 2))[:, c - 1]
    for i in ag.range(n):
        a[i] = xs[i]
        total = total + xs * a
    if xs[0] > 0:
        total = total * xs
    return a, total, column


def in_place_by_functions(c, xs, n):
    a = np.zeros(4)
    b = a.copy()
    np.put(a, [0], 5.0)
    b[c] = 1
    np.copyto(b, a)
    a[c] = 3
    b.fill(7)
    a[0], a[1] = a[1], a[0]
    a[1:] = a[:-1]
    return a, b


PROGRAMS = [each for each in list(globals().values()) if getattr(each, "__module__", "") == __name__ and callable(each)]


def _flat(value):
    return [leaf for each in value for leaf in _flat(each)] if isinstance(value, (tuple, list)) else [value]


def _arguments(make):
    return make(np.int32(2)), make(XS), make(np.int32(4))


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_numpy(program):
    wanted = _flat(program(*_arguments(lambda value: value)))
    eager = _flat(program(*_arguments(ag.constant)))
    for function in (ag.function(program), ag.function(program, jit_compile=True)):
        found = _flat(function(*_arguments(ag.constant)))
        assert len(found) == len(wanted)
        for value, right, alike in zip(found, wanted, eager):
            np.testing.assert_allclose(value.numpy(), np.asarray(alike), rtol=1e-6)
            np.testing.assert_allclose(value.numpy(), np.asarray(right), rtol=1e-6)
            if not isinstance(alike, (int, float, bool)):  # Python's numbers are 32 bits wide as tensors
                assert value.dtype.np == np.asarray(alike).dtype


def test_sizes_that_are_unknown():
    @ag.function(input_signature=[ag.TensorSpec([None], ag.float64), ag.TensorSpec([], ag.int32)])
    def f(xs, c):
        a = np.zeros_like(xs)
        a[c] = 1.0
        a[1:] += xs[1:]
        a[[0, c]] *= 3.0
        return a, len(a), a.sum()

    a, count, total = f(ag.constant(XS), ag.constant(2))
    np.testing.assert_allclose(a, [0, 2, 12, 4])
    assert (int(count), float(total)) == (4, 18.0)


# --- gradients -------------------------------------------------------------------------------------------------------


def _sums(x, n):
    a = np.zeros(5)
    for i in ag.range(n):
        a[i] = x[i] * x[i] + a[i - 1]
    return ag.convert_to_tensor(a.sum() * a[1])


def _table(x, n):
    a = np.zeros((4, 4))
    for i in ag.range(n):
        for j in range(1, 4):
            a[i, j] += x[i] * a[i, j - 1] + x[j] ** 2
        a[i] *= x[i]
    row = a[1]
    row[1:3] *= x[0]
    return ag.convert_to_tensor((a * a).sum())


def _chosen(x, n):
    a = np.ones(4)
    if x[0] > 0:
        a[n - 1] = x[1] ** 3
    else:
        a[0] = x[2]
    a[a > 2] *= x[3]
    a[[0, 1]] = a[[1, 0]] * x[:2]
    return ag.convert_to_tensor(np.dot(a, a) + np.max(a))


def _slopes(function, x, width=1e-5):
    steps = np.eye(len(x)) * width
    return np.stack([(function(x + step) - function(x - step)) / (2 * width) for step in steps])


@pytest.mark.parametrize("jit_compile", [None, True])
@pytest.mark.parametrize("program", [_sums, _table, _chosen])
def test_gradients(program, jit_compile):
    at, n = np.array([1.1, 1.7, 0.6, 0.9]), ag.constant(3)
    x = ag.constant(at)

    def slopes(values):
        return _slopes(lambda each: float(program(each, 3)), values)

    traced = ag.function(program, jit_compile=jit_compile)

    @ag.function(jit_compile=jit_compile)
    def gradient(x, n):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = program(x, n)
        return tape.gradient(y, x)

    with ag.GradientTape() as outer:
        outer.watch(x)
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = traced(x, n)
        first = tape.gradient(y, x)
    np.testing.assert_allclose(first, slopes(at), rtol=1e-6)
    np.testing.assert_allclose(gradient(x, n), slopes(at), rtol=1e-6)
    second = _slopes(slopes, at, 1e-4)
    np.testing.assert_allclose(outer.jacobian(first, x), second, rtol=1e-4, atol=1e-4)
    with ag.GradientTape() as outer:
        outer.watch(x)
        total = ag.reduce_sum(gradient(x, n))
    np.testing.assert_allclose(outer.gradient(total, x), second.sum(0), rtol=1e-4, atol=1e-4)


# --- what it costs ---------------------------------------------------------------------------------------------------


def _one_by_one(n, size):
    a = np.zeros(size)
    for i in ag.range(n):
        a[i] = a[i - 1] + 1.0
    return a


def _rows(n, size):
    a = np.zeros((size, 3))
    for i in ag.range(1, n):
        row = a[i]
        row[1:] += a[i - 1, 1:] + 1.0
        a[i][0] = 2.0
    return a


def _at_several(n, size):
    a = np.zeros(size)
    for i in ag.range(n):
        a[[0, i]] += 1.0
    return a


@pytest.mark.parametrize("program", [_one_by_one, _rows, _at_several])
def test_writes_change_the_array_in_place(program):
    def lines(size):
        def f(n):
            return program(n, size)

        return lines_run(ag.function(f).get_concrete_function(ag.constant(size)).graph, np.int32(size))

    small, large = lines(64), lines(256)
    assert large < 6 * small


def test_only_a_function_that_needs_it_is_traced_again():
    traces = []

    @ag.function
    def reads(x):
        traces.append("reads")
        a = np.zeros(3)
        a[1] = 2.0
        return x * a, a

    @ag.function
    def writes(x):
        traces.append("writes")
        a = np.zeros(3)
        a[1] = x
        return a

    reads(ag.constant(1.0))
    writes(ag.constant(1.0))
    writes(ag.constant(1))
    assert traces == ["reads", "writes", "writes", "writes"]


def test_a_handler_does_not_hide_that_it_is_needed():
    @ag.function
    def f(c):
        a = np.zeros(3)
        try:
            a[c] = 1.0
        except BaseException:
            a[0] = 7.0
        return a, isinstance(a, np.ndarray), copy.copy(a)

    a, is_array, copied = f(ag.constant(2))
    np.testing.assert_array_equal(a, [0, 0, 1])
    np.testing.assert_array_equal(copied, [0, 0, 1])
    assert is_array


# --- what is refused -------------------------------------------------------------------------------------------------


def _refusal(function, *arguments, kind=StagingError):
    with pytest.raises(kind) as caught:
        ag.function(function)(*arguments)
    return str(caught.value)


def _at_index(c):
    OUTSIDE[c] = 1.0
    return OUTSIDE.sum()


def _value(c):
    OUTSIDE[0] = c
    return OUTSIDE.sum()


def _in_branch(c):
    if c > 0:
        OUTSIDE[0] = 1.0
    return OUTSIDE.sum()


@pytest.mark.parametrize("write", [_at_index, _value, _in_branch])
def test_an_array_from_outside_cannot_be_written_to(write):
    text = _refusal(write, ag.constant(2))
    assert "a NumPy array is written to" in text and "test_numpy_arrays.py:" in text
    assert "OUTSIDE" in text and "cause: " in text and "np.array(a)" in text
    assert not OUTSIDE.any()


def test_an_array_from_outside_can_be_read_and_copied():
    weights = np.arange(5.0)

    @ag.function
    def f(c, x):
        own = weights.copy()
        own[c] = 7.0
        return weights[c] * x, own

    read, own = f(ag.constant(2), ag.constant(1.5))
    assert (float(read), read.dtype) == (3.0, ag.float32)
    np.testing.assert_array_equal(own, [0, 1, 7, 3, 4])
    np.testing.assert_array_equal(weights, np.arange(5.0))


def test_one_of_two_arrays_cannot_be_changed():
    def f(c):
        a, b = np.zeros(4), np.zeros(4)
        chosen = a if c > 0 else b
        chosen[0] = 1.0
        return a, b

    assert "which one is known only at run time" in _refusal(f, ag.constant(2))


def test_an_array_that_a_loop_exchanges_cannot_be_changed_under_its_other_name():
    def f(n):
        a, b = np.zeros((3, 3)), np.array([1.0, 2.0, 3.0])
        row = a[1]
        for _ in range(n):
            row = b
        a[1] -= 2.0
        return a, row

    assert "'row' is a view of an array" in _refusal(f, ag.constant(2))


def test_a_view_of_one_of_two_arrays_is_refused():
    def in_a_branch(c):
        a, row = np.zeros((2, 2)), np.zeros(2)
        if c > 0:
            row = a[c - 1]
        row[0] = 1.0
        return a, row

    def in_a_loop(c):
        a, b = np.zeros((2, 2)), np.zeros((2, 2))
        row = a[0]
        for i in ag.range(c):
            row = b[i]
        row[0] = 1.0
        return a, row

    for function in (in_a_branch, in_a_loop):
        text = _refusal(function, ag.constant(2), kind=StagingTypeError)
        assert "'row' is a view of an array" in text and ".copy()" in text


def test_an_inner_traced_function_cannot_write_to_it():
    def f(c):
        a = np.zeros(3)
        a[c] = 1.0

        @ag.function
        def inner(x):
            a[0] = x
            return x

        return inner(c), a

    assert "an array of another traced function is written to in 'inner'" in _refusal(f, ag.constant(2), kind=TypeError)


def test_an_index_out_of_range():
    def known(c):
        a = np.zeros((2, 2))
        a[c, 0] = 1.0
        try:
            found = a[5]
        except IndexError:
            found = a[1]
        return found

    def unknown(c):
        a = np.zeros(3)
        a[c] = 1.0
        return a

    np.testing.assert_array_equal(ag.function(known)(ag.constant(1)), [1, 0])
    with pytest.raises(IndexError):
        ag.function(unknown)(ag.constant(3))
    with pytest.raises(IndexError):
        ag.function(unknown, jit_compile=True)(ag.constant(-4))


def test_what_may_share_memory_is_read_only():
    def f(c):
        a = np.zeros((1, 3))
        a[0, c] = 1.0
        flat = np.squeeze(a)
        a[0, 0] = 5.0
        return flat

    flat = ag.function(f)(ag.constant(2))
    np.testing.assert_array_equal(flat, [5, 0, 1])

    def g(c):
        a = np.zeros((1, 3))
        a[0, c] = 1.0
        np.squeeze(a)[0] = 5.0
        return a

    assert "np.squeeze(...).copy()" in _refusal(g, ag.constant(2), kind=TypeError)


def test_an_array_in_a_list_that_grows_is_its_contents():
    def f(c):
        a, found = np.zeros(3), []
        for i in ag.range(c):
            a[i] = 1.0
            found.append(a)
        return ag.stack(found)

    assert "put a copy into the list" in _refusal(f, ag.constant(2))
