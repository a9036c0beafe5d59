"""The contract of `ag.function`: when it traces, what its keys are, what it guards, and what it refuses."""

from __future__ import annotations

import sys
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import autograph as ag
from autograph.function import trace as tracing


def count_of(function: Any) -> int:
    return function.experimental_get_tracing_count()


# --- keys ------------------------------------------------------------------------------------------------------------


def test_traces_by_dtype_shape_and_python_value() -> None:
    @ag.function
    def f(x: Any, n: Any = 2) -> Any:
        return x * n

    for args, traces in [
        ((ag.constant(1.0),), 1), ((ag.constant(2.0),), 1), ((ag.constant(1),), 2), ((ag.constant([1.0]),), 3),
        ((ag.constant([1.0, 2.0]),), 4), ((ag.constant(1.0), 2), 4), ((ag.constant(1.0), 3), 5),
        ((np.float32(3.0),), 5), ((ag.constant(1.0), 2.0), 6), ((1.0,), 7),
    ]:  # fmt: skip
        f(*args)
        assert count_of(f) == traces, args
    f(x=ag.constant(1.0), n=3)
    assert count_of(f) == 7, "the same call by keyword"


def test_structures_of_arguments_and_results() -> None:
    Pair = namedtuple("Pair", "a b")

    @dataclass
    class Point:
        x: Any
        y: Any

    @ag.function
    def f(pair: Any, point: Any, table: Any) -> Any:
        return {"sum": pair.a + pair.b, "rest": (Point(point.y, point.x), [table["k"], None])}

    one, two = ag.constant(1.0), ag.constant(2.0)
    for _ in range(2):
        result = f(Pair(one, two), Point(one, two), {"k": 3})
    assert float(result["sum"]) == 3.0
    swapped, (k, none) = result["rest"]
    assert (float(swapped.x), float(swapped.y), int(k), none) == (2.0, 1.0, 3, None)
    assert count_of(f) == 1
    f(Pair(one, two), Point(one, two), {"k": 4})
    assert count_of(f) == 2


def test_starred_arguments_and_defaults_in_every_form_of_a_call() -> None:
    traces = []

    @ag.function
    def total(x: Any, *more: Any, factor: float = 2.0, **named: Any) -> Any:
        traces.append(len(more))
        return (x + sum(more)) * factor + sum(named.values())

    @ag.function
    def joined(x: Any, y: float = 10.0, *more: Any, **named: Any) -> Any:
        return x + y + sum(more) + sum(named.values())

    one = ag.constant(1.0)
    assert float(total(one, one)) == 4.0
    assert float(total(one, one, factor=2.0)) == 4.0
    assert traces == [1]
    assert float(total(one, one, one, factor=3.0, extra=one)) == 10.0
    assert [float(joined(*call)) for call in ((one,), (one, one), (one, one, one))] == [11.0, 2.0, 3.0]
    assert float(joined(one, more=one)) == 12.0
    assert float(joined(y=one, x=one)) == 2.0


def test_dictionaries_count_by_their_names_in_any_order() -> None:
    traces = []

    @ag.function
    def difference(parts: Any) -> Any:
        traces.append(list(parts))
        values = [parts[name] for name in sorted(parts, key=str)]
        return values[0] - values[1]

    one, two = ag.constant(1.0), ag.constant(2.0)
    assert float(difference({"a": one, "b": two})) == -1.0
    assert float(difference({"b": two, "a": one})) == -1.0
    assert len(traces) == 1
    assert float(difference({1: one, 2: two})) == -1.0
    assert float(difference({2: two, 1: one})) == -1.0
    assert len(traces) == 2


def test_objects_count_by_identity() -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = scale

    @ag.function
    def f(model: Any, x: Any) -> Any:
        return x * model.scale

    a, b = Model(2.0), Model(3.0)
    x = ag.constant(1.0)
    assert [float(f(m, x)) for m in (a, b, a)] == [2.0, 3.0, 2.0]
    assert count_of(f) == 2


