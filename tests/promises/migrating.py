"""Promises: docs/migrating.md."""

from __future__ import annotations

import numpy as np

import autograph as ag
from tests.promises.flow import prints_at_run_time
from tests.promises.registry import CHECKED, GIVEN, Box, checked, kept, refused
from tests.promises.state import items_and_attributes, lists_that_grow


@checked("Gradients of while loops")
def gradients_of_loops(mode):
    def run(x):
        while x < 100.0:
            x = x * x
        return x

    x = ag.constant(2.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = mode(run)(x)
    assert float(tape.gradient(y, x)) == 8 * 2.0**7


rate = 0.5
things = [Box(0.5)]


@checked("Python values that a trace reads")
def values_are_watched(mode):
    global rate
    rate, things[0].n = 0.5, 0.5
    traced = mode(lambda t: t[0] * rate + things[0].n + getattr(things[0], "n"))  # noqa: B009
    found = [float(traced(ag.constant(GIVEN)))]
    rate = 2.0
    found.append(float(traced(ag.constant(GIVEN))))
    things[0].n = 1.0
    found.append(float(traced(ag.constant(GIVEN))))
    assert found == [2.5, 7.0, 8.0]


@kept("Lists that grow in a staged loop")
def lists_of_migrated_programs(t):
    return lists_that_grow(t), items_and_attributes(t)


@refused("An index out of range raises an error", ag.errors.InvalidArgumentError, "")
def gathered_out_of_range(t):
    return ag.gather(t, ag.cast(t[3], ag.int32) + 4)


@refused("A condition on a tensor that can't be staged", ag.errors.OperatorNotAllowedInGraphError, "fix: ")
def condition_for_python(t):
    class Sized:
        def __len__(self):
            return 1 if t[0] > 1.0 else 2

    return len(Sized()) + t[0]


@refused("Errors in functions show your line", ag.errors.InvalidArgumentError, "")
def failing_operation(t):
    return ag.reshape(t, [ag.cast(t[0], ag.int32)])


CHECKED.append(("print in a staged branch or loop", prints_at_run_time))


@kept("NumPy's functions on tensors are operations")
def numpy_functions(t):
    return np.mean(t) * t[0], np.sum([t[0], t[1]]), np.asarray(t)[2]


@refused("x == y raises", ag.errors.InvalidArgumentError, "")
def shapes_that_differ(t):
    return ag.boolean_mask(t, t > 1.0) == ag.boolean_mask(t, t > 2.5)


@refused("The mean of an empty integer tensor", ag.errors.InvalidArgumentError, "division by zero")
def mean_of_nothing(t):
    return ag.reduce_mean(ag.cast(ag.boolean_mask(t, t > 9.0), ag.int32))


@checked("An infinite or NaN filter")
def filters_that_are_not_finite(mode):
    image, filters = ag.zeros([1, 2, 2, 1]), ag.fill([2, 2, 1, 1], np.inf)
    run = mode(lambda x, w: ag.nn.conv2d(x, w, 1, "SAME"))
    assert np.isnan(run(image, filters).numpy()).all()


@checked("A method of a deleted object")
def deleted_objects(mode):
    class Model:
        @ag.function
        def call(self, x):
            return x

    try:
        Model().call(ag.constant(1.0))
    except ReferenceError:
        return
    raise AssertionError("the method ran")


@checked("Variables passed as arguments share a trace")
def variables_as_arguments(mode):
    traced = mode(lambda v: v * 2.0)
    assert [float(traced(ag.Variable(x))) for x in (1.0, 2.0)] == [2.0, 4.0]
    assert traced.experimental_get_tracing_count() == 1
    one, other = ag.Variable(1.0), ag.Variable(2.0)
    tells = mode(lambda v: v * (10.0 if v is one else 1.0))
    assert [float(tells(each)) for each in (one, other)] == [10.0, 2.0]


@checked("Axes, permutations and shapes may be computed")
def computed_axes(mode):
    run = mode(lambda t, axis: ag.reduce_sum(ag.reshape(t, [axis, -1]), axis - 1))
    assert run(ag.constant([1.0, 2.0, 3.0, 4.0]), ag.constant(2)).numpy().tolist() == [3.0, 7.0]
