"""The programs behind the saved models of `tests/golden/saved_models`, which are kept for ever.

`python -m tests.saving.golden_models FOLDER` writes one for the present version of the format. A folder that is
there is never written again: each release reads the models of all earlier ones.
"""

from __future__ import annotations

import collections
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

import autograph as ag

Pair = collections.namedtuple("Pair", "first second")


class Dense(ag.Module):
    def __init__(self, generator, size):
        super().__init__()
        self.kernel = ag.Variable(generator.normal([3, size]), name="kernel")
        self.bias = ag.Variable(ag.zeros([size]), name="bias")

    def __call__(self, x):
        return ag.nn.relu(x @ self.kernel + self.bias)


class Model(ag.Module):
    """Variables, tensors, a file, and functions with control flow, state, strings, ragged tensors and gradients."""

    def __init__(self, words):
        super().__init__()
        self.generator = ag.random.Generator.from_seed(3)
        self.layers = [Dense(self.generator, 3), Dense(self.generator, 3)]
        self.calls = ag.Variable(0, trainable=False)
        self.rates = {"fast": ag.Variable(0.5), "slow": ag.Variable(ag.constant(0.25, ag.bfloat16), trainable=False)}
        self.shift = ag.constant([0.5, -0.5, 0.25])
        self.pair = (ag.Variable(b"text"), [ag.constant(1 + 2j)])
        self.words = ag.saved_model.Asset(words)

    @ag.function(input_signature=[ag.TensorSpec([None, 3], ag.float32, name="x")])
    def __call__(self, x):
        """The layers one after another."""
        self.calls.assign_add(1)
        for layer in self.layers:
            x = layer(x)
        return x + self.shift

    @ag.function
    def train_step(self, x, y):
        with ag.GradientTape() as tape:
            loss = ag.reduce_mean((self(x) - y) ** 2)
        variables = [v for layer in self.layers for v in layer.variables]
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):
            variable.assign_sub(self.rates["fast"] * gradient)
        return loss

    @ag.function
    def collatz(self, n):
        steps = 0
        seen = []
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
            seen.append(n)
            if steps > 200:
                raise ValueError(f"{n} takes too many steps")
        return steps, ag.stack(seen)

    @ag.function
    def factorial(self, n):
        if n <= 1:
            return ag.constant(1)
        return n * self.factorial(n - 1)

    @ag.function
    def choose(self, x, how="double", scale=2.0):
        if how == "double":
            return {"result": x * scale, "nothing": None}
        return Pair(x, [x + 1])

    @ag.function
    def row_sums(self, rows):
        return ag.reduce_sum(rows, axis=1), rows * 2.0

    @ag.function
    def file(self):
        return self.words.asset_path

    @ag.function
    def checked(self, x):
        ag.debugging.assert_positive(x, message="x must be positive")
        return ag.sqrt(x)

    @ag.function
    def draw(self):
        return self.generator.uniform([2])

    @ag.function
    def filled(self, n):
        array = ag.TensorArray(ag.float32, size=n)
        for i in ag.range(n):
            array = array.write(i, ag.cast(i, ag.float32) ** 2)
        return array.stack()


def make(words):
    model = Model(words)
    use(model)
    return model


def use(model):
    """What the functions give, as JSON."""
    x = ag.constant(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    pair = model.choose(ag.constant([1, 2]), "other")
    steps, seen = model.collatz(ag.constant(7))
    sums, doubled = model.row_sums(ag.ragged.constant([[1.0, 2.0], [3.0]]))
    return {
        "loss": round(float(model.train_step(x, ag.ones([2, 3]))), 5),
        "call": np.asarray(model(x)).round(5).tolist(),
        "calls": int(model.calls),
        "collatz": [int(steps), seen.numpy().tolist()],
        "factorial": int(model.factorial(ag.constant(5))),
        "double": np.asarray(model.choose(ag.constant(3.0))["result"]).tolist(),
        "pair": [pair.first.numpy().tolist(), pair.second[0].numpy().tolist()],
        "row_sums": [sums.numpy().tolist(), doubled.to_list()],
        "file": Path(model.file().numpy().decode()).read_text(),
        "checked": float(model.checked(ag.constant(4.0))),
        "draw": np.asarray(model.draw()).round(5).tolist(),
        "filled": model.filled(ag.constant(4)).numpy().tolist(),
        "kept": [
            model.shift.numpy().tolist(), float(model.rates["slow"]), model.pair[0].numpy().decode(),
            str(model.pair[1][0].numpy()),
        ],
    }  # fmt: skip


def main(folder: str) -> None:
    with tempfile.TemporaryDirectory() as work:
        words = Path(work, "words.txt")
        words.write_text("one two three")
        ag.random.set_seed(1)
        model = make(words)
        factorial = model.factorial.get_concrete_function(ag.constant(1))
        signatures = {"serving_default": model.__call__, "factorial": factorial}
        ag.saved_model.save(model, folder, signatures)
    expected = use(ag.saved_model.load(folder))
    Path(folder, "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
