"""Programs whose kernels run on the emulated device, beside the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.device.device_kernel import DeviceKernel
from runtime.codegen.device.device_module import spmd_of
from runtime.codegen.device.kernel import NotOnDevice
from runtime.codegen.lower.lower_graph import lower
from runtime.gpu.emulator import Emulator
from runtime.gpu.interface import Shape
from runtime.gpu.memory import DeviceArray, LogicalGPU

RANDOM = np.random.default_rng(5)
VECTOR = RANDOM.uniform(0.5, 2.0, 300).astype(np.float32)
MATRIX = RANDOM.normal(size=(40, 30)).astype(np.float32)


def newton(x: Any) -> Any:
    y, change = x, ag.constant(1.0)
    while change > 1e-6:
        z = 0.5 * (y + x / y)
        change = ag.reduce_max(ag.abs(z - y))
        y = z
    return y


def descent(x: Any) -> Any:
    w, loss, n = ag.ones_like(x), ag.constant(1.0), 0
    while loss > 1e-3 and n < 200:
        r = w * x - 1.0
        loss = ag.reduce_mean(r * r)
        w = w - 0.1 * r * x
        n += 1
    return w, n


def stencil(x: Any) -> Any:
    for _ in ag.range(20):
        inner = 0.25 * x[:-2] + 0.5 * x[1:-1] + 0.25 * x[2:]
        x = ag.concat([x[:1], inner, x[-1:]], 0)
    return x


def recurrence(x: Any) -> Any:
    h = ag.zeros([30])
    for t in ag.range(40):
        h = ag.tanh(x[t] + 0.5 * h)
    return h


def growing(x: Any) -> Any:
    found = ag.TensorArray(ag.float32, size=0, dynamic_size=True)
    n = 0
    for i in ag.range(300):
        if x[i] > 1.0:
            found = found.write(n, x[i] * 2.0)
            n += 1
    return found.stack()


def sieve(n: Any) -> Any:
    composite = ag.zeros([1000], ag.bool)
    for i in ag.range(2, n):
        if not composite[i]:
            for j in ag.range(i * i, 1000, i):
                composite = ag.tensor_scatter_nd_update(composite, [[j]], [True])
    return composite


def distances(x: Any) -> Any:
    gap = x[:, None, :] - x[None, :, :]
    return ag.reduce_sum(gap * gap, -1), ag.argmin(ag.reduce_sum(ag.abs(gap), -1) + 1e9 * ag.eye(40), -1)


def attention(x: Any) -> Any:
    scores = ag.nn.softmax(x @ ag.transpose(x) / 5.0)
    return scores @ x


def edit_distance(x: Any) -> Any:
    row = ag.range(31)
    for i in ag.range(40):
        before, left = row, i + 1
        row = ag.tensor_scatter_nd_update(row, [[0]], [left])
        for j in ag.range(30):
            change = 0 if x[i, j] > 0.0 else 1
            left = ag.minimum(ag.minimum(left + 1, before[j + 1] + 1), before[j] + change)
            row = ag.tensor_scatter_nd_update(row, [[j + 1]], [left])
    return row


def fractal(x: Any) -> Any:
    def trips(c: Any) -> Any:
        z, n = c, 0
        while n < 30 and ag.abs(z) < 4.0:
            z = z * z + c
            n += 1
        return n

    return ag.map_fn(trips, x, fn_output_signature=ag.int32)


def own_trips(x: Any) -> Any:
    """A thread per element, each with a number of trips of its own."""

    def one(v: Any) -> Any:
        n = 0
        while v < 50.0 and n < 40:
            v = v * v + 0.3
            n += 1
        return v + ag.cast(n, ag.float32)

    return ag.vectorized_map(one, ag.abs(x))


def written(x: Any) -> Any:
    found = ag.TensorArray(ag.float32, size=300)
    for i in ag.range(300):
        found = found.write(i, x[i] * 2.0 + x[299 - i])
    return found.stack()


def histogram(x: Any) -> Any:
    rows = ag.cast(ag.abs(x[:, 0]) * 3.0, ag.int32)
    sums = ag.math.unsorted_segment_sum(x, rows, 12)
    counts = ag.math.bincount(rows, minlength=12, maxlength=12)
    return sums, counts, ag.math.unsorted_segment_max(x[:, 1], rows, 12)


def exchanged(x: Any) -> Any:
    columns = ag.cast(ag.abs(x[0]) * 9.0, ag.int32)
    taken = ag.gather(x, columns, axis=1)
    for _ in ag.range(3):
        taken = ag.tensor_scatter_nd_add(taken, columns[:20, None], x[:20] * 0.5)
    return taken


def running(x: Any) -> Any:
    """Running totals along few rows and along many, and one of the program's own."""
    total = ag.constant(0.0)
    found = ag.TensorArray(ag.float32, size=40)
    for i in ag.range(40):
        total += x[i, 0]
        found = found.write(i, total * 0.5)
    whole = ag.cumsum(ag.reshape(x, [-1]), exclusive=True)
    return whole, ag.cumsum(x, axis=1, reverse=True), ag.math.cumprod(x[0]), found.stack(), total


