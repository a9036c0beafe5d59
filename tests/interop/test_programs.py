"""Programs, which other libraries' operators call: derivatives of every order, rows, types, values for variables."""

import gc

import numpy as np
import pytest

import autograph as ag
from autograph.interop import programs
from autograph.interop.programs import Program, leaves, numbered, owned, stateless, with_leaves


def cube(x, n):
    while n > 0:
        x, n = x * x * x, n - 1
    return {"y": x, "n": n, "nothing": None}


X, N = ag.constant([1.0, 2.0], ag.float64), ag.constant(1)


def test_a_program_gives_the_structure_of_its_results():
    result = Program(cube, "cube", 2)([X, N])
    assert result["nothing"] is None
    assert result["y"].numpy().tolist() == [1.0, 8.0]
    assert with_leaves(result, ["n", "y"]) == {"y": "y", "n": "n", "nothing": None}  # in the order of the keys
    assert len(leaves(result)) == 2


def test_pullbacks_and_pushforwards_are_programs_of_every_order():
    program = Program(cube, "cube", 2)
    ones = ag.ones([2], ag.float64)
    pullback = program.pullback((0,), 1)
    assert program.pullback((0,), 1) is pullback
    (first,) = pullback([X, N, ones])
    assert first.numpy().tolist() == [3.0, 12.0]
    (second,) = pullback.pullback((0,), 1)([X, N, ones, ones])
    assert second.numpy().tolist() == [6.0, 12.0]
    (third,) = pullback.pullback((0,), 1).pushforward((0,))([X, N, ones, ones, ones])
    assert third.numpy().tolist() == [6.0, 6.0]


def test_rows_have_their_own_trip_counts():
    rows = Program(cube, "cube", 2).over_rows((None, 0))
    result = rows([X, ag.constant([0, 1, 2])])
    assert result["y"].numpy().tolist() == [[1.0, 2.0], [1.0, 8.0], [1.0, 512.0]]
    assert result["nothing"] is None
    (found,) = rows.pullback((0,), 1)([X, ag.constant([0, 1]), ag.ones([2, 2], ag.float64)])
    assert found.numpy().tolist() == [4.0, 13.0]


def test_a_result_that_depends_on_nothing_has_zero_gradients():
    program = Program(lambda x: ag.cast(x, ag.int32), "whole", 1)
    (found,) = program.pullback((0,), 0)([X])
    assert found.numpy().tolist() == [0.0, 0.0]


def test_types_follow_the_rules_of_operations():
    program = Program(lambda x: (ag.unique(x)[0], ag.reduce_sum(x), x[:, None]), "facts", 1)
    found = program.types([ag.TensorSpec([3], ag.int64)])
    assert [spec.shape.as_list() for spec in found] == [[None], [], [3, 1]]
    assert {spec.dtype for spec in found} == {ag.int64}


def test_numbers_belong_to_programs_that_are_held():
    program = Program(cube, "cube", 2)
    number = program.number
    assert numbered(number) is program
    del program
    gc.collect()
    with pytest.raises(ReferenceError, match=r"Keep what ag\.interop's wrap gives"):
        numbered(number)
    assert number not in programs.PROGRAMS


class Counter(ag.Module):
    def __init__(self):
        super().__init__()
        self.weight = ag.Variable(2.0)
        self.calls = ag.Variable(0.0, trainable=False)

    def __call__(self, x, power=1):
        self.calls.assign_add(1.0)
        return self.weight**power * x + self.calls


def test_a_stateless_function_leaves_its_variables_alone():
    module = Counter()
    call = ag.function(stateless(module, [module.weight, module.calls]))
    result, values = call([ag.constant(3.0), ag.constant(10.0)], (ag.constant(5.0),), {"power": 2})
    assert float(result) == 9 * 5 + 11
    assert values[0] is None
    assert float(values[1]) == 11.0
    assert (float(module.weight), float(module.calls)) == (2.0, 0.0)


def test_a_variable_outside_of_the_list_is_read_and_assigned():
    module = Counter()
    call = ag.function(stateless(module, [module.weight]))
    assert [float(call([ag.constant(3.0)], (ag.constant(1.0),), {})[0]) for _ in range(2)] == [4.0, 5.0]
    assert float(module.calls) == 2.0


def test_gradients_reach_the_values_given_for_variables():
    module = Counter()
    program = Program(lambda w, x: stateless(module, [module.weight])([w], (x,), {"power": 3})[0], "call", 2)
    found = program.pullback((0, 1), 1)([ag.constant(2.0), ag.constant(5.0), ag.constant(1.0)])
    assert [float(each) for each in found] == [60.0, 8.0]


def test_owned_memory_is_nobody_elses():
    whole = np.arange(6.0)
    assert not np.shares_memory(owned(whole[::2], []), whole)
    assert not np.shares_memory(owned(whole, [whole[:2]]), whole)
    assert owned(whole, [np.arange(3.0)]) is whole
    constant = np.arange(3.0)
    constant.flags.writeable = False
    assert owned(constant, []).flags.writeable
    assert owned(whole[::-1], []).strides == (8,)
    assert owned(np.float32(2.0), []).shape == ()


@pytest.mark.parametrize("jit_compile", [True, False])
def test_constants_are_not_given_out(jit_compile):
    program = Program(lambda x: (ag.constant([1.0, 2.0]) * 2.0, x, x + 1.0), "constants", 1, jit_compile)
    x = ag.constant([5.0, 6.0])
    for _ in range(2):
        arrays = [owned(result._array, [x._array]) for result in program([x])]
        assert [array.tolist() for array in arrays] == [[2.0, 4.0], [5.0, 6.0], [6.0, 7.0]]
        for array in arrays:
            array += 1.0


def test_what_a_kernel_computes_is_not_copied():
    program = Program(lambda x: (x * 2.0)[::-1], "computed", 1, True)
    (result,) = leaves(program([X]))
    assert owned(result._array, [X._array]) is result._array


def test_the_namespace_names_what_it_has():
    assert "torch" in dir(ag.interop)
    with pytest.raises(AttributeError, match=r"has no attribute 'tensorrt'; it has .*torch"):
        ag.interop.tensorrt  # noqa: B018
