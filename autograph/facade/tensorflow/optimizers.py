"""What Keras 2's optimizers have and Keras 3's don't: `minimize`, which programs of TensorFlow call."""

from __future__ import annotations

from typing import Any

import autograph as ag
from autograph.operators.calls import converted_argument


def minimize(self: Any, loss: Any, var_list: Any, tape: Any = None, name: str | None = None) -> Any:
    """Makes one step of an optimizer, as Keras 2's method of this name.

    `loss` is a function without arguments, or a tensor that `tape` has watched; `var_list` a sequence of variables, or
    a function that gives it once the loss is known. Raises ValueError for a tensor without a tape.
    """
    if callable(loss):
        with ag.GradientTape() if tape is None else tape as tape:
            loss = converted_argument(loss)()
    elif tape is None:
        raise ValueError("minimize() needs the tape that has watched the loss where the loss is a tensor: pass tape=")
    variables = list(var_list() if callable(var_list) else var_list)
    return self.apply_gradients(zip(tape.gradient(loss, variables), variables))


def add_minimize(keras: Any) -> None:
    """Gives Keras' optimizers the method, unless they have one."""
    if not hasattr(keras.optimizers.Optimizer, "minimize"):
        keras.optimizers.Optimizer.minimize = minimize
