"""README.md and docs/: Python blocks run and print what the page says, links lead somewhere, mkdocs is content."""

import importlib.util
import re
import shutil
import subprocess
import sys

import pytest

from docs import make_api
from tests import docs


@pytest.mark.parametrize("name", docs.PAGES)
def test_blocks_run_and_print_what_the_page_says(name, monkeypatch):
    if name == "docs/c_library.md" and shutil.which("cc") is None:
        pytest.skip("its examples load a library that a C compiler has linked")
    if name in ("README.md", "docs/keras.md") and importlib.util.find_spec("keras") is None:
        pytest.skip("its examples use Keras: pip install -e '.[keras]'")
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
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), f"{name}: {target}"


def test_every_page_is_in_the_navigation():
    navigation = (docs.ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    assert set(re.findall(r": (\S+\.md)$", navigation, re.MULTILINE)) == {
        path.name for path in (docs.ROOT / "docs").glob("*.md")
    }


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="needs the docs extra: pip install -e '.[docs]'")
def test_mkdocs_builds_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=docs.ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((tmp_path / "site").glob("*.html"))
    assert len(pages) > 10
    for page in pages:
        assert not re.search(r"<(?:script|link|img)[^>]*(?:src|href)=\"https?:", page.read_text(encoding="utf-8")), page


def test_the_page_of_names_is_up_to_date():
    assert (docs.ROOT / "docs" / "api.md").read_text(encoding="utf-8") == make_api.page(), "run python -m docs.make_api"


def test_each_difference_is_of_a_name_that_exists():
    names = {name for _, found in make_api.sections() for name in found}
    assert set(make_api.DIFFERENCES) <= names
