"""Windows of images in generated code: the same bits as on the interpreter, whatever their sizes and borders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.codegen import cost_model
from runtime.engine.partition import parts
from runtime.ops.dispatch import call

# sizes of the space, channels, sizes, strides, rates, padding
CASES = [
    ((7,), 1, (3,), (1,), (1,), "VALID"),
    ((2,), 3, (3,), (1,), (1,), "VALID"),
    ((7,), 2, (3,), (2,), (2,), "SAME"),
    ((6, 5), 16, (2, 2), (2, 2), (1, 1), "VALID"),
    ((6, 5), 33, (3, 2), (1, 2), (1, 1), "SAME"),
    ((6, 5), 3, (3, 2), (2, 1), (2, 2), ((1, 2), (0, 3))),
    ((5, 4, 3), 2, (2, 3, 2), (1, 2, 1), (1, 1, 2), "SAME"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_same_bits(case: Any) -> None:
    space, channels, sizes, strides, rates, padding = case
    attrs = {"sizes": sizes, "strides": strides, "rates": rates, "padding": padding}
    rng = np.random.default_rng(5)
    x = rng.integers(-3, 4, size=(3, *space, channels)).astype(np.float32)  # has equal elements
    x[rng.random(x.shape) < 0.02] = np.nan

    def program(x: Any) -> Any:
        windows = call("patches", x, fill=2, **attrs)
        largest, number = call("max_pool", x, **attrs)
        back = call("max_pool_grad", ag.ones_like(largest) * 1.1, number, shape=(3, *space, channels), **attrs)
        return windows, largest, number, back, call("patches_grad", windows * 1.1, shape=x.shape, **attrs)

    compiled = ag.function(program, jit_compile=True)
    for one, other in zip(program(ag.constant(x)), compiled(ag.constant(x)), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("work", [1, 1 << 30], ids=["on threads", "alone"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_channel_by_itself(case: Any, work: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(cost_model, "PARALLEL_WORK", work)
    space, channels, sizes, strides, rates, padding = case
    attrs = {"sizes": sizes, "strides": strides, "rates": rates, "padding": padding}
    rng = np.random.default_rng(5)
    x = ag.constant(rng.integers(-9, 9, size=(25, *space, channels)), ag.float32)  # sums in any order are the same
    w = ag.constant(rng.integers(-9, 9, size=(*sizes, channels)), ag.float32)
    windows = call("patches", x, fill=0, **attrs)
    filters = ag.reshape(w, [-1, channels])
    expected = ag.reduce_sum(windows * filters, -2)
    dy = ag.constant(rng.integers(-9, 9, size=expected.shape), ag.float32)
    spread = ag.expand_dims(dy, -2)
    by_filters = ag.reshape(ag.reduce_sum(windows * spread, list(range(len(space) + 1))), w.shape)
    by_input = call("patches_grad", spread * filters, shape=x.shape, **attrs)

    @ag.function(jit_compile=True)
    def program(x: Any, w: Any, dy: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch((x, w))
            y = call("depthwise_convolution", x, w, **attrs)
        return y, *tape.gradient(y, (x, w), dy)

    for found in (program(x, w, dy), program.python_function(x, w, dy)):
        for one, other in zip(found, (expected, by_input, by_filters), strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())


def products(x: Any, w: Any, dy: Any, attrs: dict[str, Any]) -> Any:
    """The three products of windows and filters, and the last one as windows that are added up."""
    elements, (*_, channels, depth) = int(np.prod(attrs["sizes"])), w.shape
    windows = ag.matmul(ag.reshape(dy, [-1, depth]), ag.reshape(w, [-1, depth]), transpose_b=True)
    windows = ag.reshape(windows, [*dy.shape[:-1], elements, channels])
    return (
        call("convolution", x, w, **attrs), call("convolution_filters_grad", x, dy, **attrs),
        call("convolution_input_grad", dy, w, shape=x.shape, **attrs),
        call("patches_grad", windows, shape=x.shape, **attrs),
    )  # fmt: skip


@pytest.mark.parametrize(
    "constants",
    [
        {"CONVOLUTION_STRIP": 200, "SHARED_BATCH": 1},
        {"CONVOLUTION_STRIP": 4000, "SHARED_BATCH": 1, "CONVOLUTION_FILTERS": 0},
        {"CONVOLUTION_STRIP": 1500, "SHARED_BATCH": 1 << 60},
        {"CONVOLUTION_STRIP": 200, "SHARED_BATCH": 1, "CONVOLUTION_CHANNELS": 1 << 60},
    ],
    ids=["parts of images", "images", "alone", "windows added up"],
)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_strips(case: Any, threads: int, constants: dict[str, int], monkeypatch: Any) -> None:
    """A few windows at a time: sums go through them in the order of all windows at once."""
    always = {"PARALLEL_WORK": 1, "CONVOLUTION_IMAGES": 1, "CONVOLUTION_WINDOWS": 1, "CONVOLUTION_CHANNELS": 1}
    for name, value in {**always, **constants}.items():
        monkeypatch.setattr(cost_model, name, value)
    space, channels, sizes, strides, rates, padding = case
    attrs = {"sizes": sizes, "strides": strides, "rates": rates, "padding": padding}
    rng = np.random.default_rng(5)
    images = 2000 // int(np.prod(space)) + 3  # products of matrices by tiles, which have other bits than small ones
    x, w = rng.normal(size=(images, *space, channels)), rng.normal(size=(*sizes, channels, 5))
    x, w = ag.constant(x, ag.float32), ag.constant(w, ag.float32)
    dy = ag.constant(rng.normal(size=call("convolution", x, w, **attrs).shape), ag.float32)
    compiled = ag.function(lambda *arrays: products(*arrays, attrs), jit_compile=True)
    is_empty = 0 in dy.shape
    assert is_empty or "lib.indirect_gemm(" in compiled.get_concrete_function(x, w, dy).as_text("kernel")
    before = ag.config.threading.get_intra_op_parallelism_threads()
    ag.config.threading.set_intra_op_parallelism_threads(threads)
    try:
        found = [each.numpy() for each in compiled(x, w, dy)]
    finally:
        ag.config.threading.set_intra_op_parallelism_threads(before)
    for one, other in zip(products(x, w, dy, attrs), found, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-4, atol=1e-3)
    if set(strides) != {1} or "CONVOLUTION_CHANNELS" in constants:  # otherwise the sums have another order
        np.testing.assert_array_equal(found[2], found[3])


def test_sums_do_not_depend_on_the_number_of_threads() -> None:
    rng = np.random.default_rng(5)
    x, w = (ag.constant(rng.normal(size=shape), ag.float32) for shape in ((8, 20, 20, 16), (3, 3, 16, 24)))
    attrs = {"sizes": (3, 3), "strides": (1, 1), "rates": (1, 1), "padding": "SAME"}
    compiled = ag.function(lambda *arrays: products(*arrays, attrs), jit_compile=True)
    dy = compiled.python_function(x, w, ag.zeros([8, 20, 20, 24]))[0]
    found = []
    before = ag.config.threading.get_intra_op_parallelism_threads()
    for threads in (1, 2, 5):
        ag.config.threading.set_intra_op_parallelism_threads(threads)
        found.append([each.numpy() for each in compiled(x, w, dy)])
    ag.config.threading.set_intra_op_parallelism_threads(before)
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("compiled", [False, True])
def test_sizes_that_do_not_agree_are_an_error(compiled: bool) -> None:
    unknown = ag.TensorSpec([None, None, None], ag.float32)
    attrs = {"sizes": (2,), "strides": (1,), "rates": (1,), "padding": "VALID"}

    def check(name: str, shapes: Any, message: str, **more: Any) -> None:
        program = ag.function(
            lambda a, b: call(name, a, b, **attrs, **more), jit_compile=compiled, input_signature=[unknown] * 2
        )
        with pytest.raises(ag.errors.InvalidArgumentError, match=message):
            program(*map(ag.ones, shapes))

    check("convolution", ((1, 4, 3), (2, 2, 5)), "the channels of the input and of the filters differ: 3 and 2")
    check("convolution", ((1, 4, 3), (3, 3, 5)), "the sizes of the filters and of the windows differ: 3 and 2")
    places = "the places of windows over the input and those of the cotangent differ: 3 and 2"
    check("convolution_filters_grad", ((1, 4, 3), (1, 2, 5)), places)
    depths = "the depths of the cotangent and of the filters differ: 4 and 5"
    check("convolution_input_grad", ((1, 3, 4), (2, 3, 5)), depths, shape=(1, 4, 3))
    unknown = ag.TensorSpec(None, ag.float32)
    check("depthwise_convolution", ((1, 4, 3), (2, 2)), "the channels of the input and of the filters differ: 3 and 2")
    check("depthwise_convolution", ((1, 4, 3), (3, 3)), "the sizes of the filters and of the windows differ: 3 and 2")
    check("depthwise_filters_grad", ((1, 4, 3), (1, 2, 3)), places)
    check(
        "depthwise_input_grad",
        ((1, 3, 3), (2, 2)),
        "the channels of the input and of the filters differ: 3 and 2",
        shape=(1, 4, 3),
    )


def test_a_convolution_network_is_native_as_a_whole() -> None:
    def loss(x: Any, w: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(w)
            found = ag.reduce_sum(
                ag.nn.avg_pool(ag.nn.max_pool(ag.nn.conv2d(x, w, 1, "SAME"), 2, 2, "VALID"), 2, 1, "SAME")
            )
        return tape.gradient(found, w)

    step = ag.function(loss, jit_compile=True)
    x, w = ag.ones((2, 8, 8, 1)), ag.ones((3, 3, 1, 4))
    np.testing.assert_allclose(step(x, w), loss(x, w), rtol=1e-6)
    assert all(native for native, _ in parts(step.get_concrete_function(x, w).function.executable.graph))