def test_a_wrong_call_is_worded_as_python_does() -> None:
    @ag.function
    def f(x: Any, *, scale: Any) -> Any:
        return x * scale

    with pytest.raises(TypeError, match=r"missing a required (keyword-only )?argument: 'scale'"):
        f(1.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        f(1.0, scale=2.0, size=3)
    assert float(f(1.0, scale=2.0)) == 2.0


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="jit_compiled"):
        ag.function(jit_compiled=True)


# --- variables -------------------------------------------------------------------------------------------------------


def test_variables_created_on_the_first_call() -> None:
    class Layer:
        def __init__(self) -> None:
            self.w: Any = None

        @ag.function
        def __call__(self, x: Any) -> Any:
            if self.w is None:
                self.w = ag.Variable(ag.random.normal([2, 3]))
                self.b = ag.Variable(lambda: ag.ones([3]))
            return ag.matmul(x, self.w) + self.b

    layer = Layer()
    x = ag.ones([4, 2])
    first, second = layer(x), layer(x)
    expected = np.ones((4, 2), np.float32) @ layer.w.numpy() + 1.0
    np.testing.assert_allclose(first, expected, rtol=1e-6)
    np.testing.assert_array_equal(first, second)
    layer.w.assign(ag.zeros([2, 3]))
    np.testing.assert_array_equal(layer(x), np.ones((4, 3)))


def test_the_trace_that_creates_variables_is_not_optimised(monkeypatch: Any) -> None:
    kept: list[Any] = []
    runs: list[int] = []
    optimised: list[Any] = []

    @ag.function
    def f(x: Any) -> Any:
        runs.append(1)
        if not kept:
            kept.append(ag.Variable(2.0))
        return x * kept[0]

    optimize = tracing.optimize
    monkeypatch.setattr(tracing, "optimize", lambda graph: optimised.append(graph) or optimize(graph))
    assert float(f(ag.constant(3.0))) == 6.0
    assert len(runs) == 2
    assert len(optimised) == 1, "of two traces one is thrown away"


class Lazy:
    """Creates its variable when it is called first."""

    def __init__(self) -> None:
        self.built = False
        self.v: ag.Variable | None = None

    def __call__(self, x: ag.Tensor) -> ag.Tensor:
        if not self.built:
            self.v = ag.Variable(2.0)
            self.built = True
        assert self.v is not None
        return x * self.v


def in_a_loop(lazy: Lazy, x: ag.Tensor) -> ag.Tensor:
    for _ in ag.range(3):
        x = lazy(x)
    return x


def in_nested_loops(lazy: Lazy, x: ag.Tensor) -> ag.Tensor:
    for i in ag.range(3):
        if i > 0:
            for _ in ag.range(i):
                x = lazy(x)
    return x


def in_a_branch(lazy: Lazy, x: ag.Tensor) -> ag.Tensor:
    if x > 0.0:
        x = lazy(x)
    else:
        x = -lazy(x)
    return lazy(x)


@pytest.mark.parametrize(("program", "expected"), [(in_a_loop, 8.0), (in_nested_loops, 8.0), (in_a_branch, 4.0)])
def test_variables_created_in_staged_code(program: Any, expected: float) -> None:
    """A flag of their owner says that they are there, from the first trace on."""
    lazy = Lazy()
    f = ag.function(program)
    for _ in range(2):
        assert float(f(lazy, ag.constant(1.0))) == expected
    assert lazy.built is True


def test_a_variable_created_on_every_call_is_refused() -> None:
    @ag.function
    def f(x: Any) -> Any:
        return ag.Variable(1.0) * x

    with pytest.raises(ValueError, match="create variables on every call: it was traced twice for this one, its first"):
        f(ag.constant(1.0))


