"""`ag.image`: TensorFlow's results and gradients, eager, traced and compiled; static shapes, errors, derivatives."""

import json

import numpy as np
import pytest

import autograph as ag
from tests.ops.image_values import (
    ANSWERS,
    AWKWARD,
    BOXES,
    BYTES,
    CLUSTERS,
    COLOURS,
    FAR,
    IMAGE,
    LINES,
    LONG,
    METHODS,
    OVERLAPS,
    SCORES,
    TALL,
    UPRIGHT,
    answer,
    cases,
    weighted,
)

TENSORFLOW = json.loads(ANSWERS.read_text(encoding="utf-8"))
CASES = cases(ag)


def agree(found, expected):
    for (dtype, numbers), (their_dtype, theirs) in zip(found[0], expected[0], strict=True):
        assert dtype == their_dtype
        if dtype.startswith("float"):
            np.testing.assert_allclose(numbers, theirs, rtol=1e-3 if dtype == "float16" else 1e-5, atol=2e-6)
        else:
            np.testing.assert_array_equal(numbers, theirs)
    for slope, theirs in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(slope, theirs, rtol=2e-5, atol=1e-5)


def test_every_case_has_an_answer():
    assert set(CASES) == set(TENSORFLOW)


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_tensorflows(name):
    agree(answer(ag, *CASES[name]), TENSORFLOW[name])


# One case of each kind: sizes that are known and unknown take different ways.
STAGED = [
    name
    for name in CASES
    if name.split()[0] != "resize" or name.endswith(("[2, 5]", "long lanczos3 antialias", "within [3, 9]"))
]


@pytest.mark.parametrize("name", STAGED)
@pytest.mark.parametrize("known", ["rank", "nothing"])
def test_what_is_unknown_while_tracing_changes_nothing(name, known):
    f, arguments, gradient = CASES[name]
    specs = [ag.TensorSpec(None if known == "nothing" else [None] * x.ndim, ag.as_dtype(x.dtype)) for x in arguments]
    traced = ag.function(f, input_signature=specs, autograph=False)
    agree(answer(ag, traced, arguments, gradient), TENSORFLOW[name])


def test_compiled():
    """One kernel for all results and gradients: the ops are native."""
    chosen = {n: c for n, c in CASES.items() if c[2] and len(c[1]) == 1 and c[1][0] is IMAGE and n in STAGED}

    @ag.function(jit_compile=True, autograph=False)
    def everything(x):
        with ag.GradientTape(persistent=True) as tape:
            tape.watch(x)
            totals = []
            for f, _, _ in chosen.values():
                results = f(x)
                totals.append(weighted(ag, list(results) if isinstance(results, tuple) else [results]))
        return [tape.gradient(total, x) for total in totals]

    for name, slope in zip(chosen, everything(ag.constant(IMAGE)), strict=True):
        np.testing.assert_allclose(slope, TENSORFLOW[name][1][0], rtol=2e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    "f, x",
    [
        *[(lambda x, m=m, a=a: ag.image.resize(x, [2, 5], m, antialias=a), IMAGE) for m in METHODS for a in (0, 1)],
        (lambda x: ag.image.resize_with_pad(x, 5, 9), LONG),
        (ag.image.rgb_to_hsv, COLOURS),
        (ag.image.hsv_to_rgb, COLOURS),
        (lambda x: ag.image.adjust_hue(x, 0.3), COLOURS),
        (lambda x: ag.image.adjust_saturation(x, 0.6), COLOURS),
        (lambda x: ag.image.crop_and_resize(x, BOXES, [0] * 4, [3, 2]), IMAGE),
        (lambda b: ag.image.crop_and_resize(IMAGE, b, [0], [3, 2]), np.array([[0.1, 0.15, 0.7, 0.8]], np.float32)),
        (lambda t: ag.image.projective_transform(IMAGE, t),
         np.array([[0.9, 0.1, 0.23, 0.1, 0.8, 0.43, 0.01, 0.02]], np.float32)),
        *[(lambda x, m=m: ag.image.projective_transform(x, FAR, [3, 4], 0.0, "bilinear", m), IMAGE)
          for m in ("constant", "nearest", "reflect", "wrap")],
    ],
)  # fmt: skip
def test_gradients_are_derivatives(f, x):
    with ag.GradientTape() as tape:
        tensor = ag.constant(x)
        tape.watch(tensor)
        total = weighted(ag, [f(tensor)])
    slope = tape.gradient(total, tensor).numpy()
    direction = np.cos(np.arange(x.size)).reshape(x.shape).astype(np.float32)
    step = 1e-3
    ahead, behind = (float(weighted(ag, [f(ag.constant(x + s * direction))])) for s in (step, -step))
    assert (ahead - behind) / (2 * step) == pytest.approx(float((slope * direction).sum()), rel=5e-3, abs=5e-3)


