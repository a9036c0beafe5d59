"""GPflow on this project: exact, sparse and variational Gaussian processes, optimizers, sampling.

Expected values are computed by NumPy and SciPy.
"""

import importlib.util

import numpy as np
import pytest
from scipy import linalg, stats

import autograph as ag

if any(importlib.util.find_spec(name) is None for name in ("gpflow", "tensorflow_probability", "keras")):
    pytest.skip("needs GPflow: docs/gpflow.md says how it is installed", allow_module_level=True)


@pytest.fixture(scope="module", name="gpflow")
def _gpflow(tf):
    import gpflow

    return gpflow


_numbers = np.random.RandomState(1)
X = _numbers.rand(30, 1)
Y = np.sin(6 * X) + 0.1 * _numbers.randn(30, 1)
NEW = np.linspace(-0.2, 1.2, 7)[:, None]


def close(found, expected, **tolerance):
    np.testing.assert_allclose(found, expected, **{"rtol": 1e-6, "atol": 1e-8, **tolerance})


def squared_exponential(r):
    return np.exp(-0.5 * r**2)


def matern52(r):
    return (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)


KERNELS = {"SquaredExponential": squared_exponential, "Matern52": matern52}


class Process:
    """A Gaussian process with a stationary kernel and normal noise, in NumPy (Rasmussen and Williams, chapter 2)."""

    def __init__(self, function, variance, lengthscale, noise):
        self.kernel = lambda a, b: variance * function(np.abs(a - b.T) / lengthscale)
        self.noise = noise
        self.covariance = self.kernel(X, X) + noise * np.eye(len(X))

    @property
    def log_marginal_likelihood(self):
        return stats.multivariate_normal(np.zeros(len(X)), self.covariance).logpdf(Y[:, 0])

    def predict(self, new):
        """The posterior's means and covariances."""
        factor = linalg.cho_factor(self.covariance)
        cross = self.kernel(X, new)
        mean = cross.T @ linalg.cho_solve(factor, Y)
        return mean, self.kernel(new, new) - cross.T @ linalg.cho_solve(factor, cross)


def process_of(model, function):
    values = model.kernel.variance, model.kernel.lengthscales, model.likelihood.variance
    return Process(function, *[each.numpy() for each in values])


@pytest.mark.parametrize("name", KERNELS)
def test_regression(gpflow, name):
    # The program of the page "Basic (Gaussian likelihood) GP regression model".
    model = gpflow.models.GPR((X, Y), kernel=getattr(gpflow.kernels, name)(lengthscales=0.4), noise_variance=0.1)
    before = Process(KERNELS[name], 1.0, 0.4, 0.1)
    close(model.log_marginal_likelihood(), before.log_marginal_likelihood)
    found = gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables)
    assert found.success
    after = process_of(model, KERNELS[name])
    close(-found.fun, after.log_marginal_likelihood, rtol=1e-5)
    assert after.log_marginal_likelihood > before.log_marginal_likelihood + 5
    close(found.jac, 0.0, atol=1e-2)
    mean, covariance = after.predict(NEW)
    close(model.predict_f(NEW)[0], mean, rtol=1e-4, atol=1e-6)
    close(model.predict_f(NEW)[1][:, 0], np.diag(covariance), rtol=1e-4, atol=1e-6)
    close(model.predict_f(NEW, full_cov=True)[1][0], covariance, rtol=1e-4, atol=1e-6)
    close(model.predict_y(NEW)[1][:, 0], np.diag(covariance) + after.noise, rtol=1e-4, atol=1e-6)
    assert model.predict_f_samples(NEW, 3).shape == (3, 7, 1)


def test_gradients_are_those_of_finite_differences(tf, gpflow):
    model = gpflow.models.GPR((X, Y), kernel=gpflow.kernels.Matern52(lengthscales=0.4), noise_variance=0.1)
    variables = model.trainable_variables
    with tf.GradientTape() as tape:
        loss = model.training_loss()
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        at = variable.numpy()
        losses = []
        for step in (1e-5, -1e-5):
            variable.assign(at + step)
            losses.append(float(model.training_loss()))
        variable.assign(at)
        close(gradient, (losses[0] - losses[1]) / 2e-5, rtol=1e-5)


def test_sparse_regression_with_all_points_is_exact(gpflow):
    known = Process(matern52, 1.0, 0.4, 0.1)
    kernel = gpflow.kernels.Matern52(lengthscales=0.4)
    model = gpflow.models.SGPR((X, Y), kernel, X.copy(), noise_variance=0.1)
    close(model.elbo(), known.log_marginal_likelihood, rtol=1e-3)
    close(model.predict_f(NEW)[0], known.predict(NEW)[0], rtol=1e-2, atol=1e-3)


