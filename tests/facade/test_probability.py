"""TensorFlow Probability on this project: distributions, bijectors, samplers, optimizers, solvers, filters.

Expected values are TensorFlow's, or are computed by NumPy and SciPy.
"""

import importlib.util

import numpy as np
import pytest
from scipy import special, stats

if any(importlib.util.find_spec(name) is None for name in ("tensorflow_probability", "keras")):
    pytest.skip("needs the extra tfp: pip install -e '.[tfp]'", allow_module_level=True)


@pytest.fixture(scope="module", name="tfp")
def _tfp(tf):
    import tensorflow_probability as tfp

    return tfp


@pytest.fixture(scope="module", name="tfd")
def _tfd(tfp):
    return tfp.distributions


@pytest.fixture(scope="module", name="tfb")
def _tfb(tfp):
    return tfp.bijectors


SEED = (1, 2)


def close(found, expected, **tolerance):
    np.testing.assert_allclose(found, expected, **{"rtol": 1e-4, "atol": 1e-5, **tolerance})


DISTRIBUTIONS = {
    "Normal": ((1.0, 2.0), stats.norm(1.0, 2.0)),
    "Gamma": ((2.0, 3.0), stats.gamma(2.0, scale=1 / 3)),
    "Beta": ((2.0, 3.0), stats.beta(2.0, 3.0)),
    "StudentT": ((3.0, 0.5, 2.0), stats.t(3.0, 0.5, 2.0)),
    "Laplace": ((0.5, 2.0), stats.laplace(0.5, 2.0)),
    "Exponential": ((2.0,), stats.expon(scale=0.5)),
    "LogNormal": ((0.0, 1.0), stats.lognorm(1.0)),
    "Uniform": ((0.0, 2.0), stats.uniform(0.0, 2.0)),
    "TruncatedNormal": ((0.0, 1.0, -1.0, 2.0), stats.truncnorm(-1.0, 2.0)),
    "Weibull": ((1.5, 2.0), stats.weibull_min(1.5, scale=2.0)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions(tfd, name):
    arguments, known = DISTRIBUTIONS[name]
    distribution = getattr(tfd, name)(*arguments)
    numbers = distribution.sample(500, seed=SEED).numpy()
    close(distribution.log_prob(numbers[:5]), known.logpdf(numbers[:5]))
    close(distribution.cdf(numbers[:5]), known.cdf(numbers[:5]), atol=1e-4)
    assert stats.kstest(numbers, known.cdf).pvalue > 1e-3


def test_discrete_distributions(tfd):
    close(tfd.Poisson(3.0).log_prob(2.0), stats.poisson.logpmf(2, 3.0))
    close(tfd.Binomial(10.0, probs=0.2).log_prob(3.0), stats.binom.logpmf(3, 10, 0.2))
    close(tfd.Categorical(logits=[1.0, 2.0, 3.0]).log_prob(2), special.log_softmax([1.0, 2.0, 3.0])[2])
    assert set(tfd.Bernoulli(probs=0.3).sample(50, seed=SEED).numpy().tolist()) == {0, 1}


def test_gradients_of_log_probabilities_and_of_samples(tf, tfd):
    mean, deviation = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        loss = tfd.Normal(mean, deviation).log_prob(3.0)
    close(tape.gradient(loss, [mean, deviation]), [0.5, 0.0], atol=1e-6)
    with tf.GradientTape() as tape:
        number = tfd.Normal(mean, deviation).sample(seed=SEED)
    close(tape.gradient(number, [mean, deviation]), [1.0, (float(number) - 1.0) / 2.0])


def test_many_dimensions(tf, tfd):
    factor = np.array([[1.0, 0.0], [0.5, 2.0]], np.float32)
    distribution = tfd.MultivariateNormalTriL([1.0, 2.0], factor)
    known = stats.multivariate_normal([1.0, 2.0], factor @ factor.T)
    close(distribution.log_prob([0.1, 0.2]), known.logpdf([0.1, 0.2]))
    close(distribution.covariance(), factor @ factor.T)
    update = tfd.MultivariateNormalDiagPlusLowRankCovariance([0.0, 0.0], [1.0, 1.0], [[1.0], [2.0]])
    close(update.log_prob([0.1, 0.2]), stats.multivariate_normal([0, 0], [[2, 2], [2, 5]]).logpdf([0.1, 0.2]))
    close(distribution.kl_divergence(distribution), 0.0)
    assert distribution.sample([3, 4], seed=SEED).shape == (3, 4, 2)


def test_bijectors(tf, tfb):
    for bijector, x in (
        (tfb.Exp(), 0.3), (tfb.Softplus(), 0.3), (tfb.Chain([tfb.Exp(), tfb.Shift(1.0)]), 0.5),
        (tfb.IteratedSigmoidCentered(), [0.1, 0.2]), (tfb.CorrelationCholesky(), [0.1, 0.2, 0.3]), (tfb.Tanh(), 0.2),
        (tfb.ScaleMatvecTriL([[1.0, 0.0], [1.0, 2.0]]), [1.0, 1.0]),
    ):  # fmt: skip
        y = bijector.forward(x)
        close(bijector.inverse(tf.identity(y)), x)
        there = bijector.forward_log_det_jacobian(x, bijector.forward_min_event_ndims)
        back = bijector.inverse_log_det_jacobian(tf.identity(y), bijector.inverse_min_event_ndims)
        close(there, -np.asarray(back))


def test_transformed_and_mixed(tfd, tfb):
    close(tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), tfb.Exp()).log_prob(2.0), stats.lognorm(1.0).logpdf(2.0))
    mixed = tfd.MixtureSameFamily(tfd.Categorical(probs=[0.3, 0.7]), tfd.Normal([0.0, 3.0], [1.0, 2.0]))
    close(mixed.prob(1.0), 0.3 * stats.norm.pdf(1.0) + 0.7 * stats.norm.pdf(1.0, 3.0, 2.0))


