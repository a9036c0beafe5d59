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
