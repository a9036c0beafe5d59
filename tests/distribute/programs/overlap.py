"""Training steps whose gradients are reduced beside the backward pass: the same bits as without, in every tier, also in
staged loops, and the operations are those of all other workers, whether they overlap or not."""

import numpy as np

import autograph as ag
from runtime.collectives import group

group.BACKGROUND = -1.0  # whatever it costs
Options = ag.distribute.experimental.CommunicationOptions
strategy = ag.distribute.MultiWorkerMirroredStrategy(communication_options=Options(bytes_per_pack=20_000))
RANK = strategy.cluster_resolver.task_id
WIDTH, LAYERS, STEPS = 70, 4, 4


def train(jit_compile, staged, overlaps):
    ag.config.optimizer.set_experimental_options({"communication_overlap": overlaps})
    rng = np.random.default_rng(1)
    with strategy.scope():
        start = [rng.normal(size=(WIDTH, WIDTH)) / np.sqrt(WIDTH) for _ in range(LAYERS)]
        weights = [ag.Variable(each.astype(np.float32)) for each in start]
        biases = [ag.Variable(ag.zeros([1, WIDTH])) for _ in range(LAYERS)]
    # One row needs no sum for the gradient of a bias: such traces differ from those of other replicas.
    x = ag.constant(np.random.default_rng(RANK).normal(size=(1 + RANK, WIDTH)).astype(np.float32))
    variables = [each for pair in zip(weights, biases) for each in pair]

    def replica():
        with ag.GradientTape() as tape:
            hidden = x
            for weight, bias in zip(weights, biases):
                hidden = ag.matmul(hidden, weight) + bias
            loss = ag.reduce_mean(hidden**2)
        context = ag.distribute.get_replica_context()
        gradients = context.all_reduce("MEAN", tape.gradient(loss, variables))
        for variable, gradient in zip(variables, gradients):
            strategy.extended.update(variable, lambda v, g: v.assign_sub(0.1 * g), args=(gradient,))
        return context.all_reduce("SUM", loss)

    @ag.function(jit_compile=jit_compile)
    def steps():
        total = 0.0
        for _ in ag.range(STEPS) if staged else range(1):
            total = strategy.run(replica)
        return total

    for _ in range(1 if staged else STEPS):
        loss = steps()
    executable = steps.get_concrete_function().function.executable
    found = [node.op.name for node in executable.graph.walk()]
    assert found.count("all_reduce_start") == (5 if overlaps else 0), found
    return [variable.numpy() for variable in variables], loss.numpy()


# A staged loop is interpreted, whose sums and functions may differ in last bits from those of kernels.
for jit_compile, staged in ((False, False), (False, True), (True, False), (True, True)):
    # In the end the last worker overlaps, while the others don't.
    ways = (False, True, RANK == strategy.num_replicas_in_sync - 1)
    (expected, expected_loss), *others = [train(jit_compile, staged, overlaps) for overlaps in ways]
    for weights, loss in others:
        assert loss == expected_loss, (jit_compile, staged, loss, expected_loss)
        for one, other in zip(weights, expected):
            np.testing.assert_array_equal(one, other)
print(f"rank {RANK}: equal", flush=True)
