"""`random.Generator` and the stateless functions: the same numbers eager and staged, streams apart, distributions."""

import copy

import numpy as np
import pytest
from scipy import stats

import autograph as ag

DRAWS = {
    "normal": lambda g: g.normal([3, 2]), "uniform": lambda g: g.uniform([5], 1.0, 3.0, ag.float64),
    "integers": lambda g: g.uniform([7], 0, 10, ag.int32), "truncated": lambda g: g.truncated_normal([4]),
    "full": lambda g: g.uniform_full_int([3], ag.int64), "binomial": lambda g: g.binomial([4], 5, 0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_numbers_eager_and_staged(name):
    draw = DRAWS[name]
    first = ag.random.Generator.from_seed(7)
    eager = [draw(first).numpy() for _ in range(2)]
    second = ag.random.Generator.from_seed(7)
    staged = ag.function(lambda: (draw(second), draw(second)))
    for one, other in zip(eager, staged()):
        np.testing.assert_array_equal(one, other.numpy())
    assert not np.array_equal(*eager)
    np.testing.assert_array_equal(first.state.numpy(), second.state.numpy())


STATELESS = {
    "uniform": lambda s: ag.random.stateless_uniform([3], s), "normal": lambda s: ag.random.stateless_normal([2, 2], s),
    "truncated": lambda s: ag.random.stateless_truncated_normal([3], s, dtype=ag.float64),
    "gamma": lambda s: ag.random.stateless_gamma([3], s, 2.0), "split": lambda s: ag.random.split(s, 3),
    "poisson": lambda s: ag.random.stateless_poisson([4], s, 3.0), "fold_in": lambda s: ag.random.fold_in(s, 5),
    "categorical": lambda s: ag.random.stateless_categorical([[0.1, 0.9], [2.0, -1.0]], 6, s),
    "shuffle": lambda s: ag.random.stateless_shuffle([1, 2, 3, 4, 5, 6], s),
}  # fmt: skip


@pytest.mark.parametrize("name", STATELESS)
def test_stateless(name):
    function = STATELESS[name]
    first = function([1, 2]).numpy()
    np.testing.assert_array_equal(first, function(ag.constant([1, 2])).numpy())
    np.testing.assert_array_equal(first, ag.function(function)(ag.constant([1, 2])).numpy())
    assert not np.array_equal(first, function([1, 3]).numpy())


def test_split_gives_independent_streams():
    g = ag.random.Generator.from_seed(1)
    before = g.state.numpy()
    a, b = g.split(2)
    x, y, z = (s.normal([4000]).numpy() for s in (a, b, g))
    assert not np.array_equal(before, g.state.numpy())
    for one, other in ((x, y), (y, z), (x, z)):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.06


def test_states():
    g = ag.random.Generator.from_seed(3)
    g.normal([5])
    twin = ag.random.Generator.from_state(g.state, "philox")
    clone = copy.deepcopy(g)
    expected = g.uniform([3]).numpy()
    np.testing.assert_array_equal(twin.uniform([3]).numpy(), expected)
    np.testing.assert_array_equal(clone.uniform([3]).numpy(), expected)
    g.reset_from_seed(3)
    np.testing.assert_array_equal(g.normal([5]).numpy(), ag.random.Generator.from_seed(3).normal([5]).numpy())
    free = [ag.random.Generator.from_non_deterministic_state().state.numpy() for _ in range(2)]
    assert not np.array_equal(*free)
    assert ag.random.Generator.from_key_counter(1, [5, 0], 1).state.numpy().tolist() == [5, 0, 1]


def test_the_global_generator():
    mine = ag.random.Generator.from_seed(2)
    ag.random.set_global_generator(mine)
    assert ag.random.get_global_generator() is mine


def test_seeds_of_the_program():
    def numbers():
        ag.random.set_seed(5)
        return [
            ag.random.gamma([2], 3.0).numpy(), ag.random.poisson([2], [1.0, 20.0]).numpy(),
            ag.random.categorical([[1.0, 1.0]], 4).numpy(), ag.random.gamma([2], 3.0, seed=1).numpy(),
        ]  # fmt: skip

    for one, other in zip(numbers(), numbers()):
        np.testing.assert_array_equal(one, other)
    assert numbers()[1].shape == (2, 2)


@pytest.mark.parametrize(
    "draw, distribution",
    [
        (lambda: ag.random.stateless_gamma([4000], [1, 2], 2.5, 2.0), stats.gamma(2.5, scale=0.5)),
        (lambda: ag.random.stateless_uniform([4000], [1, 2], -1.0, 1.0), stats.uniform(-1, 2)),
        (lambda: ag.random.stateless_normal([4000], [1, 2], 1.0, 2.0), stats.norm(1, 2)),
        (lambda: ag.random.stateless_truncated_normal([4000], [1, 2]), stats.truncnorm(-2, 2)),
    ],
)
def test_continuous_distributions(draw, distribution):
    assert stats.kstest(draw().numpy(), distribution.cdf).pvalue > 1e-3


def test_discrete_distributions():
    found = ag.random.stateless_poisson([8000], [4, 5], 2.5).numpy()
    counts = np.bincount(found, minlength=9)[:9]
    expected = stats.poisson(2.5).pmf(np.arange(9)) * 8000
    assert ((counts - expected) ** 2 / expected).sum() < 30
    classes = ag.random.stateless_categorical(np.log([[0.2, 0.5, 0.3]]), 8000, [1, 1]).numpy()[0]
    np.testing.assert_allclose(np.bincount(classes) / 8000, [0.2, 0.5, 0.3], atol=0.02)
    assert sorted(ag.random.stateless_shuffle(np.arange(50), [1, 1]).numpy()) == list(range(50))


def test_errors():
    with pytest.raises(ValueError, match="Unsupported algorithm"):
        ag.random.Generator.from_seed(1, alg="threefry")
    with pytest.raises(ag.errors.InvalidArgumentError, match="seed must"):
        ag.random.stateless_uniform([2], [1, 2, 3])
    with pytest.raises(ValueError, match="maxval"):
        ag.random.stateless_uniform([2], [1, 2], dtype=ag.int32)
    with pytest.raises(ag.errors.InvalidArgumentError, match="should be a matrix"):
        ag.random.categorical([0.0, 1.0], 2)


def test_parts_of_a_state():
    first = ag.random.Generator.from_seed(5, ag.random.Algorithm.PHILOX)
    np.testing.assert_array_equal(ag.random.create_rng_state(5, "philox"), first.state.numpy())
    again = ag.random.Generator.from_seed(9)
    again.reset_from_key_counter(first.key, first.state[:2])
    np.testing.assert_array_equal(first.normal([3]), again.normal([3]))
    with pytest.raises(ValueError, match="algorithm"):
        ag.random.create_rng_state(5, ag.random.Algorithm.THREEFRY)
