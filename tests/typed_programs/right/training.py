"""A model of variables in modules, trained with minibatches."""

from __future__ import annotations

import numpy as np

import autograph as ag


class Dense(ag.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(name="dense")
        self.w = ag.Variable(ag.random.normal([inputs, outputs], stddev=0.1), name="w")
        self.b = ag.Variable(ag.zeros([outputs]))

    def __call__(self, x: ag.Tensor) -> ag.Tensor:
        return ag.matmul(x, self.w) + self.b


class Model(ag.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [Dense(4, 8), Dense(8, 1)]
        self.steps = ag.Variable(0, dtype=ag.int64, trainable=False)

    @ag.function
    def predict(self, x: ag.Tensor) -> ag.Tensor:
        hidden = ag.nn.relu(self.layers[0](x))
        return self.layers[1](hidden)

    @ag.function(jit_compile=True, reduce_retracing=True)
    def train(self, x: ag.Tensor, y: ag.Tensor, rate: float = 0.1) -> ag.Tensor:
        with ag.GradientTape() as tape:
            loss = ag.reduce_mean(ag.square(self.predict(x) - y))
        for variable, slope in zip(self.trainable_variables, tape.gradient(loss, self.trainable_variables)):
            variable.assign_sub(rate * slope)
        self.steps.assign_add(1)
        return loss


rng = np.random.default_rng(0)
inputs = rng.normal(size=(64, 4)).astype("float32")
model = Model()
losses: list[float] = []
dataset = ag.data.Dataset.from_tensor_slices((inputs, inputs[:, :1] ** 2)).shuffle(64).batch(16)
for x, y in dataset:
    losses.append(float(model.train(x, y, rate=0.05)))
print(min(losses), np.mean(losses), model.predict(ag.constant(inputs)).numpy().shape)
print(model.steps + 1, 2 * model.steps, -model.steps, len(model.layers[0].b), model.steps.numpy())
