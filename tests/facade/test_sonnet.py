"""Sonnet 2, unchanged: programs that import it, each run by `autograph run`. (`python -m tests.sonnet` runs its own
tests, which need a checkout.)"""

import importlib.util
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("sonnet") is None, reason="needs the extra [sonnet]")
BEGINNING = """\
import numpy as np
import sonnet as snt
import tensorflow as tf
"""


def run(tmp_path, code):
    """What the program prints; it must end without an error."""
    script = tmp_path / "program.py"
    script.write_text(BEGINNING + textwrap.dedent(code), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "autograph", "run", str(script)],
        capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_network_learns_and_is_restored(tmp_path):
    said = run(
        tmp_path,
        """
        tf.random.set_seed(1)
        net = snt.nets.MLP([16, 1])
        optimizer = snt.optimizers.Adam(0.02)
        x = tf.random.normal([128, 4], seed=2)
        y = tf.reduce_sum(x, 1, keepdims=True) ** 2

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((net(x) - y) ** 2)
            optimizer.apply(tape.gradient(loss, net.trainable_variables), net.trainable_variables)
            return loss

        first = float(step())
        losses = [float(step()) for _ in range(100)]
        print(losses[-1] < first / 4)
        path = tf.train.Checkpoint(net=net).save("c")
        other = snt.nets.MLP([16, 1])
        other(x)
        tf.train.Checkpoint(net=other).restore(path).assert_existing_objects_matched()
        np.testing.assert_allclose(other(x), net(x), rtol=1e-5, atol=1e-5)
        print(len(snt.format_variables(net.trainable_variables).splitlines()))
        """,
    )
    assert said.split() == ["True", "6"]


def test_a_recurrent_core_is_unrolled_in_a_function(tmp_path):
    said = run(
        tmp_path,
        """
        core = snt.LSTM(3)
        inputs = tf.random.normal([5, 2, 4], seed=1)  # steps, rows, features

        @tf.function
        def unrolled(inputs):
            return snt.dynamic_unroll(core, inputs, core.initial_state(2))

        outputs, state = unrolled(inputs)
        wanted, expected = snt.static_unroll(core, inputs, core.initial_state(2))
        np.testing.assert_allclose(outputs, wanted, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(state.cell, expected.cell, rtol=1e-5, atol=1e-6)
        print(*outputs.shape)
        """,
    )
    assert said.split() == ["5", "2", "3"]


def test_averages_of_a_normalization_move_in_training_only(tmp_path):
    said = run(
        tmp_path,
        """
        norm = snt.BatchNorm(create_scale=True, create_offset=True, decay_rate=0.9)
        net = snt.Sequential([snt.Conv2D(2, 3), lambda x: norm(x, is_training=training)])
        images = tf.random.normal([4, 6, 6, 1], mean=3.0, seed=1)
        for training in (True, False, False):
            net(images)
            print(float(tf.reduce_sum(tf.abs(norm.moving_mean.value))) > 0, int(norm.moving_mean._counter))
        """,
    )
    assert said.split() == ["True", "1"] * 3