def test_distributions_in_and_out_of_functions_and_loops(tf, tfd):
    @tf.function
    def f(distribution):
        _, last = tf.while_loop(
            lambda i, _: i < 3, lambda i, d: (i + 1, tfd.Normal(d.loc + 1.0, d.scale)), (0, distribution)
        )
        return last, distribution.log_prob(1.0)

    last, density = f(tfd.Normal(0.0, 2.0))
    assert isinstance(last, tfd.Normal) and float(last.loc) == 3.0
    close(density, stats.norm.logpdf(1.0, 0.0, 2.0))
    f(tfd.Normal(5.0, 1.0))
    assert f.experimental_get_tracing_count() == 1


EFFECTS = np.float32([28, 8, -3, 7, -1, 1, 18, 12])
ERRORS = np.float32([15, 10, 16, 11, 9, 11, 10, 18])


def eight_schools(tf, tfd):
    return tfd.JointDistributionSequential([
        tfd.Normal(0.0, 10.0, name="avg_effect"),
        tfd.Normal(5.0, 1.0, name="avg_stddev"),
        tfd.Independent(tfd.Normal(tf.zeros(8), tf.ones(8)), reinterpreted_batch_ndims=1, name="standard"),
        lambda standard, avg_stddev, avg_effect: tfd.Independent(
            tfd.Normal(
                avg_effect[..., tf.newaxis] + tf.exp(avg_stddev[..., tf.newaxis]) * standard,
                ERRORS,
            ),
            reinterpreted_batch_ndims=1,
        ),
    ])  # fmt: skip


def posterior_of_eight_schools():
    """The means of the average effect, of the logarithm of the deviation and of the effects, by quadrature: given the
    first two, a school's effect is normal."""
    mean, log_deviation = np.meshgrid(np.linspace(-50, 60, 551), np.linspace(-1, 11, 601), indexing="ij")
    variance = np.exp(2 * log_deviation)
    log_weights = stats.norm(0, 10).logpdf(mean) + stats.norm(5, 1).logpdf(log_deviation)
    schools = []
    for effect, error in zip(EFFECTS, ERRORS):
        log_weights += stats.norm(mean, np.sqrt(error**2 + variance)).logpdf(effect)
        schools.append((mean * error**2 + effect * variance) / (error**2 + variance))
    weights = special.softmax(log_weights)
    return [np.sum(weights * each) for each in (mean, log_deviation, *schools)]


def test_eight_schools(tf, tfp, tfd):
    # The program of the notebook of this name, with many chains.
    model = eight_schools(tf, tfd)
    kernel = tfp.mcmc.HamiltonianMonteCarlo(
        lambda *parts: model.log_prob([*parts, EFFECTS]), step_size=0.4, num_leapfrog_steps=3
    )

    @tf.function(autograph=False, jit_compile=True)
    def run():
        return tfp.mcmc.sample_chain(
            600, num_burnin_steps=300, kernel=kernel, trace_fn=lambda _, results: results.is_accepted, seed=SEED,
            current_state=[tf.zeros(100), tf.zeros(100), tf.ones([100, 8])],
        )  # fmt: skip

    (mean, log_deviation, standard), accepted = run()
    assert 0.5 < np.mean(accepted) < 0.7  # the notebook's: 0.5974
    schools = mean[..., np.newaxis] + np.exp(log_deviation)[..., np.newaxis] * standard
    found = np.concatenate([np.stack([mean, log_deviation], axis=-1), schools], axis=-1)
    of_chains = np.mean(found, axis=0)
    deviations = (np.mean(of_chains, axis=0) - posterior_of_eight_schools()) / (np.std(of_chains, axis=0) / 10)
    assert np.max(np.abs(deviations)) < 4


