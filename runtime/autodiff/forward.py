"""`ForwardAccumulator`: Jacobian-vector products.

A Jacobian-vector product is the derivative of a vector-Jacobian product by its cotangent, in which it is linear:

    pull(u) = uᵀ J        jvp(v) = d/du (pull(u) · v) = J v

so forward mode needs no rules of its own beyond the reverse rules being differentiable (Townsend, "A new trick for
calculating Jacobian vector products", 2017). The accumulator records ops as a tape does.
"""

from __future__ import annotations

import contextlib
from typing import Any

from runtime import nest
from runtime.autodiff.tape import GradientTape
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import call
from runtime.variable import Variable


class ForwardAccumulator:
    """Computes Jacobian-vector products of the operations in its block.

    primals, tangents: a tensor or variable, or structures of them, of the same shapes.

    Raises ValueError when a tangent's shape doesn't fit its primal's.

    >>> x = constant([2.0, 3.0])
    >>> with ForwardAccumulator(x, constant([1.0, 0.0])) as acc:
    ...     y = reduce_sum(x * x)
    >>> acc.jvp(y).numpy()
    4.0
    """

    def __init__(self, primals: Any, tangents: Any) -> None:
        self._primals = nest.flatten(primals)
        self._tangents = [
            convert_to_tensor(t, dtype=p.dtype) for p, t in zip(self._primals, nest.flatten(tangents), strict=True)
        ]
        for primal, tangent in zip(self._primals, self._tangents):
            if not primal.shape.is_compatible_with(tangent.shape):
                raise ValueError(f"Primal of shape {primal.shape} has a tangent of shape {tangent.shape}")
        self._tape = GradientTape(persistent=True, watch_accessed_variables=False)

    def __enter__(self) -> ForwardAccumulator:
        self._tape.__enter__()
        self._tape.watch(self._primals)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._tape.__exit__(*exception)

    def jvp(self, primals: Any, unconnected_gradients: Any = "none") -> Any:
        """The product of the Jacobian of `primals` (results computed while open) with the tangents.

        Has the structure of `primals`; None (or zeros) where they don't depend on the accumulator's primals.
        """
        zero = getattr(unconnected_gradients, "value", unconnected_gradients) == "zero"
        return nest.map_structure(lambda y: self._jvp(y, zero), primals)

    def _jvp(self, target: Any, zero: bool) -> Any:
        value = target.read_value() if isinstance(target, Variable) else target
        cotangent = call("zeros_like", value)
        with GradientTape() as inner:
            inner.watch(cotangent)
            with self._paused():
                pulled = self._tape.gradient(target, self._primals, output_gradients=cotangent)
            total = None
            for part, tangent in zip(pulled, self._tangents):
                if part is not None:
                    whole = convert_to_tensor(part)
                    product = call("reduce_sum", whole * tangent, axis=tuple(range(len(whole.shape))), keepdims=False)
                    total = product if total is None else total + product
        found = None if total is None else inner.gradient(total, cotangent)
        return call("zeros_like", value) if found is None and zero else found

    def _paused(self) -> Any:
        return self._tape.stop_recording() if self._tape.is_recording else contextlib.nullcontext()
