"""The decorators `dispatch_for_...`: what public functions do for values of a program's own classes.

The first tests are the cells of TensorFlow's guide "Extension types", section "Tensor API dispatch".
"""

import inspect
import operator
import sys
from typing import List, Optional, Union  # noqa: UP035 (as users write it)

import numpy as np
import pytest

import autograph as ag
from autograph.elementwise_names import ELEMENTWISE
from runtime.api_dispatch import dispatcher_of
from tests.extension_types.kinds import Fixed, Masked

OF_TENSORS = Union[Masked, ag.Tensor]  # noqa: UP007
dispatch = ag.experimental


@pytest.fixture(name="registered")
def _registered():
    """Takes a decorator and a function; what it registers is taken back after the test."""
    functions = []

    def register(decorator, function):
        functions.append(function)
        return decorator(function)

    yield register
    for function in functions:
        try:
            dispatch.unregister_dispatch_for(function)
        except ValueError as error:
            assert "was not registered" in str(error)  # the test has taken it back, or it wasn't accepted
    for name in ELEMENTWISE:
        assert dispatcher_of(operator.attrgetter(name)(ag)) is None


def as_masked(x):
    return x if isinstance(x, Masked) else Masked(x, ag.ones_like(x, ag.bool))


def parts(masked):
    assert isinstance(masked, Masked)
    return masked.values.numpy().tolist(), masked.mask.numpy().tolist()


def test_one_function(registered):
    def masked_stack(values: List[Masked], axis=0):  # noqa: UP006
        return Masked(ag.stack([v.values for v in values], axis), ag.stack([v.mask for v in values], axis))

    registered(dispatch.dispatch_for_api(ag.stack), masked_stack)
    x = Masked([1, 2, 3], [True, True, False])
    y = Masked([4, 5, 6], [False, True, True])
    assert parts(ag.stack([x, y])) == ([[1, 2, 3], [4, 5, 6]], [[True, True, False], [False, True, True]])
    with pytest.raises((TypeError, ValueError)):
        ag.stack([x, ag.constant([4, 5, 6])])

    dispatch.unregister_dispatch_for(masked_stack)
    with pytest.raises((TypeError, ValueError)):
        ag.stack([x, y])

    def masked_stack_v2(values: List[OF_TENSORS], axis=0):  # noqa: UP006
        values = [as_masked(v) for v in values]
        return Masked(ag.stack([v.values for v in values], axis), ag.stack([v.mask for v in values], axis))

    registered(dispatch.dispatch_for_api(ag.stack), masked_stack_v2)
    found = parts(ag.stack([x, ag.constant([4, 5, 6]), x]))
    assert found[1] == [[True, True, False], [True, True, True], [True, True, False]]


def test_all_functions_of_one_operand(registered):
    registered(
        dispatch.dispatch_for_unary_elementwise_apis(Masked), lambda api_func, x: Masked(api_func(x.values), x.mask)
    )
    x = Masked([1, -2, -3], [True, False, True])
    assert parts(ag.abs(x)) == ([1, 2, 3], [True, False, True])
    ones = ag.ones_like(x, dtype=ag.float32)
    assert ones.values.dtype is ag.float32 and parts(ones) == ([1, 1, 1], [True, False, True])
    assert parts(ag.clip_by_value(x, -1, clip_value_max=1))[0] == [1, -1, -1]
    assert parts(ag.math.negative(x=x))[0] == [-1, 2, 3]


def test_all_functions_of_two_operands(registered):
    def handler(api_func, x, y):
        return Masked(api_func(x.values, y.values), x.mask & y.mask)

    registered(dispatch.dispatch_for_binary_elementwise_apis(Masked, Masked), handler)
    x = Masked([1, -2, -3], [True, False, True])
    y = Masked([[4], [5]], [[True], [False]])
    assert parts(ag.math.add(x, y)) == ([[5, 2, 1], [6, 3, 2]], [[True, False, True], [False, False, False]])
    assert parts(ag.maximum(x, y=y))[0] == [[4, 4, 4], [5, 5, 5]]
    with pytest.raises((TypeError, ValueError)):
        ag.math.add(x, 1)


