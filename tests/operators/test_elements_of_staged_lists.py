"""Containers that are elements of staged lists are the elements, as in Python, or changing one is refused."""

from __future__ import annotations

import dataclasses

import pytest

import autograph as ag
from autograph.errors import StagingError
from tests.fuzz_programs.compare import check, forget
from tests.fuzz_programs.rows import random_rows_program


@dataclasses.dataclass
class Pair:
    v: object
    w: object


def plain(value):
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return plain([value.v, value.w]) if isinstance(value, Pair) else round(float(value), 4)


# --- as in Python --------------------------------------------------------------------------------------------------


def rows_are_collected(x, y):
    rows = []
    for v in ag.stack([x, y]):
        rows.append([v, y])
    return rows


def one_row_is_put_in_again_and_again(x, y):
    rows, row = [], [x, y]
    for _ in ag.range(3):
        rows.append(row)
    return rows, row


def a_row_is_exchanged_after_it_was_put_in(x, y):
    rows, row = [], [x, y]
    for v in ag.stack([x, y]):
        rows.append(row)
        row = [v, v]
    return rows, row


def a_row_changes_before_it_is_put_in(x, y):
    rows = []
    for v in ag.stack([x, y]):
        row = [v, y]
        row[0] = y * 2
        rows.append(row)
    return rows


def copies_of_a_row_that_changes(x, y):
    rows, row = [], [x, y]
    for v in ag.stack([x, y]):
        row[0] = row[0] + v
        rows.append(list(row))
    return rows, row


def a_row_changes_after_it_was_put_in(x, y):
    rows = []
    for v in ag.stack([x, y]):
        row = [v, y]
        rows.append(row)
        row[0] = y * 3
    return rows


def a_row_changes_after_the_list_was_used_last(x, y):
    rows, row = [], [x]
    for _ in ag.range(2):
        rows.append(row)
    s = rows[0][0]
    row[0] = y * 3
    return row[0] + s


def a_row_from_before_the_loop_changes_after_it(x, y):
    row = [x]
    rows = [row]
    for v in ag.stack([x, y]):
        rows.append([v])
    row[0] = y * 3
    return rows


def a_row_from_before_the_loop_changes_in_it(x, y):
    row = [x]
    rows = [row]
    for v in ag.stack([x, y]):
        rows.append([v])
        row[0] += y * 3
    return rows


def the_element_changes_that_a_row_is(x, y):
    row = [x]
    rows = [row]
    for v in ag.stack([x, y]):
        rows.append([v])
    rows[0][0] = y * 3
    return row[0]


def an_element_changes_after_the_loop(x, y):
    rows = []
    for v in ag.stack([x, y]):
        rows.append([v])
    rows[-1][0] = y * 4
    return rows


def an_element_changes_in_the_loop(x, y):
    rows = [[x, y]]
    for v in ag.stack([x, y]):
        rows.append([v, y])
        rows[-1][0] *= 2
        rows[0][1] += v
    return rows


def an_element_with_a_name_changes(x, y):
    rows = []
    for v in ag.stack([x, y]):
        rows.append([v])
        last = rows[-1]
        last[0] = y * 4
    return rows


def an_element_with_two_names_changes(x, y):
    rows = []
    for v in ag.stack([x, y]):
        rows.append([v])
    one, other = rows[-1], rows[-1]
    one[0] = y * 4
    return other[0], rows


def elements_change_one_after_another(x, y):
    rows = []
    for v in ag.stack([x, y]):
        rows.append([v, y])
    for row in rows:
        row[0] *= 2
        row[1] += row[0]
    return rows


def elements_change_with_their_indices(x, y):
    rows = []
    for v in ag.stack([x, y]):
        rows.append([v, y])
    for index, row in enumerate(rows):
        row[0] = row[0] * ag.cast(index, ag.float32)
    for i in ag.range(2):
        rows[i][1] = rows[1 - i][0] + 1.0
    return rows


def an_element_is_written_back(x, y):
    rows = []
    for i in ag.range(2):
        rows.append([y, y])
        row = rows[i]
        row[0] = y * 2
        rows[i] = row
    return rows