def ordered(x: Any) -> Any:
    return ag.sort(x, axis=-1), ag.argsort(x[:, 0], direction="DESCENDING", stable=True)


def products(x: Any) -> Any:
    """Larger than four elements for each thread, with rows and columns left over, and smaller."""
    return ag.matmul(x[:, :13], x[:, :13], transpose_b=True), ag.matmul(x, x, transpose_a=True), x[:2] @ x[:30, :1]


def drawn(x: Any) -> Any:
    return x + ag.random.stateless_normal([300], [1, 2])


def bits(x: Any) -> Any:
    """Bytes of numbers: as wide, narrower, wider."""
    turned = ag.reverse(ag.bitcast(x, ag.uint8), [-1])
    cleared = ag.bitcast(ag.bitcast(-x, ag.int32) & 0x7FFFFFFF, ag.float32)
    return turned, ag.bitcast(turned, ag.int32), cleared, ag.bitcast(ag.reshape(x, [-1, 2]), ag.uint64)


def chosen(x: Any) -> Any:
    """What masks choose, in the order of the processor, and a loop that goes on with less in each trip."""
    positive = ag.boolean_mask(x, x > 0.0)
    rows = ag.boolean_mask(x, x[:, 0] > 0.0)
    left = positive
    while ag.size(left) > 3:
        left = ag.boolean_mask(left, left > ag.reduce_mean(left)) * 1.5
    return positive * positive, ag.where(x > 0.5), rows, left


def grouped(x: Any) -> Any:
    keys, numbers, counts = ag.unique_with_counts(ag.cast(ag.floor(x[:, 0] * 4.0), ag.int32))
    sums = ag.math.unsorted_segment_sum(x, numbers, ag.size(keys))
    return ag.repeat(sums, counts, axis=0) * 2.0, ag.sort(x, axis=-1) * ag.range(30.0), keys


def factored(x: Any) -> Any:
    """Several matrices, of which blocks take one each, and one that is singular for nobody but its determinant."""
    square = x[:30] + 9.0 * ag.eye(30)
    several = ag.reshape(x[:, :27], [40, 3, 9])[:, :, :3] * 0.2 + 2.0 * ag.eye(3)
    symmetric = ag.matmul(several, several, transpose_b=True)
    factor = ag.linalg.cholesky(symmetric)
    return (
        ag.linalg.solve(square, x[:30, :7]), ag.linalg.inv(several), factor, ag.linalg.det(several),
        ag.linalg.triangular_solve(factor, several, adjoint=True), ag.linalg.slogdet(square),
        ag.linalg.det(x[:3, :3] * 0.0),
    )  # fmt: skip


