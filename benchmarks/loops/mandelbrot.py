"""The Mandelbrot set by a scalar loop for each pixel: 128 by 96 pixels, at most 200 steps, float32.

tf.function without XLA, NumPy and torch take one step of all pixels at once instead.
"""

from typing import Any

import numpy as np

from benchmarks import build, native, peers
from benchmarks.harness import Case


def arguments(quick: bool) -> tuple[np.ndarray, np.ndarray, np.int32]:
    width, height, depth = (16, 12, 50) if quick else (128, 96, 200)
    # Numbers with few digits, so that every library rounds alike.
    xs = (-2.0 + np.arange(width) * (3.0 / width)).astype(np.float32)
    ys = (-1.125 + np.arange(height) * (2.25 / height)).astype(np.float32)
    return xs, ys, np.int32(depth)


def by_pixel(m: Any, xs: Any, ys: Any, depth: Any) -> Any:
    width, height = m.shape(xs)[0], m.shape(ys)[0]
    counts = m.TensorArray(m.int32, size=width * height)
    for row in m.range(height):
        for column in m.range(width):
            cx, cy = xs[column], ys[row]
            x, y = cx, cy
            steps = m.constant(0)
            while steps < depth and x * x + y * y <= 4.0:
                x, y = x * x - y * y + cx, 2.0 * x * y + cy
                steps += 1
            counts = counts.write(row * width + column, steps)
    return m.reshape(counts.stack(), [height, width])


def machine_by_pixel(xs, ys, depth):
    counts = np.empty((ys.shape[0], xs.shape[0]), np.int32)
    two, four = np.float32(2.0), np.float32(4.0)
    for row in range(ys.shape[0]):
        for column in range(xs.shape[0]):
            cx, cy = xs[column], ys[row]
            x, y = cx, cy
            steps = 0
            while steps < depth and x * x + y * y <= four:
                x, y = x * x - y * y + cx, two * x * y + cy
                steps += 1
            counts[row, column] = steps
    return counts


C_BY_PIXEL = """
void run(int32_t *counts, const float *xs, const float *ys, int32_t depth) {
    for (int row = 0; row < HEIGHT; row++)
        for (int column = 0; column < WIDTH; column++) {
            float cx = xs[column], cy = ys[row], x = cx, y = cy;
            int32_t steps = 0;
            while (steps < depth && x * x + y * y <= 4.0f) {
                float next = x * x - y * y + cx;
                y = 2.0f * x * y + cy;
                x = next;
                steps++;
            }
            counts[row * WIDTH + column] = steps;
        }
}
"""


def in_c(quick: bool) -> Any:
    xs, ys, _ = arguments(quick)
    # No fused multiply-adds: they would round otherwise than the rest, and pixels at the edge change.
    text = f'#pragma GCC optimize "fp-contract=off"\n#define WIDTH {xs.size}\n#define HEIGHT {ys.size}\n{C_BY_PIXEL}'
    return native.c(text, arguments, lambda xs, ys, depth: np.empty((ys.size, xs.size), np.int32))(quick)


def numpy_by_step(xs, ys, depth):
    cx, cy = (axis.copy() for axis in np.meshgrid(xs, ys))
    x, y = cx.copy(), cy.copy()
    counts = np.zeros(x.shape, np.int32)
    with np.errstate(over="ignore", invalid="ignore"):
        inside = np.ones(x.shape, bool)
        for _ in range(depth):
            inside &= x * x + y * y <= np.float32(4.0)
            counts += inside
            x, y = x * x - y * y + cx, np.float32(2.0) * x * y + cy
    return counts


def make_jax(jax: Any) -> Any:
    lax, jnp = jax.lax, jax.numpy

    def pixel(cx, cy, depth):
        def more(state):
            x, y, steps = state
            return (steps < depth) & (x * x + y * y <= 4.0)

        def step(state):
            x, y, steps = state
            return x * x - y * y + cx, 2.0 * x * y + cy, steps + 1

        return lax.while_loop(more, step, (cx, cy, jnp.int32(0)))[2]

    def pixels(xs, ys, depth):
        return lax.map(lambda cy: lax.map(lambda cx: pixel(cx, cy, depth), xs), ys)

    return pixels


def by_step(m: Any, xs: Any, ys: Any, depth: Any) -> Any:
    cx, cy = m.meshgrid(xs, ys)
    x, y = cx, cy
    counts, inside = m.zeros_like(cx, dtype=m.int32), m.ones_like(cx, dtype=m.bool)
    for _ in m.range(depth):
        inside = m.logical_and(inside, x * x + y * y <= 4.0)
        counts += m.cast(inside, m.int32)
        x, y = x * x - y * y + cx, 2.0 * x * y + cy
    return counts


def make_torch(torch: Any) -> Any:
    def torch_by_step(xs, ys, depth):
        cx, cy = torch.meshgrid(xs, ys, indexing="xy")
        x, y = cx, cy
        counts, inside = torch.zeros_like(cx, dtype=torch.int32), torch.ones_like(cx, dtype=torch.bool)
        for _ in range(int(depth)):
            inside &= x * x + y * y <= 4.0
            counts += inside
            x, y = x * x - y * y + cx, 2.0 * x * y + cy
        return counts

    return torch_by_step


CASES = [
    Case(
        "mandelbrot",
        "Mandelbrot set, a loop for each of 128 × 96 pixels, float32",
        {
            peers.AUTOGRAPH: build.ours(by_pixel, arguments),
            peers.C: in_c,
            peers.NUMBA: build.numba(machine_by_pixel, arguments),
            peers.NUMPY: build.plain(numpy_by_step, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(by_step, arguments),
            peers.TF_XLA: build.tensorflow(by_pixel, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        rtol=0.01,
        kind="scalar loop",
        compared=lambda counts: counts.sum(
            axis=1
        ),  # where multiply-adds are fused, pixels at the edge turn out otherwise
    )
]
