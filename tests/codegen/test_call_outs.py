"""Native loops call Python for what has no native form, and errors are made of values when they are raised."""

import signal
import sys
import threading

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.kernel.call_outs import CallOut
from runtime.codegen.lower.lower_graph import lower

MODES = pytest.mark.parametrize("jit", [False, True])


class Wrong(Exception):
    def __init__(self, number, text):
        super().__init__(number, text)
        self.number = number


def raises(x, y):
    total = 0
    for v in x:
        if v > 6:
            raise Wrong(v, f"{v:>5}|{total:.3f}|{y!r}")
        if v < 0:
            raise ValueError(f"bad value {v} {v > 3} {y:.2f}") from KeyError(v)
        assert v != 5, f"five after {total}"
        total += v
    return total


def caught(f, *args):
    with pytest.raises(Exception) as error:
        f(*args)
    cause = error.value.__cause__
    return type(error.value), [str(each) for each in error.value.args], type(cause), getattr(cause, "args", None)


def is_native(f, *args):
    return "in its body, on the interpreter" not in f.explain(*args)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("values", [[1, 2, 7], [1, 2, 5], [3, 2, -4]])
def test_errors_of_any_class_show_the_values_of_scalars(dtype, values):
    if dtype.startswith("u"):
        values = [each if each > 0 else 8 for each in values]
    x, y = ag.cast(ag.constant(values), dtype), ag.constant(2.5)
    f = ag.function(raises, jit_compile=True)
    expected = caught(ag.function(raises, jit_compile=False), x, y)
    for _ in range(6):  # from Python, then through the inline cache
        assert caught(f, x, y) == expected
    assert is_native(f, x, y)


@MODES
def test_an_error_keeps_its_attributes_and_names_the_line(jit):
    f = ag.function(raises, jit_compile=jit)
    with pytest.raises(Wrong) as error:
        f(ag.constant([1, 9]), ag.constant(2.5))
    assert int(error.value.number) == 9
    if sys.version_info >= (3, 11):
        assert "raise Wrong(v" in error.value.__notes__[0]


@MODES
def test_an_error_shows_arrays(jit):
    @ag.function(jit_compile=jit)
    def f(x):
        for i in ag.range(3):
            x = x * 10.0
            if ag.reduce_sum(x) > 500.0:
                raise ValueError(f"after {i}: {x}")
        return x

    for _ in range(3):
        with pytest.raises(ValueError, match=r"after 1: \[100\. 200\. 300\.\]"):
            f(ag.constant([1.0, 2.0, 3.0]))
    assert is_native(f, ag.constant([1.0, 2.0, 3.0]))


@MODES
def test_prints_come_in_order_with_their_values(jit, capsys):
    @ag.function(jit_compile=jit)
    def f(x):
        total = ag.zeros([])
        for v in x:
            if v > 1.0:
                print(f"{v} is large", total)
            ag.print("at", v, x[:2], output_stream=sys.stdout)
            total += v
        return total

    x = ag.constant([0.5, 1.5])
    for _ in range(5):
        assert float(f(x)) == 2.0
        lines = capsys.readouterr().out.splitlines()
        assert lines == ["at 0.5 [0.5 1.5]", "1.5 is large 0.5", "at 1.5 [0.5 1.5]"]
    assert is_native(f, x)


def spectral(x, n):
    trace = ag.zeros([])
    for i in range(n):
        values = ag.linalg.svd(x)[0]
        x = x * 0.5 + ag.reduce_max(values) * 0.1
        least, vectors = ag.linalg.eigh(x + ag.transpose(x))
        if least[0] < 0.0:
            trace += ag.abs(vectors[0, 0])
        trace += values[0] + ag.math.bessel_i0(trace * 0.01)
    return x, trace


def test_results_of_calls_are_arrays_of_the_kernel():
    x, n = ag.constant(np.cos(np.arange(9.0, dtype=np.float32)).reshape(3, 3)), ag.constant(4)
    f = ag.function(spectral, jit_compile=True)
    expected = ag.function(spectral, jit_compile=False)(x, n)
    for _ in range(3):
        for one, other in zip(f(x, n), expected):
            np.testing.assert_allclose(one, other, rtol=1e-6)
    assert is_native(f, x, n)


