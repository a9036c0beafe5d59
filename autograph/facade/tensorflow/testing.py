"""`tf.test`: the class that libraries' tests inherit from."""

from __future__ import annotations

import contextlib
import random
import tempfile
import unittest
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import autograph as ag

_SEED = 87654321  # TensorFlow's


def _base() -> type:
    """absl's test case, as in TensorFlow, where it is installed."""
    try:
        from absl.testing import absltest
    except ModuleNotFoundError:
        return unittest.TestCase
    return absltest.TestCase


class _Session:
    """What runs tensors that have their values already."""

    def __init__(self, evaluate: Callable[[Any], Any]) -> None:
        self._evaluate = evaluate

    def run(self, fetches: Any, *arguments: Any, **options: Any) -> Any:
        """The values of tensors in a structure."""
        return self._evaluate(fetches)


def test_case() -> type:
    """The class `tf.test.TestCase`; made when it is asked for, since absl is loaded for it."""

    class TestCase(_base()):  # type: ignore[misc]
        """A test case that compares tensors, arrays and structures of them."""

        def setUp(self) -> None:
            """Seeds all random numbers, so that each test begins with the same."""
            super().setUp()
            random.seed(_SEED)
            np.random.seed(_SEED)
            ag.random.set_seed(_SEED)

        def evaluate(self, tensors: Any) -> Any:
            """The values of tensors in a structure, as NumPy's."""
            return ag.nest.map_structure(lambda each: each.numpy() if hasattr(each, "numpy") else each, tensors)

        @contextlib.contextmanager
        def session(self, *arguments: Any, **options: Any) -> Iterator[_Session]:
            """A block with what has `run`, as TensorFlow has it outside of graphs."""
            yield _Session(self.evaluate)

        cached_session = test_session = session

        def get_temp_dir(self) -> str:
            """A folder that goes when the test ends."""
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            return folder.name

        def _GetNdArray(self, a: Any) -> np.ndarray:
            return _array(a)

        def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
            np.testing.assert_array_equal(_array(a), _array(b), err_msg=msg or "")

        def assertAllClose(
            self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
        ) -> None:
            if isinstance(a, Mapping):
                self.assertEqual(sorted(a), sorted(b), msg)
                for key in a:
                    self.assertAllClose(a[key], b[key], rtol, atol, msg)
            elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
                self.assertEqual(len(a), len(b), msg)
                for one, other in zip(a, b):
                    self.assertAllClose(one, other, rtol, atol, msg)
            else:
                np.testing.assert_allclose(_wide(a), _wide(b), rtol=rtol, atol=atol, err_msg=msg or "")

        def assertAllCloseAccordingToType(
            self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, float_rtol: float = 1e-6,
            float_atol: float = 1e-6, half_rtol: float = 1e-3, half_atol: float = 1e-3, msg: str | None = None,
        ) -> None:  # fmt: skip
            kinds = {_array(a).dtype, _array(b).dtype}
            if np.dtype(np.float16) in kinds:
                rtol, atol = max(rtol, half_rtol), max(atol, half_atol)
            elif np.dtype(np.float32) in kinds:
                rtol, atol = max(rtol, float_rtol), max(atol, float_atol)
            self.assertAllClose(a, b, rtol, atol, msg)

        def assertNotAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None) -> None:
            self._assert_fails(lambda: self.assertAllClose(a, b, rtol, atol), msg or "the values are close")

        def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
            self._assert_fails(lambda: self.assertAllEqual(a, b), msg or "the values are equal")

        def _assert_fails(self, check: Callable[[], None], said: str) -> None:
            try:
                check()
            except AssertionError:
                return
            self.fail(said)

        def assertNear(self, f1: Any, f2: Any, err: float, msg: str | None = None) -> None:
            self.assertAlmostEqual(float(f1), float(f2), delta=err, msg=msg)

        def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: str | None = None) -> None:
            np.testing.assert_allclose(_wide(farray1), _wide(farray2), rtol=0, atol=err, err_msg=msg or "")

        assertNDArrayNear = assertArrayNear

        def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
            self.assertEqual(tuple(input_a.shape), tuple(input_b.shape), msg)

        def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
            self.assertEqual(_array(target).dtype, ag.as_dtype(expected_dtype).as_numpy_dtype)

        def assertAllInRange(
            self, target: Any, lower_bound: Any, upper_bound: Any, open_lower_bound: bool = False,
            open_upper_bound: bool = False,
        ) -> None:  # fmt: skip
            values = _array(target)
            self.assertTrue(np.all(values > lower_bound if open_lower_bound else values >= lower_bound), values)
            self.assertTrue(np.all(values < upper_bound if open_upper_bound else values <= upper_bound), values)

        def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
            self.assertTrue(np.all(_array(a) > comparison_target), a)

        def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
            self.assertTrue(np.all(_array(a) >= comparison_target), a)

        def assertAllLess(self, a: Any, comparison_target: Any) -> None:
            self.assertTrue(np.all(_array(a) < comparison_target), a)

        def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
            self.assertTrue(np.all(_array(a) <= comparison_target), a)

        def assertAllInSet(self, target: Any, expected_set: Any) -> None:
            self.assertLessEqual(set(_array(target).ravel().tolist()), set(expected_set))

        def assertAllFinite(self, a: Any) -> None:
            self.assertTrue(np.all(np.isfinite(_array(a))), a)

        def assertAllNan(self, a: Any) -> None:
            self.assertTrue(np.all(np.isnan(_array(a))), a)

        @contextlib.contextmanager
        def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Iterator[None]:
            """A block that raises an error of `tf.errors` whose message matches."""
            with self.assertRaisesWithPredicateMatch(ag.errors.OpError, expected_err_re_or_predicate):
                yield

        assertRaisesIncompatibleShapesError = assertRaisesOpError

        @contextlib.contextmanager
        def assertRaisesWithPredicateMatch(
            self, exception_type: Any, expected_err_re_or_predicate: Any
        ) -> Iterator[None]:
            """A block that raises such an exception, whose message matches, or of which a function is true."""
            with self.assertRaises(exception_type) as caught:
                yield
            expected = expected_err_re_or_predicate
            if callable(expected):
                self.assertTrue(expected(caught.exception))
            else:
                self.assertRegex(str(caught.exception), expected)

    TestCase.__module__ = "tensorflow.test"
    return TestCase


