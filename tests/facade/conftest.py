"""What several tests of the facade use."""

import pytest

import autograph as ag


@pytest.fixture(scope="module", name="tf")
def _tf():
    ag.compat.install()
    import tensorflow as tf

    yield tf
    ag.compat.uninstall()
