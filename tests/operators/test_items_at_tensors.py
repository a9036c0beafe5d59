"""Items of Python lists read, set, added and removed at an index that is a tensor: as in eager Python."""

from __future__ import annotations

import collections

import pytest

import autograph as ag
from autograph.errors import StagingError


def set_one(i, x):
    items = [x, 2.0, 3.0]
    items[i] = x * 9.0
    return items


def set_to_another_kind_of_number(i, x):
    items = [1, 2, 3]
    items[i] = 2.5
    return [ag.cast(each, ag.float32) + x for each in items]


def set_through_another_name(i, x):
    items = [1.0, 2.0, 3.0]
    others = items
    others[i] = 7.0
    return items, others, x


def add_to_one(i, x):
    items = [ag.stack([x, 2.0]), ag.stack([3.0, x]), ag.stack([x, x])]
    items[i] *= 2.0
    items[i] += items[0]
    return items


def set_all_parts_of_an_assignment(i, x):
    items = [x, 2.0, 3.0]
    items[i], items[0] = items[0], items[i]
    first = items[i - 1] = x + 1.0
    return items, first


def set_by_a_loop(i, x):
    items = [x, x, x]
    for items[i] in (4.0, 5.0):
        x += 1.0
    return items, x


def set_in_a_branch(i, x):
    items = [x, 2.0, 3.0]
    if x > 0.0:
        items[i] = 8.0
    else:
        items[0] = 9.0
    return items


def set_in_a_loop(i, x):
    items = [x, 2.0, 3.0]
    for k in ag.range(3):
        items[k] = items[k] + items[i]
    return items


def made_in_a_loop(i, x):
    for k in ag.range(3):
        items = [x, 2.0, 3.0]
        items[k] = items[i] + 1.0
        x += items[(k + 1) % 3] + items[k]
    return x


def set_in_a_function(i, x):
    def change(items, k):
        items[k] = x

    items = [1.0, 2.0, 3.0]
    change(items, i)
    return items


def set_in_an_object(i, x):
    class Box:
        pass

    box = Box()
    box.items = [1.0, 2.0, 3.0]
    table = {"items": box.items}
    box.items[i] = x
    table["items"][i - 1] += x
    return box.items, table["items"]


def set_texts(i, x):
    items = ["a", "b", "c"]
    items[i] = "d"
    return ag.stack(items)


def set_booleans(i, x):
    items = [False, False, False]
    items[i] = x > 0.0
    items[i - 1] = True
    return items


def set_lists(i, x):
    items = [[x, 2.0], [3.0, x], [5.0, 6.0]]
    items[i] = [x + 7.0, 8.0]
    return items


def set_dictionaries(i, x):
    items = [{"a": 1.0}, {"a": x}, {"a": 3.0}]
    items[i] = {"a": x * 2.0}
    return [each["a"] for each in items]


Pair = collections.namedtuple("Pair", ["one", "other"])


def set_tuples(i, x):
    items = [Pair(x, 2.0), Pair(3.0, x), Pair(5.0, 6.0)]
    items[i] = Pair(x + 7.0, 8.0)
    return items


def pop_one(i, x):
    items = [x, 2.0, 3.0]
    return items.pop(i), sum(items), len(items)


def insert_one(i, x):
    items = [x, 2.0, 3.0]
    items.insert(i, 7.0)
    return ag.stack(items)


def delete_one(i, x):
    items = [x, 2.0, 3.0]
    del items[i]
    return ag.stack(items)


def rotated(i, x):
    items = [x, 2.0, 3.0]
    return ag.stack(items[i:] + items[:i])


def slices_set_and_deleted(i, x):
    items = [x, 2.0, 3.0]
    items[i : i + 1] = [5.0, 6.0]
    del items[:i]
    return len(items), sum(items)


def shuffled(i, x):
    items = list(range(5))
    for j in range(3):
        k = (i + j) % 5
        items[k], items[j] = items[j], items[k]
    return ag.stack(items), x


def read_by_what_a_loop_runs_over(i, x):
    items = [x, 2.0, 3.0]
    for k in (i, 1, i - 1):
        x += items[k]
    return x


def read_lists(i, x):
    items = [[x, 2.0], [3.0, x], [5.0, 6.0]]
    one, other = items[i]
    return one - other + items[i][0]


def read_of_a_tuple(i, x):
    return (x, 2.0, 3.0)[i]


def beyond_in_a_branch(i, x):
    items = [x, 2.0, 3.0]
    if i > 2:
        x = items[7]
    return x


def set_in_a_row(i, x):
    table = [[x, 2.0, 3.0] for _ in range(3)]
    table[i][1] = 7.0
    table[i][i] += table[0][i] * 2.0
    return table


def set_in_rows_that_are_one(i, x):
    table = [[x, 2.0, 3.0]] * 3
    table[i][i - 1] = 7.0
    return table


def set_in_a_row_with_another_name(i, x):
    table = [[x, 2.0], [3.0, 4.0], [5.0, 6.0]]
    row = table[0]
    table[i][0] = 9.0
    return row, table