def test_second_derivatives():
    with ag.GradientTape() as outer:
        x = ag.constant(IMAGE)
        outer.watch(x)
        with ag.GradientTape() as inner:
            inner.watch(x)
            y = ag.reduce_sum(ag.image.resize(x, [2, 5], "bicubic") ** 3)
        slope = inner.gradient(y, x)
        total = ag.reduce_sum(slope * slope)
    second = outer.gradient(total, x)

    def first(values):
        with ag.GradientTape() as tape:
            t = ag.constant(values)
            tape.watch(t)
            y = ag.reduce_sum(ag.image.resize(t, [2, 5], "bicubic") ** 3)
        return float((tape.gradient(y, t).numpy().astype(np.float64) ** 2).sum())

    step = np.zeros_like(IMAGE)
    step[0, 1, 1, 0] = 1e-2
    assert (first(IMAGE + step) - first(IMAGE - step)) / 2e-2 == pytest.approx(float(second[0, 1, 1, 0]), rel=1e-2)


def test_static_shapes():
    shapes = []

    @ag.function(input_signature=[ag.TensorSpec([None, None, None, 3]), ag.TensorSpec([2], ag.int32)], autograph=False)
    def f(x, size):
        shapes.extend([
            ag.image.resize(x, [4, 5]), ag.image.resize(x, size), ag.image.resize_with_pad(x, 4, 5),
            ag.image.resize_with_crop_or_pad(x, 4, 5), ag.image.crop_to_bounding_box(x, 0, size[0], 4, 5),
            ag.image.sobel_edges(x), ag.image.crop_and_resize(x, BOXES, [0] * 4, [4, 5]),
            ag.image.projective_transform(x, FAR, [4, 5]),
        ])  # fmt: skip
        return x

    f.get_concrete_function()
    assert [s.shape.as_list() for s in shapes] == [
        [None, 4, 5, 3], [None, None, None, 3], [None, 4, 5, 3], [None, 4, 5, 3], [None, 4, 5, 3],
        [None, None, None, 3, 2], [4, 4, 5, 3], [None, 4, 5, 3],
    ]  # fmt: skip