def test_gradients_go_through_calls():
    @ag.function(jit_compile=True)
    def f(x, n):
        for _ in range(n):
            print(f"sum {ag.reduce_sum(x)}", file=sys.stderr)
            x = ag.sin(x) + ag.reduce_max(ag.linalg.svd(ag.reshape(x, [2, 2]), compute_uv=False))
        return ag.reduce_sum(x)

    def slope(run):
        x = ag.constant([0.1, 0.2, 0.4, 0.3], dtype=ag.float64)
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = run(x, ag.constant(3))
        return tape.gradient(y, x)

    np.testing.assert_allclose(slope(f), slope(lambda x, n: f.python_function(x, int(n))), rtol=1e-9)


def test_an_error_of_a_called_operation_names_the_line():
    @ag.function(jit_compile=True)
    def f(x, n):
        for _ in range(n):
            x = x - 1.0
            x += ag.linalg.lu(x)[0]
        return x

    singular = ag.ones([2, 2])
    with pytest.raises(ag.errors.InvalidArgumentError) as expected:
        ag.function(f.python_function, jit_compile=False)(singular, ag.constant(2))
    with pytest.raises(ag.errors.InvalidArgumentError) as error:
        f(singular, ag.constant(2))
    assert str(error.value) == str(expected.value)
    assert "test_call_outs.py" in str(error.value)


def test_python_functions_are_called_with_copies():
    seen = []

    @ag.function(jit_compile=True)
    def f(x, n):
        for i in range(n):
            x = x + 1.0
            ag.numpy_function(lambda a, k: seen.append((a, int(k))), [x, i], [])
        return x

    x = ag.zeros([3])
    assert is_native(f, x, ag.constant(3))
    f(x, ag.constant(3))
    assert [(each.tolist(), k) for each, k in seen] == [([k + 1.0] * 3, k) for k in range(3)]


def test_an_error_in_a_call_keeps_assignments_before_it():
    variable = ag.Variable(0.0)

    @ag.function(jit_compile=True)
    def f(n):
        for i in range(n):
            variable.assign_add(1.0)
            if i == 2:
                raise KeyError(f"at {variable.read_value()} {ag.ones([2])}")

    with pytest.raises(KeyError, match=r"at 3.0 \[1. 1.\]"):
        f(ag.constant(5))
    assert float(variable) == 3.0


def test_threads_have_their_own_errors():
    @ag.function(jit_compile=True)
    def f(x, n):
        for i in range(n):
            x = x + 1.0
            if i == n - 1:
                raise ValueError(f"{x}")
        return x

    wrong = []

    def work(number):
        x = ag.fill([2], float(number))
        for _ in range(50):
            try:
                f(x, ag.constant(10))
            except ValueError as error:
                if str(error.args[0]) != f"[{number + 10}. {number + 10}.]":
                    wrong.append((number, error.args))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread")
def test_nothing_is_printed_twice_when_a_handler_of_ctrl_c_returns(capsys):
    """Kernels without effects are run again."""
    hits = []

    @ag.function(jit_compile=True)
    def f(n):
        total = 0.0
        for i in range(n):
            total = ag.sin(total + 1.0)
            if i == 0:
                print(f"start {i}")
        return total

    f(ag.constant(2))
    capsys.readouterr()
    before = signal.signal(signal.SIGINT, lambda *_: hits.append(1))
    try:
        timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
        timer.start()
        f(ag.constant(60_000_000))
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert hits == [1]
    assert capsys.readouterr().out == "start 0\n"


def test_the_text_of_a_kernel_says_nothing_of_what_it_calls():
    def source(word):
        @ag.function
        def f(n):
            for i in range(n):
                print(f"{word} {i}")

        return lower(f.get_concrete_function(ag.TensorSpec([], "int32")).graph)

    one, other = source("one"), source("other")
    assert one.text == other.text
    assert [each.node.op.name for each in one.constants if isinstance(each, CallOut) and each.node] == ["print"]
    assert one.constants[0].address != other.constants[0].address


def test_a_c_library_can_not_call_python(tmp_path):
    @ag.function
    def prints(n):
        for i in range(n):
            print(f"{i}")
        return n

    concrete = prints.get_concrete_function(ag.TensorSpec([], "int32"))
    with pytest.raises(ag.errors.UnimplementedError, match=r"op 'print' can't be compiled(?s:.*)test_call_outs.py"):
        ag.export.c_library(concrete, tmp_path)


def test_recursive_functions_that_print_are_interpreted(capsys):
    def down(n):
        if n > 0:
            ag.print(n, output_stream=sys.stdout)
            down(n - 1)

    f = ag.function(down, jit_compile=True)
    for _ in range(2):
        f(ag.constant(2))
        assert capsys.readouterr().out.split() == ["2", "1"]
    assert "a recursive function with the op 'print' can't be compiled" in " ".join(f.explain(ag.constant(2)).split())