def exchanged_in_rows(i, x):
    table = [[x, 2.0], [3.0, 4.0], [5.0, 6.0]]
    table[i - 1][0], table[i][1] = table[i][1], table[i - 1][0]
    return table


def deleted_in_rows(i, x):
    table = [[x, 2.0], [3.0, 4.0], [5.0, 6.0]]
    del table[i][0]
    return [each[0] for each in table], [len(each) for each in table]


def set_in_entries(i, x):
    table = {"a": [{"b": x}, {"b": 2.0}, {"b": 3.0}]}
    table["a"][i]["b"] = 5.0
    return table["a"]


def set_three_deep(i, x):
    cube = [[[x, 1.0], [2.0, x]] for _ in range(3)]
    cube[i][0][i % 2] = 5.0
    cube[0][i % 2][1] += cube[i][1][0]
    return cube


def paths_through_a_grid(i, x):
    table = [[1] * 4 for _ in range(4)]
    for r in ag.range(1, 4):
        for c in ag.range(1, 4):
            table[r][c] = table[r - 1][c] + table[r][c - 1]
    return table[3][3], table[i][2] * x


PROGRAMS = [
    set_one, set_to_another_kind_of_number, set_through_another_name, add_to_one, set_all_parts_of_an_assignment,
    set_by_a_loop, set_in_a_branch, set_in_a_loop, made_in_a_loop, set_in_a_function, set_in_an_object, set_texts,
    set_booleans, set_lists, set_dictionaries, set_tuples, pop_one, insert_one, delete_one, rotated,
    slices_set_and_deleted, shuffled, read_by_what_a_loop_runs_over, read_lists, read_of_a_tuple, beyond_in_a_branch,
    set_in_a_row, set_in_rows_that_are_one, set_in_a_row_with_another_name, exchanged_in_rows, deleted_in_rows,
    set_in_entries, set_three_deep, paths_through_a_grid,
]  # fmt: skip


def told(function, i, x):
    """What a call returns, as Python values, or the error that it raises."""
    try:
        result = function(ag.constant(i), ag.constant(x))
    except IndexError as error:
        return "IndexError", str(error).partition("\n")[0]
    leaves = ag.nest.flatten(ag.nest.map_structure(lambda each: ag.convert_to_tensor(each).numpy().tolist(), result))
    return [pytest.approx(each, rel=1e-6) if isinstance(each, float) else each for each in leaves]


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_like_eager_code(program, jit):
    staged = ag.function(program, jit_compile=jit)
    for i in (0, 1, 2, -1, -3, 3, -4):
        for x in (0.5, -0.5):
            assert told(staged, i, x) == told(program, i, x), (i, x)


@pytest.mark.parametrize(
    "program", [set_one, add_to_one, set_in_a_loop, made_in_a_loop, set_lists, pop_one, read_lists]
)
def test_gradients(program):
    def total(i, x):
        return ag.add_n([ag.reduce_sum(ag.cast(each, ag.float32)) for each in ag.nest.flatten(program(i, x))])

    staged = ag.function(total)
    for i in (0, 1, -1):
        x = ag.constant(0.5)
        with ag.GradientTape(persistent=True) as tape:
            tape.watch(x)
            found, wanted = staged(ag.constant(i), x), total(ag.constant(i), x)
        found, wanted = [float(tape.gradient(y, x, unconnected_gradients="zero")) for y in (found, wanted)]
        assert found == pytest.approx(wanted)


def change_of_what_was_chosen(i, x):
    items = [[x, 2.0], [3.0, x]]
    chosen = items[i]
    chosen[0] = 7.0
    return items


def growth_of_what_was_chosen(i, x):
    items = [[x, 2.0], [3.0, x]]
    chosen = items[i]
    chosen.append(x)
    return items


def change_of_what_was_put_in(i, x):
    items = [[x, 2.0], [3.0, x]]
    new = [x, x]
    items[i] = new
    new[0] = 1.0
    return items


@pytest.mark.parametrize("program", [change_of_what_was_chosen, growth_of_what_was_chosen, change_of_what_was_put_in])
def test_a_list_that_a_tensor_chooses_and_that_has_another_name_does_not_change(program):
    with pytest.raises(StagingError, match="also has another name"):
        ag.function(program)(ag.constant(1), ag.constant(0.5))


def test_a_list_from_outside_is_refused():
    outside = [1.0, 2.0]

    @ag.function
    def changed(i):
        outside[i] = 3.0
        return i

    with pytest.raises(StagingError, match="'outside' is a list from outside of the function"):
        changed(ag.constant(1))
    assert outside == [1.0, 2.0]


def test_unlike_things_are_refused():
    @ag.function
    def changed(i, x):
        items = [ag.constant(1), x]
        items[i] = x
        return items

    with pytest.raises(StagingError, match="the items have different types") as error:
        changed(ag.constant(1), ag.constant(0.5))
    assert "items[i] = x" in str(error.value)


def test_an_index_that_is_no_integer():
    @ag.function
    def changed(i):
        items = [1.0, 2.0]
        items[i] = 3.0
        return items

    with pytest.raises(TypeError, match="list indices must be integers or slices"):
        changed(ag.constant(1.0))
