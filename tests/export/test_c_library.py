"""C libraries: compiled by `ag.export.c_library`, called by ctypes and from C, beside the functions themselves."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import threading

import numpy as np
import pytest

import autograph as ag
from autograph.cli import main
from autograph.commands.graph import parse_signature
from runtime import system

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or not system.has_posix_threads(),
    reason="needs a C compiler to link and to compile programs",
)
CODES = {"invalid": 3, "unknown": 2, "memory": 8}


class Failed(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def call(library, name, concrete, arguments, outputs=None):
    """Calls a C function by its convention: the arguments' pointers and open sizes, places for the results."""
    function = getattr(library, name)
    given, kept = [], []
    for spec, argument in zip(concrete.argument_specs, arguments, strict=True):
        array = np.asarray(argument, spec.dtype.np, order="C")
        array = array.view(np.uint16) if spec.dtype.is_narrow else array
        kept.append(array)
        if array.ndim == 0:
            given.append(np.ctypeslib.as_ctypes_type(array.dtype)(array.item()))
            continue
        given.append(array.ctypes.data_as(ctypes.c_void_p))
        given += [ctypes.c_int64(size) for size, known in zip(array.shape, spec.shape) if known is None]
    places = []
    for spec in concrete.outputs if outputs is None else outputs:
        scalar = np.ctypeslib.as_ctypes_type(np.uint16 if spec.dtype.is_narrow else spec.dtype.np)
        place = scalar() if spec.shape.rank == 0 else ctypes.POINTER(scalar)()
        sizes = (ctypes.c_int64 * spec.shape.rank)(*[size or 0 for size in spec.shape])
        places.append((place, sizes, spec))
        given.append(ctypes.byref(place))
        if None in list(spec.shape):
            given.append(sizes)
    message = ctypes.create_string_buffer(400)
    code = function(*given, message, ctypes.c_size_t(400))
    if code:
        raise Failed(code, message.value.decode())
    assert message.value == b""
    free = getattr(library, f"{name.removesuffix('_gradient')}_free")
    results = []
    for place, sizes, spec in places:
        if spec.shape.rank == 0:
            found = np.asarray(place.value, np.uint16 if spec.dtype.is_narrow else spec.dtype.np)
            results.append(found.view(spec.dtype.np) if spec.dtype.is_narrow else found)
            continue
        shape = tuple(sizes)
        found = np.ctypeslib.as_array(place, shape).copy() if 0 not in shape else np.zeros(shape, spec.dtype.np)
        results.append(found.view(spec.dtype.np) if spec.dtype.is_narrow else found)
        free(place)
    return results


def traced(function, signature):
    return ag.function(function).get_concrete_function(**parse_signature(signature))


def compiled(function, signature, folder, **options):
    concrete = traced(function, signature)
    made = ag.export.c_library(concrete, folder, **options)
    return concrete, ctypes.CDLL(str(made.shared)), made


weights = ag.Variable([[1.0, -2.0], [0.5, 3.0], [2.0, 0.25]])
table = ag.constant(np.arange(40, dtype=np.float64).reshape(8, 5))


def newton(a):
    x = a
    while ag.abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def dense(x):
    return ag.nn.softmax(ag.tanh(x @ weights) + 1.0)


def structures(x, n, flag):
    if flag:
        x = x[1:]
    return {"rows": ag.shape(x, ag.int64)[0] + n, "twice": (x * 2, x), "flag": ag.logical_not(flag), "table": table}


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def growing(x, n):
    rows = []
    for i in ag.range(n):
        rows.append(ag.sin(x * ag.cast(i, ag.float64)))
    return ag.stack(rows)


def products(a, b):
    return ag.reduce_sum(a @ b, axis=0), ag.linalg.matrix_transpose(b)


def integers(a, b):
    return a // b, a % b, ag.bitwise.bitwise_xor(a, b), ag.sort(a)


def halves(x, y):
    return x * y + 1.0, ag.reduce_max(x), y


def drawn(seed):
    return ag.random.stateless_normal([5], seed)


def unchanged(x, n):
    return n, x, x


def recursive(n):
    return n if n < 2 else recursive(n - 1) + recursive(n - 2)


