"""What workers hear of each other besides their results: who has raised, died, ended or stalled.

MPI tells nobody that a peer is gone; an operation with it never ends. So each worker keeps a connection to rank 0, over
which it says that it raises or ends. A connection that closes without a word means that its process died. Rank 0 passes
on what it hears, and asks workers that are missing from an operation where they are:

    rank 2  →  rank 0   {"said": "raised", "rank": 2, "text": "ValueError: ..."}
    rank 0  →  all      the same
    rank 1  →  rank 0   {"said": "waiting", "rank": 1, "step": 17, "text": "all_reduce(SUM) of ..."}
    rank 0  →  all      {"said": "where"}
    rank 3  →  rank 0   {"said": "here", "rank": 3, "step": 16, "text": "train.py:31 in load"}
    rank 0  →  all      {"said": "stalled", "rank": 3, "text": ...}
    rank 1  →  rank 0   {"said": "follows", "rank": 1}: it ends because of what it has heard

A worker whose program ends with an exception, or that has seen another fail, doesn't wait for MPI's own end, which
would need all: it leaves the process once the others have heard of it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from runtime.errors import UnavailableError, is_own_file, place

# How long a worker that ends waits for the others to hear why, in seconds.
_FAREWELL = 5.0
# How long workers have to say where they are.
_ANSWER = 2.0
# How long they have to connect to rank 0 at the start.
_MEETING = 60.0


class Watch:
    """One worker's side of it. All workers make one at the same time.

    failure  what ends this worker's operations: the error of another one
    grace    how long rank 0 may take to find out who is missing, in seconds
    raised   whether this worker's program has ended with an exception
    hurt     whether an operation was left while under way, so that MPI can't be ended in order
    """

    grace = 4 * _ANSWER

    def __init__(self, rank: int, size: int, is_one_host: bool, broadcast: Callable[[Any], Any]) -> None:
        self.rank = rank
        self.size = size
        self.failure: UnavailableError | None = None
        self._ended: dict[int, int] = {}  # ranks whose programs have ended, and the last operation of each
        self.hurt = False
        self._step = 0
        self.raised = False
        self._leaving = self._hurries = False
        self._lock = threading.Lock()
        self._peers: dict[int, socket.socket] = {}  # of rank 0: all; of the others: rank 0
        self._waiting: dict[int, tuple[int, str]] = {}
        self._here: dict[int, tuple[int, str]] = {}
        self._done: set[int] = set()  # ranks that have said how they end
        self._closed: set[int] = set()
        self._hook()
        # A worker that can't connect leaves the process, too, rather than waiting for MPI's end.
        self.hurt = True
        if rank == 0:
            self._listen(is_one_host, broadcast)
        else:
            self._connect(*broadcast(None))
        self.hurt = False
        for peer, connection in self._peers.items():
            threading.Thread(target=self._read, args=(peer, connection), daemon=True, name="autograph-watch").start()

    # --- connections ---------------------------------------------------------------------------------------------

    def _listen(self, is_one_host: bool, broadcast: Callable[[Any], Any]) -> None:
        hosts = ["127.0.0.1"] if is_one_host else own_addresses()
        with socket.create_server(("127.0.0.1" if is_one_host else "", 0), backlog=self.size) as server:
            until = time.monotonic() + _MEETING
            token = secrets.token_hex(16)
            broadcast((hosts, server.getsockname()[1], token))
            while len(self._peers) < self.size - 1:
                server.settimeout(max(until - time.monotonic(), 0.1))
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    missing = set(range(1, self.size)) - set(self._peers)
                    raise UnavailableError(
                        f"{self.names(missing)} didn't connect to rank 0 at {hosts} within {_MEETING:.0f} s: besides "
                        "MPI, workers need TCP connections to the machine of rank 0"
                    ) from None
                connection.settimeout(10)
                # A stranger's connection doesn't know the token.
                with contextlib.suppress(ValueError, OSError):
                    given, _, number = connection.makefile("r").readline().strip().partition(" ")
                    if secrets.compare_digest(given, token) and int(number) not in self._peers:
                        connection.settimeout(None)
                        self._peers[int(number)] = connection
                        continue
                connection.close()

    def _connect(self, hosts: list[str], port: int, token: str) -> None:
        failures = []
        for host in hosts:
            try:
                connection = socket.create_connection((host, port), timeout=_MEETING / 2 / len(hosts))
            except OSError as error:
                failures.append(f"{host}: {error}")
                continue
            connection.settimeout(None)
            connection.sendall(f"{token} {self.rank}\n".encode())
            self._peers[0] = connection
            return
        raise UnavailableError(
            f"rank {self.rank} can't connect to rank 0 ({'; '.join(failures)}): besides MPI, workers need TCP "
            "connections to the machine of rank 0"
        )

    def _send(self, message: dict[str, Any], but: int | None = None) -> None:
        line = json.dumps(message).encode() + b"\n"
        with self._lock:
            for peer, connection in self._peers.items():
                if peer != but and peer not in self._closed:
                    with contextlib.suppress(OSError):  # one that is gone is noticed where it is read
                        connection.sendall(line)

    def _read(self, peer: int, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), connection.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                self._hear(json.loads(line), peer)
        self._closed.add(peer)
        if peer not in self._done and not self._leaving:
            self._tell(
                {
                    "said": "died",
                    "rank": peer,
                    "text": "its process ended without an error message (killed, or crashed)",
                }
            )

    def _tell(self, message: dict[str, Any]) -> None:
        """Takes a message in, and passes it on."""
        self._hear(message, None)
        self._send(message)

    def _hear(self, message: dict[str, Any], sender: int | None) -> None:
        said, rank, text = message["said"], message.get("rank", 0), message.get("text", "")
        if said in ("raised", "ended", "follows", "died"):
            self._done.add(rank)
        if said == "ended":
            self._ended[rank] = message["step"]
        elif said == "raised":
            self._fail(f"rank {rank} raised {text}")
        elif said == "died":
            self._fail(f"rank {rank} died: {text}")
        elif said == "stalled":
            self._fail(text)
        elif said == "where":
            self._send({"said": "here", "rank": self.rank, "step": self._step, "text": where_main_is()})
        elif said == "here":
            self._here[rank] = message["step"], text
        elif said == "waiting" and not self._waiting:
            self._waiting[rank] = message["step"], text
            threading.Thread(target=self._find_missing, daemon=True, name="autograph-watch-missing").start()
        elif said == "waiting":
            self._waiting[rank] = message["step"], text
        if self.rank == 0 and sender is not None and said in ("raised", "ended", "follows"):
            self._send(message, but=sender)

    def _fail(self, text: str) -> None:
        if self.failure is None:
            self.failure = UnavailableError(f"A worker failed: {text}")

    # --- waiting -------------------------------------------------------------------------------------------------

    def report_waiting(self, step: int, what: str, seconds: float) -> None:
        """Says that this worker waits for others in its operation number `step`."""
        message = {"said": "waiting", "rank": self.rank, "step": step, "text": f"{what} for {seconds:.0f} s"}
        if self.rank == 0:
            self._hear(message, None)
        else:
            self._send(message)

    def at(self, step: int) -> None:
        """Says which operation this worker is at."""
        self._step = step

    def ended_before(self, step: int) -> list[int]:
        """The ranks whose programs have ended without coming to this operation."""
        return [rank for rank, last in list(self._ended.items()) if last < step]

    def _find_missing(self) -> None:
        """On rank 0: asks all workers at which step they are, and tells them which ones haven't reached the step that
        others wait at."""
        time.sleep(_ANSWER / 2)  # for others that wait
        self._here = {0: (self._step, where_main_is())}
        self._send({"said": "where"})
        until = time.monotonic() + _ANSWER
        while len(self._here) < self.size and time.monotonic() < until:
            time.sleep(0.02)
        step, what = max(self._waiting.values())
        waiting = sorted(rank for rank, found in self._waiting.items() if found[0] == step)
        missing = []
        for rank in range(self.size):
            if rank not in self._here:
                missing.append(f"rank {rank} doesn't answer (stopped, or its machine is gone)")
            elif self._here[rank][0] < step:
                missing.append(f"rank {rank} hasn't reached it; it is at {self._here[rank][1]}")
        text = f"{self.names(waiting)} waited in {what}; "
        self._tell(
            {
                "said": "stalled",
                "text": text + ("; ".join(missing) or "all workers have reached it, but it makes no progress"),
            }
        )

    @staticmethod
    def names(ranks: Iterable[int]) -> str:
        """Ranks as messages name them."""
        ranks = sorted(ranks)
        return f"rank {ranks[0]}" if len(ranks) == 1 else "ranks " + ", ".join(map(str, ranks))

    # --- the end -------------------------------------------------------------------------------------------------

    def _hook(self) -> None:
        """Notices how the program ends."""
        before = sys.excepthook

        def report(kind: Any, error: Any, traceback: Any) -> None:
            before(kind, error, traceback)
            self._report(error, traceback)

        sys.excepthook = report
        atexit.register(self._leave)
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            # Some launchers end all processes when one has died: there is time to say which.
            signal.signal(signal.SIGTERM, self._terminate)

    def _report(self, error: BaseException, traceback: Any) -> None:
        self.raised = True
        text = ": ".join([type(error).__name__, *str(error).splitlines()[:1]])
        lines = [place(frame.f_code.co_filename, line) for frame, line in _frames(traceback)]
        if self.failure is not None and str(self.failure).splitlines()[0] in text:
            self._send({"said": "follows", "rank": self.rank})  # the others know of that failure
        else:
            self._send({"said": "raised", "rank": self.rank, "text": f"{text} ({lines[-1]})" if lines else text})

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        if self.raised or self.hurt:
            self._hurries = True  # it is on its way out
            return
        until = time.monotonic() + 0.5
        while self.failure is None and time.monotonic() < until:
            time.sleep(0.01)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if self.failure is None:
            os.kill(os.getpid(), number)
        else:
            raise self.failure

    def _leave(self) -> None:
        if self._leaving:
            return
        failed = self.raised or self.hurt
        if not failed:
            self._send({"said": "ended", "rank": self.rank, "step": self._step})
            self._leaving = True
            return
        if not self.raised:
            self._send({"said": "follows", "rank": self.rank})
        # The others hear of it before a launcher that sees this process end ends them too.
        until = time.monotonic() + _FAREWELL
        while time.monotonic() < until and not self._hurries and not self._all_have_heard():
            time.sleep(0.02)
        self._leaving = True
        leave_without_others()

    def _all_have_heard(self) -> bool:
        """Whether all others have said how they end, or are gone."""
        others = set(range(self.size)) - {self.rank}
        if self.rank != 0 and 0 in self._closed:
            return True
        return others <= self._done | self._closed


def leave_without_others() -> None:
    """Ends the process without MPI's own end, which would need all workers."""
    atexit.unregister(leave_without_others)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(1)


def own_addresses() -> list[str]:
    """By which addresses other machines may reach this one, the likeliest first."""
    found: list[str] = []
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Nothing is sent: this asks which of the own addresses would be used on the way out.
        probe.connect(("192.0.2.1", 9))
        found.append(str(probe.getsockname()[0]))
    with contextlib.suppress(OSError):
        found += [str(each[4][0]) for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
    found.append(socket.getfqdn())
    # Many systems give their own name the address 127.0.1.1.
    others = [host for host in dict.fromkeys(found) if not host.startswith("127.") and host != "localhost"]
    return others or [socket.gethostname()]


def where_main_is() -> str:
    """The line of the user's that the main thread is at."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return "an unknown line"
    return f"{place(frame.f_code.co_filename, frame.f_lineno)} in {frame.f_code.co_name}"


def _frames(traceback: Any) -> list[tuple[Any, int]]:
    """The user's frames of a traceback, and their lines."""
    found = []
    while traceback is not None:
        if not is_own_file(traceback.tb_frame.f_code.co_filename):
            found.append((traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    return found
