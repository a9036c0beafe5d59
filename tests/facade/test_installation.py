"""`ag.compat.install()` and `uninstall()`: `import tensorflow` gives this project, until it no longer does."""

import importlib.util
import subprocess
import sys
import textwrap

import pytest

import autograph as ag


def in_a_process(code, *, path=None):
    """What a program prints, on either stream."""
    before = "" if path is None else f"import sys; sys.path.insert(0, {str(path)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", before + textwrap.dedent(code)], capture_output=True, text=True, timeout=300, check=False
    )
    return done.stdout + done.stderr


def test_names_are_ours(tensorflow):
    assert tensorflow.add is ag.add
    assert tensorflow.math.sin is ag.math.sin
    assert tensorflow.data.Dataset is ag.data.Dataset
    import tensorflow.compat.v2 as tf2
    import tensorflow.math
    from tensorflow.experimental import numpy as tnp

    assert tf2.add is ag.add
    assert tf2.math.sin is tensorflow.math.sin
    assert tnp.mean is ag.experimental.numpy.mean


def test_names_around_the_program(tensorflow):
    """Those that scripts begin with: logging, devices, keys of saved models."""
    import logging

    assert tensorflow.get_logger() is logging.getLogger("tensorflow")
    assert tensorflow.test.gpu_device_name() == ""
    assert tensorflow.config.experimental.get_visible_devices("GPU") == []
    assert tensorflow.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY == "serving_default"
    assert tensorflow.experimental.numpy.float_ is not None
    before = tensorflow.config.functions_run_eagerly()
    tensorflow.config.experimental_run_functions_eagerly(not before)
    assert tensorflow.config.experimental_functions_run_eagerly() is not before
    tensorflow.config.experimental_run_functions_eagerly(before)


def test_a_program_for_tpus_falls_back(tensorflow):
    """The beginning of many notebooks: it catches TensorFlow's error."""
    resolver = tensorflow.distribute.cluster_resolver.TPUClusterResolver
    for make in (resolver, resolver.connect):
        with pytest.raises(ValueError, match="Please provide a TPU Name to connect to"):
            make(tpu="")


def test_every_public_name_is_there(tensorflow):
    missing = []

    def compare(ours, theirs, path):
        for name in ours.__all__:
            value = getattr(ours, name)
            if getattr(value, "__name__", "").startswith("autograph.namespaces.") and hasattr(value, "__all__"):
                compare(value, getattr(theirs, name), f"{path}.{name}")
            elif getattr(theirs, name) is not value:
                missing.append(f"{path}.{name}")

    compare(ag, tensorflow, "tensorflow")
    assert missing == []


@pytest.mark.usefixtures("no_facade")
def test_installing_twice_and_uninstalling_twice():
    ag.compat.install()
    ag.compat.install()
    import tensorflow

    assert ag.compat.is_installed()
    assert sys.modules["tensorflow"] is tensorflow
    ag.compat.uninstall()
    ag.compat.uninstall()
    assert not ag.compat.is_installed()
    assert not [name for name in sys.modules if name == "tensorflow" or name.startswith("tensorflow.")]


@pytest.mark.usefixtures("no_facade")
def test_classes_have_tensorflows_names_meanwhile():
    before = ag.data.Dataset.__name__, ag.Tensor.__module__
    ag.compat.install()
    assert ag.data.Dataset.__name__ == "DatasetV2"
    assert ag.Tensor.__module__.startswith("tensorflow.python.")
    ag.compat.uninstall()
    assert (ag.data.Dataset.__name__, ag.Tensor.__module__) == before


def test_importing_autograph_imports_no_facade():
    code = "import sys, autograph; print([n for n in sys.modules if n.startswith(('tensorflow', 'keras'))], "
    code += "'autograph.facade.tensorflow' in sys.modules)"
    assert in_a_process(code) == "[] False\n"


@pytest.fixture
def other_tensorflow(tmp_path):
    """A folder with a package that stands for an installed TensorFlow."""
    package = tmp_path / "tensorflow"
    package.mkdir()
    (package / "__init__.py").write_text("add = 'another one'\n")
    return tmp_path


def test_beside_an_installed_tensorflow(other_tensorflow):
    code = """
        import autograph as ag
        ag.compat.install()
        import tensorflow as tf
        print(tf.add is ag.add)
        ag.compat.uninstall()
        import tensorflow as tf
        print(tf.add)
    """
    assert in_a_process(code, path=other_tensorflow) == "True\nanother one\n"


def test_a_tensorflow_that_is_imported_already_is_an_error(other_tensorflow):
    code = """
        import tensorflow, autograph as ag
        ag.compat.install()
    """
    said = in_a_process(code, path=other_tensorflow)
    assert "FacadeError: tensorflow is already imported in this process, from " in said
    assert "autograph.compat.install() before anything imports tensorflow" in said


