"""`autograph serve`: what it shows, whom it answers, what children may do, and the page in a browser."""

import ast
import json
import os
import shutil
import socket
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

from autograph.commands import serve
from autograph.commands.serve_page import _EXAMPLE

posix = pytest.mark.skipif(os.name == "nt", reason="processes have no such limits there")


def asked(stage="converted", source=_EXAMPLE, function="root", signature="a: float32"):
    return {"source": source, "function": function, "signature": signature, "stage": stage}


@pytest.fixture
def server():
    with serve.Server(seconds=15) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def answer(address, data=None, **headers):
    """Status and text of an answer."""
    body = None if data is None else data if isinstance(data, bytes) else json.dumps(data).encode()
    request = urllib.request.Request(address, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as found:
            return found.status, found.read().decode(), found.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers


# --- what is shown ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        ("converted", "ag__.while_stmt"),
        ("graph", "while(%a"),
        ("passes", "# before the passes"),
        ("kernel", "def kernel"),
        ("llvm", "define "),
        ("assembly", ".text"),
        ("explain", "staged: one loop"),
    ],
)
def test_each_stage(stage, text):
    ok, shown = serve.show(asked(stage))
    assert ok, shown
    assert text in shown


def test_every_stage_is_tested():
    assert set(serve.STAGES) == {"converted", "graph", "passes", "kernel", "llvm", "assembly", "explain"}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"source": "def root(a:"}, "SyntaxError"),
        ({"function": "missing"}, "no function 'missing' in program.py"),
        ({"function": "--help"}, "isn't the name of a function"),
        ({"function": "root; print(1)"}, "isn't the name of a function"),
        ({"signature": "a: float33"}, "float33"),
        ({"signature": "--html=/tmp/x"}, "--html"),
        ({"source": "import nothing_of_that_name\n"}, "nothing_of_that_name"),
        ({"source": "\0"}, "NUL"),
        ({"source": "\ud800"}, "program.py"),
    ],
)
def test_what_is_wrong_is_said(changes, text):
    ok, shown = serve.show(asked("graph", **changes))
    assert not ok
    assert text in shown
    assert "Traceback" not in shown


# --- limits ----------------------------------------------------------------------------------------------------------


@posix
def test_a_child_that_does_not_end_is_ended():
    ok, shown = serve.show(asked("graph", "print('begun', flush=True)\nwhile True: pass\n"), seconds=3)
    assert not ok
    assert "stopped after 3 seconds" in shown and "begun" in shown


@posix
def test_what_a_child_has_started_ends_with_it(tmp_path):
    mark = tmp_path / "mark"
    code = f"import time; time.sleep(2); open({str(mark)!r}, 'w')"
    source = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {code!r}])\ndef f(x): return x\n"
    assert serve.show(asked("graph", source, "f", "x: float32"))[0]
    time.sleep(4)
    assert not mark.exists()


@posix
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS doesn't limit address space")
def test_memory_is_limited():
    ok, shown = serve.show(asked("graph", f"x = bytearray({2 * serve.MEMORY})\n" + _EXAMPLE))
    assert not ok and "MemoryError" in shown


@posix
def test_output_is_limited():
    ok, shown = serve.show(asked("graph", "while True: print('x' * 1000)\n"), seconds=10)
    assert not ok and len(shown) < 300_000


def test_a_child_sees_neither_secrets_nor_the_folder(monkeypatch):
    monkeypatch.setenv("A_SECRET", "hidden")
    source = "import os\nprint(os.environ.get('A_SECRET'), sorted(os.listdir()))\n" + _EXAMPLE
    ok, shown = serve.show(asked("graph", source))
    assert ok, shown
    assert shown.startswith("None ['")
    assert set(ast.literal_eval(shown.splitlines()[0].partition(" ")[2])) <= {"__pycache__", "output", "program.py"}


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(serve.tempfile, "tempdir", str(tmp_path))
    serve.show(asked("kernel"))
    assert list(tmp_path.iterdir()) == []


def test_a_child_that_is_not_wanted_ends():
    calls = iter([True, True, False])
    forever = asked("graph", "import time\ntime.sleep(1000)\n")
    ok, shown = serve.show(forever, seconds=1000, is_wanted=lambda: next(calls, False))
    assert not ok and "a newer request" in shown


# --- whom it answers -------------------------------------------------------------------------------------------------


def test_it_answers_its_address(server):
    status, text, headers = answer(server.address)
    assert status == 200 and "<textarea" in text
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    status, text, _ = answer(server.address + "show", asked())
    assert status == 200 and json.loads(text)["ok"]


def test_it_listens_on_this_machine_alone(server):
    assert server.server_address[0] == "127.0.0.1"
    assert socket.inet_aton(server.server_address[0])[0] == 127


@pytest.mark.parametrize("path", ["", "wrong/", "wrong/show", "%s", "%s/", "show"])
@pytest.mark.parametrize("data", [None, asked()], ids=["get", "post"])
def test_without_the_token_it_says_nothing(server, path, data):
    base = server.address.rpartition(server.token)[0]
    status, text, _ = answer(base + path.replace("%s", server.token[:-1]), data)
    assert status == 404
    assert "while" not in text and server.token not in text


@pytest.mark.parametrize("headers", [{"Host": "example.com"}, {"Origin": "http://example.com"}, {"Origin": "null"}])
def test_other_pages_are_refused(server, headers):
    assert answer(server.address, **headers)[0] == 404
    assert answer(server.address + "show", asked(), **headers)[0] == 404


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"1", json.dumps({**asked(), "stage": "rm"}).encode(), b"x" * (2**18 + 1), b"\xff",
             json.dumps({**asked(), "source": 1}).encode()],
)  # fmt: skip
def test_other_requests_are_refused(server, data):
    assert answer(server.address + "show", data)[0] == 400


def test_a_new_request_ends_the_one_before(server):
    slow = asked("graph", "import time\ntime.sleep(30)\n" + _EXAMPLE)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(answer(server.address + "show", slow)))
    thread.start()
    while server.latest == 0:
        time.sleep(0.01)
    status, text, _ = answer(server.address + "show", asked())
    thread.join(60)
    assert status == 200 and json.loads(text)["ok"]
    assert "a newer request" in json.loads(answers[0][1])["text"]


def test_a_port_that_is_taken(server, capsys):
    from autograph.cli import main

    assert main(["serve", "--port", str(server.server_address[1])]) == 2
    assert "can't listen on port" in capsys.readouterr().err
    assert main(["serve", "--port", "70000"]) == 2


# --- the page --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_in_a_browser(server, width):
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs Chromium")
    with api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_context(viewport={"width": width, "height": 800}).new_page()
        problems = []
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.goto(server.address)
        shown = page.locator("#shown")
        api.expect(shown).to_contain_text("ag__.while_stmt", timeout=30_000)
        page.fill("#source", "def root(a):\n    return a + <script>")
        api.expect(shown).to_contain_text("syntax error", timeout=30_000)
        page.fill("#source", "def root(a):\n    return a + 123.0\n")
        page.click("button[value=graph]")
        api.expect(shown).to_contain_text("123", timeout=30_000)
        page.fill("#signature", "a: float64[7]")
        api.expect(shown).to_contain_text("float64[7]", timeout=30_000)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        # The icon that browsers ask for isn't there.
        assert [each for each in problems if "404" not in each] == []
        chromium.close()
