"""Programs with loops, branches, lists, gradients and state as ONNX models: ONNX Runtime gives what we give."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import autograph as ag
from tests.onnx_models.running import check, run


def exported(function, path, *specs, **options):
    concrete = ag.function(function).get_concrete_function(*specs)
    return concrete, ag.onnx.export(concrete, path / "model.onnx", **options)


def agree(function, path, specs, *calls, tolerance=None):
    """Fails unless a function and its model agree on calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # checks of indices into lists are left out
        concrete, made = exported(function, path, *specs)
    for arguments in calls:
        arrays = [np.asarray(a, s.dtype.np) for a, s in zip(arguments, specs, strict=True)]
        results = [each.numpy() for each in ag.nest.flatten(concrete(*[ag.constant(a) for a in arrays]))]
        found = run(made.path, dict(zip(made.inputs, arrays)))
        assert tuple(found) == (*made.outputs, *[after for _, after in made.state])
        for expected, got in zip(results, found.values()):
            check(expected, got, tolerance)


VECTOR = ag.TensorSpec([None])
NUMBER = ag.TensorSpec([])
COUNT = ag.TensorSpec([], ag.int32)


def test_loops_and_branches(tmp_path):
    def f(x, n):
        total = ag.zeros_like(x)
        while n > 0:
            if ag.reduce_sum(x) > 1.0:
                total += x * ag.cast(n, ag.float32)
            elif n % 2 == 0:
                total -= x
            else:
                x = x + 1.0
            n -= 1
        return {"total": total, "n": n}

    agree(f, tmp_path, [VECTOR, COUNT], ([1.0, 2.0], 3), ([-1.0], 5), ([-1.0, 0.0, 0.5], 0), ([], 3))


def test_break_continue_and_nested_loops(tmp_path):
    def f(n):
        found = ag.constant(0)
        for i in ag.range(2, n):
            is_prime = True
            for j in ag.range(2, i):
                if i % j == 0:
                    is_prime = False
                    break
            if not is_prime:
                continue
            found += i
        return found

    agree(f, tmp_path, [COUNT], (30,), (0,), (3,))


def test_tensor_arrays_and_lists(tmp_path):
    def f(x, n):
        array = ag.TensorArray(ag.float32, size=0, dynamic_size=True)
        found = []
        for i in ag.range(n):
            array = array.write(i, x * ag.cast(i, ag.float32))
            if i % 2 == 0:
                found.append(ag.cast(i, ag.float32))
        found.append(found[0] + found.pop())
        return array.stack(), array.read(1), ag.stack(found)

    agree(f, tmp_path, [VECTOR, COUNT], ([1.0, 2.0], 4), ([1.0], 7))


def test_gradients_of_loops(tmp_path):
    def f(x, n):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = x
            for i in ag.range(n):
                if ag.reduce_sum(y) < 10.0:
                    y = y * ag.sin(x) + ag.cast(i, ag.float64)
                else:
                    y = y / 2.0
            loss = ag.reduce_sum(y**2)
        return loss, tape.gradient(loss, x)

    agree(f, tmp_path, [ag.TensorSpec([None], ag.float64), COUNT], ([0.5, 2.0], 5), ([1.5], 0), ([1.0, 2.0, 3.0], 12))


def test_second_order_gradients_of_a_while_loop(tmp_path):
    def f(x):
        with ag.GradientTape() as outer:
            outer.watch(x)
            with ag.GradientTape() as inner:
                inner.watch(x)
                y = x
                while y < 100.0:
                    y = y * y + x
            slope = inner.gradient(y, x)
        return y, slope, outer.gradient(slope, x)

    agree(f, tmp_path, [ag.TensorSpec([], ag.float64)], (1.5,), (200.0,))


@pytest.mark.parametrize("longer", [False, True])
def test_gradients_of_loops_that_take_gradients(tmp_path, longer):
    """Their stacks are joined and split; those of `longer` are sequences."""

    def inner(x):
        y = ag.reshape(x, [1]) if longer else x
        for _ in ag.range(3):
            y = ag.concat([y, [ag.sin(ag.reduce_sum(y)) * x]], 0) if longer else ag.sin(y) * x
        return ag.reduce_sum(y * y)

    def f(x):
        with ag.GradientTape() as outer:
            outer.watch(x)
            y = x
            for _ in ag.range(3):
                with ag.GradientTape() as tape:
                    tape.watch(y)
                    z = inner(y)
                y -= 0.1 * tape.gradient(z, y)
        return y, outer.gradient(y, x)

    agree(f, tmp_path, [ag.TensorSpec([], ag.float64)], (0.7,))


