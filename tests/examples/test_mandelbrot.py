"""examples/mandelbrot.py: both ways of drawing agree with Python's complex numbers; the PNG holds the pixels."""

import struct
import zlib

import numpy as np

import autograph as ag
from examples import mandelbrot


def counts_by_python(xs, ys, depth):
    counts = np.zeros((len(ys), len(xs)), np.int32)
    for row, y in enumerate(ys):
        for column, x in enumerate(xs):
            c = z = complex(x, y)
            while counts[row, column] < depth and z.real * z.real + z.imag * z.imag <= 4.0:
                z = complex(z.real * z.real - z.imag * z.imag + c.real, 2.0 * z.real * z.imag + c.imag)
                counts[row, column] += 1
    return counts


def test_both_ways_count_what_python_counts():
    xs, ys = np.linspace(-2.2, 0.8, 24), np.linspace(-1.2, 1.2, 16)
    expected = counts_by_python(xs, ys, 60)
    arguments = ag.constant(xs), ag.constant(ys), ag.constant(60)
    by_pixel = mandelbrot.escape_by_pixel(*arguments)
    by_array = mandelbrot.escape_by_array(*arguments)
    assert by_pixel.dtype == ag.int32
    np.testing.assert_array_equal(by_pixel.numpy(), expected)
    np.testing.assert_array_equal(by_array.numpy(), expected)
    assert 0 < np.count_nonzero(expected == 60) < expected.size


def read_png(path):
    """The chunks of a PNG file, each checked against its CRC."""
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    position, chunks = 8, {}
    while position < len(content):
        (length,) = struct.unpack_from(">I", content, position)
        kind, body = content[position + 4 : position + 8], content[position + 8 : position + 8 + length]
        (crc,) = struct.unpack_from(">I", content, position + 8 + length)
        assert crc == zlib.crc32(kind + body)
        chunks[kind] = body
        position += 12 + length
    return chunks


def test_writes_the_picture(tmp_path, capsys, monkeypatch):
    path = tmp_path / "set.png"
    monkeypatch.setattr("sys.argv", ["mandelbrot.py", str(path), "32"])
    mandelbrot.main()
    assert "the two differ: 0 of 768" in capsys.readouterr().out
    chunks = read_png(path)
    assert [*chunks] == [b"IHDR", b"IDAT", b"IEND"]
    assert struct.unpack(">IIBBBBB", chunks[b"IHDR"]) == (32, 24, 8, 2, 0, 0, 0)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(24, 1 + 32 * 3)
    assert not rows[:, 0].any()
    assert len(np.unique(rows[:, 1:].reshape(-1, 3), axis=0)) > 10
