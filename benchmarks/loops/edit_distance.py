"""Levenshtein's distance of two arrays of 300 integers by dynamic programming: one row, updated in place.

tf.function without XLA, NumPy and torch go along the diagonals, whose cells don't depend on each other.
"""

from typing import Any

import numpy as np

from benchmarks import build, native, peers
from benchmarks.harness import Case


def arguments(quick: bool) -> tuple[np.ndarray, np.ndarray]:
    size = 30 if quick else 300
    random = np.random.default_rng(0)
    a = random.integers(0, 4, size).astype(np.int32)
    return a, random.integers(0, 4, size).astype(np.int32)


def distance(m: Any, a: Any, b: Any) -> Any:
    n = m.shape(b)[0]
    row = m.TensorArray(m.int32, size=n + 1, clear_after_read=False).unstack(m.range(n + 1))
    for i in m.range(m.shape(a)[0]):
        diagonal, left = i, i + 1
        row = row.write(0, left)
        for j in m.range(n):
            above = row.read(j + 1)
            cost = m.constant(1)
            if a[i] == b[j]:
                cost = m.constant(0)
            left = m.minimum(m.minimum(above, left) + 1, diagonal + cost)
            diagonal = above
            row = row.write(j + 1, left)
    return row.read(n)


def machine_distance(a, b):
    row = np.arange(b.shape[0] + 1).astype(np.int32)
    for i in range(a.shape[0]):
        diagonal, left = np.int32(i), np.int32(i + 1)
        row[0] = left
        for j in range(b.shape[0]):
            above = row[j + 1]
            cost = np.int32(0) if a[i] == b[j] else np.int32(1)
            left = min(np.int32(min(above, left) + np.int32(1)), np.int32(diagonal + cost))
            diagonal = above
            row[j + 1] = left
    return row[-1]


def python_distance(a, b):
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a):
        diagonal, left = i, i + 1
        row[0] = left
        for j, other in enumerate(b):
            above = row[j + 1]
            left = min(above + 1, left + 1, diagonal + (letter != other))
            diagonal = above
            row[j + 1] = left
    return row[-1]


C_DISTANCE = """
int32_t run(const int32_t *a, const int32_t *b) {
    int32_t row[COUNT + 1];
    for (int j = 0; j <= COUNT; j++) row[j] = j;
    for (int i = 0; i < COUNT; i++) {
        int32_t diagonal = i, left = i + 1;
        row[0] = left;
        for (int j = 0; j < COUNT; j++) {
            int32_t above = row[j + 1], cost = a[i] != b[j];
            int32_t shorter = (above < left ? above : left) + 1;
            left = shorter < diagonal + cost ? shorter : diagonal + cost;
            diagonal = above;
            row[j + 1] = left;
        }
    }
    return row[COUNT];
}
"""


def in_c(quick: bool) -> Any:
    text = f"#define COUNT {arguments(quick)[0].size}\n{C_DISTANCE}"
    return native.c(text, arguments, lambda a, b: np.int32(0))(quick)


def make_jax(jax: Any) -> Any:
    lax, jnp = jax.lax, jax.numpy

    def jax_distance(a, b):
        def next_row(row, numbered):
            i, letter = numbered

            def next_cell(carry, cell):
                left, diagonal = carry
                above, other = cell
                left = jnp.minimum(jnp.minimum(above, left) + 1, diagonal + (letter != other))
                return (left, above), left

            _, cells = lax.scan(next_cell, (i + 1, i), (row[1:], b))
            return jnp.concatenate([(i + 1)[None], cells]), None

        rows = jnp.arange(b.shape[0] + 1, dtype=jnp.int32)
        return lax.scan(next_row, rows, (jnp.arange(a.shape[0], dtype=jnp.int32), a))[0][-1]

    return jax_distance


def numpy_distance(a, b):
    n = len(a)
    backwards = b[::-1]
    before, last = np.zeros(0, np.int32), np.zeros(1, np.int32)
    for k in range(1, 2 * n + 1):
        # The cells (i, k - i) of diagonal k; those at the border hold k.
        low, high = max(1, k - n), min(n, k - 1)
        here = np.full(min(n, k) - max(0, k - n) + 1, k, np.int32)
        first, first_last, first_before = max(0, k - n), max(0, k - 1 - n), max(0, k - 2 - n)
        if high >= low:
            cost = a[low - 1 : high] != backwards[n - k + low : n - k + high + 1]
            up, left = last[low - 1 - first_last : high - first_last], last[low - first_last : high + 1 - first_last]
            corner = before[low - 1 - first_before : high - first_before]
            here[low - first : high + 1 - first] = np.minimum(np.minimum(up, left) + 1, corner + cost)
        before, last = last, here
    return last[0]


def tf_distance(tf: Any, a: Any, b: Any) -> Any:
    n = tf.shape(a)[0]
    places = tf.range(n + 1)
    # Each diagonal is kept by the number of its row, in arrays of one size; what isn't in the table holds much.
    padded_a, backwards = tf.concat([[-1], a], 0), tf.concat([tf.reverse(b, [0]), [-2]], 0)
    before = tf.where(places == 0, 0, 1 << 20)
    last = tf.where(places <= 1, 1, 1 << 20)
    for k in tf.range(2, 2 * n + 1):
        columns = k - places
        other = tf.gather(backwards, tf.clip_by_value(n - columns, 0, n))
        cost = tf.cast(padded_a != other, tf.int32)
        up, corner = tf.roll(last, 1, 0), tf.roll(before, 1, 0)
        here = tf.minimum(tf.minimum(up, last) + 1, corner + cost)
        here = tf.where(tf.logical_or(places == 0, columns == 0), k, here)
        before, last = last, tf.where(tf.logical_or(columns < 0, columns > n), 1 << 20, here)
    return last[n]


def make_torch(torch: Any) -> Any:
    def torch_distance(a, b):
        n = a.shape[0]
        backwards = b.flip(0)
        before, last = torch.zeros(0, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
        for k in range(1, 2 * n + 1):
            low, high = max(1, k - n), min(n, k - 1)
            here = torch.full((min(n, k) - max(0, k - n) + 1,), k, dtype=torch.int32)
            first, first_last, first_before = max(0, k - n), max(0, k - 1 - n), max(0, k - 2 - n)
            if high >= low:
                cost = a[low - 1 : high] != backwards[n - k + low : n - k + high + 1]
                up = last[low - 1 - first_last : high - first_last]
                left = last[low - first_last : high + 1 - first_last]
                corner = before[low - 1 - first_before : high - first_before]
                here[low - first : high + 1 - first] = torch.minimum(torch.minimum(up, left) + 1, corner + cost)
            before, last = last, here
        return last[0]

    return torch_distance


CASES = [
    Case(
        "edit-distance",
        "Edit distance of two arrays of 300 integers",
        {
            peers.AUTOGRAPH: build.ours(distance, arguments),
            peers.C: in_c,
            peers.NUMBA: build.numba(machine_distance, arguments),
            peers.PYTHON: build.python(python_distance, arguments),
            peers.NUMPY: build.plain(numpy_distance, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(tf_distance, arguments),
            peers.TF_XLA: build.tensorflow(tf_distance, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        rtol=0.0,
        kind="scalar loop",
    )
]
