"""Images as files: PNG, JPEG, GIF, BMP and WebP, read and written by Pillow, which is an optional dependency."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DTypeLike
from runtime.ops.arrays.joining import unstack
from runtime.ops.arrays.shape_ops import ensure_shape, shape
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply
from runtime.ops.elementwise.compare import equal
from runtime.ops.elementwise.elementary import cast
from runtime.ops.image.colors import convert_image_dtype
from runtime.ops.rules import brackets
from runtime.ops.strings.string_ops import substr
from runtime.ops.table import OpDef, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType

_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP")
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def _pillow() -> Any:
    """Pillow's module of images. Raises ImportError, which says how to get it, where it isn't installed."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("Reading and writing images needs Pillow: python -m pip install pillow") from error
    return Image


def _opened(contents: Any) -> Any:
    data = bytes(np.asarray(contents, object)[()])
    images = _pillow()
    try:
        return images.open(io.BytesIO(data), formats=_FORMATS)
    except (OSError, SyntaxError, ValueError, images.DecompressionBombError) as error:
        raise errors.InvalidArgumentError(
            f"Unknown image file format, or a damaged file. One of JPEG, PNG, GIF, BMP, WebP required: {error}"
        ) from None


def _own_channels(image: Any) -> int:
    if image.mode == "P":
        return 4 if "transparency" in image.info else 3
    return {"1": 1, "L": 1, "LA": 2, "RGBA": 4, "PA": 4}.get(image.mode, 1 if image.mode[0] in "IF" else 3)


def _pixels(image: Any, channels: int, dtype: Any) -> np.ndarray:
    """The pixels of a frame, of dtype uint8, uint16, or float32 from 0 to 1."""
    is_png = image.format == "PNG"  # has 16 bits, or all of 8 bits' range spread over them
    if image.mode[0] == "I":
        found = np.clip(np.asarray(image, np.int64), 0, 0xFFFF)[..., None]
        if channels >= 3:
            found = np.concatenate([found] * 3 + [np.full_like(found, 0xFFFF)] * (channels - 3), -1)
    else:
        found = _of_mode(image, channels).astype(np.int64)
        found = found * 257 if is_png else found
    bits = 0xFFFF if is_png or image.mode[0] == "I" else 0xFF
    if dtype is dtypes.float32:
        numbers = found.astype(np.float32)
        return numbers / np.float32(bits) if is_png else numbers * np.float32(1 / bits)
    if dtype is dtypes.uint16:
        return (found if bits == 0xFFFF else found << 8).astype(np.uint16)
    return (found >> 8 if bits == 0xFFFF else found).astype(np.uint8)


