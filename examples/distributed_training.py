"""TensorFlow's custom training loop with a strategy, on as many processes as there are.

    mpiexec -n 4 python -m examples.distributed_training      needs `pip install '.[mpi]'`

Each process has a copy of the model and gets its part of every batch; gradients are summed up over all of them, so that
the copies stay equal, and equal to those of one process.
"""

from __future__ import annotations

import sys

import numpy as np

import autograph as ag

BATCH = 64


class Model(ag.Module):
    """Two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        self.hidden = ag.Variable(rng.normal(size=(2, 32)) / 1.5)
        self.offset = ag.Variable(np.zeros(32))
        self.out = ag.Variable(rng.normal(size=(32, 1)) / 6.0)

    def __call__(self, x):
        return ag.matmul(ag.tanh(ag.matmul(x, self.hidden) + self.offset), self.out)


def train(strategy, epochs: int = 5) -> tuple[list[float], Model]:
    """The loss of each epoch, and the model."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1.0, 1.0, (1024, 2))
    y = np.sin(3.0 * x[:, :1]) * x[:, 1:]
    batches = ag.data.Dataset.from_tensor_slices((x, y)).shuffle(1024, seed=2).batch(BATCH)
    dataset = strategy.experimental_distribute_dataset(batches)
    with strategy.scope():
        model = Model()

    def step(inputs, targets):
        with ag.GradientTape() as tape:
            errors = (model(inputs) - targets) ** 2
            # A replica knows its part of a batch only.
            loss = ag.nn.compute_average_loss(errors[:, 0], global_batch_size=BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        gradients = ag.distribute.get_replica_context().all_reduce("SUM", gradients)
        for variable, gradient in zip(model.trainable_variables, gradients):
            strategy.extended.update(variable, lambda v, g: v.assign_sub(0.2 * g), args=(gradient,))
        return loss

    @ag.function
    def epoch():
        total = ag.constant(0.0, ag.float64)
        for inputs, targets in dataset:
            total += strategy.reduce("SUM", strategy.run(step, args=(inputs, targets)), axis=None)
        return total / (1024 / BATCH)

    return [float(epoch()) for _ in range(epochs)], model


def main() -> int:
    """Trains, and has rank 0 say how."""
    strategy = ag.distribute.MultiWorkerMirroredStrategy()
    losses, _ = train(strategy)
    if strategy.cluster_resolver.task_id == 0:
        print(f"{strategy.num_replicas_in_sync} replicas, losses:", *[f"{loss:.6f}" for loss in losses])
    return 0


if __name__ == "__main__":
    sys.exit(main())
