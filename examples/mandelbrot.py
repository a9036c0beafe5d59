"""The Mandelbrot set, pixel by pixel, as anyone would first write it: loops, an `if`, a `break`.

Run it: `python examples/mandelbrot.py [FILE.png] [WIDTH]`. It draws the set twice, with a scalar loop for each pixel
and with whole-array arithmetic, checks that both agree, prints their times, and writes the picture.
"""

import struct
import sys
import time
import zlib
from pathlib import Path

import numpy as np

import autograph as ag

CENTRE = (-0.7436, 0.1318)  # in Seahorse Valley
SPAN = 0.006
DEPTH = 600


@ag.function(jit_compile=True)
def escape_by_pixel(xs, ys, depth):
    """Steps until |z| passes 2, or `depth`: int32, shape [len(ys), len(xs)], by one scalar loop for each pixel."""
    width, height = ag.shape(xs)[0], ag.shape(ys)[0]
    counts = ag.TensorArray(ag.int32, size=width * height)
    for row in ag.range(height):
        for column in ag.range(width):
            cx, cy = xs[column], ys[row]
            x, y = cx, cy
            steps = 0
            while steps < depth:
                xx, yy = x * x, y * y
                if xx + yy > 4.0:
                    break
                y = 2.0 * x * y + cy
                x = xx - yy + cx
                steps += 1
            counts = counts.write(row * width + column, steps)
    return ag.reshape(counts.stack(), [height, width])


@ag.function(jit_compile=True)
def escape_by_array(xs, ys, depth):
    """The same counts by `depth` updates of the whole picture."""
    cx, cy = xs[ag.newaxis, :], ys[:, ag.newaxis]
    x = cx + ag.zeros_like(cy)
    y = cy + ag.zeros_like(cx)
    counts = ag.zeros_like(x, dtype=ag.int32)
    inside = ag.ones_like(x, dtype=ag.bool)
    for _ in ag.range(depth):
        xx, yy = x * x, y * y
        inside = ag.logical_and(inside, xx + yy <= 4.0)
        counts += ag.cast(inside, ag.int32)
        y = ag.where(inside, 2.0 * x * y + cy, y)
        x = ag.where(inside, xx - yy + cx, x)
    return counts


def axes(width: int) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of the pixels' columns and rows, for a picture of `width` by 3/4 `width`."""
    height = width * 3 // 4
    xs = CENTRE[0] + SPAN * (np.arange(width) / width - 0.5)
    ys = CENTRE[1] - SPAN * (np.arange(height) - height / 2) / width
    return xs, ys


def colours(counts: np.ndarray, depth: int) -> np.ndarray:
    """A wheel of blues and golds, black inside the set: uint8, shape [height, width, 3]."""
    phase = np.log1p(counts)[..., None] * 2.0 + np.array([3.6, 4.1, 4.7])
    picture = 127.5 * (1.0 + np.sin(phase)) * (counts < depth)[..., None]
    return picture.astype(np.uint8)


def write_png(path: Path, picture: np.ndarray) -> None:
    """Write 8-bit RGB pixels as a PNG: the signature and three chunks (ISO/IEC 15948, sections 5 and 11)."""
    height, width, _ = picture.shape

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\0" + row.tobytes() for row in picture)  # filter 0: each row as it is
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    )


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "mandelbrot.png")
    width = int(sys.argv[2]) if len(sys.argv) > 2 else 640
    xs, ys = (ag.constant(axis) for axis in axes(width))
    depth = ag.constant(DEPTH)
    drawn = {}
    for name, draw in (("pixel by pixel", escape_by_pixel), ("whole arrays", escape_by_array)):
        began = time.perf_counter()
        draw(xs, ys, depth)
        first = time.perf_counter() - began
        began = time.perf_counter()
        drawn[name] = draw(xs, ys, depth).numpy()
        print(f"{name + ':':<16}{time.perf_counter() - began:6.2f} s (first call {first:.2f} s)")
    by_pixel, by_array = drawn.values()
    differing = np.count_nonzero(by_pixel != by_array)
    print(f"pixels in which the two differ: {differing} of {by_pixel.size}")
    write_png(path, colours(by_pixel, DEPTH))
    print(f"wrote {path}, {width} by {width * 3 // 4} pixels, {np.count_nonzero(by_pixel == DEPTH)} inside the set")


if __name__ == "__main__":
    main()