def main(argv: Any = None) -> None:
    """Runs the tests of the program."""
    try:
        from absl.testing import absltest
    except ModuleNotFoundError:
        unittest.main(argv=argv)
    else:
        absltest.main(argv=argv)


def _array(value: Any) -> np.ndarray:
    if isinstance(value, (list, tuple)):
        return np.asarray([_array(each) for each in value])
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def _wide(value: Any) -> np.ndarray:
    array = _array(value)
    return array if array.dtype.kind == "c" else array.astype(np.float64)


def gpu_device_name() -> str:
    """The name of the first GPU, or the empty string."""
    found = ag.config.list_logical_devices("GPU")
    return f"/device:{found[0].name.rpartition('device:')[2]}" if found else ""


MODULES: dict[str, dict[str, Any]] = {
    "tensorflow.test": {
        "Benchmark": type(
            "Benchmark", (), {"__doc__": "Base of benchmarks, which only a runner of TensorFlow's runs."}
        ),
        "gpu_device_name": gpu_device_name,
        "is_built_with_cuda": lambda: False,
        "is_built_with_gpu_support": lambda: False,
        "is_built_with_rocm": lambda: False,
        "is_built_with_xla": lambda: False,
        "is_gpu_available": lambda *_, **__: bool(ag.config.list_physical_devices("GPU")),
        "main": main,
    }
}
# Made when they are asked for.
LATE: dict[str, dict[str, Callable[[], Any]]] = {"tensorflow.test": {"TestCase": test_case}}
