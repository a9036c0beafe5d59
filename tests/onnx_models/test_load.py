"""ONNX models as functions: called, differentiated, traced, with weights that train; and models that are refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import autograph as ag
from tests.onnx_models.running import run


def saved(path, nodes, inputs, outputs, initializers=(), opset=20, **options):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, *how) for name, *how in inputs],
        [helper.make_tensor_value_info(name, *how) for name, *how in outputs],
        [onnx.numpy_helper.from_array(array, name) for name, array in initializers],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9, **options)
    onnx.save(model, path)
    return path


@pytest.fixture
def dense(tmp_path):
    """y = relu(x @ w + b)."""
    random = np.random.default_rng(0)
    weights = [("w", random.normal(size=(3, 4)).astype(np.float32)), ("b", np.ones(4, np.float32))]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    path = tmp_path / "dense.onnx"
    return saved(path, nodes, [("x", TensorProto.FLOAT, ["n", 3])], [("y", TensorProto.FLOAT, ["n", 4])], weights)


X = np.array([[1.0, -2.0, 0.5]], np.float32)


def test_call_by_position_and_by_name(dense):
    model = ag.onnx.load(dense)
    assert (model.input_names, model.output_names) == (("x",), ("y",))
    assert model.input_specs["x"] == ag.TensorSpec([None, 3])
    expected = run(dense, {"x": X})["y"]
    for result in (model(X), model(x=ag.constant(X)), ag.function(model)(ag.constant(X))):
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


def test_gradients_eager_and_traced_and_training(dense):
    model = ag.onnx.load(dense, trainable=True)
    assert set(model.weights) == {"w", "b"}
    assert len(model.trainable_variables) == 2

    def loss_and_gradients(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            loss = ag.reduce_sum(model(x) ** 2)
        return loss, tape.gradient(loss, [x, *model.trainable_variables])

    eager = loss_and_gradients(ag.constant(X))
    traced = ag.function(loss_and_gradients)(ag.constant(X))
    for one, other in zip(ag.nest.flatten(eager), ag.nest.flatten(traced), strict=True):
        assert np.abs(one.numpy()).sum() > 0
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)
    before = float(eager[0])
    for variable, gradient in zip(model.trainable_variables, eager[1][1:], strict=True):
        variable.assign_sub(0.01 * gradient)
    assert float(loss_and_gradients(ag.constant(X))[0]) < before


def test_wrong_inputs(dense):
    model = ag.onnx.load(dense)
    for arguments, message in (
        (([[1.0, 2.0]],), r"input 'x' must be float32 of shape \(None, 3\), got float32 of shape \(1, 2\)"),
        ((ag.constant([[1, 2, 3]]),), "must be float32"),
        ((X, X), "takes 1 inputs, not 2"),
        ((), "needs values for x"),
    ):
        with pytest.raises(ag.errors.InvalidArgumentError, match=message):
            model(*arguments)
    with pytest.raises(ag.errors.InvalidArgumentError, match="no input 'z'"):
        model(X, z=X)


def test_there_and_back(tmp_path):
    """What we export we load, loops, branches, scans and sequences included: to the same results and gradients."""

    def f(x, n):
        total = ag.zeros_like(x)
        for i in ag.range(n):
            if ag.reduce_sum(x) > 1.0:
                total += x * ag.cast(i, ag.float32)
            else:
                total -= ag.sin(x)
        return total, ag.math.cumprod(x)

    specs = [ag.TensorSpec([None]), ag.TensorSpec([], ag.int32)]
    concrete = ag.function(f).get_concrete_function(*specs)
    made = ag.onnx.export(concrete, tmp_path / "model.onnx")
    model = ag.onnx.load(made.path)
    traced = ag.function(model, input_signature=specs)
    for x, n in (([1.0, 2.0], 3), ([-1.0, 0.5], 4), ([0.3], 0)):
        arguments = ag.constant(x), ag.constant(n)
        slopes = []
        for function in (concrete, model, traced):
            with ag.GradientTape() as tape:
                tape.watch(arguments[0])
                results = function(*arguments)
                target = ag.reduce_sum(results[0]) + ag.reduce_sum(results[1])
            slopes.append([each.numpy() for each in (*results, tape.gradient(target, arguments[0]))])
        for found in slopes[1:]:
            for one, other in zip(slopes[0], found, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_gradient_program_there_and_back(tmp_path):
    def f(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = x
            while ag.reduce_sum(y) < 100.0:
                y = y * y + 1.0
        return tape.gradient(y, x)

    concrete = ag.function(f).get_concrete_function(ag.TensorSpec([None]))
    model = ag.onnx.load(ag.onnx.export(concrete, tmp_path / "model.onnx").path)
    x = ag.constant([1.0, 1.5])
    np.testing.assert_allclose(model(x).numpy(), concrete(x).numpy(), rtol=1e-5)


def test_functions_of_the_model(tmp_path):
    function = helper.make_function(
        "mine", "twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 20)]
    )
    graph = helper.make_graph(
        [helper.make_node("twice", ["x"], ["y"], domain="mine")], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("mine", 1)]
    onnx.save(helper.make_model(graph, functions=[function], opset_imports=opsets, ir_version=9), tmp_path / "m.onnx")
    assert ag.onnx.load(tmp_path / "m.onnx")([1.0, 2.0]).numpy().tolist() == [2.0, 4.0]


# --- what is refused -------------------------------------------------------------------------------------------------


def test_files_that_are_no_models(tmp_path):
    with pytest.raises(ag.errors.NotFoundError, match="there is no file"):
        ag.onnx.load(tmp_path / "none.onnx")
    for content in (b"not a model", b"", bytes(range(256)) * 20):
        (tmp_path / "bad.onnx").write_bytes(content)
        with pytest.raises(ag.errors.DataLossError, match=r"bad.onnx isn't an? (valid )?ONNX model"):
            ag.onnx.load(tmp_path / "bad.onnx")


def test_damaged_models_raise_errors_of_ours(dense, tmp_path):
    content = dense.read_bytes()
    random = np.random.default_rng(1)
    known = (ag.errors.OpError, ValueError)
    for _ in range(300):
        damaged = bytearray(content)
        for place in random.integers(0, len(damaged), random.integers(1, 6)):
            damaged[place] = random.integers(256)
        (tmp_path / "bad.onnx").write_bytes(bytes(damaged[: random.integers(1, len(damaged) + 1)]))
        try:
            ag.onnx.load(tmp_path / "bad.onnx")(X)
        except known:
            pass


def test_unknown_operators(tmp_path):
    nodes = [helper.make_node("NonMaxSuppression", ["b", "s"], ["y"])]
    inputs = [("b", TensorProto.FLOAT, [1, 2, 4]), ("s", TensorProto.FLOAT, [1, 1, 2])]
    path = saved(tmp_path / "m.onnx", nodes, inputs, [("y", TensorProto.INT64, [None, 3])])
    with pytest.raises(ag.errors.UnimplementedError, match=r"operator NonMaxSuppression \(version 20\), which isn't"):
        ag.onnx.load(path)


@pytest.mark.parametrize(
    ("location", "message"),
    [("../secret.bin", "isn't a file in its folder"), ("/etc/passwd", "isn't a file in its folder"),
     ("none", "isn't a file"), ("short.bin", "beyond the end")],
)  # fmt: skip
def test_weights_outside_of_the_folder(tmp_path, location, message):
    (tmp_path / "secret.bin").write_bytes(bytes(16))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "short.bin").write_bytes(bytes(4))
    tensor = onnx.numpy_helper.from_array(np.ones(4, np.float32), "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    tensor.external_data.add(key="length", value="16")
    graph = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["y"])], "g", [], [helper.make_tensor_value_info("y", 1, [4])], [tensor]
    )
    (folder / "m.onnx").write_bytes(helper.make_model(graph, ir_version=9).SerializeToString())
    with pytest.raises(ag.errors.DataLossError, match=message):
        ag.onnx.load(folder / "m.onnx")


def test_weights_in_the_folder(tmp_path):
    weights = ag.constant(np.arange(2000.0, dtype=np.float32).reshape(4, 500))
    concrete = ag.function(lambda x: x @ weights).get_concrete_function(ag.TensorSpec([None, 4]))
    made = ag.onnx.export(concrete, tmp_path / "model.onnx", external_data=True)
    x = ag.ones([2, 4])
    np.testing.assert_allclose(ag.onnx.load(made.path)(x).numpy(), concrete(x).numpy(), rtol=1e-6)


def test_sequences_in_a_traced_loop_are_refused(tmp_path):
    def f(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = x
            while ag.reduce_sum(y) < 10.0:
                y = y * y + 1.0
        return tape.gradient(y, x)

    concrete = ag.function(f).get_concrete_function(ag.TensorSpec([None]))
    model = ag.onnx.load(ag.onnx.export(concrete, tmp_path / "model.onnx").path)
    with pytest.raises(ag.errors.UnimplementedError, match="call models with sequences eagerly"):
        ag.function(model).get_concrete_function(ag.TensorSpec([None]))
