"""`ExponentialMovingAverage`: averages of variables, beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runtime.context import init_scope
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.arithmetic import minimum
from runtime.ops.elementwise.elementary import cast
from runtime.variable import Variable


class ExponentialMovingAverage:
    """Averages of variables, such as the weights of a model, that are evaluated in place of what was trained last.

    Each `apply` moves an average towards its variable: `average -= (1 - decay) * (average - variable)`.

    Args:
        decay: a float, close to 1; the closer, the longer the past counts.
        num_updates: the number of steps so far, an int or scalar. While it is small the decay is at most
            `(1 + num_updates) / (10 + num_updates)`, so that the first averages forget where they began.
        zero_debias: for averages of tensors, which TensorFlow has in its graphs; those of variables begin with the
            variables' values.
        name: the end of the averages' names.
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay, self._num_updates, self._name = decay, num_updates, name
        self._averages: dict[int, tuple[Variable, Variable]] = {}  # by the id of a variable: itself, and its average

    @property
    def name(self) -> str:
        return self._name

    def apply(self, var_list: Iterable[Variable] | None = None) -> None:
        """Updates the averages of some variables; those of new ones begin with the variables' values.

        Raises TypeError for what isn't a variable with floating-point numbers.
        """
        variables = list(var_list or ())
        for variable in variables:
            if not isinstance(variable, Variable):
                raise TypeError(f"ExponentialMovingAverage takes averages of variables only, got {variable!r}")
            if not variable.dtype.is_floating:
                raise TypeError(f"The variables must be half, float, or double: {variable.name}")
            if id(variable) not in self._averages:
                with init_scope():
                    average = Variable(variable.read_value(), trainable=False, name=self.average_name(variable))
                self._averages[id(variable)] = variable, average
        rest = self._rest()
        for variable in variables:
            average = self._averages[id(variable)][1]
            average.assign_sub((average - variable) * cast(rest, variable.dtype))

    def _rest(self) -> Any:
        """1 - decay: the weight of the new value."""
        if self._num_updates is None:
            return convert_to_tensor(1.0 - self._decay)
        steps = cast(convert_to_tensor(self._num_updates), "float32")
        return 1.0 - minimum(convert_to_tensor(self._decay, "float32"), (1.0 + steps) / (10.0 + steps))

    def average(self, var: Variable) -> Variable | None:
        """The average of a variable; None if there is none."""
        found = self._averages.get(id(var))
        return None if found is None else found[1]

    def average_name(self, var: Variable) -> str:
        """The name of a variable's average."""
        return f"{var.name.removesuffix(':0')}/{self._name}"
