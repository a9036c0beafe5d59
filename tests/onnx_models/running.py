"""Runs exported models with ONNX Runtime, after `onnx.checker` has looked at them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install -e '.[test]'")
if tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (1, 24):  # the last for Python 3.10
    pytest.skip(
        f"ONNX Runtime {onnxruntime.__version__} lacks kernels of some dtypes, and reduces truth values wrongly",
        allow_module_level=True,
    )


def session(model):
    """A session of a model, or of a model's file, whose warnings are kept quiet."""
    onnx.checker.check_model(model if isinstance(model, onnx.ModelProto) else str(model), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def as_text(array):
    """An array as ONNX Runtime takes it and gives it back: strings are text."""
    array = np.asarray(array)
    if array.dtype != object:
        return array
    texts = [each.decode() if isinstance(each, bytes) else str(each) for each in array.ravel().tolist()]
    found = np.empty(array.shape, object)
    found.reshape(-1)[:] = texts
    return found


def run(model, inputs):
    """The results of a model, by name; inputs: by name."""
    made = session(model)
    results = made.run(None, {name: as_text(value) for name, value in inputs.items()})
    return dict(zip([each.name for each in made.get_outputs()], results, strict=True))


# Of each dtype: relative to the larger of a result's elements and 1.
TOLERANCES = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-11}


def check(expected, found, tolerance=None):
    """Fails unless two arrays agree: exactly for integers, booleans and strings, else within the stated tolerance."""
    expected, found = as_text(expected), np.asarray(found)
    assert found.dtype == expected.dtype, f"{found.dtype} instead of {expected.dtype}"
    assert found.shape == expected.shape, f"{found.shape} instead of {expected.shape}"
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected)
        return
    tolerance = TOLERANCES[expected.dtype.name] if tolerance is None else tolerance
    finite = expected[np.isfinite(expected)]
    scale = max(1.0, float(np.abs(finite).max(initial=0.0)))
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance * scale
    )
