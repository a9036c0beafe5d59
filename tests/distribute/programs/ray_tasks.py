"""Functions and models as tasks of Ray, on a real local cluster: asserts what becomes of them."""

import numpy as np
import pytest
import ray

import autograph as ag
from examples import ensemble


@ag.function
def newton(a):
    x = a
    while ag.abs(x * x - a) > 1e-6 * a:
        x = 0.5 * (x + a / x)
    return x


class Line(ag.Module):
    def __init__(self):
        self.slope = ag.Variable(3.0)

    @ag.function
    def __call__(self, x):
        return self.slope * x


def functions_and_models_as_tasks_of_ray():
    run = ray.remote(ag.distribute.task(newton))
    found = ray.get([run.remote(ag.constant(float(n))) for n in range(1, 5)])
    np.testing.assert_allclose(found, np.sqrt(np.arange(1, 5)), rtol=1e-6)
    model = Line()
    model.slope.assign(5.0)
    assert ray.get(ray.remote(ag.distribute.task(model)).remote(np.float32(2.0))) == 10.0
    # What lies in Ray's shared memory becomes a tensor without a copy.
    big = ray.put(np.ones([1000, 100]))
    is_shared = ray.remote(lambda a: np.shares_memory(ag.distribute.task(ag.identity)(a), a))
    assert ray.get(is_shared.remote(big))


def cross_validation_and_an_ensemble():
    x, y = ensemble.data(120)
    shared = ray.put(x), ray.put(y)
    errors, predictions = ensemble.run(
        lambda function, *args: ray.remote(ag.distribute.task(function)).remote(*args), ray.get, *shared, members=4
    )
    here, same = ensemble.run(lambda function, *args: ag.distribute.task(function)(*args), list, x, y, members=4)
    assert errors == pytest.approx(here) and predictions == pytest.approx(same)
    assert errors[1.0] > 2 * errors[0.0001] and abs(predictions.mean() - np.sin(1.5) * 0.5) < 0.2


def main():
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", object_store_memory=100_000_000)
    functions_and_models_as_tasks_of_ray()
    cross_validation_and_an_ensemble()
    ray.shutdown()
    print("all tasks of Ray are done")


if __name__ == "__main__":
    main()