@pytest.mark.skipif(
    importlib.util.find_spec("keras") is None, reason="needs the keras extra: pip install -e '.[keras]'"
)
def test_keras_comes_back_after_uninstalling():
    code = """
        import sys
        import autograph as ag
        first = ag.keras.Model
        ag.compat.uninstall()
        print("keras" in sys.modules, "autograph.keras" in sys.modules)
        print(ag.keras.Model is first, ag.compat.is_installed(), tuple(ag.keras.layers.Dense(2)(ag.ones([1, 3])).shape))
    """
    assert in_a_process(code) == "False False\nFalse True (1, 2)\n"


def test_keras_on_another_back_end_is_an_error():
    code = """
        import os
        os.environ["KERAS_BACKEND"] = "numpy"
        import autograph as ag
        ag.keras
    """
    assert "FacadeError: KERAS_BACKEND is 'numpy'" in in_a_process(code)


def test_keras_that_is_missing_is_an_error():
    code = """
        import sys
        sys.modules["keras"] = None
        import autograph as ag
        ag.keras
    """
    assert "FacadeError: Keras 3 isn't installed: python -m pip install 'keras>=3.15,<3.16'" in in_a_process(code)


def test_names_that_are_not_there(tensorflow):
    with pytest.raises(AttributeError, match=r"no attribute 'Session': TensorFlow 2 has no sessions"):
        tensorflow.Session  # noqa: B018
    with pytest.raises(AttributeError, match=r"'tensorflow.raw_ops' has no attribute 'Abs': autograph doesn't have it"):
        tensorflow.raw_ops.Abs  # noqa: B018
    with pytest.raises(ImportError):
        from tensorflow import Session  # noqa: F401
    with pytest.raises(ModuleNotFoundError):
        import tensorflow.nothing  # noqa: F401


def test_is_found_by_importlib(tensorflow):
    assert importlib.util.find_spec("tensorflow").origin == "autograph"
    assert tensorflow.__version__.startswith("2.")
    assert tensorflow.version.VERSION == tensorflow.__version__


def test_pickles_while_it_is_installed(tensorflow):
    import pickle

    ragged = ag.ragged.constant([[1], [2, 3]])
    assert type(pickle.loads(pickle.dumps(type(ragged)))) is type
    assert list(pickle.loads(pickle.dumps(ag.data.Dataset.range(2)))) == [0, 1]


def test_functions_dispatch_by_types(tensorflow):
    tf = tensorflow

    class Length(tf.experimental.ExtensionType):
        meters: tf.Tensor

    @tf.experimental.dispatch_for_unary_elementwise_apis(Length)
    def of_length(api_func, x):
        return Length(api_func(x.meters) * factor)

    @tf.function
    def f(x):
        return tf.math.abs(x)

    factor = 2.0
    assert f(Length(-3.0)).meters.numpy() == 6.0
    factor = 3.0
    assert f(Length(-3.0)).meters.numpy() == 9.0
    tf.experimental.unregister_dispatch_for(of_length)
    assert tf.type_spec_from_value(Length(1.0)) == Length.Spec(tf.TensorSpec([], tf.float32))


def test_instances(tensorflow):
    tf = tensorflow
    assert isinstance(ag.TensorSpec([]), tf.TypeSpec)
    assert isinstance(ag.ragged.constant([[1]]), tf.CompositeTensor)
    assert not isinstance(ag.constant(1), tf.CompositeTensor)
    assert tf.type_spec_from_value(ag.constant([1.0])) == ag.TensorSpec([1], ag.float32)
    assert tf.type_spec_from_value(ag.ragged.constant([[1]])) == ag.RaggedTensorSpec([1, None], ag.int32)
    assert tf.DeviceSpec.from_string("/job:worker/task:1/device:GPU:0").to_string() == "/job:worker/task:1/device:GPU:0"
    assert not isinstance(ag.data.Dataset.range(1), tf.distribute.DistributedDataset)
    with pytest.raises(tf.errors.UnimplementedError, match="MultiWorkerMirroredStrategy"):
        tf.distribute.TPUStrategy()


def test_version_1(tensorflow):
    v1 = tensorflow.compat.v1
    assert v1.where([True, False], [[1, 2], [3, 4]], [[5, 6], [7, 8]]).numpy().tolist() == [[1, 2], [7, 8]]
    variable = ag.Variable(1.0)
    v1.assign_add(variable, 2.0)
    assert float(variable) == 3
    with pytest.raises(tensorflow.errors.UnimplementedError, match="no graphs to build by hand"):
        v1.disable_eager_execution()
    with pytest.raises(RuntimeError, match="not compatible with eager"):
        v1.placeholder(tensorflow.float32, [None])