def _of_mode(image: Any, channels: int) -> np.ndarray:
    if channels == 1 and image.format == "PNG" and _own_channels(image) >= 3:
        colours = np.asarray(image.convert("RGB"), np.int64)
        return (colours @ np.array([299, 587, 114]) // 1000)[..., None]  # cut off, where Pillow rounds
    found = np.asarray(image.convert(_MODES[channels]))
    return found[..., None] if found.ndim == 2 else found


def _check_channels(image: Any, channels: int) -> None:
    allowed = {"GIF": (0, 3), "JPEG": (0, 1, 3), "BMP": (0, 3, 4), "WEBP": (0, 3, 4)}.get(image.format, (0, 1, 3, 4))
    if channels not in allowed:
        raise errors.InvalidArgumentError(f"channels must be one of {allowed} for {image.format}, got {channels}")


def _check_format(image: Any, named: str) -> None:
    """Raises InvalidArgumentError if an image's format can't be read by a function named after a format: BMP's accepts
    only BMP, those of still images no animations."""
    frames = getattr(image, "n_frames", 1)
    if named == "BMP" or (image.format == "BMP" and named != "any"):
        if image.format != named:
            raise errors.InvalidArgumentError(
                f"Trying to decode {image.format} format using a wrong op. Use `decode_image` instead."
            )
    elif image.format == "GIF" and frames > 1 and named not in ("GIF", "any"):
        raise errors.InvalidArgumentError(
            f"Got {frames} frames, but animated gifs can only be decoded by decode_gif or decode_image"
        )


def _kernel(contents: Any, named: str, channels: int, dtype: Any, ratio: int, within: bool) -> Any:
    """named: the format in the function's name, or "any". within: whether all frames are asked for."""
    with _opened(contents) as image:
        _check_format(image, named)
        _check_channels(image, channels)
        if image.format == "JPEG":
            image.draft("L" if channels == 1 else None, tuple([max(side // ratio, 1) for side in image.size]))
        animated = image.format in ("GIF", "WEBP")
        count = channels or (3 if image.format == "GIF" else _own_channels(image))
        frames = getattr(image, "n_frames", 1)
        try:
            found = []
            for number in range(frames if within and animated else 1):
                if number:
                    image.seek(number)
                found.append(_pixels(image, count, dtype))
        except (OSError, SyntaxError, ValueError) as error:
            raise errors.InvalidArgumentError(f"Invalid {image.format} data: {error}") from None
    return np.ascontiguousarray(np.stack(found) if within and (animated or named == "GIF") else found[0])


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    if inputs[0].dtype is not dtypes.string or inputs[0].shape not in ((), None):
        raise ValueError(f"contents must be a scalar string, got {inputs[0]}")
    channels = attrs["channels"] or None
    if attrs["named"] == "GIF":
        return (TensorType(attrs["dtype"], (None, None, None, 3)),)
    return (TensorType(attrs["dtype"], None if attrs["within"] else (None, None, channels)),)


DECODE = register(
    OpDef("decode_image", _infer, _kernel, kinds="O", doc="Decodes an image file into pixels.")
)  # fmt: skip


def _decoded(
    contents: Any, channels: int | None, dtype: Any, named: str, ratio: int = 1, within: bool = False
) -> Tensor:
    count = int(channels or 0)
    if count not in (0, 1, 3, 4):
        raise errors.InvalidArgumentError(f"`channels` must be 0, 1, 3 or 4 but got {count}")
    if ratio not in (1, 2, 4, 8):
        raise errors.InvalidArgumentError(f"ratio must be 1, 2, 4, or 8, got {ratio}")
    attrs = {"named": named, "channels": count, "dtype": dtype, "ratio": ratio, "within": within}
    found: Tensor = apply(DECODE, (convert_to_tensor(contents, dtypes.string),), attrs)
    return found


def _bits(dtype: DTypeLike) -> Any:
    kind = dtypes.as_dtype(dtype)
    if kind not in (dtypes.uint8, dtypes.uint16):
        raise errors.DTypeError(f"dtype must be uint8 or uint16, got {kind.name}")
    return kind


def decode_png(contents: Any, channels: int = 0, dtype: DTypeLike = dtypes.uint8, name: str | None = None) -> Tensor:
    """The pixels of a PNG file (or another image without frames), shape (height, width, channels).

    contents: the bytes of the file, a scalar string. channels: 1 grey, 3 colours, 4 with transparency; 0 for the file's
    own. dtype: uint8 or uint16. Raises InvalidArgumentError if it isn't an image, ImportError without Pillow.
    """
    return _decoded(contents, channels, _bits(dtype), "PNG")


def decode_jpeg(
    contents: Any, channels: int = 0, ratio: int = 1, fancy_upscaling: bool = True,
    try_recover_truncated: bool = False, acceptable_fraction: float = 1, dct_method: str = "",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The pixels of a JPEG file (or another image without frames), uint8, shape (height, width, channels).

    contents: the bytes of the file, a scalar string. channels: 1 grey, 3 colours, 0 for the file's own. ratio: 1, 2, 4
    or 8, to shrink the image while it is read. The other options have no effect. Pixels may differ by a few levels from
    those of TensorFlow's faster transform.
    Raises InvalidArgumentError if it isn't an image, ImportError without Pillow.
    """
    return _decoded(contents, channels, dtypes.uint8, "JPEG", ratio)


def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """The pixels of a BMP file, uint8, shape (height, width, channels).

    channels: 3 or 4; 0 for the file's own. Raises InvalidArgumentError for other files, ImportError without Pillow.
    """
    return _decoded(contents, channels, dtypes.uint8, "BMP")


def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """The frames of a GIF file, uint8, shape (frames, height, width, 3).

    Raises InvalidArgumentError if it isn't an image, ImportError without Pillow.
    """
    return _decoded(contents, 3, dtypes.uint8, "GIF", within=True)


def decode_image(
    contents: Any, channels: int | None = None, dtype: DTypeLike = dtypes.uint8, name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:  # fmt: skip
    """The pixels of an image of any format: shape (height, width, channels), with frames in front of GIF and WebP.

    contents: the bytes of the file, a scalar string. channels: 1 grey, 3 colours, 4 with transparency; None for the
    file's own. dtype: floats are from 0 to 1; other integers are converted as by `convert_image_dtype`.
    expand_animations: whether to return all frames, or only the first.
    Raises InvalidArgumentError if it isn't an image, ImportError without Pillow.
    """
    wanted = dtypes.as_dtype(dtype)
    own = dtypes.float32 if wanted.is_floating else wanted if wanted is dtypes.uint16 else dtypes.uint8
    return convert_image_dtype(_decoded(contents, channels, own, "any", within=bool(expand_animations)), wanted)


def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Whether a string begins as JPEG files do."""
    return equal(substr(convert_to_tensor(contents, dtypes.string), 0, 3), b"\xff\xd8\xff")


# --- writing ---------------------------------------------------------------------------------------------------------


def _channels_of(dtype: Any, kind: str) -> tuple[int, ...]:
    return (1, 3) if kind == "JPEG" else (1,) if dtype == np.uint16 else (1, 2, 3, 4)


def _check_quality(quality: Any) -> None:
    if not 0 <= quality <= 100:
        raise errors.InvalidArgumentError(f"quality must be in [0,100], got {quality}")


def _encode_kernel(image: Any, *quality: Any, kind: str, options: tuple) -> Any:
    images = _pillow()
    if image.shape[-1] not in _channels_of(image.dtype, kind) or image.ndim < 3 or (kind == "JPEG" and image.ndim > 3):
        raise ValueError("images of another shape or dtype")  # as the type rule says
    settings = {name: values[0] if len(values) == 1 else tuple(values) for name, *values in options}
    if quality:
        _check_quality(quality[0])
        settings["quality"] = int(quality[0])
    lead = image.shape[:-3]
    result = np.empty(lead, np.dtype(object))
    for place in np.ndindex(*lead):
        pixels = image[place]
        if pixels.shape[-1] == 1:
            pixels = pixels[..., 0]
        target = io.BytesIO()
        images.fromarray(np.ascontiguousarray(pixels)).save(target, kind, **settings)
        result[place] = target.getvalue()
    return result


def _infer_encode(inputs: Sequence[Any], attrs: dict) -> tuple:
    x, is_png = inputs[0], attrs["kind"] == "PNG"
    if x.dtype is not dtypes.uint8 and not (is_png and x.dtype is dtypes.uint16):
        raise TypeError(f"image must be uint8{' or uint16' if is_png else ''}, got {x.dtype.name}")
    if x.shape is None:
        return (TensorType(dtypes.string, None),)
    if len(x.shape) < 3 or (not is_png and len(x.shape) > 3):
        raise ValueError(f"image must have 3 dimensions, got shape {brackets(x.shape)}")
    allowed = _channels_of(x.dtype._np, attrs["kind"])
    if x.shape[-1] not in (*allowed, None):
        raise ValueError(f"an image of {x.dtype.name} must have {allowed} channels, got shape {brackets(x.shape)}")
    return (TensorType(dtypes.string, x.shape[:-3]),)


ENCODE = register(
    OpDef(
        "encode_image", _infer_encode, _encode_kernel, kinds="u", doc="Encodes an image as a file.", label="EncodeImage"
    )
)


@deferrable
def encode_png(image: TensorLike, compression: int = -1, name: str | None = None) -> Tensor:
    """Encodes images as PNG files: strings, with the shape of the dimensions before (height, width, channels).

    image: uint8 with 1 to 4 channels, or uint16 with 1. compression: 0 to 9, -1 for the default. Raises
    InvalidArgumentError for others, ImportError without Pillow.
    """
    options = () if compression < 0 else (("compress_level", int(compression)),)
    found: Tensor = apply(ENCODE, (convert_to_tensor(image),), {"kind": "PNG", "options": options})
    return found


@deferrable
def encode_jpeg(
    image: TensorLike, format: str = "", quality: int = 95, progressive: bool = False, optimize_size: bool = False,
    chroma_downsampling: bool = True, density_unit: str = "in", x_density: int = 300, y_density: int = 300,
    xmp_metadata: str = "", name: str | None = None,
) -> Tensor:  # fmt: skip
    """An image as a JPEG file, a scalar string.

    image: uint8, shape (height, width, channels) with 1 or 3 channels. quality: 0 to 100. chroma_downsampling: colours
    at half the resolution. density_unit: of the densities, "in" or "cm". `format` and `xmp_metadata` have no effect.
    Raises InvalidArgumentError for other images, ImportError without Pillow.
    """
    _check_quality(quality)
    inches = 1.0 if density_unit == "in" else 2.54
    options = (
        ("quality", int(quality)), ("progressive", bool(progressive)), ("optimize", bool(optimize_size)),
        ("subsampling", 2 if chroma_downsampling else 0), ("dpi", x_density * inches, y_density * inches),
    )  # fmt: skip
    found: Tensor = apply(ENCODE, (convert_to_tensor(image),), {"kind": "JPEG", "options": options})
    return found


@deferrable
def adjust_jpeg_quality(image: TensorLike, jpeg_quality: Any, dct_method: str = "", name: str | None = None) -> Tensor:
    """An image with the faults of a JPEG file of this quality.

    image: shape (height, width, channels) with 1 or 3 channels; floats are from 0 to 1. jpeg_quality: 0 to 100.
    dct_method has no effect. The result has the image's shape and dtype, and no gradient. Raises InvalidArgumentError
    for others, ImportError without Pillow.
    """
    x = convert_to_tensor(image)
    pixels = convert_image_dtype(x, dtypes.uint8, saturate=True)
    attrs = {"kind": "JPEG", "options": (("subsampling", 2),)}
    encoded = apply(ENCODE, (pixels, cast(convert_to_tensor(jpeg_quality), dtypes.int32)), attrs)
    channels = x._shape[-1]  # type: ignore[index]
    return ensure_shape(convert_image_dtype(decode_jpeg(encoded, channels or 0), x.dtype, saturate=True), x._shape)


def decode_and_crop_jpeg(
    contents: Any, crop_window: Any, channels: int = 0, ratio: int = 1, fancy_upscaling: bool = True,
    try_recover_truncated: bool = False, acceptable_fraction: float = 1, dct_method: str = "",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """A part of what `decode_jpeg` gives. crop_window: y, x, height and width of the part, int32.

    Raises InvalidArgumentError if the window doesn't lie within the image; otherwise as `decode_jpeg`.
    """
    pixels = decode_jpeg(contents, channels, ratio)
    y, x, height, width = unstack(convert_to_tensor(crop_window, dtypes.int32), 4)
    have = shape(pixels)
    fits = (y >= 0) & (x >= 0) & (height > 0) & (width > 0) & (y + height <= have[0]) & (x + width <= have[1])
    assert_op(fits, "Invalid crop window: it must lie within the image", data=[y, x, height, width])
    return pixels[y : y + height, x : x + width]


def extract_jpeg_shape(contents: Any, output_type: DTypeLike = dtypes.int32, name: str | None = None) -> Tensor:
    """Height, width and channels of a JPEG file: int32 or int64, shape (3). Raises as `decode_jpeg`."""
    return cast(shape(decode_jpeg(contents)), output_type)
