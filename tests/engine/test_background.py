"""The queue of the background thread."""

import threading

import pytest

from runtime.engine.background import START_TIMEOUT, Worker


def test_jobs_that_somebody_waits_for_do_not_each_wait_for_a_call_that_goes_on():
    worker, done = Worker(), []
    with worker.held_back():
        for number in range(5):
            worker.submit(lambda number=number: done.append(number))
        assert worker.wait(4 * START_TIMEOUT)
    assert sorted(done) == [0, 1, 2, 3, 4]
    worker.close()


def test_jobs_are_withdrawn_while_the_thread_waits_for_a_call():
    worker, done = Worker(), []

    def first():
        done.append("first")

    def second():
        done.append("second")

    with worker.held_back():
        worker.submit(first)
        worker.submit(second)
        assert worker.withdraw(lambda step: step is first) == [first]
    assert worker.wait(60)
    with worker.held_back():
        worker.submit(first)
        assert worker.withdraw(lambda step: True) == [first]  # none is left
    worker.submit(second)
    assert worker.wait(60)
    assert done == ["second", "second"]
    worker.close()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_no_error_of_a_job_ends_the_thread(error, monkeypatch):
    worker, done, told = Worker(), [], []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: told.append(arguments.exc_type))

    def fail():
        raise error

    worker.submit(fail)
    assert worker.wait(60)
    worker.submit(lambda: done.append(True))
    assert worker.wait(60)
    assert done == [True] and told == [error]
    worker.close()
    assert worker._ended
