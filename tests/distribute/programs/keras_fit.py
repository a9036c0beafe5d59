"""Trains a Keras model by `fit` under a strategy; rank 0 prints its weights, what it has logged, and what the model
says of other rows.

    keras_fit.py alone|workers ROWS BATCH
"""

import json
import sys

import numpy as np

import autograph as ag

keras = ag.keras
KIND, ROWS, BATCH = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
strategy = ag.distribute.MultiWorkerMirroredStrategy() if KIND == "workers" else ag.distribute.OneDeviceStrategy()
RANK = 0 if KIND == "alone" else strategy.cluster_resolver.task_id
rng = np.random.default_rng(0)
x = rng.normal(size=(ROWS, 6)).astype("float32")
y = (x[:, :1] * x[:, 1:2] > 0).astype("float32")

keras.utils.set_random_seed(7)
with strategy.scope():
    model = keras.Sequential(
        [
            keras.Input((6,)), keras.layers.Dense(16, activation="relu"),
            keras.layers.BatchNormalization(synchronized=True), keras.layers.Dense(1, activation="sigmoid"),
        ]
    )  # fmt: skip
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
history = model.fit(x, y, batch_size=BATCH, epochs=3, verbose=0, shuffle=True)
scores = model.evaluate(x, y, batch_size=BATCH, verbose=0)
predicted = model.predict(x[:BATCH], batch_size=BATCH, verbose=0)
if RANK == 0:
    print(
        json.dumps(
            {
                "weights": [w.tolist() for w in model.get_weights()],
                "history": history.history,
                "scores": scores,
                "predicted": predicted.tolist(),
                "steps": int(model.optimizer.iterations.numpy()),
            }
        )
    )