PROGRAMS: list[tuple[Any, Any]] = [
    (newton, VECTOR), (descent, VECTOR), (stencil, VECTOR), (recurrence, MATRIX), (growing, VECTOR),
    (sieve, np.int32(32)), (distances, MATRIX), (attention, MATRIX), (edit_distance, MATRIX), (fractal, VECTOR - 1.2),
    (drawn, VECTOR), (own_trips, VECTOR), (written, VECTOR), (histogram, MATRIX), (exchanged, MATRIX),
    (running, MATRIX), (ordered, MATRIX), (products, MATRIX), (bits, MATRIX), (chosen, MATRIX),
    (grouped, MATRIX), (factored, MATRIX),
]  # fmt: skip


DIFFERENTIABLE = (
    descent,
    stencil,
    recurrence,
    attention,
    growing,
    exchanged,
    running,
    products,
    chosen,
    grouped,
    factored,
)


def gradient_of(program: Any) -> Any:
    def both(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            found = program(x)
            total = ag.reduce_sum((found[0] if isinstance(found, tuple) else found) ** 2)
        return tape.gradient(total, x)

    return both


def agree(program: Any, argument: Any, tolerance: float = 2e-5) -> None:
    expected = ag.function(program, jit_compile=False)(ag.constant(argument))
    found = ag.function(program, jit_compile=True)(ag.constant(argument))
    for one, other in zip(ag.nest.flatten(found), ag.nest.flatten(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("program", "argument"), PROGRAMS)
def test_values(program: Any, argument: Any, emulator: Emulator) -> None:
    agree(program, argument)


@pytest.mark.parametrize(
    ("program", "argument"),
    [(program, argument) for program, argument in PROGRAMS if program in DIFFERENTIABLE],
)
def test_gradients(program: Any, argument: Any, emulator: Emulator) -> None:
    agree(gradient_of(program), argument, 1e-4)


def test_columns_that_are_added_up(emulator: Emulator) -> None:
    """Threads that share columns, of which some have none."""

    @ag.function(jit_compile=True, input_signature=[ag.TensorSpec([None, None], ag.float32)])
    def program(x: Any) -> Any:
        return ag.reduce_sum(x, 0), ag.reduce_max(x, 0), ag.nn.softmax(x, axis=0), ag.math.reduce_variance(x, 0)

    for rows, columns in [(40, 1), (41, 2), (37, 3), (50, 4), (16, 7), (15, 4), (20, 9), (30, 0), (0, 3)]:
        x = RANDOM.normal(size=(rows, columns)).astype(np.float32)
        with np.errstate(all="ignore"):
            powers = np.exp(x)
            expected = (
                x.sum(0), x.max(0, initial=-np.inf), powers / powers.sum(0), x.var(0) if rows else x.sum(0) / 0
            )  # fmt: skip
        for one, other in zip(program(x), expected, strict=True):
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-5, atol=1e-5)


# --- errors ----------------------------------------------------------------------------------------------------------


def kernel_of(program: Any, *specs: Any) -> Any:
    return lower(ag.function(program).get_concrete_function(*specs).graph, for_device=True)


def on(emulator: Emulator, source: Any) -> Any:
    """A kernel on an emulated GPU, which gives arrays of the host's."""
    kernel = DeviceKernel(source, LogicalGPU("GPU:0", emulator))

    def call(*given: Any) -> list[Any]:
        return [each.on_host() if isinstance(each, DeviceArray) else each for each in kernel(*given)]

    call.module = kernel.module  # type: ignore[attr-defined]
    return call


def gathered(x: Any, rows: Any) -> Any:
    return ag.gather(x, rows)


def added(x: Any, rows: Any) -> Any:
    return ag.tensor_scatter_nd_add(x, rows[:, None], ag.cast(rows, ag.float32))


def divided(x: Any, rows: Any) -> Any:
    return 100 // rows


@pytest.mark.parametrize("program", [gathered, added, divided])
def test_the_first_failure_is_told(program: Any, emulator: Emulator) -> None:
    """Of several trips that fail the first one counts, whichever thread comes first."""
    rows = np.ones(300, np.int32)
    rows[[57, 58, 200]] = 0 if program is divided else [400, -1, 500]
    arguments = ag.constant(VECTOR), ag.constant(rows)
    messages = []
    for compiled in (False, True):
        with pytest.raises(ag.errors.InvalidArgumentError) as caught:
            ag.function(program, jit_compile=compiled)(*arguments)
        messages.append(str(caught.value).splitlines()[0])
    assert messages[0] == messages[1]


def test_a_failing_assertion_in_a_loop(emulator: Emulator) -> None:
    @ag.function(jit_compile=True)
    def program(x: Any) -> Any:
        total = ag.constant(0.0)
        for i in ag.range(300):
            total += x[i]
            ag.debugging.assert_less(total, 20.0, message="too much")
        return total

    with pytest.raises(ag.errors.InvalidArgumentError, match="too much"):
        program(ag.constant(VECTOR))


# --- memory and numbers ----------------------------------------------------------------------------------------------


def test_a_heap_that_is_too_small_grows_and_what_was_changed_is_changed_once() -> None:
    def program(n: Any) -> Any:
        return ag.random.uniform([n], dtype=ag.float64)

    source = kernel_of(program, ag.TensorSpec([], ag.int32))
    kernel = on(Emulator(Shape(2, 2)), source)
    (changed,) = kernel.module.changed
    streams = np.array([5, 0, 7], np.uint64)
    count = 500_000  # 4 MB; the heap begins with 1 MB
    given = [np.int32(count), streams, *[1] * (len(source.constants) - 1)]
    assert changed == 1
    status, *_, numbers = kernel(given)
    assert status == 0
    assert numbers.shape == (count,)
    assert 0.49 < numbers.mean() < 0.51
    assert streams[0] == 5 + 256 * count


def test_sizes_in_unsigned_numbers_are_not_the_hosts() -> None:
    """What would wrap around there is no error."""
    source = kernel_of(lambda n: ag.random.uniform([n], -5, 5, ag.int64, seed=1), ag.TensorSpec([], ag.int32))
    streams = np.array([5, 0, 7], np.uint64)
    found = on(Emulator(), source)([np.int32(7), streams, *[1] * (len(source.constants) - 1)])[-1]
    assert found.shape == (7,)
    assert ((found >= -5) & (found < 5)).all()


def test_a_device_without_memory() -> None:
    source = kernel_of(lambda n: ag.ones([n]), ag.TensorSpec([], ag.int32))
    emulator = Emulator(Shape(1, 2), memory=1 << 21)
    kernel = on(emulator, source)
    others = [1] * (len(source.constants))
    assert kernel([np.int32(1000), *others])[-1].sum() == 1000
    with pytest.raises(ag.errors.ResourceExhaustedError, match=r"38.1 MiB for a result of .*, but 2\.0 MiB"):
        kernel([np.int32(10_000_000), *others])
    assert not emulator._memory  # everything was given back
    assert kernel([np.int32(1000), *others])[-1].sum() == 1000


def test_as_many_threads_give_the_same_bits() -> None:
    source = kernel_of(lambda x: ag.reduce_sum(x * x), ag.TensorSpec([None], ag.float32))
    kernel = on(Emulator(), source)
    x = RANDOM.normal(size=10_000).astype(np.float32)
    others = [1] * len(source.constants)
    for shape in (Shape(2, 3), Shape(1, 5)):
        found = {kernel([x, *others], shape)[-1].tobytes() for _ in range(5)}
        assert len(found) == 1


def test_far_angles() -> None:
    """Our own reduction of angles, which a GPU needs: there is no C library."""
    x = np.concatenate([
        RANDOM.uniform(-10, 10, 100), 10.0 ** RANDOM.uniform(3, 300, 500) * RANDOM.choice([-1, 1], 500),
        [np.inf, -np.inf, np.nan, 1e22, 2.0**1000, 1.7e308, 0.0],
    ])  # fmt: skip
    source = kernel_of(lambda x: (ag.sin(x), ag.cos(x), ag.tan(x)), ag.TensorSpec([None], ag.float64))
    found = on(Emulator(Shape(1, 2)), source)([x])[-3:]
    with np.errstate(invalid="ignore"):
        for one, exact, most in zip(found, (np.sin(x), np.cos(x), np.tan(x)), (3, 3, 4)):
            finite = np.isfinite(exact)
            assert (np.isnan(one) == ~finite).all()
            assert (np.abs(one - exact)[finite] <= most * np.spacing(np.abs(exact[finite]))).all()
    # The angle below 2**1024 that is nearest to an odd multiple of pi/2, and its cosine.
    hardest = np.array([6381956970095103.0 * 2.0**797])
    cosine = on(Emulator(Shape(1, 1)), source)([hardest])[-2][0]
    assert abs(cosine - -4.68716592425462761112e-19) <= 2 * np.spacing(4.7e-19)


def test_logarithms_of_the_gamma_function() -> None:
    from math import lgamma

    x = np.concatenate([RANDOM.uniform(-10, 10, 200), 10.0 ** RANDOM.uniform(-300, 300, 200), [1.0, 2.0, 0.5, 1e-320]])
    source = kernel_of(lambda x: ag.math.lgamma(x), ag.TensorSpec([None], ag.float64))
    kernel = on(Emulator(Shape(1, 2)), source)
    exact = np.array([lgamma(value) for value in x])
    assert (np.abs(kernel([x])[-1] - exact) <= 1e-14 * np.maximum(1, np.abs(exact))).all()
    special = kernel([np.array([0.0, -0.0, -3.0, np.inf, -np.inf, np.nan])])[-1]
    np.testing.assert_array_equal(special, [np.inf] * 5 + [np.nan])


def test_recursion_is_refused() -> None:
    @ag.function
    def fibonacci(n: Any) -> Any:
        if n < 2:
            return n
        return fibonacci(n - 1) + fibonacci(n - 2)

    source = lower(fibonacci.get_concrete_function(ag.TensorSpec([], ag.int32)).graph, for_device=True)
    with pytest.raises(NotOnDevice, match="call themselves"):
        spmd_of(source)


def test_a_maximum_over_all_threads_ends_a_loop(emulator: Emulator) -> None:
    def steps(x: Any) -> Any:
        y, change, n = x, ag.constant(1.0), 0
        while change > 1e-6 and n < 2:
            z = 0.5 * (y + x / y)
            change = ag.reduce_max(ag.abs(z - y))
            y = z
            n += 1
        return y, change

    source = kernel_of(steps, ag.TensorSpec([1_000_000], ag.float32))
    x = np.random.default_rng(4).uniform(0.5, 2.0, 9_000).astype(np.float32)
    y, change = on(emulator, source)([x])[-2:]
    expected, last = ag.function(steps, jit_compile=False)(ag.constant(x))
    np.testing.assert_array_equal(y, expected.numpy())
    assert change == last.numpy()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("flips", [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_all_sizes(flips: tuple[bool, bool], dtype: Any, emulator: Emulator) -> None:
    """By warps, by threads, and by tiles of both sizes, at their edges too."""
    random = np.random.default_rng(5)
    specs = [ag.TensorSpec([None, None], dtype)] * 2
    kernel = on(emulator, kernel_of(lambda x, y: ag.linalg.matmul(x, y, *flips), *specs))
    for rows, inner, columns in (
        (1, 64, 9),
        (3, 40, 5),
        (20, 30, 25),
        (9, 9, 9),
        (8, 16, 16),
        (1, 5, 1),
        (0, 4, 5),
        (4, 0, 5),
    ):
        x, y = random.normal(size=(rows, inner)).astype(dtype), random.normal(size=(inner, columns)).astype(dtype)
        given = [np.ascontiguousarray(each.T if flip else each) for each, flip in zip((x, y), flips)]
        np.testing.assert_allclose(kernel([*given, 2])[-1], x @ y, rtol=2e-5, atol=2e-5)
