"""Notebooks, run by nbclient as a person would: what objects show, the magic, where errors point."""

import base64
import io
import os
from pathlib import Path

import numpy as np
import pytest

import autograph as ag
from autograph import display

nbformat = pytest.importorskip("nbformat", reason="needs the test extra: pip install -e '.[test]'")
nbclient = pytest.importorskip("nbclient", reason="needs the test extra: pip install -e '.[test]'")
pytest.importorskip("ipykernel", reason="needs the test extra: pip install -e '.[test]'")
ROOT = Path(__file__).resolve().parent.parent.parent

CELLS = """
import numpy as np
import autograph as ag
%load_ext autograph
==
%%autograph
@ag.function
def halve(x):
    while x > 1.0:
        x = x / 2.0
    return x

def unused(x):
    return x
==
%%autograph unused
y = 2
==
halve(ag.constant(8.0))
==
halve
==
halve.get_concrete_function(ag.constant(8.0)).graph
==
halve.explain(ag.constant(8.0))
==
ag.constant(np.arange(20 * 30 * 3, dtype="uint8").reshape(20, 30, 3))
==
ag.data.Dataset.range(5).map(lambda x: (x, 2 * x))
==
@ag.function
def wrong(x):
    if x > 0:
        y = 1.0
    else:
        y = "one"
    return y

try:
    wrong(ag.constant(1.0))
except TypeError as error:
    print(error)
==
%%autograph
@ag.function
def out_of_range(x, i):
    return x[i]

try:
    out_of_range(ag.constant([1.0]), ag.constant(7))
except Exception as error:
    print(error)
==
%%autograph
x = )
==
%%autograph
x = 1
==
[name for name in dir(ag) if name.startswith("load")]
==
%%autograph
import dataclasses

@dataclasses.dataclass
class Point:
    x: float

class Model(ag.Module):
    @ag.function
    def __call__(self, x):
        while x > 1.0:
            x = self.step(x)
        return x

    @staticmethod
    def step(x):
        return x / 2.0

    @property
    def size(self):
        return 1
==
%%autograph Model.step nowhere Model.nothing
y = 3
"""


@pytest.fixture(scope="module")
def outputs():
    cells = [nbformat.v4.new_code_cell(text.strip()) for text in CELLS.split("\n==\n")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": str(ROOT)}}
    )
    path = os.environ.get("PYTHONPATH", "")
    client.execute(env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{path}"})
    return [cell.outputs for cell in cells]


def _of(outputs, kind):
    return [output["data"][kind] for output in outputs if kind in output.get("data", {})]


def _printed(outputs):
    return "".join(output.get("text", "") for output in outputs)


def test_the_magic_shows_functions_beside_what_they_become(outputs):
    first, second = _of(outputs[1], "text/html")
    assert "while x &gt; 1.0:" in first and "ag__.while_stmt" in first
    assert "def unused" in second and "while" not in second
    (named,) = _of(outputs[2], "text/html")
    assert "def unused" in named


def test_the_magic_says_what_it_cannot_show(outputs):
    assert any(output.output_type == "error" and output.ename == "SyntaxError" for output in outputs[11])
    assert _of(outputs[11], "text/html") == []
    assert "doesn't define a function" in _printed(outputs[12])


def test_the_magic_shows_methods_of_classes(outputs):
    call, step, size = _of(outputs[14], "text/html")
    assert "def __call__" in call and "ag__.while_stmt" in call
    assert "def step" in step and "def size" in size
    (named,) = _of(outputs[15], "text/html")
    assert "def step" in named
    printed = _printed(outputs[15])
    assert "'nowhere' isn't defined" in printed and "'Model.nothing' isn't defined" in printed


def test_scalars_are_text(outputs):
    assert _of(outputs[3], "text/html") == []
    assert "numpy=1.0" in _of(outputs[3], "text/plain")[0]


def test_a_function_shows_source_and_traces(outputs):
    (shown,) = _of(outputs[4], "text/html")
    assert shown.count("<details>") == 2
    assert "ag__.while_stmt" in shown and "1 trace<" in shown and "float32" in shown


def test_graphs_and_reports_are_pages(outputs):
    (graph,) = _of(outputs[5], "text/html")
    assert graph.startswith("<iframe srcdoc=") and "While" in graph and "Mul" in graph
    (report,) = _of(outputs[6], "text/html")
    assert report.startswith("<iframe srcdoc=") and "prefers-color-scheme: dark" in report
    assert "staged" in _of(outputs[6], "text/plain")[0]
    for shown in (graph, report, _of(outputs[6], "text/plain")[0]):
        assert "Cell In[2], line 3" in shown


def test_an_image_is_a_thumbnail(outputs):
    (shown,) = _of(outputs[7], "text/html")
    image = pytest.importorskip("PIL.Image")
    data = base64.b64decode(shown.partition("base64,")[2].partition('"')[0])
    expected = np.arange(20 * 30 * 3, dtype="uint8").reshape(20, 30, 3)
    np.testing.assert_array_equal(np.asarray(image.open(io.BytesIO(data))), expected)
    assert "shape=(20, 30, 3), dtype=uint8" in shown


def test_a_dataset_says_what_its_elements_are(outputs):
    (shown,) = _of(outputs[8], "text/html")
    assert "5 elements" in shown and "int64" in shown


def test_errors_name_the_cell(outputs):
    assert "Cell In[10], line 3, in wrong" in _printed(outputs[9])
    # The magic's first line isn't a line of the cell that it runs.
    assert "Cell In[11], line 3, in out_of_range" in _printed(outputs[10])


def test_completion_does_not_show_the_way_in(outputs):
    assert _of(outputs[13], "text/plain") == ["[]"]


@pytest.mark.parametrize("shape", [(16, 16), (16, 16, 2), (4, 16, 3), (3,), (2, 3, 4, 5, 3), (16, 0, 3)])
def test_other_tensors_are_no_images(shape):
    assert ag.zeros(shape)._repr_html_() is None


def test_numbers_outside_of_colours_are_no_image():
    assert (ag.ones([16, 16, 3]) * 1.5)._repr_html_() is None
    assert ag.fill([16, 16, 3], float("nan"))._repr_html_() is None
    assert ag.zeros([16, 16, 3], ag.int32)._repr_html_() is None
    assert ag.ones([16, 16, 1], ag.float16)._repr_html_() is not None


def test_batches_show_some_and_large_images_are_small():
    assert ag.zeros([20, 16, 16, 3])._repr_html_().count("<img") == 8
    data = ag.zeros([2000, 1000, 3])._repr_html_()
    assert data.count("<img") == 1 and len(data) < 20_000


def test_texts_are_escaped():
    assert "<script>" not in display.side_by_side("<script>", "a < b")
