"""`model.export(path, format="onnx")` of Keras: ONNX Runtime gives what the model gives."""

import importlib.util

import numpy as np
import pytest

import autograph as ag

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("keras") is None or importlib.util.find_spec("onnxruntime") is None,
    reason="needs the extras keras and test",
)
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def keras(tensorflow):
    return ag.keras


def attention(keras):
    x = keras.layers.Input((6, 8), name="x")
    seen = keras.layers.MultiHeadAttention(2, 4)(x, x)
    y = keras.layers.LayerNormalization()(keras.layers.Add()([x, seen]))
    return keras.Model(x, {"y": y, "flat": keras.layers.Flatten()(y)})


def sequential(keras, shape, layers, dtype="float32"):
    found = [getattr(keras.layers, name)(*arguments, **options) for name, arguments, options in layers]
    return keras.Sequential([keras.layers.Input(shape, dtype=dtype), *found])


MODELS = {
    "dense": (
        (5, 8),
        lambda keras: sequential(keras, (8,), [
            ("Dense", (16,), {"activation": "gelu"}), ("BatchNormalization", (), {}), ("Dropout", (0.5,), {}),
            ("Dense", (3,), {"activation": "softmax"}),
        ]),
    ),
    "convolutions": (
        (2, 20, 18, 3),
        lambda keras: sequential(keras, (20, 18, 3), [
            ("Conv2D", (8, 3), {"activation": "relu"}), ("MaxPooling2D", (), {}), ("DepthwiseConv2D", (3,), {}),
            ("Conv2D", (6, 3), {"strides": 2, "padding": "same", "dilation_rate": 1}), ("AveragePooling2D", (2,), {}),
            ("GlobalAveragePooling2D", (), {}), ("Dense", (4,), {}),
        ]),
    ),
    "open sizes": (
        (2, 13, 9, 3),
        lambda keras: sequential(keras, (None, None, 3), [
            ("Conv2D", (8, 3), {"padding": "same"}), ("MaxPooling2D", (), {}), ("Conv2D", (4, 3), {"strides": 2}),
            ("GlobalAveragePooling2D", (), {}),
        ]),
    ),
    "resizing": (
        (2, 8, 8, 3),
        lambda keras: sequential(keras, (8, 8, 3), [
            ("Conv2DTranspose", (4, 3), {"strides": 2, "padding": "same"}),
            ("UpSampling2D", (2,), {"interpolation": "bilinear"}), ("SeparableConv2D", (5, 3), {}),
        ]),
    ),
    "recurrent": (
        (3, 7, 4),
        lambda keras: sequential(keras, (None, 4), [
            ("LSTM", (8,), {"return_sequences": True}), ("GRU", (6,), {}), ("Dense", (2,), {}),
        ]),
    ),
    "attention": ((2, 6, 8), attention),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:In the future `np.object`:FutureWarning")
@pytest.mark.parametrize("name", list(MODELS))
def test_model(keras, name, tmp_path):
    import onnxruntime

    keras.utils.set_random_seed(1)
    shape, make = MODELS[name]
    model, x = make(keras), RNG.normal(size=shape).astype("float32")
    expected = [each.numpy() for each in ag.nest.flatten(model(x, training=False))]
    model.export(tmp_path / "model.onnx", format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: x})
    for wanted, got in zip(expected, found, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:In the future `np.object`:FutureWarning")
def test_another_operator_set_is_refused(keras, tmp_path):
    model = MODELS["dense"][1](keras)
    model(np.ones([1, 8], "float32"))
    with pytest.raises(ValueError, match="writes ONNX models with operator set 20, not 17"):
        model.export(tmp_path / "model.onnx", format="onnx", opset_version=17, verbose=False)
