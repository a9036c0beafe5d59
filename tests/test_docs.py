"""README.md and docs/: Python blocks run and print what the page says, links lead somewhere, mkdocs is content; the
reference has an entry for each public name."""

import functools
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import autograph as ag
from docs import api_pages, example_pages, tensorflow_names
from tests import docs

# Pages about use in other libraries' programs, with the library.
GUESTS = {"docs/torch.md": "torch", "docs/jax_interop.md": "jax"}


@pytest.mark.usefixtures("no_facade")
@pytest.mark.parametrize("name", docs.PAGES)
def test_blocks_run_and_print_what_the_page_says(name, monkeypatch):
    if name == "docs/c_library.md" and shutil.which("cc") is None:
        pytest.skip("its examples load a library that a C compiler has linked")
    if name in ("README.md", "docs/keras.md") and importlib.util.find_spec("keras") is None:
        pytest.skip("its examples use Keras: pip install -e '.[keras]'")
    if name in GUESTS and importlib.util.find_spec(GUESTS[name]) is None:
        pytest.skip(f"its examples use another library: pip install -e '.[{GUESTS[name]}]', python -m tests.interop")
    monkeypatch.chdir(docs.ROOT)
    for block in docs.run(name, docs.PAGES[name].read_text(encoding="utf-8")):
        if block.is_run and block.expected is not None:
            assert block.printed.rstrip() == block.expected.rstrip(), f"{name}:{block.line}"
        elif block.is_run:
            assert block.printed == "", f"{name}:{block.line}: the output of this block is missing"


def test_no_python_block_is_overlooked():
    for name, path in docs.PAGES.items():
        text = path.read_text(encoding="utf-8")
        assert len(docs.blocks(text)) == len(re.findall(r"^```(?:python|py)\b", text, re.MULTILINE)), name
    assert sum(len(docs.blocks(path.read_text(encoding="utf-8"))) for path in docs.PAGES.values()) > 15


@pytest.mark.parametrize("name", docs.PAGES)
def test_links_lead_somewhere(name):
    path = docs.PAGES[name]
    prose = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", prose):
        is_made = target in api_pages.pages() or target in example_pages.pages()
        assert is_made or (path.parent / target).exists(), f"{name}: {target}"