def test_a_variable_created_on_a_later_call_is_refused() -> None:
    kept: list[Any] = []

    @ag.function
    def f(x: Any) -> Any:
        if x.shape.rank:
            kept.append(ag.Variable(1.0))
        return x

    f(ag.constant(1.0))
    with pytest.raises(ValueError, match="create variables on a call that is not its first.*`if self.v is None"):
        f(ag.constant([1.0]))


@pytest.mark.parametrize("initial", [lambda x: x * 2.0, lambda x: lambda: x * 2.0], ids=["tensor", "callable"])
def test_an_initial_value_from_an_argument_is_that_of_the_first_call(initial: Any) -> None:
    kept: list[Any] = []
    factor, start = ag.constant(10.0), ag.Variable(1.0)

    @ag.function
    def f(x: Any) -> Any:
        if not kept:
            kept.append(ag.Variable(initial(x * factor + start)))
        kept[0].assign_add(x)
        return kept[0].read_value()

    assert float(f(ag.constant(3.0))) == 65.0
    assert float(f(ag.constant(4.0))) == 69.0


def test_an_initial_value_from_an_argument_needs_a_call() -> None:
    kept: list[Any] = []

    @ag.function
    def f(x: Any) -> Any:
        if not kept:
            kept.append(ag.Variable(x * 2.0))
        return kept[0] * x

    with pytest.raises(ValueError, match="depends on 'x'"):
        f.get_concrete_function(ag.TensorSpec([]))


def test_inputs_are_arguments_then_captures_then_variables() -> None:
    v, c = ag.Variable([1.0, 2.0], name="v"), ag.constant([[3.0]])
    concrete = ag.function(lambda x: x + v + c).get_concrete_function(ag.TensorSpec([2], name="x"))
    tensor, variable = concrete.captured_inputs
    assert tensor is c and variable is v
    assert [(i.shape.as_list(), i.name) for i in concrete.inputs] == [([2], "x"), ([1, 1], None), ([2], "v:0")]
    assert len(concrete.inputs) == len(concrete.graph.inputs)


def test_assignments_keep_program_order() -> None:
    v = ag.Variable(1.0)

    @ag.function(jit_compile=True)
    def f(x: Any) -> Any:
        a = v * 10.0
        v.assign_add(x)
        b = v * 10.0
        for _ in ag.range(3):
            v.assign(v * 2.0)
        return a, b, v.read_value()

    assert [float(t) for t in f(ag.constant(2.0))] == [10.0, 30.0, 24.0]
    assert float(v) == 24.0


# --- functions of functions ------------------------------------------------------------------------------------------


def test_inner_functions_trace_once_and_see_outer_tensors() -> None:
    traced: list[str] = []

    @ag.function
    def inner(x: Any) -> Any:
        traced.append("inner")
        return x * 2.0

    @ag.function
    def outer(x: Any) -> Any:
        traced.append("outer")

        @ag.function
        def local(y: Any) -> Any:
            return y + x

        return local(inner(x) + inner(x))

    assert float(outer(ag.constant(1.0))) == 5.0
    assert float(outer(ag.constant(2.0))) == 10.0
    assert traced == ["outer", "inner"]


def test_recursion_on_a_tensor_of_what_is_not_converted_raises_at_once() -> None:
    @ag.function(autograph=False)
    def f(x: Any) -> Any:
        return ag.cond(x > 0.0, lambda: f(x - 1.0), lambda: x)

    with pytest.raises(RecursionError, match="calls itself with arguments of the same signature"):
        f(ag.constant(3.0))


def test_recursion_on_a_python_number_unrolls() -> None:
    @ag.function
    def power(x: Any, n: int) -> Any:
        return x * power(x, n - 1) if n > 0 else ag.ones_like(x)

    assert float(power(ag.constant(2.0), 5)) == 32.0


