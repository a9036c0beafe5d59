"""Calls that go through every part of the machine code for Python objects; `test_layouts.py` runs it."""

import autograph as ag

variable = ag.Variable([1.0, 2.0], trainable=True)
scale = 2.0


def make():
    cell = 3.0

    @ag.function
    def f(x, n, *, more=None):
        total = ag.zeros_like(x)
        while n > 0:
            total += x * scale * cell
            n -= 1
        variable.assign_add(total)
        if more is not None:
            total = total + more["a"][0] * more["b"][1]
        return [total, (n, ag.reduce_sum(total) > 10.0)]

    return f


@ag.function
def dtypes(values):
    return {key: ag.reduce_max(value) + value[0] for key, value in values.items()}


f = make()
x = ag.constant([1.0, 2.0])
more = {"a": (ag.constant(2.0),), "b": [x, ag.constant([4.0, 5.0])]}
for count in range(4):
    print(ag.nest.map_structure(lambda each: each.numpy().tolist(), f(x, ag.constant(count))))
    print(ag.nest.map_structure(lambda each: each.numpy().tolist(), f(x, ag.constant(count), more=more)))
print(variable.numpy())
names = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "uint64")
values = {name: ag.cast(ag.constant([3, 4, 1]), name) for name in names}
for _ in range(3):
    print({key: (value.dtype.name, value.numpy().item()) for key, value in dtypes(values).items()})


@ag.function(jit_compile=True)
def numbers(values):
    return {key: (value + value, value == 4) for key, value in values.items()}


for _ in range(3):
    found = numbers({name: value[1] for name, value in values.items()})
    print({key: (each[0].numpy().item(), bool(each[1])) for key, each in found.items()})


@ag.function
def broken(x):
    for index in range(5):
        x[index + 1]
    return x


for _ in range(2):
    try:
        broken(x)
    except Exception as error:
        print(type(error).__name__)


@ag.function
def slope(x):
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = x
        while ag.reduce_sum(y) < 100.0:
            y = y * y + 1.0
    return tape.gradient(y, x)


for _ in range(3):
    print(slope(x).numpy())
