"""The queue of the background thread."""

from runtime.engine.background import START_TIMEOUT, Worker


def test_jobs_that_somebody_waits_for_do_not_each_wait_for_a_call_that_goes_on():
    worker, done = Worker(), []
    with worker.held_back():
        for number in range(5):
            worker.submit(lambda number=number: done.append(number))
        assert worker.wait(4 * START_TIMEOUT)
    assert sorted(done) == [0, 1, 2, 3, 4]
    worker.close()
