"""A root, its gradient, and what the decorator keeps of a signature."""

import numpy as np

import autograph as ag


@ag.function(jit_compile=True)
def root(a: ag.Tensor, steps: int = 20) -> ag.Tensor:
    x = a
    while ag.abs(x * x - a) > 1e-6 * a:
        x = 0.5 * (x + a / x)
    return x


@ag.function
def both(a: ag.Tensor, b: ag.Tensor) -> tuple[ag.Tensor, ag.Tensor]:
    return a + b, a - b


a = ag.constant(2.0)
with ag.GradientTape() as tape:
    tape.watch(a)
    y = root(a, steps=3)
slope = tape.gradient(y, a)
print(y.numpy(), slope.numpy())

total, difference = both(a, y)
print(float(total), int(ag.cast(difference, ag.int32)), bool(total > difference))

concrete = root.get_concrete_function(ag.TensorSpec([], ag.float32), 3)
result: ag.Tensor = concrete(a)
print(result.shape, result.dtype.name, np.asarray(result))
print(root.experimental_get_tracing_count(), root.explain_retraces(), root.explain(a))
