"""Values that a staged loop makes in its first iteration, for a variable or attribute that is None before it."""

import numpy as np
import pytest

import autograph as ag


class Pair(ag.experimental.ExtensionType):
    x: ag.Tensor
    y: ag.Tensor


def _array(v):
    return ag.TensorArray(ag.float32, size=0, dynamic_size=True)


# How the value is made, what each iteration makes of it, and what is read from it.
KINDS = {
    "tensor": (lambda v: v, lambda h, n, v: h + v, lambda h: h),
    "TensorArray": (_array, lambda h, n, v: h.write(n, v), lambda h: ag.reduce_sum(h.stack())),
    "pair": (lambda v: (v, v), lambda h, n, v: (h[1], h[0] + v), lambda h: h[0] - h[1]),
    "pair with an array": (
        lambda v: (_array(v), v), lambda h, n, v: (h[0].write(n, v), v), lambda h: ag.reduce_sum(h[0].stack()) - h[1],
    ),
    "dictionary": (lambda v: {"a": v}, lambda h, n, v: {"a": h["a"] * v}, lambda h: h["a"]),
    "ragged": (
        lambda v: ag.ragged.constant([[1.0, 2.0], [3.0]]),
        lambda h, n, v: h + v,
        lambda h: ag.reduce_sum(h.flat_values),
    ),
    "sparse": (
        lambda v: ag.sparse.from_dense([1.0, 0.0]), lambda h, n, v: h * v, lambda h: ag.reduce_sum(h.values),
    ),
    "extension type": (lambda v: Pair(v, v), lambda h, n, v: Pair(h.y, h.x + v), lambda h: h.x - h.y),
    "list": (lambda v: [0.5], lambda h, n, v: h + [v], lambda h: h[0] + h[-1] * len(h)),
    "empty list": (lambda v: [], lambda h, n, v: h + [v], lambda h: h[0] + h[-1] * len(h)),
}  # fmt: skip


def _in_variables(make, change, read):
    def run(t):
        held, count, total = None, None, 0.0
        for v in t:
            if held is None:
                held, count = make(v), 0
            held = change(held, count, v)
            count += 1
            total += read(held)
        return total

    return run


def _in_an_object(make, change, read):
    class Holder:
        def __init__(self):
            self.held = self.count = None

        def step(self, v):
            if self.held is None:
                self.held, self.count = make(v), 0
            self.held = change(self.held, self.count, v)
            self.count += 1
            return read(self.held)

    def run(t):
        holder, total = Holder(), 0.0
        for v in t:
            total += holder.step(v)
        return total

    return run


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", [_in_variables, _in_an_object], ids=["variables", "object"])
def test_made_in_the_first_iteration(kind, where):
    program = where(*KINDS[kind])
    t = ag.constant([1.0, 2.0, 3.0, 5.0])
    expected = float(program(t))
    for jit in (None, True):
        assert float(ag.function(program, jit_compile=jit)(t)) == expected


def test_a_list_that_grows_in_place():
    def run(t):
        held, total = None, 0.0
        for v in t:
            if held is None:
                held = [0.5]
            held.append(v)
            total += held[0] + held[-1] * len(held)
        return total

    t = ag.constant([1.0, 2.0, 3.0])
    assert float(ag.function(run)(t)) == float(run(t))


def test_a_test_for_none_in_the_branch_that_excludes_it():
    def run(t):
        held, total = None, 0.0
        for v in t:
            if held is not None:
                total += 100.0 if held is None else held[0] + held[1]
            held = (v, v)
        return total

    t = ag.constant([1.0, 2.0, 3.0])
    assert float(ag.function(run)(t)) == float(run(t)) == 6.0


@pytest.mark.parametrize("count", [24, 60])
def test_a_type_that_goes_from_variable_to_variable(count):
    """A delay line: in each trace one more variable turns from an int into a float."""
    names = [f"z{number}" for number in range(count)]
    moves = "".join(f"        {b} = {a}\n" for a, b in reversed(list(zip(names, names[1:]))))
    text = (
        f"def delayed(signal):\n    {' = '.join(names)} = 0\n    total = 0\n    for x in signal:\n"
        f"        total += {names[-1]}\n{moves}        z0 = x * 0.5\n    return total, {names[-1]}\n"
    )
    delayed = _made(text, "delayed")
    signal = ag.constant(np.arange(count + 6.0))
    for jit in (None, True):
        assert [float(v) for v in ag.function(delayed, jit_compile=jit)(signal)] == [float(v) for v in delayed(signal)]


def test_a_type_that_goes_from_parameter_to_parameter():
    names = [f"z{number}" for number in range(24)]
    text = (
        f"def f(k, x, {', '.join(names)}):\n    if k <= 0:\n        return {names[-1]}\n"
        f"    return f(k - 1, x, x * 0.5, {', '.join(names[:-1])})\n"
        f"def start(k, x):\n    return f(k, x, {', '.join('0' * 24)})\n"
    )
    start = _made(text, "start")
    assert float(ag.function(start)(ag.constant(27), ag.constant(3.0))) == 1.5


def _made(text, name):
    import linecache

    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    space = {}
    exec(compile(text, filename, "exec"), space)
    return space[name]