RANDOM = np.random.default_rng(7)
PROGRAMS = [
    (newton, "a: float64", [2.0]),
    (dense, "x: float32[None, 3]", [RANDOM.normal(size=(5, 3))]),
    (dense, "x: float32[4, 3]", [RANDOM.normal(size=(4, 3))]),
    (structures, "x: float32[None], n: int64, flag: bool", [[1.0, 2.0, 3.0], 4, True]),
    (structures, "x: float32[None], n: int64, flag: bool", [[1.0, 2.0, 3.0], -4, False]),
    (collatz, "n: int32", [27]),
    (growing, "x: float64[None], n: int32", [[0.1, 0.2], 7]),
    (growing, "x: float64[None], n: int32", [[], 3]),
    (products, "a: float32[None, None], b: float32[None, None]", [
        RANDOM.normal(size=(70, 33)), RANDOM.normal(size=(33, 65))
    ]),
    (halves, "x: bfloat16[None], y: bfloat16", [[0.1, 2.0, -3.0], 0.7]),
    (halves, "x: float16[3], y: float16", [[0.1, 2.0, -3.0], 0.7]),
    (integers, "a: int8[4], b: int8[4]", [[-7, 7, 100, -128], [2, -2, 7, 3]]),
    (integers, "a: uint16[4], b: uint16[4]", [[7, 9, 65535, 1], [2, 4, 7, 3]]),
    (drawn, "seed: int32[2]", [[3, 4]]),
    (unchanged, "x: float32[None, 2], n: int32", [[[1.0, 2.0]], 3]),
    (recursive, "n: int32", [12]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "signature", "arguments"), PROGRAMS, ids=lambda each: getattr(each, "__name__", None)
)
def test_the_library_computes_what_the_function_does(function, signature, arguments, tmp_path):
    concrete, library, _ = compiled(function, signature, tmp_path)
    tensors = [ag.constant(a, s.dtype) for a, s in zip(arguments, concrete.argument_specs)]
    expected = [each.numpy() for each in ag.nest.flatten(concrete(*tensors))]
    for _ in range(2):  # the second call finds nothing that the first one left
        found = call(library, function.__name__, concrete, arguments)
        assert len(found) == len(expected) > 0
        for one, other in zip(found, expected):
            assert one.dtype == other.dtype and one.shape == other.shape
            np.testing.assert_allclose(
                one, other, rtol=2e-6 if one.dtype == np.float32 else 1e-13, atol=1e-5 * (one.dtype == np.float32)
            )


def test_gradients(tmp_path):
    def loss(x, n, w):
        for i in ag.range(n):
            x = ag.tanh(x * w) + 0.1 * ag.cast(i, ag.float64)
        return ag.reduce_sum(x), n

    concrete, library, made = compiled(loss, "x: float64[None], n: int32, w: float64", tmp_path, gradient=True)
    assert made.functions == ("loss", "loss_gradient")
    x, n, w = np.array([0.3, -0.7, 1.1]), 6, 0.8
    tensors = [ag.constant(x), ag.constant(n), ag.constant(w, ag.float64)]
    with ag.GradientTape() as tape:
        tape.watch([tensors[0], tensors[2]])
        y, _ = concrete(*tensors)
    by_x, by_w = tape.gradient(y, [tensors[0], tensors[2]])
    outputs = [*concrete.outputs, ag.TensorSpec([None], ag.float64), ag.TensorSpec([], ag.float64)]
    found = call(library, "loss_gradient", concrete, [x, n, w], outputs)
    np.testing.assert_allclose(found[0], y.numpy(), rtol=1e-14)
    assert found[1] == n
    np.testing.assert_allclose(found[2], by_x.numpy(), rtol=1e-13)
    np.testing.assert_allclose(found[3], by_w.numpy(), rtol=1e-13)
    assert "double **d_x" in made.header.read_text() and "double *d_w" in made.header.read_text()


def test_errors_are_codes_and_messages_that_name_the_line(tmp_path):
    def pick(x, i):
        assert i != 3, "three"
        if i == 4:
            raise ValueError("100 % wrong")
        return x[i]

    concrete, library, _ = compiled(pick, "x: float32[None], i: int32", tmp_path)
    assert call(library, "pick", concrete, [[5.0, 6.0], 1]) == [6.0]
    with pytest.raises(Failed, match=r"slice index 7 of dimension 0 out of bounds(?s:.*)return x\[i\]") as caught:
        call(library, "pick", concrete, [[5.0, 6.0], 7])
    assert caught.value.code == CODES["invalid"]
    with pytest.raises(Failed, match="AssertionError|FailedAssertion(?s:.*)three") as caught:
        call(library, "pick", concrete, [[5.0] * 9, 3])
    assert caught.value.code == CODES["invalid"]
    with pytest.raises(Failed, match=r"ValueError: 100 % wrong(?s:.*)test_c_library.py:\d+") as caught:
        call(library, "pick", concrete, [[5.0] * 9, 4])
    assert caught.value.code == CODES["unknown"]
    # A short buffer holds the beginning, none nothing.
    x, y = np.ones(2, np.float32), ctypes.c_float()
    short = ctypes.create_string_buffer(b"zzzzzzzzzzzz", 12)
    pointer = x.ctypes.data_as(ctypes.c_void_p)
    size, index = ctypes.c_int64(2), ctypes.c_int32(7)
    assert library.pick(pointer, size, index, ctypes.byref(y), short, ctypes.c_size_t(10)) == CODES["invalid"]
    assert short.raw[9:] == b"\0zz" and len(short.value) == 9
    assert library.pick(pointer, size, index, ctypes.byref(y), None, ctypes.c_size_t(0)) == CODES["invalid"]


