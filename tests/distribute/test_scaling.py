"""benchmarks/workers.py: the model of a step's time, and the page that it makes of measurements."""

import pytest

from benchmarks.workers import PREDICTED, Model, page
from runtime.collectives.cost_model import Network


def measured(workers, message=1e-5, bandwidth=1e9, compute=0.02):
    """What processes with a core each would take, if the model were right."""
    network = Network(message, bandwidth)
    sizes = {str(size): network.seconds(workers, size) for size in (4, 1 << 20, 1 << 26)}
    step = network.seconds(workers, 400_000)
    return {
        "workers": workers, "barrier": 1e-5, "all_reduce": sizes, "bytes": 400_000,
        "sent_a_step": int(2 * (workers - 1) / workers * 400_000), "weak": compute + step, "weak alone": compute,
        "strong": compute / workers + step, "strong alone": compute / workers, "background": sizes["4"] + 2e-5,
        "overlap": {"2.5": {"compute": 0.02, "all_reduce": 0.012, "one piece": 0.033, "overlap": 0.024}},
    }  # fmt: skip


def test_the_model_finds_its_constants():
    one, two, four = (measured(n) for n in (1, 2, 4))
    model = Model(one, two, cores=4)
    assert model.network.message == pytest.approx(1e-5, rel=1e-2)
    assert model.network.bandwidth == pytest.approx(1e9, rel=1e-3)
    assert model.step("weak", 4) == pytest.approx(four["weak"], rel=1e-2)
    assert model.step("strong", 4) == pytest.approx(four["strong"], rel=1e-2)
    crowded = Model(one, two, cores=2)  # processes take turns
    assert crowded.step("weak", 4) == pytest.approx(2 * four["weak"], rel=1e-2)
    assert crowded.step("weak", 4, own_cores=True) == pytest.approx(model.step("weak", 4))


def test_the_page_has_all_numbers_of_processes():
    text = page([measured(n) for n in (1, 2, 3, 4)])
    for count in PREDICTED:
        assert f"| {count:,} |" in text
    assert "| 4 | 600,000 | 600,000 | 1.000 |" in text
    assert "| 2.5 | 20.00 | 12.00 | 32.00 | 20.00 | 33.00 | 24.00 |" in text
    assert "takes 20 µs more in the background" in " ".join(text.split())