@pytest.mark.parametrize(
    "line", ["    if x == {}.0: return x * {}.0", "    {}if x == {}.0: y = x * {}.0"], ids=["return", "elif"]
)
def test_hundreds_of_cases_one_in_the_other(line: str, tmp_path: Any) -> None:
    count = 200
    if "return" in line:
        lines = [line.format(case, case) for case in range(count)]
    else:
        lines = [line.format("el" if case else "", case, case) for case in range(count)]
    path = tmp_path / "cases.py"
    path.write_text("\n".join(["def f(x):", "    y = -x", *lines, "    return y"]))
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    limit = sys.getrecursionlimit()
    f = ag.function(names["f"], jit_compile=False)
    assert [float(f(ag.constant(x))) for x in (0.0, 3.0, 199.0, 500.0)] == [0.0, 9.0, 39601.0, -500.0]
    assert sys.getrecursionlimit() == limit


def test_a_leaked_tensor_says_where_it_comes_from() -> None:
    leaked: list[Any] = []

    @ag.function
    def culprit(x: Any) -> Any:
        leaked.append(x * 2.0)
        return x

    culprit(ag.constant(1.0))
    with pytest.raises(ValueError, match="'culprit'"):
        leaked[0] + 1.0
    with pytest.raises(ValueError, match="'culprit'"):
        ag.function(lambda x: x + leaked[0])(ag.constant(1.0))


def test_an_error_while_tracing_leaves_nothing_behind() -> None:
    fail = [True]

    @ag.function
    def f(x: Any) -> Any:
        if fail:
            raise KeyError("not now")
        return x + 1.0

    with pytest.raises(KeyError):
        f(ag.constant(1.0))
    assert ag.executing_eagerly()
    fail.clear()
    assert float(f(ag.constant(1.0))) == 2.0


# --- what it refuses -------------------------------------------------------------------------------------------------


def test_changing_an_argument_is_refused() -> None:
    @ag.function
    def f(table: Any, items: Any) -> Any:
        table["q"] = 1
        return table["a"]

    @ag.function
    def g(items: Any) -> Any:
        items[0] = items[0] * 2.0
        return items[0]

    with pytest.raises(ValueError, match=r"f\(\) should not modify its Python input arguments: it changes a dict"):
        f({"a": ag.constant(1)}, [])
    with pytest.raises(ValueError, match="it changes a list"):
        g([ag.constant(1.0)])


def test_what_is_not_a_function_is_refused() -> None:
    with pytest.raises(TypeError, match="5 is not a callable object"):
        ag.function(5)
    with pytest.raises(TypeError, match="jit_compile must be"):
        ag.function(lambda x: x, jit_compile="maybe")


def test_lists_stand_for_tensors_where_a_spec_says_so() -> None:
    @ag.function(input_signature=[ag.TensorSpec([None], ag.float32), {"n": ag.TensorSpec([], ag.int32)}])
    def f(x: Any, table: Any) -> Any:
        return ag.reduce_sum(x) * ag.cast(table["n"], ag.float32)

    assert float(f([1.0, 2.0], {"n": 2})) == 6.0
    for wrong in ([[1.0]], {"n": 1}), ([1.0], {"n": 1.5}), ([1.0], {"m": 1}), ([1.0], [1]):
        with pytest.raises(ValueError, match="incompatible with input_signature"):
            f(*wrong)
    concrete = ag.function(lambda x: x * 2.0).get_concrete_function(ag.TensorSpec([None], ag.float32))
    np.testing.assert_array_equal(concrete([1.0, 2.0]), [2.0, 4.0])


def test_a_function_without_source_says_so() -> None:
    space: dict[str, Any] = {"ag": ag}
    exec(
        "@ag.function\ndef f(x):\n    return x + 1.0\n@ag.function\ndef g(x):\n    if x > 0: return x\n    return -x",
        space,
    )
    assert float(space["f"](ag.constant(1.0))) == 2.0
    with pytest.warns(UserWarning, match="'g' can't be converted"), pytest.raises(TypeError, match="Python bool"):
        space["g"](ag.constant(1.0))


