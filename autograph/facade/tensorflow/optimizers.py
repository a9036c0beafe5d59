"""What Keras 2's optimizers have and Keras 3's don't: `minimize`, and a base class that takes a name."""

from __future__ import annotations

import functools
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


def take_in_programs_for_keras_2(keras: Any) -> None:
    """Gives Keras' optimizers the method, and lets their base class take a name first, as in Keras 2.

    A name alone leaves the learning rate 0: such an optimizer has an update of its own.
    """
    base = keras.optimizers.Optimizer
    if hasattr(base, "minimize"):
        return
    construct = base.__init__

    @functools.wraps(construct)
    def construct_by_name(self: Any, *arguments: Any, **options: Any) -> None:
        if arguments and isinstance(arguments[0], str):
            name, *rest = arguments
            construct(self, 0.0, *rest, name=name, **options)
        else:
            construct(self, *arguments, **options)

    base.minimize = minimize
    base.__init__ = construct_by_name