def test_assigned_variables_are_inputs_with_defaults_and_outputs(tmp_path):
    weight = ag.Variable([1.0, 2.0], name="weight")
    bias = ag.Variable(0.5, name="bias")

    def step(x):
        with ag.GradientTape() as tape:
            loss = ag.reduce_sum((weight * x + bias) ** 2)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    concrete, made = exported(step, tmp_path, ag.TensorSpec([2], name="x"))
    assert made.state == (("weight", "weight_next"),)
    x = np.array([1.0, -1.0], np.float32)
    first = run(made.path, {"x": x})
    second = run(made.path, {"x": x, "weight": first["weight_next"]})
    for found in (first, second):
        check(concrete(ag.constant(x)).numpy(), found["result"])
        check(weight.numpy(), found["weight_next"])


def test_names_of_inputs_and_outputs(tmp_path):
    def f(pair, *, scale):
        return {"sum": pair["a"] + pair["b"], "scaled": [pair["a"] * scale]}

    pair = {"a": ag.TensorSpec([2]), "b": ag.TensorSpec([2])}
    concrete = ag.function(f).get_concrete_function(pair, scale=ag.TensorSpec([]))
    made = ag.onnx.export(concrete, tmp_path / "model.onnx")
    assert made.inputs == ("pair_a", "pair_b", "scale")
    assert made.outputs == ("scaled_0", "sum")
    made = ag.onnx.export(concrete, tmp_path / "model.onnx", input_names=["x", "y", "z"], output_names=["p", "q"])
    assert (made.inputs, made.outputs) == (("x", "y", "z"), ("p", "q"))
    with pytest.raises(ValueError, match="output_names must be 2 different names"):
        ag.onnx.export(concrete, tmp_path / "model.onnx", output_names=["p"])


def test_an_argument_that_is_returned_and_a_result_that_is_there_twice(tmp_path):
    agree(lambda x: (x, x, x + 1.0, ag.constant(2)), tmp_path, [VECTOR], ([1.0, 2.0],))


def test_slices_that_are_read_and_written(tmp_path):
    def f(x, i):
        y = ag.tensor_scatter_nd_update(x, [[0, 1]], [9.0])
        return x[i:, ::-1], x[-1], x[..., ag.newaxis, 0], x[i, i - 1], x[1:3, i : i + 2] * 2.0, y, x[::-1][:, 1]

    agree(f, tmp_path, [ag.TensorSpec([None, None]), COUNT], (np.arange(12.0).reshape(4, 3), 1))


def test_complex_numbers_inside(tmp_path):
    def f(x, y, n):
        c, z = ag.complex(x, y), ag.complex(ag.zeros_like(x), ag.zeros_like(y))
        count = ag.zeros_like(x)
        for _ in ag.range(n):
            z = ag.where(ag.abs(z) < 2.0, z * z + c, z)
            count += ag.cast(ag.abs(z) < 2.0, ag.float32)
        return count

    specs = [ag.TensorSpec([3]), ag.TensorSpec([3]), COUNT]
    agree(f, tmp_path, specs, ([0.1, 0.5, -1.0], [0.2, 0.7, 0.0], 20))


def test_strings(tmp_path):
    def f(names, greet):
        hello = ag.constant(["hello "]) if greet else ag.constant(["bye "])
        return hello + names, names == "b", ag.strings.to_number(ag.constant(["1.5", "2"]))

    specs = [ag.TensorSpec([None], ag.string), ag.TensorSpec([], ag.bool)]
    agree(f, tmp_path, specs, (np.array([b"a", b"b"], object), True), (np.array([b"x"], object), False))