def test_the_functions_of_keras_layers(registered):
    # The guide's second example: each operand may be a tensor, and masked values are zeros in products.
    def binary(op, x, y):
        x, y = as_masked(x), as_masked(y)
        return Masked(op(x.values, y.values), x.mask & y.mask)

    def masked_matmul(
        a: Masked, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False, a_is_sparse=False,
        b_is_sparse=False, output_type=None, grad_a=False, grad_b=False, name=None,
    ):  # fmt: skip
        return ag.matmul(a.with_default(0.0), b, transpose_a, transpose_b, adjoint_a, adjoint_b)

    registered(dispatch.dispatch_for_binary_elementwise_apis(OF_TENSORS, OF_TENSORS), binary)
    registered(dispatch.dispatch_for_api(ag.matmul), masked_matmul)
    x = Masked([[1.0, 2.0], [3.0, 4.0]], [[True, False], [False, True]])
    kernel = ag.constant([[1.0], [10.0]])
    assert ag.matmul(x, kernel).numpy().tolist() == [[1.0], [40.0]]
    assert parts(ag.add(x, ag.constant(1.0)))[0] == [[2, 3], [4, 5]]
    # Operators, whose fast way doesn't call the public function.
    assert parts(ag.constant(1.0) - x)[0] == [[0, -1], [-2, -3]]
    assert parts(x * ag.constant(2.0))[0] == [[2, 4], [6, 8]]
    assert (ag.constant(1.0) + ag.constant(2.0)).numpy() == 3.0


def test_checks(registered):
    def handler(assert_func, x, y):
        both = ag.logical_and(x.mask, y.mask)
        assert_func(ag.boolean_mask(x.values, both), ag.boolean_mask(y.values, both))

    registered(dispatch.dispatch_for_binary_elementwise_assert_apis(Masked, Masked), handler)
    a = Masked([1, 1, 0, 1, 1], [False, False, True, True, True])
    b = Masked([2, 2, 0, 2, 2], [True, True, True, False, False])
    ag.debugging.assert_equal(a, b)
    with pytest.raises(ag.errors.InvalidArgumentError, match="here they differ"):
        ag.debugging.assert_none_equal(a, b, message="here they differ")


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_each_elementwise_function(registered, name):
    api = operator.attrgetter(name)(ag)
    calls = []

    def handler(api_func, *operands):
        calls.append(operands)
        return "handled"

    decorators = {
        "unary": dispatch.dispatch_for_unary_elementwise_apis,
        "binary": dispatch.dispatch_for_binary_elementwise_apis,
        "assert": dispatch.dispatch_for_binary_elementwise_assert_apis,
    }
    count = 1 if ELEMENTWISE[name] == "unary" else 2
    registered(decorators[ELEMENTWISE[name]](*[Fixed] * count), handler)
    signature = inspect.signature(api)
    required = [each for each in list(signature.parameters.values())[count:] if each.default is each.empty]
    value = Fixed(3)
    assert api(*[value] * count, *[None for _ in required]) == "handled"
    assert calls == [(value,) * count]


def test_types_by_name_or_position_in_a_dictionary(registered):
    def masked_concat(values, axis):
        return Masked(ag.concat([v.values for v in values], axis), ag.concat([v.mask for v in values], axis))

    registered(dispatch.dispatch_for_api(ag.concat, {"values": list[Masked]}), masked_concat)
    x = Masked([1, 2], [True, False])
    assert parts(ag.concat((x, x), axis=0)) == ([1, 2, 1, 2], [True, False, True, False])
    assert ag.concat([[1], [2]], 0).numpy().tolist() == [1, 2]
    # There is no composite in an empty list: the function itself refuses it.
    with pytest.raises((ValueError, ag.errors.InvalidArgumentError)):
        ag.concat([], 0)

    # One of several signatures is enough; a type may be None.
    def masked_add(x, y, name=None):
        return "masked"

    registered(dispatch.dispatch_for_api(ag.add, {0: Masked, 1: Optional[int]}, {"y": Masked}), masked_add)  # noqa: UP045
    assert [ag.add(x, 1), ag.add(1.0, x), ag.add(x=x, y=None)] == ["masked"] * 3
    with pytest.raises((TypeError, ValueError)):
        ag.add(x, 1.5)
    assert ag.add(1, 2).numpy() == 3


