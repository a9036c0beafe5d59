"""`autograph serve`: a page to play with. What one types on its left is shown on its right at each stage, from the
converted source to assembly.

The server listens on this machine's loopback address only, and answers only to the address that it prints, which holds
a random token: other users and web pages can't have it run anything. Code runs in child processes of
`autograph to-code`, `graph` and `explain`, each with limits of time, memory and files, in a folder of its own. A new
request ends the one before.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from autograph.commands.files import UsageError
from autograph.commands.serve_page import page

SECONDS = 20  # of a child, by the clock and by the processor
MEMORY = 4 * 2**30  # bytes of its address space
LARGEST_FILE = 2**24
_MOST_TEXT = 2**18  # bytes of a request, and characters of an answer
_PAUSE = 0.03  # seconds between two looks at a child
# What the page asks for, as arguments of the command line; FILE stands for `file:function`.
STAGES = {
    "converted": ["to-code", "FILE"],
    "graph": ["graph", "FILE", "--signature", "SIGNATURE", "--lines"],
    "passes": ["graph", "FILE", "--signature", "SIGNATURE", "--passes"],
    "kernel": ["graph", "FILE", "--signature", "SIGNATURE", "--kernel"],
    "llvm": ["graph", "FILE", "--signature", "SIGNATURE", "--optimized-llvm"],
    "assembly": ["graph", "FILE", "--signature", "SIGNATURE", "--asm"],
    "explain": ["explain", "FILE", "--signature", "SIGNATURE"],
}


def run(options: Any) -> int:
    """Serves until Ctrl-C. Raises UsageError if the port is taken."""
    try:
        server = Server(options.port)
    except (OSError, OverflowError) as error:
        raise UsageError(f"can't listen on port {options.port}: {error}") from None
    print(f"{server.address}\n(Ctrl-C ends it)", flush=True)
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


class Server(ThreadingHTTPServer):
    """The server; `address` is what a browser opens."""

    daemon_threads = True

    def __init__(self, port: int = 0, seconds: float = SECONDS) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.token = secrets.token_urlsafe(24)
        self.seconds = seconds
        self.latest = 0  # the number of the last request
        self.one_at_a_time = threading.Lock()
        self.hosts = {f"{name}:{self.server_address[1]}" for name in ("127.0.0.1", "localhost")}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "autograph", ""
    timeout = 60

    def do_GET(self) -> None:
        if self._is_allowed(""):
            self._answer(200, "text/html; charset=utf-8", page(list(STAGES)))

    def do_POST(self) -> None:
        if not self._is_allowed("show"):
            return
        try:
            length = int(self.headers.get("Content-Length", ""))
            asked = json.loads(self.rfile.read(length)) if 0 <= length <= _MOST_TEXT else None
        except ValueError:
            asked = None
        if asked is None or not _is_request(asked):
            self._answer(400, "text/plain", "expected JSON with source, function, signature and stage")
            return
        server = self.server
        server.latest = number = server.latest + 1
        with server.one_at_a_time:
            ok, text = show(asked, server.seconds, lambda: server.latest == number)
        self._answer(200, "application/json", json.dumps({"ok": ok, "text": text}))

    def _is_allowed(self, rest: str) -> bool:
        """Whether the request has the token and was sent to the address of this server, by its own page: another page
        that a browser shows knows neither."""
        path = self.path.encode()
        fits = hmac.compare_digest(path, f"/{self.server.token}/{rest}".encode())
        origin = self.headers.get("Origin")
        if fits and self.headers.get("Host") in self.server.hosts and (
            origin is None or origin.removeprefix("http://") in self.server.hosts
        ):  # fmt: skip
            return True
        self._answer(404, "text/plain", "Page not found. Open the address that `autograph serve` printed.")
        return False

    def _answer(self, status: int, kind: str, text: str) -> None:
        data = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        rules = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
        self.send_header("Content-Security-Policy", f"{rules}; frame-ancestors 'none'; base-uri 'none'")
        with contextlib.suppress(ConnectionError):  # the page doesn't wait any more
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Writes nothing: by default the server would log a line for each request."""


