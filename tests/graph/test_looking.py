"""What a person sees of a graph: names of operations, text, Graphviz, the page, and views in TensorFlow's manner."""

import html
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

import autograph as ag
from runtime.graph.page import painted_lines


def residual(x, a):
    return x * x - a


@ag.function
def root(a, n):
    x = a
    steps = 0
    while ag.abs(residual(x, a)) > 1e-6 * a:
        if steps > n:
            x = ag.multiply(x, 0.5, name="halved")
            break
        with ag.name_scope("newton"), ag.name_scope("step"):
            x = 0.5 * (x + a / x)
        steps += 1
    return x, steps


@pytest.fixture(scope="module")
def graph():
    return root.get_concrete_function(ag.TensorSpec([], ag.float32), ag.TensorSpec([], ag.int32)).graph


def test_names_come_from_arguments_variables_and_scopes(graph):
    text = graph.as_text(spans=False)
    assert "%halved: float32[] = multiply(" in text
    assert "%newton/step/x: float32[] = multiply(" in text
    assert "%newton/step/divide: float32[] = divide(" in text
    assert re.search(r"%steps_\d: int64\[\] = checked_add\(%steps_\d, %constant_\d\)", text)
    assert text == str(graph)
    names = re.findall(r"^ *%(\S+): .* = ", text, re.MULTILINE)
    assert len(names) == len(set(names)) > 10


def test_spans_name_the_users_lines(graph):
    line = next(line for line in graph.as_text().splitlines() if "%halved: " in line)
    assert re.search(r"# test_looking\.py:\d+$", line)


def test_a_lambda_is_not_named_after_the_variable_that_holds_it():
    double = ag.function(lambda x: x * 2.0)
    names = [op.name for op in double.get_concrete_function(ag.TensorSpec([], ag.float32)).graph.get_operations()]
    assert names == ["x", "constant", "multiply"]


def test_equal_names_are_numbered():
    @ag.function
    def f(x):
        y = ag.sin(x, name="same")
        z = ag.cos(x, name="same")
        same = y + z
        return same * ag.identity(x, name="same_1")

    names = [op.name for op in f.get_concrete_function(ag.TensorSpec([], ag.float32)).graph.get_operations()]
    assert len(names) == len(set(names))
    assert {"same", "same_1", "same_2"} < set(names)


def test_operations(graph):
    operations = graph.get_operations()
    assert [op.type for op in operations[:2]] == ["Placeholder", "Placeholder"]
    loop = next(op for op in operations if op.type == "While")
    assert set(loop.regions) == {"test", "body"}
    assert [each.dtype for each in loop.outputs][1:] == [ag.int64, ag.float32]  # a Python int has 64 bits
    assert loop.get_attr("carries") == 3
    with pytest.raises(ValueError, match="has no attr named 'nothing'; it has \\['carries'\\]"):
        loop.get_attr("nothing")
    halved = graph.get_operation_by_name("halved")
    assert (halved.type, halved.outputs[0].name, halved.outputs[0].shape) == ("Mul", "halved:0", ())
    assert [each.op.type for each in halved.inputs] == ["Placeholder", "Const"]
    assert halved.inputs[0].consumers()[0].name == "halved"
    assert halved.span[2] == "root"
    assert 'x = ag.multiply(x, 0.5, name="halved")' in str(halved)
    with pytest.raises(KeyError, match="'absent' refers to an Operation not in the graph; it has a, n, "):
        graph.get_operation_by_name("absent")


def test_graph_def(graph):
    definition = graph.as_graph_def()
    loop = next(node for node in definition.node if node.op == "While")
    assert loop.input[-2:] == ["multiply", "cast"]  # a * 0.25, and n in 64 bits, have moved out of the loop
    text = str(definition)
    assert text.count("node {") == sum(1 for _ in graph.walk()) + text.count('op: "Placeholder"')
    assert 'name: "newton/step/x"' in text
    assert text.count("{") == text.count("}")


def test_dot_has_a_cluster_for_each_region(graph):
    text = graph.to_dot()
    assert text.startswith('digraph "root" {')
    assert [label for label in ("test", "body", "then", "else") if f'label="{label}"' in text] == [
        "test",
        "body",
        "then",
        "else",
    ]
    declared = set(re.findall(r"^ *(n\d+) \[", text, re.MULTILINE))
    for source, target in re.findall(r"^ *(n\d+) -> (n\d+) ", text, re.MULTILINE):
        assert {source, target} <= declared
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tcanon"], input=text, text=True, capture_output=True, check=True)


def test_svg_where_graphviz_is(graph, tmp_path, monkeypatch):
    if shutil.which("dot"):
        svg = graph.to_svg(tmp_path / "root.svg")
        assert ET.fromstring((tmp_path / "root.svg").read_text(encoding="utf-8")).tag.endswith("svg")
        assert "halved" in svg
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(FileNotFoundError, match="Graphviz"):
        graph.to_svg()


class Balance(HTMLParser):
    """Checks that every element is closed where it should be, and collects ids and links."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag != "meta":
            self.open.append(tag)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs["href"]] if "href" in attrs else []
        assert not {"src"} & set(attrs), "the page must load nothing"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page(graph, tmp_path):
    text = graph.to_html(tmp_path / "root.html")
    assert (tmp_path / "root.html").read_text(encoding="utf-8") == text
    page = Balance()
    page.feed(text)
    page.close()
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert "http" not in text.replace("http-equiv", "")
    assert text.count('<details open class="region">') == 4
    assert html.escape('x = ag.multiply(x, 0.5, name="halved")') in re.sub("</?b[^>]*>", "", text)
    assert "return</b> x * x - a" in text


@pytest.mark.parametrize(
    "lines",
    [
        ["def f(x):\n", '    """Text\n', '    of <two> lines."""\n', "    return x < 1  # & a note\n"],
        ["s = 'a\\\n", "  b'\n", "\x0c\n", "x = '\u2028'; y = f'{x}' if x else 1"],
        ["%magic\n", "x = 1\n"],
        ["x = [1,\n"],
        ["  indented\n", "back\n"],
        [],
    ],
)
def test_marking_source_changes_no_character(lines):
    painted = painted_lines(lines)
    assert [re.sub("</?b[^>]*>", "", line) for line in painted] == [html.escape(line.rstrip("\n")) for line in lines]
    if lines and lines[0].startswith("def"):
        assert painted[0].startswith('<b class="word">def</b> f(x):')
        assert painted[3].endswith('<b class="note"># &amp; a note</b>')


def test_page_escapes_what_the_user_writes():
    def shout(x):
        ag.print("<script>alert(1)</script>", x)
        return x

    concrete = ag.function(shout).get_concrete_function(ag.TensorSpec([], ag.float32))
    assert "<script>alert" not in concrete.graph.to_html()
    assert 'label="print' in concrete.graph.to_dot()
    if shutil.which("dot"):
        assert "alert" in concrete.graph.to_svg()


def test_effects_and_variables_can_be_looked_at(tmp_path):
    v = ag.Variable(1.0, name="weight")

    @ag.function
    def f(x):
        for _ in ag.range(3):
            v.assign_add(x)
            ag.print(v)
        return v * x

    graph = f.get_concrete_function(ag.TensorSpec([], ag.float32)).graph
    assert "weight" in graph.as_text()
    assert graph.to_dot().count("style=dashed") > 2
    graph.to_html(tmp_path / "page.html")
    assert "weight" in str(graph.as_graph_def())
