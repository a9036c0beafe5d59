"""How functions, datasets and tensors that are images show themselves in notebooks. (Graphs and reports of `explain`
are pages, `runtime.graph.page`.) This module is imported when something is shown.
"""

from __future__ import annotations

import base64
import html
import inspect
import struct
import textwrap
import zlib
from typing import Any

import numpy as np

from autograph.commands.side_by_side import aligned
from autograph.convert.api import to_code
from runtime.tensor import EagerTensor

_WIDEST = 320  # pixels of a thumbnail
_MOST = 8  # images of a batch
_LEAST = 8  # pixels: what is smaller is a matrix rather than an image
# Colours that a light and a dark page can have behind them.
_RED, _GREEN = "background: rgba(214, 69, 65, .16)", "background: rgba(38, 166, 91, .18)"
_CODE = "margin: 0; padding: 0 .6em; white-space: pre-wrap; text-align: left; font: 12px/1.5 monospace; border: 0"


# --- tensors ---------------------------------------------------------------------------------------------------------


def image(tensor: EagerTensor) -> str | None:
    """Thumbnails of an image (height, width, channels) or a batch of them, bytes or floats from 0 to 1, above what the
    tensor is; None for other tensors, which notebooks then show as text."""
    array = np.asarray(tensor._array)
    shape = array.shape
    if array.ndim not in (3, 4) or shape[-1] not in (1, 3, 4) or min(shape[-3:-1]) < _LEAST or not array.size:
        return None
    if array.dtype != np.uint8:
        if array.dtype.kind != "f" or not (array.min() >= 0.0 and array.max() <= 1.0):
            return None
        array = np.round(array.astype(np.float32) * 255.0).astype(np.uint8)
    shown = array[None] if array.ndim == 3 else array[:_MOST]
    pictures = "".join(_picture(each) for each in shown)
    more = f" (the first {_MOST})" if len(array) > _MOST and array.ndim == 4 else ""
    facts = html.escape(f"Tensor, shape={shape}, dtype={tensor.dtype.name}{more}")
    return f"<div>{pictures}<div><code>{facts}</code></div></div>"


def _picture(pixels: np.ndarray) -> str:
    height, width = pixels.shape[:2]
    step = -(-max(height, width) // _WIDEST)
    data = base64.b64encode(_png(pixels[::step, ::step])).decode()
    # Small ones are shown larger, pixel by pixel.
    scale = max(1, 64 // max(height, width))
    style = (
        f"width: {-(-width // step) * scale}px; image-rendering: {'pixelated' if scale > 1 else 'auto'}; margin: 2px"
    )
    return f'<img src="data:image/png;base64,{data}" style="{style}" alt="{width} x {height} pixels">'


def _png(pixels: np.ndarray) -> bytes:
    """A PNG file of bytes of shape (height, width, 1, 3 or 4)."""
    height, width, channels = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    body = zlib.compress(np.ascontiguousarray(rows).tobytes())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


# --- functions -------------------------------------------------------------------------------------------------------


def function(shown: Any) -> str:
    """The source of an `ag.function`, what it was rewritten to and its traces, folded."""
    python_function = shown.python_function
    parts = [f"<b><code>{html.escape(repr(shown))}</code></b>"]
    try:
        source = textwrap.dedent(inspect.getsource(python_function))
        parts.append(_folded("source and converted source", side_by_side(source, to_code(python_function))))
    except Exception as error:  # no source, or what can't be converted: the display says so
        parts.append(f"<div><code>{html.escape(str(error).splitlines()[0])}</code></div>")
    traces = shown._list_all_concrete_functions()
    if traces:
        texts = "\n\n".join(each.pretty_printed_signature() for each in traces)
        parts.append(_folded(f"{len(traces)} trace{'s' if len(traces) > 1 else ''}", _preformatted(texts)))
    return f"<div>{''.join(parts)}</div>"


def side_by_side(left: str, right: str, titles: tuple[str, str] = ("original", "converted")) -> str:
    """Two texts in two columns, equal lines on one level, what differs marked."""
    head = "".join(f'<th style="text-align: left; padding: 0 .6em">{html.escape(title)}</th>' for title in titles)
    rows = [f"<tr>{head}</tr>"]
    for changed, one, other in aligned(left, right):
        cells = [_cell(text, colour if changed and text else "") for text, colour in ((one, _RED), (other, _GREEN))]
        rows.append(f'<tr style="background: none">{"".join(cells)}</tr>')
    return f'<table style="border-collapse: collapse">{"".join(rows)}</table>'


def _cell(text: str, style: str) -> str:
    return f'<td style="{_CODE}; vertical-align: top; {style}">{html.escape(text)}</td>'


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>{body}</details>"


def _preformatted(text: str) -> str:
    return f'<pre style="{_CODE}">{html.escape(text)}</pre>'


# --- datasets --------------------------------------------------------------------------------------------------------


def dataset(shown: Any) -> str:
    """What the elements of a dataset are, and how many, as far as that is known without making them."""
    count = int(shown.cardinality())
    size = {-1: "infinitely many elements", -2: "an unknown number of elements"}.get(count, f"{count} elements")
    spec = _preformatted(str(shown.element_spec))
    return f"<div><b>{html.escape(type(shown).__name__)}</b>: {size}, each{spec}</div>"