def test_raw_operations_agree_with_numpy(tensorflow):
    import numpy as np

    x = np.random.default_rng(0).normal(2, 3, (4, 5, 5, 3)).astype("float32")
    scale, offset = np.array([1.0, 2, 3], "float32"), np.array([0.5, 0, -1], "float32")
    done = tensorflow.raw_ops.FusedBatchNormV3(
        x=x, scale=scale, offset=offset, mean=[], variance=[], epsilon=1e-3, is_training=True
    )
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    np.testing.assert_allclose(done.y, (x - mean) / np.sqrt(variance + 1e-3) * scale + offset, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(done.batch_variance, x.var((0, 1, 2), ddof=1), rtol=1e-5)
    assert tensorflow.raw_ops.Bucketize(input=[[1, 20], [5, 5]], boundaries=[5, 10]).numpy().tolist() == [
        [0, 2],
        [1, 1],
    ]


def test_a_context_that_is_reset_has_no_logical_devices(tensorflow):
    from tensorflow.python.eager import context

    (cpu,) = ag.config.list_physical_devices("CPU")
    ag.config.set_logical_device_configuration(cpu, [ag.config.LogicalDeviceConfiguration()] * 2)
    context._reset_context()
    assert ag.config.get_logical_device_configuration(cpu) is None


def test_dynamic_update_slice(tensorflow):
    from tensorflow.compiler.tf2xla.python.xla import dynamic_update_slice

    found = dynamic_update_slice(ag.zeros([3, 4]), [[1.0, 2.0]], [5, 1])
    assert found.numpy().tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 2, 0]]


def test_tracking(tensorflow):
    tracking = tensorflow.__internal__.tracking

    class Model(tracking.AutoTrackable):
        def __init__(self):
            self.weight = ag.Variable(1.0)
            self.size = 3
            self._track_trackable(ag.Variable(2.0), "bias")

        @tracking.no_automatic_dependency_tracking
        def build(self):
            return self._self_setattr_tracking

    model = Model()
    assert set(model._trackable_children()) == {"weight", "bias"}
    assert model.build() is False
    assert model._self_setattr_tracking
    with pytest.raises(ValueError, match="tracked already"):
        model._track_trackable(ag.Variable(3.0), "bias")


def test_variables_that_act_as_ours_have_gradients(tensorflow):
    class Parameter:
        _should_act_as_resource_variable = True

        def __init__(self, value):
            self.value = ag.Variable(value)

        @property
        def handle(self):
            return self.value.handle

    parameter = Parameter(3.0)
    with ag.GradientTape() as tape:
        y = parameter.value * parameter.value
    assert float(tape.gradient(y, parameter)) == 6
    with ag.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(parameter)
        y = parameter.value * 5.0
    assert tape.gradient(y, [parameter])[0].numpy() == 5


def test_unique_slices(tensorflow):
    import numpy as np

    x = np.array([[1, 2, 1, 0], [3, 4, 3, 0]])
    y, idx, count = tensorflow.raw_ops.UniqueWithCountsV2(x=x, axis=[1])
    assert y.numpy().tolist() == [[1, 2, 0], [3, 4, 0]]
    assert (idx.numpy().tolist(), count.numpy().tolist()) == ([0, 1, 0, 2], [2, 1, 1])
    function = ag.function(lambda x: tensorflow.raw_ops.UniqueV2(x=x, axis=[0]))
    assert function([[1.0, np.nan], [1.0, np.nan], [2.0, 2.0], [2.0, 2.0]])[1].numpy().tolist() == [0, 1, 2, 2]


def test_the_test_case(tensorflow):
    class Case(tensorflow.test.TestCase):
        def runTest(self):
            self.assertAllEqual(ag.constant([1, 2]), [1, 2])
            self.assertAllClose({"a": [1.0]}, {"a": ag.constant([1.0 + 1e-8])})
            self.assertNotAllClose([1.0], [2.0])
            self.assertShapeEqual(ag.ones([2, 3]), ag.zeros([2, 3]))
            self.assertAllInRange([0.0, 1.0], 0, 1)
            self.assertDTypeEqual(ag.constant(1.0), "float32")
            with self.assertRaisesOpError("expand dim"):
                ag.expand_dims(1.0, 3)
            for wrong in (
                lambda: self.assertAllEqual([1], [2]),
                lambda: self.assertAllClose([1.0], [1.1]),
                lambda: self.assertNotAllEqual([1], [1]),
                lambda: self.assertAllGreater([1], 1),
                lambda: self.assertAllInSet([3], {1, 2}),
                lambda: self.assertAllFinite([float("nan")]),
            ):
                with self.assertRaises(AssertionError):
                    wrong()
            assert self.evaluate({"a": ag.constant(2)}) == {"a": 2}

    assert Case().run().wasSuccessful()
