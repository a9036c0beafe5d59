"""Control flow as functions: the same eager and staged, with gradients, and TensorFlow's rules for arguments."""

import numpy as np
import pytest

import autograph as ag

X = np.array([[1.0, 2.0], [3.0, -4.0], [0.5, 1.5]])

# name -> function of a (3, 2) tensor
CASES = {
    "cond": lambda x: ag.cond(x[0, 0] > 0, lambda: x * 2, lambda: x - 1),
    "case": lambda x: ag.case([(x[0, 0] > 5, lambda: x), (x[1, 0] > 2, lambda: -x)], default=lambda: x * x),
    "case default": lambda x: ag.case([(x[0, 0] > 5, lambda: x)], default=lambda: x * x),
    "switch_case": lambda x: ag.switch_case(ag.argmax(x[:, 0]), [lambda: x, lambda: x * 3, lambda: x * 4]),
    "switch_case beyond": lambda x: ag.switch_case(ag.cast(x[0, 0], ag.int32) + 7, {0: lambda: x, 1: lambda: x * 3}),
    "while_loop": lambda x: ag.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (ag.constant(0), ag.ones_like(x)))[1],
    "while_loop limit": lambda x: ag.while_loop(
        lambda y: ag.reduce_sum(y) < 1e6, lambda y: [y * 2.0], [x], maximum_iterations=4)[0],
    "map_fn": lambda x: ag.map_fn(lambda row: ag.reduce_sum(row * row), x),
    "map_fn structure": lambda x: ag.map_fn(
        lambda ab: (ab[0] + ab[1], ab[0] * ab[1]), (x, x[::-1]), fn_output_signature=(ag.float64, ag.float64))[1],
    "map_fn other dtype": lambda x: ag.map_fn(
        lambda row: ag.cast(ag.argmax(row), ag.int32), x, fn_output_signature=ag.int32),
    "map_fn branch": lambda x: ag.map_fn(lambda row: ag.cond(row[0] > 0.9, lambda: row, lambda: -row), x),
    "vectorized_map": lambda x: ag.vectorized_map(lambda row: ag.tensordot(row, row, 1), x),
    "scan": lambda x: ag.scan(lambda a, row: a * 0.5 + row, x),
    "scan initializer": lambda x: ag.scan(
        lambda a, row: a + ag.reduce_sum(row), x, initializer=ag.constant(0.0, ag.float64)),
    "scan reverse": lambda x: ag.scan(lambda a, row: a * row, x, reverse=True),
    "foldl": lambda x: ag.foldl(lambda a, row: a * row + 1.0, x),
    "foldl initializer": lambda x: ag.foldl(lambda a, row: a + row[0], x, ag.constant(2.0, ag.float64)),
    "foldr": lambda x: ag.foldr(lambda a, row: a * 2.0 - row, x),
}  # fmt: skip