def test_stochastic_variational_inference(tf, gpflow):
    model = gpflow.models.SVGP(gpflow.kernels.Matern52(), gpflow.likelihoods.Gaussian(0.1), X[:8].copy(), num_data=30)
    before = float(model.elbo((X, Y)))
    batches = iter(tf.data.Dataset.from_tensor_slices((X, Y)).repeat().shuffle(30, seed=1).batch(10))
    loss = model.training_loss_closure(batches)
    optimizer = tf.optimizers.Adam(0.05)

    @tf.function
    def step():
        optimizer.minimize(loss, model.trainable_variables)

    for _ in range(60):
        step()
    bound = float(model.elbo((X, Y)))
    assert bound > before + 50
    # It is a lower bound of the logarithm of the marginal likelihood.
    assert bound < process_of(model, matern52).log_marginal_likelihood


def test_a_natural_gradients_step_is_exact(gpflow):
    model = gpflow.models.SVGP(gpflow.kernels.Matern52(), gpflow.likelihoods.Gaussian(0.1), X.copy())
    step = gpflow.optimizers.NaturalGradient(gamma=1.0)
    step.minimize(model.training_loss_closure((X, Y), compile=False), [(model.q_mu, model.q_sqrt)])
    close(model.elbo((X, Y)), process_of(model, matern52).log_marginal_likelihood, rtol=1e-3)


def test_classification(gpflow):
    labels = np.where(Y > 0, 1.0, 0.0)
    model = gpflow.models.VGP((X, labels), gpflow.kernels.SquaredExponential(), gpflow.likelihoods.Bernoulli())
    before = float(model.elbo())
    # With q = N(0, I) in whitened space, f is normal with the kernel's variance 1: the mean log density by quadrature.
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    expected = len(X) * np.sum(weights * stats.norm.logcdf(points)) / np.sum(weights)
    close(before, expected, rtol=1e-2)
    found = gpflow.optimizers.Scipy().minimize(
        model.training_loss, model.trainable_variables, options={"maxiter": 30}
    )  # fmt: skip
    assert -found.fun > before + 5
    probabilities = model.predict_y(np.array([[0.2], [0.8]]))[0].numpy()[:, 0]
    assert probabilities[0] > 0.8 and probabilities[1] < 0.2


def test_sampling_of_hyperparameters(tf, gpflow):
    import tensorflow_probability as tfp

    number = gpflow.utilities.to_default_float
    model = gpflow.models.GPR((X, Y), kernel=gpflow.kernels.Matern52(lengthscales=0.4), noise_variance=0.02)
    for parameter in model.trainable_parameters:
        parameter.prior = tfp.distributions.Gamma(number(1.0), number(1.0))
    helper = gpflow.optimizers.SamplingHelper(model.log_posterior_density, model.trainable_parameters)
    kernel = tfp.mcmc.HamiltonianMonteCarlo(helper.target_log_prob_fn, num_leapfrog_steps=5, step_size=0.05)

    @tf.function
    def run():
        return tfp.mcmc.sample_chain(
            60, num_burnin_steps=20, current_state=helper.current_state, kernel=kernel, seed=(1, 2),
            trace_fn=lambda _, results: (results.is_accepted, results.accepted_results.target_log_prob),
        )  # fmt: skip

    states, (accepted, densities) = run()
    assert np.mean(accepted) > 0.5
    values = [each.numpy()[-1] for each in helper.convert_to_constrained_values(states)]
    # Gamma(1, 1) is exponential; the samples' density has the logarithms of the transforms' derivatives beside it.
    for parameter, value in zip(model.trainable_parameters, values):
        parameter.assign(value)
    known = process_of(model, matern52).log_marginal_likelihood - sum(map(float, values))
    logs = sum(
        float(each.transform.forward_log_det_jacobian(each.unconstrained_variable, 0))
        for each in model.trainable_parameters
    )
    close(densities[-1], known + logs, rtol=1e-5)


def test_a_parameter_of_another_ones_dtype(tf, gpflow):
    parameter = gpflow.Parameter([1.5, 2.5], dtype=tf.float32, transform=gpflow.utilities.positive())
    assert tf.is_tensor(parameter) and gpflow.Parameter(parameter).dtype == tf.float32
    copied = gpflow.Parameter(parameter, dtype=tf.float64)
    assert copied.dtype == tf.float64
    close(copied, [1.5, 2.5])


def test_a_change_of_a_model_is_seen(gpflow):
    """Functions are traced with what their checked methods read of objects, and again when that changes."""

    class Mean(gpflow.functions.MeanFunction):
        def __init__(self):
            super().__init__()
            self.level = 0.0

        def __call__(self, x):
            return self.level + 0.0 * x

    mean = Mean()
    model = gpflow.models.GPR((X, Y), gpflow.kernels.Matern52(), mean_function=mean)
    loss = ag.function(model.training_loss)
    first = float(loss())
    mean.level = 2.0
    assert float(loss()) == pytest.approx(float(model.training_loss())) != pytest.approx(first)