class Refused(KeyError):
    """An error of the user's."""


@pytest.mark.parametrize(
    ("n", "message"),
    [
        (-3, "ValueError: n is -3, at 1.25 of <float32[?]>: 100 %d"),
        (50, "KeyError: (big, 50)"),
        (51, "ValueError: 51"),
        (52, "RuntimeError: 52, 1, 1.25, <float32[]>"),
    ],
)
def test_errors_show_the_values_of_scalars(n, message, tmp_path):
    def f(x, n, a):
        if n < 0:
            raise ValueError(f"n is {n}, at {a:.1f} of {x}: 100 %d")
        if n == 50:
            raise Refused("big", n)
        if n == 51:
            raise ValueError(n)
        if n > 51:
            raise OSError(f"{n}, {x[0]}, {a}, {a * 2}")
        return ag.reduce_sum(x) * a

    concrete, library, _ = compiled(f, "x: float32[None], n: int32, a: float32", tmp_path)
    np.testing.assert_array_equal(call(library, "f", concrete, ([1, 2], 3, 2.0))[0], 6)
    with pytest.raises(Failed, match=rf"^{re.escape(message)}\n.*at .*test_c_library.py:\d+"):
        call(library, "f", concrete, ([1, 2], n, 1.25))


def test_bad_pointers_and_sizes_are_errors(tmp_path):
    concrete, library, _ = compiled(lambda_double, "x: float32[None]", tmp_path, name="twice")
    place, sizes, message = ctypes.c_void_p(), (ctypes.c_int64 * 1)(), ctypes.create_string_buffer(100)
    room = ctypes.c_size_t(100)
    assert library.twice(None, ctypes.c_int64(1), ctypes.byref(place), sizes, message, room) == CODES["invalid"]
    assert message.value == b"x is a null pointer."
    x = np.ones(1, np.float32).ctypes.data_as(ctypes.c_void_p)
    assert library.twice(x, ctypes.c_int64(-1), ctypes.byref(place), sizes, message, room) == CODES["invalid"]
    assert message.value == b"x_dim0 is negative." and place.value is None
    # Results may be declined.
    assert library.twice(x, ctypes.c_int64(1), None, None, message, room) == 0 and message.value == b""


def lambda_double(x):
    return x * 2.0


def test_memory_that_does_not_last_is_an_error(tmp_path):
    concrete, library, _ = compiled(lambda n: ag.zeros([n, n, n], ag.float64) + 1.0, "n: int64", tmp_path, name="cube")
    assert call(library, "cube", concrete, [2])[0].shape == (2, 2, 2)
    with pytest.raises(Failed) as caught:
        call(library, "cube", concrete, [1 << 20])
    assert caught.value.code == CODES["memory"]