def test_checks_and_prints_are_left_out_with_a_warning(tmp_path):
    def f(x):
        ag.debugging.assert_greater(x, 0.0)
        ag.print("x is", x)
        if x > 100.0:
            raise ValueError("too large")
        return ag.sqrt(x)

    concrete = ag.function(f).get_concrete_function(ag.TensorSpec([]))
    with pytest.warns(
        UserWarning, match=r"leaves out what can't be exported to ONNX:\n  check at .*test_programs.py:"
    ) as told:
        made = ag.onnx.export(concrete, tmp_path / "model.onnx")
    assert told[0].filename == __file__
    assert len(made.dropped) == 3
    check(np.float32(2.0), run(made.path, {"x": np.float32(4.0)})["result"])


def recursive(n):
    if n <= 1:
        return ag.constant(1)
    return n * recursive_(n - 1)


recursive_ = ag.function(recursive)
REFUSED = {
    "random numbers": (lambda x: x + ag.random.uniform([2]), [ag.TensorSpec([2])], r"random_uniform.*Draw the numb"),
    "recursion": (recursive, [COUNT], r"letrec.*can't call themselves\. Write the recursion as a loop"),
    "python": (lambda x: ag.numpy_function(np.sin, [x], ag.float32), [ag.TensorSpec([2])], r"host_call.*calls Python"),
    "complex": (lambda x: x, [ag.TensorSpec([2], ag.complex64)], r"takes or returns complex numbers"),
    "eigenvalues": (lambda x: ag.linalg.eigvalsh(x), [ag.TensorSpec([2, 2])], r"self_adjoint_eig can't be exported"),
    "rank": (lambda x: x * 2.0, [ag.TensorSpec(None)], r"known ranks"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_has_no_form_is_refused(name, tmp_path):
    function, specs, message = REFUSED[name]
    concrete = ag.function(function).get_concrete_function(*specs)
    with pytest.raises(ag.errors.UnimplementedError, match=message) as told:
        ag.onnx.export(concrete, tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()
    if name not in ("complex", "rank"):
        assert "test_programs.py:" in str(told.value)


def test_what_is_no_function_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"takes an ag\.function .* 'function'"):
        ag.onnx.export(lambda x: x, tmp_path / "model.onnx")
    with pytest.raises(TypeError, match=r"the types of the arguments of 'f': pass it f.get_concrete_function"):
        ag.onnx.export(ag.function(lambda x: x, name="f"), tmp_path / "model.onnx")


def test_weights_in_a_file_of_their_own(tmp_path):
    weights = ag.constant(np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32))
    for _ in range(2):
        concrete, made = exported(lambda x: x @ weights, tmp_path, ag.TensorSpec([None, 64]), external_data=True)
    data = tmp_path / "model.onnx.data"
    assert data.stat().st_size < 5000
    assert made.path.stat().st_size < 1000
    x = np.ones((3, 64), np.float32)
    check(concrete(ag.constant(x)).numpy(), run(made.path, {"x": x})["result"])


def test_open_dimensions_have_names(tmp_path):
    import onnx

    _, made = exported(lambda x: x[:, 0], tmp_path, ag.TensorSpec([None, 3], name="x"))
    model = onnx.load(made.path)
    (x,), (result,) = model.graph.input, model.graph.output
    assert [d.dim_param or d.dim_value for d in x.type.tensor_type.shape.dim] == ["x_0", 3]
    assert [d.dim_param for d in result.type.tensor_type.shape.dim] == ["result_0"]
    assert model.opset_import[0].version == 20


def test_no_warning_where_nothing_is_left_out(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exported(lambda x: x + 1.0, tmp_path, VECTOR)


def test_a_row_read_in_a_branch(tmp_path):
    """ONNX Runtime finds out whether the row exists, and loses results of an `If` inside of a branch where it does."""

    def f(x, rows):
        array = ag.TensorArray(ag.float32, 0, dynamic_size=True, element_shape=[2], clear_after_read=False)
        array = array.unstack(rows)
        if ag.reduce_sum(x) > 0:
            array = array.write(1, array.read(2) * 2.0)
        return array.stack()

    rows = np.arange(6.0).reshape(3, 2)
    agree(f, tmp_path, [NUMBER, ag.TensorSpec([3, 2])], (1.0, rows), (-1.0, rows))
