"""ag.config: devices, soft placement, compilation, threads: what is set has its effect or says that it has none."""

import pytest

import autograph as ag
from runtime.engine import settings
from runtime.graph.passes import options as passes
from runtime.ops.random.stateful import STREAMS


@pytest.fixture(autouse=True)
def restored():
    yield
    ag.config.set_soft_device_placement(True)
    ag.config.optimizer.set_jit(None)
    ag.config.threading.set_intra_op_parallelism_threads(0)


def test_devices():
    cpu = ag.config.list_physical_devices("CPU")
    assert ag.config.get_visible_devices() == cpu
    assert repr(ag.config.list_logical_devices()) == "[LogicalDevice(name='/device:CPU:0', device_type='CPU')]"
    ag.config.set_visible_devices(cpu)
    ag.config.set_visible_devices([], "GPU")
    with pytest.raises(ValueError, match="can't be hidden"):
        ag.config.set_visible_devices([])
    with pytest.raises(ValueError, match="Unrecognized device"):
        ag.config.set_visible_devices(["CPU:0"])


def test_soft_placement():
    assert ag.config.get_soft_device_placement()
    with ag.device("/GPU:7"):
        assert float(ag.constant(1.0) + 1.0) == 2.0
    ag.config.set_soft_device_placement(False)
    with ag.device("CPU:0"):
        pass
    with pytest.raises(ag.errors.InvalidArgumentError, match="soft placement is off"), ag.device("/GPU:7"):
        pass


def test_jit():
    assert ag.config.optimizer.get_jit() is None
    ag.config.optimizer.set_jit("autoclustering")
    assert ag.config.optimizer.get_jit() is settings.jit_mode(None) is True
    ag.config.optimizer.set_jit(False)
    assert settings.jit_mode(None) is False
    with pytest.raises(ValueError, match="got 'fast'"):
        ag.config.optimizer.set_jit("fast")


def test_threads():
    assert ag.config.threading.get_intra_op_parallelism_threads() == 0
    assert ag.config.threading.get_inter_op_parallelism_threads() == 1
    ag.config.threading.set_intra_op_parallelism_threads(1)
    ag.config.threading.set_inter_op_parallelism_threads(0)
    with pytest.warns(UserWarning, match="4 threads were requested, but one is used"):
        ag.config.threading.set_inter_op_parallelism_threads(4)


def test_experimental_options():
    try:
        ag.config.optimizer.set_experimental_options({"fast_math": True, "loop_optimization": False})
        assert ag.config.optimizer.get_experimental_options() == {"fast_math": True, "loop_optimization": False}
        with pytest.warns(UserWarning, match="'layout_optimizer' has no effect"):
            ag.config.optimizer.set_experimental_options({"layout_optimizer": True})
        with pytest.raises(ValueError, match="unknown option 'speed'"):
            ag.config.optimizer.set_experimental_options({"speed": True})
        graph = ag.function(lambda x: x + 0.0).get_concrete_function(ag.TensorSpec([], ag.float32)).graph
        assert graph.outputs[0] is graph.inputs[0]
    finally:
        passes._chosen.clear()


def test_determinism():
    compiled = lambda: settings.kernel_counters().compiled + settings.kernel_counters().loaded  # noqa: E731
    f = ag.function(lambda x: ag.random.uniform([2]) + ag.sin(x) * 17.25)
    aside = ag.function(f.python_function, jit_compile=False)
    ag.random.set_seed(None)  # which others may have set
    try:
        ag.config.experimental.enable_op_determinism()
        for function in (f, aside, f.python_function):
            with pytest.raises(RuntimeError, match="without a seed differ from run to run"):
                function(ag.constant(1.0))
        with pytest.raises(RuntimeError, match=r"ag\.random\.set_seed"):
            ag.data.Dataset.range(5).shuffle(5)
        ag.random.uniform([2], seed=3)
        settings.wait_for_background()  # for what other tests have left to compile
        before = compiled()
        assert ag.function(lambda x: ag.cos(x) * 18.25)(ag.constant(0.0)) == 18.25
        assert compiled() == before + 1, "before the first run, not aside"
        ag.random.set_seed(7)
        assert f(ag.constant(1.0)).shape == (2,)
    finally:
        settings.set_deterministic(False)
        STREAMS.needs_seed = False
        ag.random.set_seed(None)
    ag.random.uniform([2])