def test_no_u_turn_sampler(tf, tfp):
    @tf.function
    def run():
        kernel = tfp.mcmc.NoUTurnSampler(lambda x: tf.reduce_sum(-0.5 * x**2), step_size=0.5)
        return tfp.mcmc.sample_chain(
            200, num_burnin_steps=20, current_state=tf.ones(3), kernel=kernel, seed=SEED,
            trace_fn=lambda _, results: results.leapfrogs_taken,
        )  # fmt: skip

    states, leapfrogs = run()
    assert np.abs(np.mean(states)) < 0.3 and 0.5 < np.var(states) < 1.6
    assert np.min(leapfrogs) >= 1


def test_optimizers(tf, tfp):
    def rosenbrock(x):
        return tfp.math.value_and_gradient(lambda x: (1.0 - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2, x)

    for minimize in (tfp.optimizer.bfgs_minimize, tfp.optimizer.lbfgs_minimize):
        found = tf.function(lambda minimize=minimize: minimize(rosenbrock, initial_position=tf.constant([-1.0, 1.0])))()
        assert bool(found.converged)
        close(found.position, [1.0, 1.0], atol=1e-2)


def test_differential_equations(tf, tfp):
    solved = tfp.math.ode.BDF().solve(lambda t, y: -y, 0.0, tf.constant([1.0]), solution_times=[0.5, 1.0])
    close(solved.states[:, 0], np.exp([-0.5, -1.0]), rtol=1e-2)
    with tf.GradientTape() as tape:
        start, rate = tf.Variable([1.0]), tf.Variable(2.0)
        solved = tfp.math.ode.DormandPrince().solve(
            lambda t, y, rate: -rate * y, 0.0, start, solution_times=[1.0], constants={"rate": rate}
        )
        end = tf.reduce_sum(solved.states)
    close(end, np.exp(-2.0), rtol=1e-3)
    close(tape.gradient(end, start), [np.exp(-2.0)], rtol=1e-2)


def test_kalman_filter(tf, tfd):
    """One state that stays: the posterior's mean is that of normal numbers with a normal prior."""
    model = tfd.LinearGaussianStateSpaceModel(
        4, tf.linalg.LinearOperatorIdentity(1), tfd.MultivariateNormalDiag(scale_diag=[1e-4]),
        tf.linalg.LinearOperatorIdentity(1), tfd.MultivariateNormalDiag(scale_diag=[0.5]),
        tfd.MultivariateNormalDiag(scale_diag=[1.0]),
    )  # fmt: skip
    y = np.array([1.0, 2.0, 1.5, 0.3], np.float32)
    close(model.forward_filter(y[:, None])[1][-1], [np.sum(y) / 0.25 / (4 / 0.25 + 1)], rtol=1e-3)
    known = stats.multivariate_normal(np.zeros(4), np.ones((4, 4)) + 0.25 * np.eye(4))
    close(model.log_prob(y[:, None]), known.logpdf(y), rtol=1e-3)


def test_hidden_markov_model(tfd):
    model = tfd.HiddenMarkovModel(
        tfd.Categorical(probs=[0.8, 0.2]), tfd.Categorical(probs=[[0.7, 0.3], [0.2, 0.8]]),
        tfd.Normal([0.0, 15.0], [5.0, 10.0]), num_steps=7,
    )  # fmt: skip
    seen = [-2.0, 0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert model.posterior_mode(seen).numpy().tolist() == [0, 0, 0, 0, 0, 1, 1]
    close(model.log_prob(seen), -22.3578)


def test_variational_inference(tf, tfp, tfd, tfb):
    mean, deviation = tf.Variable(0.0), tfp.util.TransformedVariable(1.0, tfb.Softplus())
    surrogate = tfd.Normal(mean, deviation)
    assert surrogate.trainable_variables == (mean, deviation.trainable_variables[0])
    losses = tfp.vi.fit_surrogate_posterior(
        tfd.Normal(2.0, 3.0).log_prob, surrogate, optimizer=tf.keras.optimizers.Adam(0.2), num_steps=150,
        sample_size=20, seed=SEED,
    )  # fmt: skip
    assert float(losses[-1]) < float(losses[0])
    close(mean, 2.0, atol=0.6)


def test_gaussian_process(tf, tfp, tfd):
    x = np.linspace(0, 1, 5, dtype=np.float32)[:, None]
    y = np.sin(x[:, 0])
    length = tf.Variable(0.5)
    kernel = tfp.math.psd_kernels.ExponentiatedQuadratic(1.0, length)
    process = tfd.GaussianProcess(kernel, x, observation_noise_variance=0.1)
    known = stats.multivariate_normal(np.zeros(5), np.exp(-0.5 * ((x - x.T) / 0.5) ** 2) + 0.1 * np.eye(5))
    close(process.log_prob(y), known.logpdf(y), rtol=1e-3)
    with tf.GradientTape() as tape:
        loss = process.log_prob(y)
    assert np.isfinite(tape.gradient(loss, length))


def test_the_legacy_name_of_keras(tfp):
    import keras
    import tf_keras

    assert tf_keras.optimizers.Adam is keras.optimizers.Adam