def test_resized_to_a_size_that_is_computed():
    half = ag.function(lambda x: ag.image.resize(x, ag.shape(x)[1:3] // 2), input_signature=[ag.TensorSpec([None] * 4)])
    np.testing.assert_allclose(half(IMAGE), ag.image.resize(IMAGE, [2, 1]), rtol=1e-6)


def test_what_is_no_number_stays_where_it_is():
    x = np.ones((1, 40, 40, 1), np.float32)
    x[0, 1, 1] = np.nan
    for method in METHODS:
        found = np.isnan(ag.image.resize(x, [20, 20], method, antialias=True).numpy()[0, :, :, 0])
        assert not found[10:].any(), method
        assert not found[:, 10:].any(), method


def test_constant_images_stay_constant():
    for method in METHODS:
        for antialias in (False, True):
            y = ag.image.resize(np.full((1, 5, 7, 1), 0.3, np.float32), [9, 3], method, antialias=antialias)
            np.testing.assert_allclose(y, np.full((1, 9, 3, 1), 0.3), rtol=1e-6)


E = ag.errors.InvalidArgumentError


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: ag.image.resize(IMAGE[0, 0], [3, 3]), ValueError, "3 or 4 dimensions"),
        (lambda: ag.image.resize(IMAGE, [3]), ValueError, "2 elements"),
        (lambda: ag.image.resize(IMAGE, [3.5, 3]), ValueError, "'size' must be"),
        (lambda: ag.image.resize(IMAGE, [0, 3]), E, "must be positive"),
        (lambda: ag.image.resize(IMAGE[:, :0], [2, 3]), E, "non-zero size"),
        (lambda: ag.image.resize(IMAGE, [2, 3], "cubic"), ValueError, "not implemented: cubic"),
        (lambda: ag.image.resize_with_pad(IMAGE, 0, 3), ValueError, "target_height must be > 0"),
        (lambda: ag.image.crop_to_bounding_box(IMAGE, 0, 0, 9, 3), ValueError, "height must be >= target"),
        (lambda: ag.image.crop_to_bounding_box(IMAGE, -1, 0, 3, 3), ValueError, "offset_height must be >= 0"),
        (lambda: ag.image.pad_to_bounding_box(IMAGE, 0, 0, 3, 3), ValueError, "height must be <= target"),
        (lambda: ag.image.central_crop(IMAGE, 0.0), ValueError, "within"),
        (lambda: ag.image.flip_left_right(IMAGE[0, 0]), ValueError, "three-dimensional"),
        (lambda: ag.image.rgb_to_hsv(IMAGE), ag.errors.FailedPreconditionError, "3 channels"),
        (lambda: ag.image.rgb_to_hsv(BYTES), E, "floats"),
        (lambda: ag.image.adjust_saturation(IMAGE, 2.0), E, "3 channels"),
        (lambda: ag.image.adjust_hue(COLOURS, 2.0), ValueError, "interval"),
        (lambda: ag.image.adjust_gamma(COLOURS, -1.0), ValueError, "non-negative"),
        (lambda: ag.image.grayscale_to_rgb(COLOURS), ValueError, "size 1"),
        (lambda: ag.image.convert_image_dtype(COLOURS, ag.string), AttributeError, "floating point or integer"),
        (lambda: ag.image.crop_and_resize(IMAGE, BOXES, [0, 0, 0, 1], [2, 2]), ag.errors.OutOfRangeError, "box_index"),
        (lambda: ag.image.crop_and_resize(IMAGE, BOXES[:, :3], [0] * 4, [2, 2]), E, "4 columns"),
        (lambda: ag.image.crop_and_resize(IMAGE, BOXES, [0] * 4, [2, 0]), E, "positive"),
        (lambda: ag.image.crop_and_resize(IMAGE, BOXES, [0] * 4, [2, 2], "cubic"), E, "allowed values"),
        (lambda: ag.image.projective_transform(IMAGE, FAR[:, :6]), E, r"\[batch or 1, 8\]"),
        (lambda: ag.image.projective_transform(IMAGE, FAR, fill_mode="MIRROR"), ValueError, "fill_mode"),
        (lambda: ag.image.total_variation(IMAGE[0, 0]), ValueError, "3 or 4-dimensional"),
        (lambda: ag.image.per_image_standardization(IMAGE[:, :0]), ValueError, "> 0"),
        (lambda: ag.image.image_gradients(LONG), ValueError, "4D tensor"),
        (lambda: ag.image.sobel_edges(LONG), E, "four-dimensional"),
        (lambda: ag.image.random_flip_up_down(IMAGE[0, 0]), ValueError, "three-dimensional"),
        (lambda: ag.image.random_brightness(IMAGE, -0.1), ValueError, "non-negative"),
        (lambda: ag.image.stateless_random_contrast(IMAGE, 0.5, 0.5, (1, 2)), ValueError, "upper must be > lower"),
        (lambda: ag.image.random_saturation(COLOURS, -1.0, 0.5), ValueError, "lower must be non-negative"),
        (lambda: ag.image.random_hue(COLOURS, 0.6), ValueError, "<= 0.5"),
        (lambda: ag.image.random_crop(IMAGE, [1, 5, 3, 1]), E, "value.shape >= size"),
        (lambda: ag.image.psnr(IMAGE, COLOURS, 1.0), ValueError, "incompatible"),
        (lambda: ag.image.ssim(IMAGE, IMAGE, 1.0), E, "at least 11"),
        (lambda: ag.image.ssim_multiscale(TALL, TALL, 1.0, filter_size=3), E, "at least 3"),
        (lambda: ag.image.non_max_suppression(BOXES, [1.0] * 4, -1), E, "non-negative"),
        (lambda: ag.image.non_max_suppression(BOXES, [1.0] * 4, 2.5), TypeError, "max_output_size must be an integer"),
        (lambda: ag.image.non_max_suppression(BOXES, [1.0] * 4, 2, 1.5), E, r"iou_threshold must be in \[0, 1\]"),
        (lambda: ag.image.non_max_suppression(BOXES, [1.0] * 3, 2), E, "equal, but are 4 and 3"),
        (lambda: ag.image.non_max_suppression(BOXES[:, :3], [1.0] * 4, 2), E, "4 columns"),
        (lambda: ag.image.non_max_suppression(BOXES[0], [1.0] * 4, 2), E, "boxes must be 2-D"),
        (lambda: ag.image.non_max_suppression(ag.cast(BOXES, ag.float64), [1.0] * 4, 2), E, "got float64"),
        (lambda: ag.image.non_max_suppression_overlaps(BOXES[:3], [1.0] * 3, 2), E, "square"),
        (lambda: ag.image.non_max_suppression_padded(CLUSTERS, SCORES[..., 0], 2), ValueError, "batched input"),
        (lambda: ag.image.combined_non_max_suppression(CLUSTERS[:, :, None], SCORES, 3, 0), E, "max_total_size"),
        (lambda: ag.image.combined_non_max_suppression(CLUSTERS[:, :, None], SCORES, 0, 3), E, "max_size_per_class"),
        (lambda: ag.image.combined_non_max_suppression(np.stack([CLUSTERS] * 2, 2), SCORES, 3, 3), E, "num classes"),
        (lambda: ag.image.draw_bounding_boxes(TALL[0], LINES, None), E, "images must be 4-D"),
        (lambda: ag.image.draw_bounding_boxes(TALL[:1], LINES, None), E, "batch sizes"),
        (lambda: ag.image.draw_bounding_boxes(TALL[..., :2], LINES, None), E, "Channel depth"),
        (lambda: ag.image.draw_bounding_boxes(TALL, LINES, [[1.0, 0.0]]), E, "equal or more channels"),
        (lambda: ag.image.draw_bounding_boxes(ag.cast(TALL, ag.uint8), LINES, None), E, "got uint8: use ag.cast"),
        (lambda: ag.image.stateless_sample_distorted_bounding_box([9, 9, 3], 2 * LINES, (1, 2)), E, r"\[0.0, 1.0\]"),
        (lambda: ag.image.sample_distorted_bounding_box([9, 9, 3], LINES[:, :0]), E, "No bounding boxes"),
        (lambda: ag.image.sample_distorted_bounding_box([9, 9, 3], LINES, area_range=(0.5, 2.0)), E, "Area range"),
        (
            lambda: ag.image.sample_distorted_bounding_box([9, 9, 3], LINES, min_object_covered=-1.0),
            E,
            "object covered",
        ),
        (lambda: ag.image.random_jpeg_quality(TALL[0], 50, 140), ValueError, "between 0 and 100"),
        (lambda: ag.image.stateless_random_jpeg_quality(TALL[0], 50, 40, (1, 2)), ValueError, "must be less"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


# How each of several functions of boxes chooses.
CHOICES = {
    "alone": lambda b, o, s: ag.image.non_max_suppression_with_scores(b[0], s[0, :, 0], 30, 0.4, 0.1),
    "soft": lambda b, o, s: ag.image.non_max_suppression_with_scores(b[0], s[0, :, 0], 25, 0.4, 0.05, 0.3),
    "overlaps": lambda b, o, s: ag.image.non_max_suppression_overlaps(o, s[0, :, 0], 20, 0.8),
    "padded": lambda b, o, s: ag.image.non_max_suppression_padded(b, s[..., 0], 50, pad_to_max_output_size=True),
    "combined": lambda b, o, s: ag.image.combined_non_max_suppression(b[:, :, None], s, 4, 9),
}


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("size", [40, 1, 0])
def test_boxes_are_chosen_in_kernels_as_eagerly(name, size):
    specs = [ag.TensorSpec([None, None, 4]), ag.TensorSpec([None, None]), ag.TensorSpec([None, None, 3])]
    compiled = ag.function(CHOICES[name], input_signature=specs, jit_compile=True, autograph=False)
    operands = UPRIGHT[:, :size], OVERLAPS[:size, :size], SCORES[:, :size]
    for found, expected in zip(ag.nest.flatten(compiled(*operands)), ag.nest.flatten(CHOICES[name](*operands))):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_boxes_and_scores_of_different_numbers_fail_in_kernels():
    choose = ag.function(ag.image.non_max_suppression, jit_compile=True, autograph=False, input_signature=[
        ag.TensorSpec([None, 4]), ag.TensorSpec([None]), ag.TensorSpec([], ag.int32)])  # fmt: skip
    assert choose(CLUSTERS[0], SCORES[0, :, 0], 3).shape == [3]
    with pytest.raises(E, match="different sizes"):
        choose(CLUSTERS[0], SCORES[0, :9, 0], 3)
    with pytest.raises(E, match="non-negative"):
        choose(CLUSTERS[0], SCORES[0, :, 0], -3)


def test_a_box_that_is_no_number_overlaps_none():
    boxes = np.array([[0, 0, 1, 1], [np.nan, 0, 1, 1], [0, 0, 1, 0.9]], np.float32)
    np.testing.assert_array_equal(ag.image.non_max_suppression(boxes, [0.3, np.nan, 0.2], 3), [0])


def test_distorted_boxes_follow_from_seeds():
    boxes = np.array([[[0.1, 0.2, 0.7, 0.8]]], np.float32)

    @ag.function
    def parts(n):
        return [ag.image.sample_distorted_bounding_box([90, 80, 3], boxes, n).begin for _ in range(2)]

    first = np.stack(parts(3))
    try:
        ag.random.set_seed(5)
        again = np.stack(parts(0))
        ag.random.set_seed(5)
        np.testing.assert_array_equal(np.stack(parts(0)), again)
    finally:
        ag.random.set_seed(None)
    assert first.shape == (2, 3)
    begin, size, box = ag.image.sample_distorted_bounding_box([90, 80, 3], boxes, 0, 0.5)
    crop = np.concatenate([begin[:2], begin[:2] + size[:2]]) / [90, 80, 90, 80]
    np.testing.assert_allclose(box[0, 0], crop, rtol=1e-6)
    assert size[2] == -1


def test_jpeg_quality():
    """Errors about as large as TensorFlow 2.21's, whose transform is a faster one."""
    y, x = np.mgrid[0:16, 0:16] / 16.0
    image = np.stack([y, x, (x + y) / 2], -1).astype(np.float32)
    assert ag.image.adjust_jpeg_quality(image, 100).dtype == ag.float32
    errors = [float(np.abs(ag.image.adjust_jpeg_quality(image, q) - image).mean()) for q in (5, 50, 100)]
    np.testing.assert_allclose(errors[:2], [0.05863, 0.01054], rtol=0.05)
    assert errors[2] < errors[1]
    staged = ag.function(ag.image.adjust_jpeg_quality, input_signature=[
        ag.TensorSpec([None, None, 3]), ag.TensorSpec([], ag.int32)])  # fmt: skip
    np.testing.assert_array_equal(staged(image, 50), ag.image.adjust_jpeg_quality(image, 50))
    grey = (image[..., :1] * 255).astype(np.uint8)
    changed = ag.image.stateless_random_jpeg_quality(grey, 10, 90, (3, 4))
    assert changed.shape == [16, 16, 1]
    assert changed.dtype == ag.uint8
    with pytest.raises(E, match=r"quality must be in \[0,100\]"):
        staged(image, 101)


def test_parts_of_jpeg_files():
    file = ag.io.encode_jpeg(np.arange(6 * 8 * 3, dtype=np.uint8).reshape(6, 8, 3))
    np.testing.assert_array_equal(ag.image.extract_jpeg_shape(file), [6, 8, 3])
    assert ag.image.extract_jpeg_shape(file, ag.int64).dtype == ag.int64
    part = ag.image.decode_and_crop_jpeg(file, [1, 2, 3, 4])
    np.testing.assert_array_equal(part, ag.io.decode_jpeg(file)[1:4, 2:6])
    with pytest.raises(E, match="Invalid crop window"):
        ag.image.decode_and_crop_jpeg(file, [4, 0, 3, 4])


def test_random_changes_draw_tensorflows_numbers():
    """Sums that TensorFlow 2.21 gave."""
    pictures = ag.reshape(ag.range(36.0), [1, 3, 4, 3]) / 40.0
    expected = {
        "random_flip_left_right": ((), [388.5, 368.25, 368.25]),
        "random_flip_up_down": ((), [388.5, 215.7, 215.7]),
        "random_brightness": ((0.3,), [239.5947, 531.5631, 544.2924]),
        "random_contrast": ((0.5, 1.5), [352.5313, 423.0575, 426.1323]),
        "random_saturation": ((0.5, 1.5), [394.4808, 382.7896, 382.2816]),
        "random_hue": ((0.2,), [389.4364, 386.722, 387.5247]),
        "random_crop": (([1, 2, 2, 1],), [4.3, 6.55, 6.3]),
    }

    def total(result):
        return float(np.sum(result.numpy().ravel() * np.arange(1, result.shape.num_elements() + 1)))

    try:
        for name, (arguments, sums) in expected.items():
            ag.random.set_seed(3)
            change = ag.function(getattr(ag.image, name))
            found = [total(change(pictures, *arguments)) for _ in sums]
            np.testing.assert_allclose(found, sums, rtol=1e-5, err_msg=name)
    finally:
        ag.random.set_seed(None)


def test_errors_when_the_program_runs():
    size = ag.TensorSpec([2], ag.int32)
    crop = ag.function(lambda s: ag.image.crop_to_bounding_box(IMAGE, s[0], 0, s[1], 2), input_signature=[size])
    np.testing.assert_array_equal(crop([1, 2]), IMAGE[:, 1:3, :2])
    with pytest.raises(E, match="height must be >= target"):
        crop([3, 2])
    resize = ag.function(lambda s: ag.image.resize(AWKWARD, s), input_signature=[size])
    assert resize([1, 2]).shape == [1, 2, 3]
    with pytest.raises(E, match="must be positive"):
        resize([1, 0])
