"""Replicas of one process, which take turns: each runs in a thread of its own until it meets the others.

    replica 0   ----> all_reduce .                  ----> end
    replica 1                     ----> all_reduce .      ----> end
    the caller                                    sum

One thread runs at a time, in the place of the one that called `run`: with its tapes, and into the graph that it
traces. So what replicas do together is plain arithmetic on tensors of all of them, and a traced step is one graph.
"""

from __future__ import annotations

import collections
import contextvars
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from autograph.distribute.contexts import place_of_user
from autograph.operators.live import frames_from, pending
from runtime.context import ctx
from runtime.dataclass import dataclass
from runtime.engine.background import interrupt
from runtime.thread_state import captured_state


@dataclass
class Request:
    """What a replica asks all to do together: `function(*one argument of each replica)` gives a result for each."""

    what: str
    function: Callable[..., Sequence[Any]]
    argument: Any
    place: str

    def __str__(self) -> str:
        return f"{self.what} at {self.place}" if self.place else self.what


class _Cancelled(BaseException):
    """Ends a replica whose fellows have failed."""


class _Replica:
    def __init__(self, meeting: Meeting, body: Callable[[], Any], restore: Callable[[], None]) -> None:
        self.meeting = meeting
        self._body = body
        self._restore = restore
        self._turn = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._answer: Any = None
        self._cancelled = False
        self._is_running = False
        self.request: Request | None = None
        # How many things it has asked `shared` for, by what they are.
        self.asked: collections.Counter[Any] = collections.Counter()
        self.result: Any = None
        self.error: BaseException | None = None
        self.ended = False
        context = contextvars.copy_context()
        self.thread = threading.Thread(target=context.run, args=(self._run,), name="replica", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        self._turn.acquire()
        try:
            if not self._cancelled:
                self._restore()
                _mine.replica = self
                self.result = self._body()
        except _Cancelled:
            self.error = None
        except BaseException as error:  # the caller's thread raises it
            self.error = error
        finally:
            self.ended = True
            self._back.release()

    def go_on(self, answer: Any = None) -> None:
        """Resumes the replica with an answer; returns when it waits for the others, or ends."""
        self.request, self._answer = None, answer
        self._is_running = True
        self._turn.release()
        self._back.acquire()
        self._is_running = False

    def wait(self, request: Request) -> Any:
        """Gives the turn back until the others have come to the same; the replica's thread calls it."""
        self.meeting.check(request)
        self.request = request
        self._back.release()
        self._turn.acquire()
        if self._cancelled:
            raise _Cancelled
        return self._answer

    def cancel(self) -> None:
        """Ends the replica, whatever it is doing."""
        if self.ended:
            return
        self._cancelled = True
        if self._is_running:  # Ctrl-C has hit the thread that waits for it
            interrupt(self.thread.ident or 0)
        self._turn.release()
        self.thread.join(5.0)


class _Mine(threading.local):
    replica: _Replica | None = None


_mine = _Mine()


class Meeting:
    """One call of `run`: the replicas, and the graph and the tapes of the thread that called it."""

    def __init__(self) -> None:
        self._builder = ctx.builder
        self._recorders = ctx.recorders
        self.shared: dict[Any, list[Any]] = {}

    def check(self, request: Request) -> None:
        """Raises RuntimeError if replicas can't meet: in a graph that only one of them traces."""
        if ctx.builder is not self._builder:
            raise RuntimeError(
                f"{request}: replicas of one process can't synchronize inside a loop or conditional on tensors, or "
                "inside an `ag.function` that they call, since each replica traces it separately. Move the loop or the "
                "function outside of `strategy.run`, or loop over a Python range. Replicas in separate processes "
                "(MultiWorkerMirroredStrategy) can synchronize anywhere"
            )

    def has_tapes_of_its_own(self) -> bool:
        """Whether the replica that asks has opened tapes, which don't see what is done outside of it."""
        return ctx.recorders != self._recorders

    def run(self, bodies: Sequence[Callable[[], Any]]) -> list[Any]:
        """The results of the functions, which run as replicas. An error of one ends all, and is raised."""
        restore, below = captured_state(), list(frames_from(sys._getframe(1)))

        def go_on_here() -> None:
            restore()
            # What the caller's variables hold is in use, as if its frames were below.
            pending.objects += below

        replicas = [_Replica(self, body, go_on_here) for body in bodies]
        try:
            answers: Sequence[Any] = [None] * len(replicas)
            while True:
                for replica, answer in zip(replicas, answers):
                    replica.go_on(answer)
                    if replica.error is not None:
                        raise replica.error
                if all(replica.ended for replica in replicas):
                    return [replica.result for replica in replicas]
                requests = self._agreed(replicas)
                answers = requests[0].function(*[request.argument for request in requests])
        finally:
            for replica in replicas:
                replica.cancel()

    def _agreed(self, replicas: Sequence[_Replica]) -> list[Request]:
        requests = [replica.request for replica in replicas]
        asked = {None if request is None else request.what for request in requests}
        if len(asked) == 1:
            return [request for request in requests if request is not None]
        raise RuntimeError(
            "The replicas have reached different operations:\n"
            + "".join(f"  replica {i}: {request or 'the end of the function'}\n" for i, request in enumerate(requests))
            + "All replicas must run them in the same order: a condition around one must not depend on the replica."
        )


def meet(what: str, function: Callable[..., Sequence[Any]], argument: Any) -> Any:
    """This replica's part of what `function` makes of an argument of each replica, in order, outside of replicas.

    Raises RuntimeError if replicas come to different things (`what`), or can't meet.
    """
    replica = _mine.replica
    assert replica is not None, "only replicas meet"
    return replica.wait(Request(what, function, argument, place_of_user()))


def shared(what: Any, make: Callable[[], Any]) -> Any:
    """What `make` gives the first replica that comes here, for all that do.

    They don't wait for each other: an object that they share, such as a layer, makes its variables for the first of
    them, and tells the others that they are there.
    """
    replica = _mine.replica
    assert replica is not None, "only replicas share"
    key = what, place_of_user()
    there = replica.meeting.shared.setdefault(key, [])
    number = replica.asked[key]
    replica.asked[key] += 1
    if number == len(there):
        there.append(make())
    return there[number]


def has_tapes_of_its_own() -> bool:
    """Whether this thread's replica has opened tapes."""
    return _mine.replica is not None and _mine.replica.meeting.has_tapes_of_its_own()