def test_the_name(registered):
    scopes = []

    def masked_rank(input, name=None):
        scopes.append(name)
        return input

    def masked_sum(input_tensor, axis=None, keepdims=False):  # without the parameter
        with ag.name_scope("inner") as scope:
            scopes.append(scope)
        return input_tensor

    registered(dispatch.dispatch_for_api(ag.rank, {"input": Masked}), masked_rank)
    registered(dispatch.dispatch_for_api(ag.reduce_sum, {0: Masked}), masked_sum)
    registered(dispatch.dispatch_for_unary_elementwise_apis(Masked), lambda f, x: masked_sum(x))
    x = Masked([1], [True])
    assert ag.rank(x, name="given") is x
    assert ag.reduce_sum(x, None, False, "given") is x and ag.reduce_sum(x, name="other") is x and ag.reduce_sum(x) is x
    assert ag.abs(x, "third") is x
    assert scopes == ["given", "given/inner/", "other/inner/", "inner/", "third/inner/"]


def test_a_target_may_decline(registered):
    registered(dispatch.dispatch_for_api(ag.identity, {"input": Masked}), lambda input, name=None: NotImplemented)
    assert parts(ag.identity(Masked([1], [True]))) == ([1], [True])


def test_it_comes_before_what_the_function_does_with_composites(registered):
    registered(dispatch.dispatch_for_api(ag.identity, {"input": Masked}), lambda input, name=None: "mine")
    assert ag.identity(Masked([1], [True])) == "mine"
    ragged = ag.ragged.constant([[1], [2, 3]])
    registered(dispatch.dispatch_for_api(ag.reduce_max, {0: ag.RaggedTensor}), lambda *args, **kwargs: "ragged")
    assert ag.reduce_max(ragged) == "ragged" and ag.reduce_max([1, 2]).numpy() == 2


def test_a_function_is_itself_again():
    before = ag.stack.__code__, ag.stack.__kwdefaults__, dict(vars(ag.stack)), inspect.signature(ag.stack)

    def target(values: list[Masked], axis=0):
        return "masked"

    public = ag.stack
    assert dispatch.dispatch_for_api(ag.stack)(target) is target
    assert ag.stack is public and inspect.signature(ag.stack) == before[3]
    assert ag.stack.__code__ is not before[0]
    assert public([Masked([1], [True])]) == "masked"
    dispatch.unregister_dispatch_for(target)
    assert (ag.stack.__code__, ag.stack.__kwdefaults__, dict(vars(ag.stack)), inspect.signature(ag.stack)) == before


FACTOR = 2.0


def test_in_traced_functions(registered):
    def scaled(api_func, x):
        return Masked(api_func(x.values) * FACTOR, x.mask)

    registered(dispatch.dispatch_for_unary_elementwise_apis(Masked), scaled)

    @ag.function
    def f(x, n):
        while n > 0:
            x = ag.abs(x)
            n -= 1
        return x

    x = Masked([1.0, -3.0], [True, False])
    assert parts(f(x, ag.constant(2)))[0] == [4.0, 12.0]
    assert parts(f(x, ag.constant(1)))[0] == [2.0, 6.0]
    assert f.experimental_get_tracing_count() == 1


def test_no_trace_is_stale(registered, monkeypatch):
    def scaled(x, name=None):
        return Masked(x.values * FACTOR, x.mask)

    def negated(x, name=None):
        return Masked(-x.values, x.mask)

    @ag.function
    def f(x):
        return ag.abs(x)

    x = Masked([1.0, -3.0], [True, False])
    registered(dispatch.dispatch_for_api(ag.abs, {"x": Masked}), scaled)
    assert parts(f(x))[0] == [2.0, -6.0]
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert parts(f(x))[0] == [5.0, -15.0]
    dispatch.unregister_dispatch_for(scaled)
    registered(dispatch.dispatch_for_api(ag.abs, {"x": Masked}), negated)
    assert parts(f(x))[0] == [-1.0, 3.0]
    dispatch.unregister_dispatch_for(negated)
    with pytest.raises((TypeError, ValueError)):
        f(x)


