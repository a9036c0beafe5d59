"""Conway's Game of Life on a torus of 128 by 128 cells, 50 generations, int32: shifted arrays in a loop.

numba and C count the neighbours cell by cell.
"""

from typing import Any

import numpy as np

from benchmarks import build, native, peers
from benchmarks.harness import Case

GENERATIONS = 50


def arguments(quick: bool) -> tuple[np.ndarray]:
    size = 16 if quick else 128
    return ((np.random.default_rng(0).random((size, size)) < 0.3).astype(np.int32),)


def neighbours(roll: Any, cells: Any) -> Any:
    """How many of the eight cells around each live: three in a row, then three rows, less the cell itself."""
    rows = cells + roll(cells, 1, 1) + roll(cells, -1, 1)
    return rows + roll(rows, 1, 0) + roll(rows, -1, 0) - cells


def life(m: Any, cells: Any) -> Any:
    for _ in m.range(GENERATIONS):
        count = neighbours(m.roll, cells)
        cells = m.cast(m.logical_or(count == 3, m.logical_and(cells == 1, count == 2)), m.int32)
    return cells


def numpy_life(cells):
    for _ in range(GENERATIONS):
        count = neighbours(np.roll, cells)
        cells = ((count == 3) | ((cells == 1) & (count == 2))).astype(np.int32)
    return cells


def machine_life(cells):
    height, width = cells.shape
    cells = cells.copy()
    new = np.empty_like(cells)
    for _ in range(GENERATIONS):
        for y in range(height):
            above, below = y - 1 if y else height - 1, y + 1 if y < height - 1 else 0
            for x in range(width):
                left, right = x - 1 if x else width - 1, x + 1 if x < width - 1 else 0
                count = cells[above, left] + cells[above, x] + cells[above, right] + cells[y, left] + cells[y, right]
                count += cells[below, left] + cells[below, x] + cells[below, right]
                new[y, x] = 1 if count == 3 or (count == 2 and cells[y, x] == 1) else 0
        cells, new = new, cells
    return cells


C_LIFE = """
void run(int32_t *result, const int32_t *given) {
    int32_t (*old)[SIZE] = malloc(SIZE * SIZE * 4), (*new)[SIZE] = (void *)result;
    memcpy(new, given, SIZE * SIZE * 4);
    for (int generation = 0; generation < 50; generation++) {
        memcpy(old, new, SIZE * SIZE * 4);
        for (int y = 0; y < SIZE; y++) {
            int32_t *above = old[y ? y - 1 : SIZE - 1], *here = old[y], *below = old[y < SIZE - 1 ? y + 1 : 0];
            int32_t column[SIZE + 2];
            for (int x = 0; x < SIZE; x++) column[x + 1] = above[x] + here[x] + below[x];
            column[0] = column[SIZE];
            column[SIZE + 1] = column[1];
            for (int x = 0; x < SIZE; x++) {
                int32_t count = column[x] + column[x + 1] + column[x + 2] - here[x];
                new[y][x] = (count == 3) | ((count == 2) & here[x]);
            }
        }
    }
    free(old);
}
"""


def in_c(quick: bool) -> Any:
    return native.c(f"#define SIZE {arguments(quick)[0].shape[0]}\n{C_LIFE}", arguments, np.empty_like)(quick)


def make_jax(jax: Any) -> Any:
    jnp = jax.numpy

    def step(_, cells):
        count = neighbours(jnp.roll, cells)
        return ((count == 3) | ((cells == 1) & (count == 2))).astype(jnp.int32)

    return lambda cells: jax.lax.fori_loop(0, GENERATIONS, step, cells)


def make_torch(torch: Any) -> Any:
    def torch_life(cells):
        for _ in range(GENERATIONS):
            count = neighbours(torch.roll, cells)
            cells = ((count == 3) | ((cells == 1) & (count == 2))).to(torch.int32)
        return cells

    return torch_life


CASES = [
    Case(
        "life",
        "Game of Life, 128 × 128 cells, 50 generations",
        {
            peers.AUTOGRAPH: build.ours(life, arguments),
            peers.C: in_c,
            peers.NUMBA: build.numba(machine_life, arguments),
            peers.NUMPY: build.plain(numpy_life, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(life, arguments),
            peers.TF_XLA: build.tensorflow(life, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        rtol=0.0,
        kind="array loop",
    )
]
