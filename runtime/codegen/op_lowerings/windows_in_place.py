"""Windows over an image as a matrix whose rows overlap: tables say where their elements lie, and none is copied.

    element k of window i  =  image[windows_at[i] + elements_at[k]]

Products of such a matrix are indirect (`native_runtime/indirect_gemm.py`). What an image with padding lacks is not in
memory, so strips of it are copied, with zeros around them: rows of the image that some rows of windows need. A strip
stays in the second-level cache, and an element of the image is copied once or twice, not for each window that has it.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime import dtypes
from runtime.codegen import cost_model
from runtime.codegen.kernel.values import Array, Buffer, product
from runtime.codegen.lower.state import Lowering
from runtime.codegen.op_lowerings.windows import span_of
from runtime.codegen.symbolic.ranges import Atom
from runtime.kernel_ir import ir

Place = tuple[Buffer, ir.Expr]  # an array, and an offset

_TABLE_RANK = 4  # dimensions that `lib.fill_places` goes over
MOST_DIMENSIONS = _TABLE_RANK - 1  # of space


class WindowsInPlace:
    """The windows over the images of a batch.

    image: an array of shape [batch, *space, channels]. before: the number of elements that padding adds before each
    dimension. places: the number of windows along each. flipped: the elements of a window are numbered backwards.
    """

    def __init__(
        self, low: Lowering, image: Array, sizes: Sequence[int], strides: Sequence[int], rates: Sequence[int],
        before: Sequence[ir.Expr], places: Sequence[Atom], padded: bool, flipped: bool = False,
    ) -> None:  # fmt: skip
        self.low, self.image, self.padded, self.flipped = low, image, padded, flipped
        self.batch, *space, self.channels = image.dims
        # A row of pixels is an image of one row.
        unit = [1] * (len(sizes) == 1)
        self.sizes, self.strides, self.rates = [*unit, *sizes], [*unit, *strides], [*unit, *rates]
        self.space: list[Atom] = [*map(low.static_dim, unit), *space]
        self.places: list[Atom] = [*map(low.static_dim, unit), *places]
        self.before: list[ir.Expr] = [*[ir.ZERO for _ in unit], *before]
        self.span = [span_of(low, size, rate) for size, rate in zip(self.sizes, self.rates)]
        reach = zip(self.places, self.strides, self.span)
        # The dimensions of an image with its padding.
        self.shape = [low.atom((n - 1) * stride + span) for n, stride, span in reach] if padded else self.space
        # The distances of neighbours along each dimension, in elements.
        self.steps = [low.atom(product([*self.shape[axis + 1 :], self.channels])) for axis in range(len(self.shape))]
        self.windows_of_row = low.atom(product(self.places[1:]))  # windows for each place along the first dimension
        self.elements = low.atom(product([*map(low.static_dim, self.sizes), self.channels]))  # of a window

    # --- tables ------------------------------------------------------------------------------------------------------

    def windows_at(self, images: ir.Var, height: ir.Var) -> Buffer:
        """Where the windows of so many rows of so many images begin, counted from the first one."""
        steps = [step * stride for step, stride in zip(self.steps, self.strides)]
        counts = [images, height, *self.places[1:]]
        return self._table("windows_at", counts, [self.shape[0] * self.steps[0], *steps], ir.ZERO)

    def elements_at(self) -> Buffer:
        """Where the elements of a window lie, counted from its begin."""
        rates = [1 if rate == 1 else self.low.static_number(rate, "rate") for rate in self.rates]
        steps: list[ir.Expr] = [step * rate for step, rate in zip(self.steps, rates)]
        first: ir.Expr = ir.ZERO
        if self.flipped:
            for size, step in zip(self.sizes, steps):
                first = first + step * (size - 1)
            steps = [-step for step in steps]
        counts = [*map(self.low.static_dim, self.sizes), self.channels]
        return self._table("elements_at", counts, [*steps, ir.ONE], first)

    def _table(self, name: str, counts: Sequence[Atom], steps: Sequence[ir.Expr], first: ir.Expr) -> Buffer:
        """The sums of indices times steps, in row-major order of the indices."""
        table = self.low.new_buffer(product(counts), dtypes.int64, name)
        missing = _TABLE_RANK - len(counts)
        axes = [*[(ir.ONE, ir.ZERO)] * missing, *zip(counts, steps)]
        self.low.add(
            ir.Run(ir.call("lib.fill_places", table.variable, first, *(each for axis in axes for each in axis)))
        )
        return table

    # --- strips ------------------------------------------------------------------------------------------------------

    def height(self, parts: ir.Expr | int) -> ir.Var:
        """The rows of windows in a strip, such that it fits in the cache and there are some `parts` strips, unless they
        would have too few windows."""
        sizes = (self.steps[0], self.span[0], self.strides[0], self.batch, self.places[0], self.windows_of_row)
        given = (self._most(), *sizes, cost_model.CONVOLUTION_WINDOWS, parts)
        return self.low.assign(ir.call("lib.rows_of_strip", *given), "height")

    def images(self, parts: ir.Expr | int) -> ir.Var:
        """The images of a strip, if whole ones fit in the cache, such that there are some `parts` strips."""
        sizes = (self.shape[0] * self.steps[0], self.batch, self.places[0] * self.windows_of_row)
        given = (self._most(), *sizes, cost_model.CONVOLUTION_WINDOWS, parts)
        return self.low.assign(ir.call("lib.images_of_strip", *given), "images")

    def _most(self) -> int:
        """The elements of a strip."""
        return cost_model.CONVOLUTION_STRIP // self.image.dtype.np.itemsize

    def strips(self, height: ir.Expr) -> ir.Expr:
        """The number of strips of an image."""
        return self.low.assign((self.places[0] + height - 1) // height, "strips")

    def memory(self, images: ir.Expr, height: ir.Expr) -> ir.Expr:
        """The number of elements of a strip with its padding."""
        rows = (images - 1) * self.shape[0] + self._rows(height)
        return self.low.assign(rows * self.steps[0], "size")

    def _rows(self, height: ir.Expr) -> ir.Expr:
        """The rows of an image that so many rows of windows need."""
        return (height - 1) * self.strides[0] + self.span[0]

    def strip(
        self, b: ir.Expr, images: ir.Expr, rows: tuple[ir.Expr, ir.Expr], work: Buffer | None, at: ir.Expr, depth: int
    ) -> Place:
        """An array with the windows of some rows of `images` images from `b` on, and where the first one begins in it.
        work: memory for strips, of which this one's begins at `at`; None without padding. depth: that of the loop."""
        low, (first, last) = self.low, rows
        top = low.assign(first * self.strides[0], "top")
        if work is None:
            return self.image.buffer, low.assign((b * self.space[0] + top) * self.steps[0], "from")
        count = low.assign(self._rows(last - first), "rows")
        begin = low.assign(top - self.before[0], "top")

        def image(i: ir.Var) -> None:
            to = low.assign(at + i * (self.shape[0] * self.steps[0]), "to")
            self._copied(0, depth + 1, count, low.assign(b + i, "image"), begin, work, to, self.space[0])

        self.low.loop_over(depth, (ir.ZERO, images), image)
        return work, at

    def _copied(
        self, axis: int, depth: int, count: ir.Expr, row: ir.Expr, top: ir.Expr, work: Buffer, at: ir.Expr,
        length: ir.Expr,
    ) -> None:  # fmt: skip
        """Copies `count` slices along a dimension. row: the number of the slice that they belong to. top: the index of
        the first in the image. length: of the dimension; 0 if the image lacks the slice around them."""
        low = self.low
        if axis + 2 == len(self.shape):
            width, begin = self.space[-1], low.assign(row * self.space[axis], "row")
            sizes = (begin, top, length, count, width, self.channels)
            padded = (work.variable, at, self.before[-1], self.shape[-1])
            low.add(ir.Run(ir.call("lib.pad_rows", self.image.buffer.variable, *sizes, *padded)))
            return

        def body(i: ir.Var) -> None:
            index = low.assign(top + i, "row")
            has = ir.both(index.compare(">=", 0), index.compare("<", length))
            own, to = low.assign(row * self.space[axis] + index, "row"), low.assign(at + i * self.steps[axis], "to")
            inner = low.assign(has.choose(self.space[axis + 1], ir.ZERO), "length")
            begin = low.assign(-self.before[axis + 1], "top")
            self._copied(axis + 1, depth + 1, self.shape[axis + 1], own, begin, work, to, inner)

        self.low.loop_over(depth, (ir.ZERO, count), body)