EXPECTED = {
    "cond": X * 2, "case": -X, "case default": X * X, "switch_case": X * 3, "switch_case beyond": X * 3,
    "while_loop": X**3, "while_loop limit": X * 16, "map_fn": (X * X).sum(1), "map_fn structure": X * X[::-1],
    "map_fn other dtype": X.argmax(1), "map_fn branch": np.where(X[:, :1] > 0.9, X, -X),
    "vectorized_map": (X * X).sum(1), "scan": np.stack([X[0], X[0] / 2 + X[1], X[0] / 4 + X[1] / 2 + X[2]]),
    "scan initializer": X.sum(1).cumsum(), "scan reverse": X[::-1].cumprod(0)[::-1],
    "foldl": (X[0] * X[1] + 1) * X[2] + 1, "foldl initializer": 2 + X[:, 0].sum(),
    "foldr": (X[2] * 2 - X[1]) * 2 - X[0],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_eager(name):
    np.testing.assert_allclose(CASES[name](ag.constant(X)).numpy(), EXPECTED[name])


@pytest.mark.parametrize("shape", [(3, 2), (None, 2)], ids=["known", "unknown"])
@pytest.mark.parametrize("name", CASES)
def test_staged(name, shape):
    staged = ag.function(CASES[name], input_signature=[ag.TensorSpec(shape, ag.float64)], jit_compile=False)
    np.testing.assert_allclose(staged(ag.constant(X)).numpy(), EXPECTED[name])


@pytest.mark.parametrize("name", [n for n in CASES if n != "map_fn other dtype"])
def test_gradient(name):
    def gradient(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            total = ag.reduce_sum(ag.sin(CASES[name](x)))
        return tape.gradient(total, x)

    found = gradient(ag.constant(X)).numpy()
    expected = np.zeros_like(X)
    for index in np.ndindex(*X.shape):
        step = np.zeros_like(X)
        step[index] = 1e-6
        ends = [np.sin(CASES[name](ag.constant(X + s)).numpy()).sum() for s in (step, -step)]
        expected[index] = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose(found, expected, 1e-6, 1e-6)
    np.testing.assert_allclose(ag.function(gradient, jit_compile=False)(ag.constant(X)).numpy(), found, 1e-12)


def test_functions_that_are_handed_over_are_converted():
    def row_sum_of_positive(row):
        total = ag.constant(0.0, ag.float64)
        for v in row:
            if v > 0:
                total += v
        return total

    @ag.function(input_signature=[ag.TensorSpec((None, None), ag.float64)])
    def staged(x):
        return ag.map_fn(row_sum_of_positive, x)

    np.testing.assert_allclose(staged(ag.constant(X)).numpy(), np.maximum(X, 0).sum(1))


def test_errors():
    with pytest.raises(TypeError, match="'?true_fn'? must be callable"):
        ag.cond(True, 1, lambda: 2)
    with pytest.raises(ag.errors.InvalidArgumentError, match="Expected .False. to be true"):
        ag.case([(ag.constant(False), lambda: 1)])
    with pytest.raises(ag.errors.InvalidArgumentError, match="to be true"):
        ag.case([(ag.constant(True), lambda: 1), (ag.constant(True), lambda: 2)], exclusive=True)
    with pytest.raises(ValueError, match="rank 1 or more"):
        ag.map_fn(lambda t: t, ag.constant(1.0))


def test_order():
    v = ag.Variable(1.0)

    @ag.function
    def update():
        with ag.control_dependencies([v.assign_add(1.0)]):
            result = v * 10.0
        ag.group(v.assign(0.0), ag.no_op())
        return result

    assert float(update()) == 20
    assert float(v) == 0


def gradient_of_map(x):
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = ag.map_fn(lambda row: row * row, x)
    return tape.gradient(y, x)


def written_in_a_loop(x):
    array = ag.TensorArray(ag.float32, 0, dynamic_size=True)
    for i in ag.range(ag.shape(x)[0]):
        array = array.write(i, x[i] * 2.0)
    return array.stack(), array.concat(), array.read(1)


OF_ANY_RANK = {
    "map_fn": lambda x: ag.map_fn(lambda row: row * 2.0, x),
    "map_fn to two": lambda x: ag.map_fn(
        lambda row: (row, ag.reduce_sum(row)), x, fn_output_signature=(ag.float32, ag.float32)
    ),
    "scan": lambda x: ag.scan(lambda a, row: a + row, x),
    "scan in reverse": lambda x: ag.scan(lambda a, row: a * 0.5 + row, x, ag.zeros_like(x[0]), reverse=True),
    "vectorized_map": lambda x: ag.vectorized_map(lambda row: row * row, x),
    "foldl": lambda x: ag.foldl(lambda a, row: a - row, x),
    "gradient": gradient_of_map,
    "TensorArray": written_in_a_loop,
}


@pytest.mark.parametrize("jit_compile", [None, True])
@pytest.mark.parametrize("name", OF_ANY_RANK)
def test_of_unknown_rank(name, jit_compile):
    function = ag.function(OF_ANY_RANK[name], input_signature=[ag.TensorSpec(None)], jit_compile=jit_compile)
    for shape in ((3, 2), (2, 2, 2)):
        x = ag.constant(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))
        for found, expected in zip(ag.nest.flatten(function(x)), ag.nest.flatten(OF_ANY_RANK[name](x))):
            np.testing.assert_allclose(found, expected)


RAGGED = {
    "rows": (lambda k: ag.range(k), ag.RaggedTensorSpec([None], ag.int32), [[0, 1], [], [0, 1, 2]]),
    "rows of pairs": (
        lambda k: ag.ones([k, 2], ag.int32), ag.RaggedTensorSpec([None, 2], ag.int32, ragged_rank=0),
        [[[1, 1]] * 2, [], [[1, 1]] * 3],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RAGGED)
@pytest.mark.parametrize("jit_compile", ["eager", None, True])
def test_map_fn_to_rows_of_different_lengths(name, jit_compile):
    row, spec, expected = RAGGED[name]

    def mapped(counts):
        return ag.map_fn(lambda k: (row(k), k * 2), counts, fn_output_signature=(spec, ag.int32))

    if jit_compile != "eager":
        mapped = ag.function(mapped, input_signature=[ag.TensorSpec([None], ag.int32)], jit_compile=jit_compile)
    found, doubled = mapped(ag.constant([2, 0, 3]))
    assert found.to_list() == expected and found.ragged_rank == 1
    assert doubled.numpy().tolist() == [4, 0, 6]


def test_map_fn_to_ragged_rows_of_unknown_form():
    function = ag.function(
        lambda counts: ag.map_fn(
            lambda k: ag.ones([k, k]), counts, fn_output_signature=ag.RaggedTensorSpec([None, None], ragged_rank=0)
        )
    )
    with pytest.raises(ValueError, match="known in all dimensions but the first"):
        function(ag.constant([1, 2]))


def test_map_fn_of_no_rows():
    scale = ag.Variable([1.0, 2.0])
    rows, numbers = ag.zeros([0, 2]), ag.zeros([0])

    def results():
        return (
            ag.map_fn(lambda row: row * scale, rows),
            ag.map_fn(lambda row: ag.reduce_sum(row), rows),
            ag.map_fn(lambda v: v if v > 1.0 else v * 2.0, numbers),
            ag.map_fn(lambda row: (row, ag.cast(row[0], ag.int32)), rows),
            ag.map_fn(lambda v: v, numbers, fn_output_signature=ag.float32),
        )

    expected = [([0, 2], ag.float32), ([0], ag.float32), ([0], ag.float32)]
    expected += [([0, 2], ag.float32), ([0], ag.int32), ([0], ag.float32)]
    for run in (results, ag.function(results)):
        assert [(each.shape.as_list(), each.dtype) for each in ag.nest.flatten(run())] == expected