def test_every_page_is_in_the_navigation():
    navigation = (docs.ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    found = set(re.findall(r"(?::|-) (\S+\.md)$", navigation, re.MULTILINE))
    folder = docs.ROOT / "docs"
    assert {name for name in found if not name.startswith("api/")} == {
        path.relative_to(folder).as_posix() for path in folder.rglob("*.md")
    }
    assert {name for name in found if name.startswith("api/")} == {
        "api/index.md",
        "api/tensorflow.md",
    }  # the hook adds more


def test_architecture_is_short_and_leads_to_every_room():
    text = (docs.ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    pages = {f"docs/internals/{path.name}" for path in (docs.ROOT / "docs" / "internals").glob("*.md")}
    assert pages <= set(re.findall(r"\]\(([^)#]+)\)", text))


def test_files_that_the_map_names_exist():
    """A renamed file is renamed there as well. `convert/api.py` may stand for `autograph/convert/api.py`."""
    folders = ("autograph", "runtime", "tests", "docs", "benchmarks", "examples")
    paths = [*docs.ROOT.glob("*.md"), *(path for folder in folders for path in (docs.ROOT / folder).rglob("*.*"))]
    files = {path.relative_to(docs.ROOT).as_posix() for path in paths}
    ends = {"/".join(file.split("/")[-length:]) for file in files for length in range(1, 7)}
    for page in [docs.ROOT / "ARCHITECTURE.md", *(docs.ROOT / "docs" / "internals").glob("*.md")]:
        names = re.findall(r"`([\w/]+\.(?:py|md|c|json))`", page.read_text(encoding="utf-8"))
        assert [name for name in names if name not in ends] == [], page.name


@pytest.mark.skipif(
    importlib.util.find_spec("material") is None, reason="needs the docs extra: pip install -e '.[docs]'"
)
def test_mkdocs_builds_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    # (With --quiet mkdocs wouldn't count warnings.)
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=docs.ROOT, env=quiet, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 60
    names = (tmp_path / "site" / "api" / "names.js").read_text(encoding="utf-8")
    assert json.loads(names.removeprefix("const apiNames = ")) == [list(each) for each in api_pages.addresses()]
    for _, address in api_pages.addresses():  # each entry that the search box offers is there
        page, _, anchor = address.partition("#")
        assert f'id="{anchor}"' in _text(tmp_path / "site" / page), address
    for page in pages:
        assert not re.search(r"<(?:script|link|img)[^>]*(?:src|href)=\"https?:", page.read_text(encoding="utf-8")), page


@functools.cache
def _text(page):
    return page.read_text(encoding="utf-8")


def test_each_public_name_has_an_entry_that_search_finds():
    pages = api_pages.pages()
    for namespace, names in api_pages.sections():
        for name, value in names.items():
            text = pages[api_pages.path(namespace)]
            if callable(value) and not isinstance(value, ag.DType):
                escaped = name.replace("__", r"\_\_")
                assert f"## ag.{escaped} {{ #ag.{name.replace('__', '')} " in text, name
            else:
                assert f"`ag.{name}`" in text, name


def test_members_for_this_project_alone_are_left_out():
    classes = {
        value.__name__: value
        for _, names in api_pages.sections()
        for value in names.values()
        if isinstance(value, type)
    }
    for name, members in api_pages._INTERNAL.items():
        assert [each for each in members.split() if not hasattr(classes[name], each)] == [], name
    assert "ag.GradientTape.watch " in _entry("ag.GradientTape") and "paused_all" not in _entry("ag.GradientTape")


def test_what_numpy_documents_is_left_to_numpy():
    page = api_pages.pages()["api/experimental.numpy.md"]
    assert "NumPy's own `numpy.float32`." in page and "Parameters" not in page


def test_an_alias_says_what_it_does():
    assert "The absolute value; a float for complex numbers. The same as [`ag.abs`]" in api_pages.pages()["api/math.md"]


def test_each_example_has_a_page_with_its_source():
    pages = example_pages.pages()
    gallery = (docs.ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    for file in (docs.ROOT / "examples").glob("*.py"):
        assert f"]({example_pages.path(file.name)})" in gallery, file
        assert (
            "# " + file.name in pages[example_pages.path(file.name)]
            and "```python\n" in pages[example_pages.path(file.name)]
        )
    assert "![What it draws](../pictures/kalman.png)" in pages["examples/kalman.md"]


def _entry(name):
    found = re.findall(rf"^## {re.escape(name)} .*?(?=^## )", api_pages.pages()["api/ag.md"], re.DOTALL | re.MULTILINE)
    assert len(found) == 1
    return found[0]


def test_an_entry_has_signature_text_errors_example_and_difference():
    entry = _entry("ag.gather")
    assert "```python\nag.gather(" in entry and "params: TensorLike" in entry
    assert ">>> ag.gather(" in entry and "Raises" in entry
    assert "TensorFlow: `tf.gather`; an index out of range always raises an error." in entry
    assert "\n- `maximum_iterations`: an int or" in _entry("ag.while_loop")  # begins in the middle of a line


def test_classes_have_entries_for_their_members():
    entry = _entry("ag.GradientTape")
    assert "### ag.GradientTape.gradient { #ag.GradientTape.gradient " in entry and "- `persistent`: whether" in entry
    entry = _entry("ag.UnconnectedGradients")
    assert "Members: `NONE`, `ZERO`." in entry and "```python" not in entry
    entry = _entry("ag.Tensor")
    assert "### ag.Tensor.numpy " in entry and "`reshape`" in entry and "### ag.Tensor.reshape" not in entry


@pytest.mark.parametrize(
    ("doc", "made"),
    [
        ("x * y, and x[i] < 2.", "x \\* y, and x\\[i\\] \\< 2."),
        (
            "First.\n\nArgs:\n    a: one\n        more of it\n    b, c: two",
            "First.\n\n- `a`: one\n  more of it\n- `b, c`: two",
        ),
        ("name     text\n         more", "- `name`: text\n  more"),
        ("axis: an int.\nRaises ValueError.", "- `axis`: an int.\n\nRaises ValueError."),
        ("See `exp` and `x`.", "See [`exp`](ag.md#ag.exp) and `x`."),
        ("Text:\n\n    code * code", "Text:\n\n```text\ncode * code\n```"),
    ],
)
def test_docstrings_become_markdown(doc, made):
    assert api_pages.body(doc, ("", frozenset({"x"}))) == made


def test_each_difference_is_of_a_name_that_exists():
    names = {name for _, found in api_pages.sections() for name in found}
    assert set(tensorflow_names.DIFFERENCES) | set(tensorflow_names.ONLY_HERE) <= names