def test_gradients(registered):
    registered(dispatch.dispatch_for_unary_elementwise_apis(Masked), lambda f, x: Masked(f(x.values), x.mask))
    values = ag.Variable([1.0, 2.0])

    @ag.function
    def loss():
        return ag.reduce_sum(ag.square(Masked(values, [True, False])).with_default(0.0))

    for run in (loss, loss.python_function):
        with ag.GradientTape() as tape:
            found = run()
        np.testing.assert_array_equal(tape.gradient(found, values), [2.0, 0.0])


def test_what_is_refused(registered):
    add = {"x": Masked, "y": Masked}
    with pytest.raises(ValueError, match="does not support dispatch"):
        dispatch.dispatch_for_api(len, add)
    with pytest.raises(ValueError, match="does not support dispatch"):
        dispatch.dispatch_for_api(lambda x, y: x, add)
    with pytest.raises(ValueError, match="does not support dispatch"):
        dispatch.dispatch_for_api(ag.einsum, {0: Masked})
    with pytest.raises(TypeError, match="must be dictionaries"):
        dispatch.dispatch_for_api(ag.add, Masked)
    with pytest.raises(ValueError, match="unknown parameter 'z'; the function has x, y, name"):
        dispatch.dispatch_for_api(ag.add, {"z": Masked})
    with pytest.raises(ValueError, match="unknown parameter 7"):
        dispatch.dispatch_for_api(ag.add, {7: Masked})
    with pytest.raises(ValueError, match="not supported by dispatch"):
        dispatch.dispatch_for_api(ag.add, {"x": tuple[Masked, Masked]})
    with pytest.raises(ValueError, match="not supported by dispatch"):
        dispatch.dispatch_for_unary_elementwise_apis("Masked")(lambda f, x: x)
    with pytest.raises(TypeError, match="to be callable"):
        dispatch.dispatch_for_api(ag.add, add)(3)
    with pytest.raises(ValueError, match=r"signature \(a, b\) does not match API's signature \(x, y\)"):
        dispatch.dispatch_for_api(ag.add, add)(lambda a, b: a)
    with pytest.raises(ValueError, match="at least one signature"):
        dispatch.dispatch_for_api(ag.add)(lambda x, y: x)
    with pytest.raises(ValueError, match="was not registered"):
        dispatch.unregister_dispatch_for(lambda x, y: x)
    assert dispatcher_of(ag.add) is None

    def first(x, y):
        return x

    def second(x, y):
        return y

    registered(dispatch.dispatch_for_api(ag.add, add), first)
    registered(dispatch.dispatch_for_api(ag.add, {"x": Masked}), second)
    x = Masked([1], [True])
    with pytest.raises(ValueError, match="Multiple dispatch targets"):
        ag.add(x, x)
    registered(dispatch.dispatch_for_binary_elementwise_apis(Masked, Masked), first)
    with pytest.raises(ValueError, match="already been registered"):
        dispatch.dispatch_for_binary_elementwise_apis(Masked, Masked)(second)


def later(x: "Missing", y):  # noqa: F821
    return x


def test_annotations_that_name_nothing():
    with pytest.raises(ValueError, match="name what isn't there"):
        dispatch.dispatch_for_api(ag.add)(later)


def test_errors_show_the_users_frames_only(registered):
    def failing(x, name=None):
        raise KeyError("mine")

    registered(dispatch.dispatch_for_api(ag.abs, {"x": Masked}), failing)
    with pytest.raises(KeyError) as caught:
        ag.abs(Masked([1], [True]))
    names = [entry.name for entry in caught.traceback]
    if sys.version_info < (3, 11):
        names.remove("hand_over")  # the first frame stays there
    assert names == ["test_errors_show_the_users_frames_only", "failing"]