def _is_request(asked: Any) -> bool:
    names = ("source", "function", "signature", "stage")
    return (
        isinstance(asked, dict) and all(isinstance(asked.get(name), str) for name in names) and asked["stage"] in STAGES
    )


def show(
    asked: dict[str, str], seconds: float = SECONDS, is_wanted: Callable[[], bool] = lambda: True
) -> tuple[bool, str]:
    """Whether it went well, and what the command prints (or complains of) for a source, the name of a function in it, a
    signature and a stage. is_wanted: asked now and then; the child ends when it says no."""
    if not asked["function"].replace(".", "").isidentifier():
        return False, f"{asked['function']!r} isn't the name of a function"
    if "\0" in asked["source"] + asked["signature"]:
        return False, "the text contains a NUL character"
    with tempfile.TemporaryDirectory(prefix="autograph-serve-") as folder:
        file = Path(folder, "program.py")
        file.write_text(asked["source"], encoding="utf-8", errors="replace")
        words = {"FILE": f"{file.name}:{asked['function']}", "SIGNATURE": asked["signature"]}
        # An argument may begin with a dash.
        arguments = [words.get(each, each) for each in STAGES[asked["stage"]]]
        if "--signature" in arguments:
            place = arguments.index("--signature")
            arguments[place : place + 2] = [f"--signature={asked['signature']}"]
        return _run_child(arguments, folder, seconds, is_wanted)


def _run_child(arguments: list[str], folder: str, seconds: float, is_wanted: Callable[[], bool]) -> tuple[bool, str]:
    root = str(Path(__file__).resolve().parent.parent.parent)
    code = f"import sys; sys.path.append({root!r}); from autograph.cli import main; sys.exit(main(sys.argv[1:]))"
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "SYSTEMROOT")
    }
    environment |= {"AUTOGRAPH_CACHE_DIR": str(Path(folder, "kernels")), "PYTHONIOENCODING": "utf-8", "TMPDIR": folder}
    output = Path(folder, "output")
    with output.open("wb") as written:
        # A session of its own, so that all of it ends with it.
        child = subprocess.Popen(
            [sys.executable, "-c", _LIMITS + code, *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=written, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        end = time.monotonic() + seconds
        try:
            while (status := child.poll()) is None and is_wanted() and time.monotonic() < end:
                time.sleep(_PAUSE)
        finally:
            _end(child)
    if not is_wanted():
        return False, "autograph serve: stopped, since a newer request replaces this one"
    with output.open("rb") as found:
        text = found.read(_MOST_TEXT).decode("utf-8", "replace")
    if output.stat().st_size > _MOST_TEXT:
        text += "\n… (truncated)"
    if status is None or status in (-getattr(signal, "SIGXCPU", 24), -9):
        return False, f"{text}\nautograph serve: stopped after {seconds:g} seconds".strip()
    if status < 0 and not text:
        text = f"autograph serve: the process was stopped by signal {-status}"
    return status == 0, text.replace(f"{folder}{os.sep}", "").strip()


def _end(child: subprocess.Popen) -> None:
    """Kills a child process and the processes that it has started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (AttributeError, ProcessLookupError, PermissionError):  # elsewhere than on POSIX; ended already
        child.kill()
    child.wait()


# What the child does first. (A function that runs between fork and exec isn't safe in a process with threads.)
_LIMITS = f"""
try:
    import resource
except ImportError:
    pass
else:
    for kind, limit in (("AS", {MEMORY}), ("CPU", {SECONDS}), ("FSIZE", {LARGEST_FILE}), ("CORE", 0)):
        number = getattr(resource, "RLIMIT_" + kind)
        most = resource.getrlimit(number)[1]
        resource.setrlimit(number, (limit, limit) if most == resource.RLIM_INFINITY or limit <= most else (most, most))
"""