def test_a_signature_is_a_sequence_of_specs() -> None:
    with pytest.raises(TypeError, match="must be either a tuple or a list, got TensorSpec"):
        ag.function(lambda x: x, input_signature=ag.TensorSpec([]))
    with pytest.raises(TypeError, match="nested sequence of TensorSpec objects, got 3 of type int"):
        ag.function(lambda x: x, input_signature=[{"a": 3}])


def test_a_signature_takes_variables_defaults_and_structures() -> None:
    @ag.function(input_signature=[ag.TensorSpec([None], ag.float32), {"n": ag.TensorSpec([], ag.int32)}])
    def f(x: Any, options: Any, scale: float = 2.0) -> Any:
        return x * ag.cast(options["n"], ag.float32) * scale

    assert f(ag.Variable([1.0, 2.0]), {"n": 3}).numpy().tolist() == [6, 12]
    assert f(x=[1.0], options={"n": ag.constant(1)}).numpy().tolist() == [2]
    assert f.experimental_get_tracing_count() == 1
    with pytest.raises(TypeError, match="incompatible with input_signature"):
        f([[1.0]], {"n": 3})
    with pytest.raises(ValueError, match="incompatible with input_signature"):
        f([1.0], {"m": 3})


def test_a_graph_names_its_captures() -> None:
    rate, table = ag.Variable(2.0), ag.constant([1.0, 2.0])
    f = ag.function(lambda x: x * rate + table)
    graph = f.get_concrete_function(ag.TensorSpec([])).graph
    assert {id(outside) for outside, _ in graph.captures} == {id(rate), id(table)}
    assert [inside for _, inside in graph.captures] == graph.internal_captures == list(graph.inputs[1:3])
    assert graph.external_captures == f.get_concrete_function(ag.TensorSpec([])).captured_inputs
    assert ag.function(lambda x: x).get_concrete_function(ag.TensorSpec([])).graph.captures == []


def test_a_concrete_function_takes_the_same_calls_once_it_is_native() -> None:
    f = ag.function(lambda x, y: {"sum": x + y, "none": None}, jit_compile=True)
    concrete = f.get_concrete_function(ag.TensorSpec([2], ag.float32), ag.TensorSpec([], ag.float32))
    x, y = ag.constant([1.0, 2.0]), ag.constant(3.0)
    for _ in range(3):
        result = concrete(x, y)
        assert result["sum"].numpy().tolist() == [4.0, 5.0]
        assert result["none"] is None
    assert concrete(y=y, x=x)["sum"].numpy().tolist() == [4.0, 5.0]
    assert concrete([1.0, 2.0], 3.0)["sum"].numpy().tolist() == [4.0, 5.0]
    with ag.GradientTape() as tape:
        tape.watch(y)
        total = concrete(x, y)["sum"]
    assert tape.gradient(total, y).numpy() == 2.0
    with pytest.raises(ag.errors.InvalidArgumentError, match="float32"):
        concrete(ag.constant([1, 2]), y)
    with pytest.raises(ag.errors.InvalidArgumentError, match="shape"):
        concrete(ag.constant([1.0]), y)
    assert ag.function(lambda x: concrete(x, y)["sum"])(x).numpy().tolist() == [4.0, 5.0]


def test_results_of_a_function_with_effects_have_their_structure() -> None:
    @ag.function
    def f(x: Any) -> Any:
        ag.debugging.assert_positive(x)
        return x, x + 1.0

    for _ in range(3):
        result = f(ag.constant(1.0))
        assert [float(each) for each in result] == [1.0, 2.0]


def test_a_decorator_for_the_python_function():
    def double(x):
        return x * 2

    function = ag.function(double)
    function._decorate(lambda inner: lambda x: inner(x) + 1)
    assert int(function(3)) == 7
    with pytest.raises(ValueError, match="after they have been traced"):
        function._decorate(lambda inner: inner)


def test_symbolic_tensors_have_no_numpy():
    found = []

    @ag.function
    def look(x):
        found.append(hasattr(x, "numpy"))
        return x

    look(ag.constant(1))
    assert found == [False]
