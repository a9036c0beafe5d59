"""What tracing costs, counted in calls of Python functions: the same on every machine, however busy."""

import sys

import autograph as ag


def calls_of(run):
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def test_a_node_costs_few_calls(monkeypatch):
    monkeypatch.delenv("AUTOGRAPH_STRICT")  # which verifies graphs
    spec = ag.TensorSpec([8], ag.float32)

    def run(count):
        def f(x):
            for _ in range(count):
                x = (x + 1.5) * x
            return x

        ag.function(f).get_concrete_function(spec)

    run(10)
    nodes = 3 * 400  # a sum, a product and a constant
    assert (calls_of(lambda: run(500)) - calls_of(lambda: run(100))) / nodes < 45