def test_threads_compute_the_same(tmp_path):
    def large(x):
        return ag.sin(x) * x + ag.reduce_sum(x), x @ ag.transpose(x)

    concrete, library, _ = compiled(large, "x: float32[300, 400]", tmp_path)
    x = np.random.default_rng(1).normal(size=(300, 400))
    alone = call(library, "large", concrete, [x])
    library.large_set_threads(ctypes.c_int64(3))
    together = call(library, "large", concrete, [x])
    assert all(np.array_equal(a, b) for a, b in zip(alone, together))
    found = []
    pool = [threading.Thread(target=lambda: found.append(call(library, "large", concrete, [x]))) for _ in range(4)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    assert len(found) == 4 and all(np.array_equal(a, b) for each in found for a, b in zip(each, alone))


def run(command, folder, **more):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_program_runs_without_python_and_frees_all_memory(tmp_path):
    _, _, made = compiled(structures, "x: float32[None], n: int64, flag: bool", tmp_path)
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover"]
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    static = [made.example.name, made.static.name, "-lm", "-lpthread"]
    run(["cc", *strict, "-o", "plain", *static], tmp_path)
    out = run(["./plain"], tmp_path)
    assert out.splitlines()[:3] == ["result_flag = 0", "rows = 2", "table = " + " ".join(str(i) for i in range(40))]
    assert not any("python" in line for line in run(["ldd", "plain"], tmp_path).splitlines())
    probe = "int main(void) { return 0; }"
    has = subprocess.run(
        ["cc", *sanitize, "-x", "c", "-", "-o", "probe"], cwd=tmp_path, input=probe, text=True, check=False
    )
    if has.returncode == 0:
        run(["cc", "-g", *sanitize, "-o", "checked", *static], tmp_path)
        assert run(["./checked"], tmp_path, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1"}) == out


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_two_libraries_in_one_c_program_of_cpp(tmp_path):
    compiled(newton, "a: float64", tmp_path)
    compiled(products, "a: float32[2, 2], b: float32[2, 2]", tmp_path)
    (tmp_path / "both.cpp").write_text(
        '#include "newton.h"\n#include "products.h"\n#include <cstdio>\n'
        "int main() {\n"
        "  double root = 0; float a[4] = {1, 2, 3, 4}; float *sum = nullptr; char text[80];\n"
        "  if (newton(9.0, &root, text, sizeof text) != NEWTON_OK) return 1;\n"
        "  if (products(a, a, &sum, nullptr, text, sizeof text) != PRODUCTS_OK) return 2;\n"
        '  std::printf("%g %g %g\\n", root, sum[0], sum[1]);\n'
        "  products_free(sum);\n"
        "}\n"
    )
    run(
        ["c++", "-Wall", "-Werror", "-o", "both", "both.cpp", "libnewton.a", "libproducts.a", "-lm", "-lpthread"],
        tmp_path,
    )
    assert run(["./both"], tmp_path) == "3 22 32\n"


def test_what_cannot_be_exported_says_why(tmp_path):
    state = ag.Variable(0.0)

    def counts(x):
        state.assign_add(x)
        return state + x

    def prints(x):
        ag.print(x)
        return x

    def draws(x):
        return x + ag.random.normal([])

    def lists(x):
        return ag.strings.as_string(x)

    for function, text in (
        (counts, r"assigns the variable(?s:.*)pass the value as an argument"),
        (prints, r"op 'print' can't be compiled(?s:.*)test_c_library"),
        (draws, r"stateless_uniform"),
        (lists, r"string"),
    ):
        with pytest.raises(ag.errors.UnimplementedError, match=text):
            ag.export.c_library(traced(function, "x: float32"), tmp_path)
    for name in ("2nd try", "int", 3):
        with pytest.raises(ag.errors.InvalidArgumentError, match="must be a C identifier"):
            ag.export.c_library(traced(newton, "a: float64"), tmp_path, name=name)
    with pytest.raises(TypeError, match=r"c_library must know the types of the arguments of 'f'"):
        ag.export.c_library(ag.function(lambda x: x, name="f"), tmp_path)
    assert not list(tmp_path.iterdir())


def test_names_are_identifiers_that_differ(tmp_path):
    def f(double, config):
        return {"int": double + config["a b"], "a-b": config["a_b"], "x": [double]}

    spec = ag.TensorSpec([], ag.float32)
    concrete = ag.function(f).get_concrete_function(spec, {"a b": spec, "a_b": spec})
    text = ag.export.c_library(concrete, tmp_path).header.read_text()
    assert "int f(double_, config_a_b, config_a_b_2, *a_b, *int_, *x_0, char *message" in re.sub(
        r"\(\s+", "(", text.replace("float ", "").replace(",\n    ", ", ")
    )


def test_the_command_line_writes_the_same_files(tmp_path, capsys):
    source = tmp_path / "model.py"
    source.write_text('def scale(x, k=2.0):\n    """Scales x."""\n    return x * k\n')
    folder = tmp_path / "out"
    target = f"{source}:scale"
    command = ["compile", target, "--signature", "x: float32[None], k=3.0", "--output", str(folder), "--gradient"]
    assert main([*command, "--name", "triple"]) == 0
    names = ["libtriple.a", system.shared_library("triple"), "triple.h", "triple.o", "triple_main.c"]
    assert sorted(each.name for each in folder.iterdir()) == names
    assert all(name in capsys.readouterr().out for name in ["triple.h"])
    assert "/* Scales x." in (folder / "triple.h").read_text()
    assert main(["compile", target, "--signature", "x: float32[None]", "--output", str(folder), "--name", "3"]) == 1
    assert "must be a C identifier" in capsys.readouterr().err
    assert main(["compile", target, "--signature", "x: float32[...]", "--output", str(folder)]) == 1
    assert "unknown rank" in capsys.readouterr().err
    assert sorted(each.name for each in folder.iterdir()) == names
