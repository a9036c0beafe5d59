"""The cells of TensorFlow's guide "Distributed training with TensorFlow", with MultiWorkerMirroredStrategy in place of
MirroredStrategy; rank 0 prints the results."""

import numpy as np

import autograph as ag

ag.compat.install()
import tensorflow as tf  # noqa: E402

strategy = tf.distribute.MultiWorkerMirroredStrategy()
tf.keras = ag.keras
lines = []


def dense():
    return tf.keras.layers.Dense(1, kernel_initializer="ones", kernel_regularizer=tf.keras.regularizers.L2(1e-4))


# Use tf.distribute.Strategy with Keras Model.fit
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense()])
    model.compile(loss="mse", optimizer="sgd")
dataset = tf.data.Dataset.from_tensors(([1.0], [2.0])).repeat(100).batch(10)
model.fit(dataset, epochs=2, verbose=0)
lines.append(model.evaluate(dataset, verbose=0))
inputs, targets = np.ones((100, 1)), 2 * np.ones((100, 1))
history = model.fit(inputs, targets, epochs=2, batch_size=10, verbose=0)
lines.append(history.history["loss"][-1])

# Use tf.distribute.Strategy with custom training loops
global_batch_size = 12
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense()])
    optimizer = tf.keras.optimizers.SGD()
dataset = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(120).batch(global_batch_size)
dist_dataset = strategy.experimental_distribute_dataset(dataset)
loss_object = tf.keras.losses.BinaryCrossentropy(from_logits=True, reduction=None)


def train_step(inputs):
    features, labels = inputs
    with tf.GradientTape() as tape:
        predictions = model(features, training=True)
        per_example_loss = loss_object(labels, predictions)
        loss = tf.nn.compute_average_loss(per_example_loss)
        model_losses = model.losses
        if model_losses:
            loss += tf.nn.scale_regularization_loss(tf.add_n(model_losses))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def distributed_train_step(dist_inputs):
    per_replica_losses = strategy.run(train_step, args=(dist_inputs,))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)


for dist_inputs in dist_dataset:
    loss = distributed_train_step(dist_inputs)
lines.append(float(loss))


@tf.function
def distributed_train_steps(dataset):
    total = 0.0
    for dist_inputs in dataset:
        total += distributed_train_step(dist_inputs)
    return total


lines.append(float(distributed_train_steps(dist_dataset)))
iterator = iter(dist_dataset)
for _ in range(10):
    loss = distributed_train_step(next(iterator))
lines.append(float(loss))
if strategy.cluster_resolver.task_id == 0:
    print("results:", *[f"{line:.6f}" for line in lines])