def an_element_is_taken_out_and_changes(x, y):
    rows = [[x, y]]
    for v in ag.stack([x, y]):
        row = rows.pop()
        row[0] = row[0] + v
        rows.append(row)
        rows.append([v, v])
    return rows


def a_stack_of_states(x, y):
    stack = [{"at": x, "depth": 0.0}]
    total = 0.0
    while len(stack) > 0:
        state = stack.pop()
        total += state["at"]
        if state["depth"] < 2.0:
            stack.append({"at": state["at"] * 0.5, "depth": state["depth"] + 1})
            stack.append({"at": state["at"] + y, "depth": state["depth"] + 1})
    return total


def dictionaries(x, y):
    rows = []
    for v in ag.stack([x, y]):
        row = {"a": v, "b": y}
        rows.append(row)
        row["a"] = y * 2
        rows[0]["b"] += 1.0
    return rows


def lists_in_tuples(x, y):
    rows = []
    for v in ag.stack([x, y]):
        inner = [v, y]
        rows.append((v, inner))
        inner[1] = v * 3
        rows[0][1][0] += 1.0
    return rows


def lists_in_lists(x, y):
    rows = []
    for v in ag.stack([x, y]):
        rows.append([[v, y], [y, v]])
        inner = rows[-1][1]
        inner[0] = v * 5
        rows[0][0][1] += v
    return rows


def objects(x, y):
    rows = []
    for v in ag.stack([x, y]):
        rows.append(Pair(v, y))
        rows[-1].v += 1.0
        rows[0].w *= 2.0
    return rows


def an_element_changes_in_a_branch(x, y):
    rows = [[x, y]]
    for v in ag.stack([x, y]):
        rows.append([v, y])
        if v > 0.3:
            rows[-1][0] = y * 2
        else:
            rows[0][1] = v
    if x > 0.5:
        rows[1][1] = 7.0
    return rows


def a_name_from_before_the_branch(x, y):
    rows = []
    for v in ag.stack([x, y]):
        rows.append([v, y])
    row = rows[0]
    if x > 0.5:
        row[0] = 7.0
    row[1] = 8.0
    return rows, row


def loops_in_loops(x, y):
    rows = [[0.0, 0.0]]
    for v in ag.stack([x, y]):
        rows.append([v, 0.0])
        for w in ag.stack([y, x]):
            rows[-1][1] += w
            if w > 0.5:
                break
            rows[0][0] += v
    return rows


def a_loop_that_ends_early(x, y):
    rows = [[x, y]]
    for v in ag.stack([x, y, x]):
        rows.append([v, y])
        if v < 0.4:
            break
        rows[-1][1] = v * 2
    rows[-1][0] += 1.0
    return rows


def a_branch_makes_the_list_staged_and_changes_an_element(x, y):
    rows = [[x, y], [y, x]]
    row = rows[0]
    if x > 0.3:
        rows.append([x, x])
        rows[0][0] = y * 5.0
    return rows, row


def one_branch_makes_the_list_staged_the_other_changes_an_element(x, y):
    rows = [[y, x]]
    if x > 0.3:
        for row in rows:
            row[1] = y * 3.0
    else:
        rows.append([x, y])
    return rows


def the_path_of_an_object_leads_through_the_list(x, y):
    rows = [Pair(x, y)]
    row = rows[0]
    if x > 0.3:
        rows.append(Pair(x, x))
        rows[0].v = y * 5.0
    return [rows[0].v, row.v, rows[-1].w]


def a_method_and_a_function(x, y):
    class Table:
        def __init__(self):
            self.rows = []

        def add(self, row):
            self.rows.append(row)

    def change(row, value):
        row[1] = value

    table = Table()
    for v in ag.stack([x, y]):
        table.add([v, y])
        change(table.rows[-1], v * 3)
        change(table.rows[0], y)
    return table.rows


