"""Devices: names, the list of them, the block."""

import pytest

import autograph as ag
from runtime.context import ctx
from runtime.device import parse


def test_names():
    assert parse("/gpu:1") == ("GPU", 1)
    assert parse("CPU:0") == parse("/job:localhost/replica:0/task:0/device:CPU:0") == ("CPU", 0)
    assert parse("/device:OTHER:2") == ("OTHER", 2)
    for name in ("/?:1", "GPUx", "/OTHER:2"):
        with pytest.raises(ValueError, match="Malformed device specification"):
            parse(name)


def test_the_block_nests_and_restores():
    with ag.device("/CPU:0"):
        with ag.device("/GPU:0"):
            assert ctx.device == "/GPU:0"
            assert (ag.constant(1.0) + 1.0).numpy() == 2.0
        assert ctx.device == "/CPU:0"
    assert ctx.device is None
    with pytest.raises(ZeroDivisionError), ag.device("/CPU:0"):
        1 / 0
    assert ctx.device is None


def test_physical_devices():
    assert repr(ag.config.list_physical_devices()) == (
        "[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]"
    )
    assert ag.config.list_physical_devices("GPU") == []
