"""Functions of images on small ones: sizes, boxes, colours, edges, transformations.

`cases(T)` makes them from a namespace, `ag` or TensorFlow's. image_values.json holds TensorFlow's results and
gradients; where TensorFlow is installed, `python -m tests.ops.image_values` writes them anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ANSWERS = Path(__file__).with_suffix(".json")
METHODS = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")
Case = tuple[Callable[..., Any], tuple[Any, ...], bool]

_R = np.random.default_rng(5)
IMAGE = _R.uniform(0.0, 1.0, (1, 4, 3, 1)).round(2).astype(np.float32)
LONG = _R.uniform(0.0, 1.0, (9, 2, 1)).round(2).astype(np.float32)
COLOURS = _R.uniform(0.05, 1.0, (2, 2, 3)).round(2).astype(np.float32)
AWKWARD = np.array([[[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.2]], [[0.2, 0.5, 0.5], [1, 0, 0], [-0.5, 2, 0.1]]], np.float32)
MANY = np.random.default_rng(6).uniform(0.0, 1.0, (5, 4, 3, 2)).round(2).astype(np.float32)
BYTES = _R.integers(0, 256, (2, 3, 3)).astype(np.uint8)
BOXES = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.8], [-0.3, 0.1, 1.2, 0.9], [0.8, 0.9, 0.2, 0.1]], np.float32)
TURNED = np.array([[0.7, 0.2, -1, -0.3, 1.4, 1, 0.05, 0.1]], np.float32)
TALL = np.random.default_rng(7).uniform(0.0, 1.0, (2, 9, 7, 3)).round(2).astype(np.float32)
_B = np.random.default_rng(8)
# Boxes as clusters around a few, so that many overlap; the scores differ.
_CENTRES = _B.uniform(0.0, 1.0, (2, 8, 4)).repeat(5, 1)
CLUSTERS = (_CENTRES + _B.normal(0.0, 0.05, (2, 40, 4))).round(3).astype(np.float32)
UPRIGHT = np.concatenate([CLUSTERS[..., :2], CLUSTERS[..., :2] + 0.2 + 0.2 * _B.random((2, 40, 2))], -1)
UPRIGHT = np.abs(UPRIGHT).round(3).astype(np.float32)
SCORES = (_B.permutation(240).reshape(2, 40, 3) / 240).round(4).astype(np.float32)
_SPANS = [[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.8], [-0.3, 0.1, 1.2, 0.9], [0.8, 0.9, 0.2, 0.1],
          [0.5, -2, 0.9, 0.5], [2, 2, 3, 3], [0.3, 0.3, 0.3, 0.3], [-0.05, 0, 0.6, 1]]  # fmt: skip
LINES = np.array(_SPANS, np.float32).reshape(2, 4, 4)
SHADES = _B.uniform(0.0, 1.0, (3, 5)).round(2).astype(np.float32)
OVERLAPS = _B.uniform(0.0, 1.0, (40, 40)).round(3).astype(np.float32)
FAR = np.array([[3, 0.2, -13, -0.3, 2.4, -10, 0, 0]], np.float32)


def cases(T: Any) -> dict[str, Case]:
    """name -> (function of tensors, their values, whether TensorFlow has its gradient)."""
    image = T.image
    found: dict[str, Case] = {}

    def case(name: str, f: Callable[..., Any], *args: Any, gradient: bool = True) -> None:
        found[name] = (f, args, gradient)

    for method in METHODS:
        for antialias in (False, True):
            way = f"{method}{' antialias' if antialias else ''}"
            for size in ([2, 5], [7, 1], [4, 3]):
                case(f"resize {way} {size}", lambda x, m=method, a=antialias, s=size: image.resize(
                    x, s, m, antialias=a), IMAGE, gradient=method != "area")  # fmt: skip
            case(f"resize long {way}", lambda x, m=method, a=antialias: image.resize(x, [2, 3], m, antialias=a),
                 LONG, gradient=method != "area")  # fmt: skip
    case("resize bytes", lambda x: image.resize(x, [3, 2]), BYTES)
    case("resize bytes nearest", lambda x: image.resize(x, [3, 2], "nearest"), BYTES)
    case("resize float64", lambda x: image.resize(x, [3, 2]), LONG.astype(np.float64))
    for size in ([6, 6], [3, 9]):
        case(f"resize within {size}", lambda x, s=size: image.resize(x, s, preserve_aspect_ratio=True), IMAGE)
        case(f"resize_with_pad {size}", lambda x, s=size: image.resize_with_pad(x, *s), IMAGE)
    for size in ([2, 2], [6, 6], [3, 5], [5, 2]):
        case(f"resize_with_crop_or_pad {size}", lambda x, s=size: image.resize_with_crop_or_pad(x, *s), IMAGE)
    case("pad_to_bounding_box", lambda x: image.pad_to_bounding_box(x, 1, 2, 6, 5), IMAGE)
    case("crop_to_bounding_box", lambda x: image.crop_to_bounding_box(x, 1, 2, 3, 1), IMAGE)
    for fraction in (0.1, 0.5, 0.9, 1.0):
        case(f"central_crop {fraction}", lambda x, f=fraction: image.central_crop(x, f), LONG)
    for name in ("flip_left_right", "flip_up_down", "transpose", "total_variation", "per_image_standardization"):
        case(name, getattr(image, name), IMAGE)
        case(f"{name} of one", getattr(image, name), LONG)
    for k in (-1, 1, 2, 4):
        case(f"rot90 {k}", lambda x, k=k: image.rot90(x, k), IMAGE)
    case("sobel_edges", image.sobel_edges, IMAGE)
    case("image_gradients", image.image_gradients, IMAGE)
    for method in ("bilinear", "nearest"):
        for size in ([3, 2], [1, 1]):
            case(f"crop_and_resize {method} {size}", lambda x, b, m=method, s=size: image.crop_and_resize(
                x, b, [0] * 4, s, m, -2.0), IMAGE, BOXES, gradient=method == "bilinear")  # fmt: skip

    for name in ("rgb_to_yiq", "rgb_to_yuv", "yiq_to_rgb", "yuv_to_rgb", "rgb_to_grayscale", "rgb_to_hsv"):
        case(name, getattr(image, name), COLOURS)
    case("rgb_to_hsv awkward", image.rgb_to_hsv, AWKWARD, gradient=False)
    case("hsv_to_rgb", image.hsv_to_rgb, COLOURS, gradient=False)
    case("hsv_to_rgb awkward", image.hsv_to_rgb, AWKWARD, gradient=False)
    case("rgb_to_grayscale bytes", image.rgb_to_grayscale, BYTES)
    case("grayscale_to_rgb", image.grayscale_to_rgb, LONG)
    for name, x in (("colours", COLOURS), ("awkward", AWKWARD), ("bytes", BYTES)):
        case(f"adjust_brightness {name}", lambda x: image.adjust_brightness(x, 0.3), x)
        case(f"adjust_contrast {name}", lambda x: image.adjust_contrast(x, 1.7), x, gradient=False)
        case(f"adjust_hue {name}", lambda x: image.adjust_hue(x, -0.4), x, gradient=False)
        case(f"adjust_saturation {name}", lambda x: image.adjust_saturation(x, 1.4), x, gradient=False)
    seed = (3, 4)
    for flip in ("flip_left_right", "flip_up_down"):
        for name, x in (("batch", MANY), ("one", LONG)):
            case(f"stateless_random_{flip} {name}", lambda x, f=flip: getattr(image, f"stateless_random_{f}")(
                x, seed), x)  # fmt: skip
    case("stateless_random_crop", lambda x: image.stateless_random_crop(x, [5, 2, 3, 1], seed), MANY)
    case("stateless_random_brightness", lambda x: image.stateless_random_brightness(x, 0.3, seed), COLOURS)
    case("stateless_random_contrast", lambda x: image.stateless_random_contrast(x, 0.5, 1.5, seed), COLOURS,
         gradient=False)  # fmt: skip
    case("stateless_random_saturation", lambda x: image.stateless_random_saturation(x, 0.5, 1.5, seed), BYTES,
         gradient=False)  # fmt: skip
    case("stateless_random_hue", lambda x: image.stateless_random_hue(x, 0.2, seed), COLOURS, gradient=False)
    for name, x in (("floats", COLOURS), ("bytes", BYTES)):
        case(f"psnr {name}", lambda x, n=name: image.psnr(x, T.reverse(x, [1]), 255 if n == "bytes" else 1.0), x)
    case("ssim", lambda x: image.ssim(x, T.reverse(x, [0]), 1.0, filter_size=3), MANY)
    case("ssim map", lambda x: image.ssim(x, T.reverse(x, [0]), 1.0, 2, 0.7, 0.02, 0.05, True), MANY)
    case("ssim_multiscale", lambda x: image.ssim_multiscale(
        x, T.sqrt(x + 0.01), 1.0, (0.2, 0.3, 0.4), 2, 0.7, 0.02, 0.05), TALL)  # fmt: skip
    case("adjust_gamma colours", lambda x: image.adjust_gamma(x, 1.5, 0.9), COLOURS)
    case("adjust_gamma bytes", lambda x: image.adjust_gamma(x, 0.5), BYTES)
    for dtype in ("float16", "float32", "uint8", "int8", "uint16", "int32", "int64"):
        wanted = getattr(T, dtype)
        case(f"bytes as {dtype}", lambda x, d=wanted: image.convert_image_dtype(x, d), BYTES)
        case(f"numbers as {dtype}", lambda x, d=wanted: image.convert_image_dtype(x, d, True), BYTES.astype(np.int32))
        if dtype not in ("int32", "int64"):  # in which TensorFlow's float32 overflows
            case(f"floats as {dtype}", lambda x, d=wanted: image.convert_image_dtype(x, d, True), AWKWARD)

    boxed_cases(T, case)

    def transformed(x: Any, maps: Any, interpolation: str, fill_mode: str) -> Any:
        if hasattr(image, "projective_transform"):
            return image.projective_transform(x, maps, [3, 4], 0.4, interpolation, fill_mode)
        return T.raw_ops.ImageProjectiveTransformV3(
            images=x, transforms=maps, output_shape=[3, 4], fill_value=0.4, interpolation=interpolation,
            fill_mode=fill_mode,
        )  # fmt: skip

    for how in ("BILINEAR", "NEAREST"):
        for mode in ("CONSTANT", "NEAREST", "REFLECT", "WRAP"):
            for name, maps in (("turned", TURNED), ("far", FAR)):
                case(f"projective_transform {name} {how} {mode}",
                     lambda x, t, h=how, m=mode: transformed(x, t, h, m), IMAGE, maps, gradient=False)  # fmt: skip
    return found


def boxed_cases(T: Any, case: Callable[..., None]) -> None:
    """Those of boxes: the chosen, and drawn ones."""
    image, (boxes, _), (scores, _) = T.image, CLUSTERS, SCORES[..., 0]
    for most in (0.1, 0.5, 0.9, 1.0):
        case(f"non_max_suppression {most}", lambda b, s, m=most: image.non_max_suppression(b, s, 30, m), boxes, scores)
    case("non_max_suppression of some", lambda b, s: image.non_max_suppression(b, s, 3, 0.5, 0.4), boxes, scores)
    case("non_max_suppression of none", lambda b, s: image.non_max_suppression(b, s, 3, 0.5, 2.0), boxes, scores)
    case("non_max_suppression of no box", lambda b, s: image.non_max_suppression(b[:0], s[:0], 3), boxes, scores)
    for sigma in (0.0, 0.1, 1.0):
        case(f"non_max_suppression_with_scores {sigma}", lambda b, s, v=sigma: image.non_max_suppression_with_scores(
            b, s, 25, 0.4, 0.05, v), boxes, scores, gradient=False)  # fmt: skip
    case("non_max_suppression_overlaps", lambda o, s: image.non_max_suppression_overlaps(o, s, 20, 0.8, 0.1),
         OVERLAPS, scores)  # fmt: skip
    for most in (0.2, 0.5):
        for pad in (False, True):
            case(f"non_max_suppression_padded {most} {pad}", lambda b, s, m=most, p=pad:
                 image.non_max_suppression_padded(b, s, 50, m, 0.2, p), UPRIGHT[0], scores)  # fmt: skip
        case(f"non_max_suppression_padded batch {most}", lambda b, s, m=most: image.non_max_suppression_padded(
            b, s, 7, m, pad_to_max_output_size=True), UPRIGHT, SCORES[..., 0])  # fmt: skip
    for name, own in (("shared", CLUSTERS[:, :, None]), ("own", np.stack([CLUSTERS, UPRIGHT, CLUSTERS[:, ::-1]], 2))):
        for each, total, pad, clip in ((4, 9, False, True), (50, 200, False, False), (2, 20, True, True)):
            options = (each, total, 0.4, 0.1, pad, clip)
            case(f"combined_non_max_suppression {name} {each} {total}", lambda b, s, o=options:
                 image.combined_non_max_suppression(b, s, *o), own, SCORES, gradient=False)  # fmt: skip
    case("draw_bounding_boxes", lambda x, b: image.draw_bounding_boxes(x, b, None), TALL, LINES, gradient=False)
    case("draw_bounding_boxes grey", lambda x, b: image.draw_bounding_boxes(x[..., :1], b, None), TALL, LINES,
         gradient=False)  # fmt: skip
    case("draw_bounding_boxes half", lambda x, b: image.draw_bounding_boxes(T.cast(x, T.float16), b, None), TALL,
         LINES, gradient=False)  # fmt: skip
    for rows in (0, 3):
        case(f"draw_bounding_boxes {rows} colours", lambda x, b, c, r=rows: image.draw_bounding_boxes(x, b, c[:r]),
             TALL, LINES, SHADES, gradient=False)  # fmt: skip
    for n in range(12):
        size, objects = np.array([13 + 20 * n, 200 - 13 * n, 3], np.int32), np.abs(LINES).clip(0, 1)
        ranges = {"aspect_ratio_range": (0.5 + 0.05 * n, 1.5), "area_range": (0.05 * n + 0.01, 0.9)}
        case(f"stateless_sample_distorted_bounding_box {n}", lambda s, b, n=n, r=ranges:
             image.stateless_sample_distorted_bounding_box(s, b, (n, 7), 0.1 * n, **r), size, objects,
             gradient=False)  # fmt: skip


def numbers(tensor: Any) -> Any:
    if tensor is None:
        return None
    array = np.asarray(tensor.numpy())
    if array.dtype == object:
        return [word.decode() for word in array.reshape(-1)]
    return array.astype(np.float64).round(7).tolist() if array.dtype.kind == "f" else array.tolist()


def answer(T: Any, f: Callable[..., Any], arguments: tuple[Any, ...], gradient: bool) -> list[Any]:
    """The dtype and numbers of each result, and the gradients by the floats among the arguments."""
    tensors = [T.constant(value) for value in arguments]
    floats = [tensor for tensor in tensors if tensor.dtype.is_floating] if gradient else []
    with T.GradientTape() as tape:
        for tensor in floats:
            tape.watch(tensor)
        results = f(*tensors)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        smooth = bool(floats) and all(result.dtype.is_floating for result in results)
        total = weighted(T, results) if smooth else None
    slopes = tape.gradient(total, floats) if smooth else []
    slopes = [None if slope is None else T.convert_to_tensor(slope) for slope in slopes]
    return [[[r.dtype.name, numbers(r)] for r in results], [numbers(slope) for slope in slopes]]


def weighted(T: Any, results: list[Any]) -> Any:
    """A sum in which each element counts differently."""
    total = 0.0
    for result in results:
        weights = T.sin(T.cast(T.reshape(T.range(T.size(result)), T.shape(result)), T.float32) * 0.7 + 0.3)
        total = total + T.reduce_sum(T.cast(result, T.float32) * weights)
    return total


def main() -> None:
    import tensorflow as tf

    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(answer(tf, *case))}" for name, case in cases(tf).items())
    ANSWERS.write_text("{\n" + rows + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