AS_IN_PYTHON = [
    rows_are_collected,
    one_row_is_put_in_again_and_again,
    a_row_is_exchanged_after_it_was_put_in,
    a_row_changes_before_it_is_put_in,
    copies_of_a_row_that_changes,
    a_row_changes_after_it_was_put_in,
    a_row_changes_after_the_list_was_used_last,
    a_row_from_before_the_loop_changes_after_it,
    a_row_from_before_the_loop_changes_in_it,
    the_element_changes_that_a_row_is,
    an_element_changes_after_the_loop,
    an_element_changes_in_the_loop,
    an_element_with_a_name_changes,
    an_element_with_two_names_changes,
    elements_change_one_after_another,
    elements_change_with_their_indices,
    an_element_is_written_back,
    an_element_is_taken_out_and_changes,
    a_stack_of_states,
    dictionaries,
    lists_in_tuples,
    lists_in_lists,
    objects,
    an_element_changes_in_a_branch,
    a_name_from_before_the_branch,
    loops_in_loops,
    a_loop_that_ends_early,
    a_branch_makes_the_list_staged_and_changes_an_element,
    one_branch_makes_the_list_staged_the_other_changes_an_element,
    the_path_of_an_object_leads_through_the_list,
    a_method_and_a_function,
]


@pytest.mark.parametrize("point", [(0.9, 0.8), (0.2, 0.35)])
@pytest.mark.parametrize("program", AS_IN_PYTHON)
def test_as_in_python(program, point):
    x, y = map(ag.constant, point)
    assert plain(ag.function(program)(x, y)) == plain(program(x, y))


@pytest.mark.parametrize("program", [an_element_changes_in_the_loop, loops_in_loops, lists_in_lists, a_stack_of_states])
def test_compiled_and_differentiated(program):
    x, y = ag.constant(0.9), ag.constant(0.8)

    def outcome(function):
        with ag.GradientTape() as tape:
            tape.watch([x, y])
            result = function(x, y)
            total = ag.add_n([ag.convert_to_tensor(each) for each in ag.nest.flatten(result)])
        return plain(result), plain(tape.gradient(total, [x, y]))

    assert outcome(ag.function(program, jit_compile=True)) == outcome(program)


# --- refused -------------------------------------------------------------------------------------------------------


def a_row_in_several_places_changes_in_the_loop(x, y):
    rows, row = [[x]], [x]
    for v in ag.stack([x, y]):
        rows.append(row)
        row[0] = v * 3
    return rows


def a_row_in_several_places_changes_before_it_is_put_in(x, y):
    rows, row = [], [x, y]
    for v in ag.stack([x, y]):
        row[0] = row[0] + v
        rows.append(row)
    return rows


def a_row_in_several_places_changes_after_the_loop(x, y):
    rows, row = [[x]], [x]
    for _ in ag.range(2):
        rows.append(row)
    row[0] = y * 3
    return rows


def a_row_in_several_places_grows(x, y):
    rows, row = [[x]], [x]
    for _ in ag.range(2):
        rows.append(row)
    row.append(y)
    return len(rows[-1])


def an_element_in_several_places_changes(x, y):
    rows, row = [], [x]
    for _ in ag.range(2):
        rows.append(row)
    rows[0][0] = y * 7
    return rows[1][0]


def an_element_in_several_places_is_taken_out(x, y):
    rows, row = [], [x]
    for _ in ag.range(2):
        rows.append(row)
    taken = rows.pop()
    taken[0] = y * 7
    return row[0]


def a_row_is_inserted(x, y):
    rows, row = [[x]], [x]
    for _ in ag.range(2):
        rows.insert(0, row)
    row[0] = y * 3
    return rows[0][0]


def a_row_replaces_an_element(x, y):
    rows, row = [[x]], [y]
    for v in ag.stack([x, y]):
        rows.append([v])
        rows[0] = row
    row[0] = y * 3
    return rows[0][0]


def a_row_is_added_to_a_new_list(x, y):
    rows, row = [[x]], [x]
    for _ in ag.range(2):
        rows = rows + [row]
    row[0] = y * 3
    return rows[-1][0]


def a_row_is_added_in_place(x, y):
    rows, row = [[x]], [x]
    for _ in ag.range(2):
        rows += [row]
    row[0] = y * 3
    return rows[-1][0]


def a_row_extends_a_list(x, y):
    rows, row = [[x]], [x]
    for _ in ag.range(2):
        rows.extend([row])
    row[0] = y * 3
    return rows[-1][0]


def a_row_in_a_tuple(x, y):
    rows, row = [], [x]
    for v in ag.stack([x, y]):
        rows.append((v, row))
    row[0] = y * 3
    return rows[-1][1][0]


def a_dictionary_in_several_places(x, y):
    rows, row = [], {"a": x}
    for _ in ag.range(2):
        rows.append(row)
    row["a"] = y * 3
    return rows[-1]["a"]


def a_row_put_in_by_a_branch(x, y):
    rows, row = [[y]], [x]
    for v in ag.stack([x, y]):
        if v > 0.85:
            rows.append(row)
        else:
            rows.append([v])
    row[0] = y * 7
    return rows


def a_staged_row(x, y):
    rows, row = [], [x]
    for v in ag.stack([x, y]):
        row.append(v)
    for _ in ag.range(2):
        rows.append(row)
    row[0] = y * 7
    return rows


def two_elements_that_may_be_one(x, y):
    rows = []
    for v in ag.stack([x, y]):
        rows.append([v])
    index = ag.cast(x * 2.0, ag.int32)
    one, other = rows[index], rows[0]
    one[0] = y * 7
    return other[0]


def two_lists_share_their_elements(x, y):
    rows = []
    for v in ag.stack([x, y]):
        rows.append([v])
    others = list(rows)
    others[0][0] = y * 7
    return rows[0][0]


def a_comprehension_shares_the_elements(x, y):
    rows = []
    for v in ag.stack([x, y]):
        rows.append([v])
    others = [row for row in rows if row[0] > 0.0]
    others[0][0] = y * 7
    return rows[0][0]


def a_name_that_a_loop_gives(x, y):
    rows, last = [], [y]
    for v in ag.stack([x, y]):
        rows.append([v])
        last = rows[-1]
    last[0] = y * 7
    return rows[-1][0]


def a_name_that_a_conditional_expression_gives(x, y):
    rows, row = [[x]], [y]
    for _ in ag.range(2):
        rows.append(row)
        row = row if y > 0.2 else rows[-1]
    rows[-1][0] = y * 7
    return row[0]


def a_name_that_a_branch_gives(x, y):
    rows, row = [[x]], [y]
    if x > 0.5:
        rows.append(row)
    else:
        row = [x, x][:1]
    row[0] = y * 7
    return rows[-1][0]


REFUSED = [
    a_row_in_several_places_changes_in_the_loop,
    a_row_in_several_places_changes_before_it_is_put_in,
    a_row_in_several_places_changes_after_the_loop,
    a_row_in_several_places_grows,
    an_element_in_several_places_changes,
    an_element_in_several_places_is_taken_out,
    a_row_is_inserted,
    a_row_replaces_an_element,
    a_row_is_added_to_a_new_list,
    a_row_is_added_in_place,
    a_row_extends_a_list,
    a_row_in_a_tuple,
    a_dictionary_in_several_places,
    a_row_put_in_by_a_branch,
    a_staged_row,
    two_elements_that_may_be_one,
    two_lists_share_their_elements,
    a_comprehension_shares_the_elements,
    a_name_that_a_loop_gives,
    a_name_that_a_branch_gives,
    a_name_that_a_conditional_expression_gives,
]


@pytest.mark.parametrize("program", REFUSED)
def test_refused(program):
    x, y = ag.constant(0.9), ag.constant(0.8)
    program(x, y)  # Python has no objections
    with pytest.raises(StagingError, match=r"test_elements_of_staged_lists.py:\d+, in") as caught:
        ag.function(program)(x, y)
    assert "cause: " in str(caught.value)
    assert "fix: " in str(caught.value)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    try:
        check(random_rows_program(seed), compiled=seed % 20 == 0)
    finally:
        forget()
