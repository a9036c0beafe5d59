"""The pages of the API reference, made from the package itself when the site is built: one for each namespace, with an
entry for each name: signature, docstring, example, TensorFlow's name and the difference.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Iterator
from enum import Enum
from typing import Any

import autograph as ag
from docs.tensorflow_names import DIFFERENCES, theirs
from runtime.ops.numpy.array_methods import NAMES as ARRAY_METHODS

# A list in a docstring: `name: text`, `name   text`, or several names before one text.
_ITEM = re.compile(r"^(\*{0,2}[a-z_]\w*(?:, \*{0,2}[a-z_]\w*)*)(?::|  +)\s*(\S.*)$")
_SPECIAL = re.compile(r"([*_<\[\]|])")
# Where a docstring stands: its namespace, and the names that are parameters or members there.
Scope = tuple[str, frozenset[str]]
_NOT_SHOWN = {"Any", "'Any'", "typing.Any"}
# Public members that only this project's own code uses, by the name of the class.
_INTERNAL = {
    "GradientTape": "assigned copy extend is_persistent is_recording is_tracking is_watching leave mark paused_all "
    "reads_of record record_read recorded watches_accessed_variables",
    "IndexedSlices": "with_values",
    "Variable": "array_to_save assign_own component current_array facts handle own_value set_array",
    "TensorArray": "allocated",
    "TensorSpec": "covers",
    "DatasetIterator": "check_state fetch set_state state",
    "DenseHashTable": "content set_content value_shape",
    "MutableHashTable": "content set_content value_shape",
    "StrategyExtended": "call_for_each_replica",
    "Checkpoint": "stands_for",
    "ConcreteFunction": "add_gradient_functions_to_graph add_to_graph answered_by argument_specs arguments "
    "assigned_variables call_flat covers graph_on_its_variables inputs_for made_of plan serving shapes_like",
    "Function": "around converts",
    "ThreadingOptions": "merge",
}


def sections(module: Any = ag, prefix: str = "") -> list[tuple[str, dict[str, Any]]]:
    """For each namespace its dotted name ("" for the package) and its public names with their values."""
    own: dict[str, Any] = {}
    inner: list[tuple[str, dict[str, Any]]] = []
    for name in sorted(module.__all__, key=lambda each: (each.lower(), each)):
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            inner += sections(value, f"{prefix}{name}.")
        else:
            own[prefix + name] = value
    return [(prefix.rstrip("."), own), *inner]


@functools.cache
def pages() -> dict[str, str]:
    """The text of each page, by its path under `docs`."""
    found = [(namespace, names) for namespace, names in sections() if names]
    first: dict[int, str] = {}
    for _, names in found:
        for name, value in names.items():
            if _has_entry(value):
                first.setdefault(id(value), name)
    made = {path(namespace): _page(namespace, names, first) for namespace, names in found}
    made["api/index.md"] = _index(found)
    made["api/tensorflow.md"] = _differences(found)
    return made


def path(namespace: str) -> str:
    """Where the page of a namespace is."""
    return f"api/{namespace or 'ag'}.md"


def addresses() -> list[tuple[str, str]]:
    """Each entry's name and where it stands in the site, for the search box (`site.js`)."""
    found = []
    for page, text in pages().items():
        for name, anchor in re.findall(r"^##+ (\S+) \{ #(\S+) ", text, re.MULTILINE):
            found.append((name.replace("\\", ""), f"{page.removesuffix('.md')}.html#{anchor}"))
    return found


def _index(found: list[tuple[str, dict[str, Any]]]) -> str:
    lines = [
        "# API reference\n",
        "Each namespace has a page with an entry for every public name. The names are TensorFlow 2's;",
        "[Differences from TensorFlow](tensorflow.md) lists the exceptions. The search box finds functions by name.\n",
        "| namespace | contents | names |\n| --- | --- | --- |",
    ]
    for namespace, names in found:
        about = (
            "tensors, variables, functions, tapes and the most used operations" if not namespace else _about(namespace)
        )
        lines.append(f"| [`{full(namespace)}`]({path(namespace).removeprefix('api/')}) | {about} | {len(names)} |")
    return "\n".join(lines) + "\n"


def _about(namespace: str) -> str:
    """What a namespace's docstring says of it after its name."""
    doc = " ".join((inspect.getdoc(_value(namespace)) or "").split("\n\n")[0].split())
    return _prose(re.sub(r"^`[\w.]+`( \(.*?\))?: ", "", doc), (namespace, frozenset())).rstrip(".")


def _differences(found: list[tuple[str, dict[str, Any]]]) -> str:
    lines = [
        "---\nhide: [toc]\n---\n",
        "# Differences from TensorFlow\n",
        "These names differ from TensorFlow's, have another name there, or exist here only. All others take the same",
        "arguments and give the same results. [Port a TensorFlow program](../migrating.md) covers whole programs.\n",
        '<div class="sentences" markdown>\n',
        "| name | TensorFlow | difference |\n| --- | --- | --- |",
    ]
    for namespace, names in found:
        if namespace == "array_api":  # a standard of its own
            continue
        for name in names:
            same = theirs(name) == f"tf.{name}"
            if not same or name in DIFFERENCES:
                other = f"`{theirs(name)}`" if theirs(name) else "–"
                link = f"{path(namespace).removeprefix('api/')}#{full(name)}"
                lines.append(f"| [`{full(name)}`]({link}) | {other} | {DIFFERENCES.get(name, '')} |")
    lines.append("\n</div>")
    return "\n".join(lines) + "\n"


def _page(namespace: str, names: dict[str, Any], first: dict[int, str]) -> str:
    title = full(namespace)
    about = (
        inspect.getdoc(_value(namespace)) if namespace else "The names of the package itself: `import autograph as ag`."
    )
    lines = [f"# {title}\n", body(about or "", (namespace, frozenset())), ""]
    values = {name: value for name, value in names.items() if not _has_entry(value)}
    for name, value in names.items():
        if name not in values:
            lines += _entry(name, value, first[id(value)], namespace)
    if values:
        lines += ["## Values\n", "| name | value |\n| --- | --- |"]
        lines += [f"| `{full(name)}` | {_escaped(_shown(value))} |" for name, value in values.items()]
    return "\n".join(lines) + "\n"


def _heading(level: int, name: str) -> str:
    text = name.replace("__", r"\_\_")  # otherwise Markdown makes it bold
    return f"{'#' * level} {text} {{ #{_anchor(name)} data-toc-label='{text.rpartition('.')[2]}' }}\n"


def _anchor(name: str) -> str:
    """The anchor of a name's entry. Markdown takes `__` in it for bold text."""
    return name.replace("__", "")


def _has_entry(value: Any) -> bool:
    return callable(value) and not isinstance(value, (ag.DType, Enum))


def _entry(name: str, value: Any, home: str, namespace: str) -> Iterator[str]:
    yield _heading(2, full(name))
    if home != name:
        page = path(home.rpartition(".")[0]).removeprefix("api/")
        summary = re.match(r".*?(?:[.:](?=\s|$)|$)", " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split()))
        text = _prose(summary[0].rstrip(".:"), _scope(namespace, value)) if summary else ""
        yield f"{text}{'. ' if text else ''}The same as [`{full(home)}`]({page}#{full(home)}).\n"
        return
    if not (inspect.isclass(value) and issubclass(value, Enum)):
        yield f"```python\n{signature(name, value)}\n```\n"
    if getattr(value, "__module__", "").partition(".")[0] == "numpy":
        yield f"NumPy's own `numpy.{value.__name__}`.\n"
        return
    yield body(inspect.getdoc(value) or "", _scope(namespace, value))
    other = theirs(name)
    if namespace != "array_api":
        said = DIFFERENCES.get(name, "")
        text = f"TensorFlow: `{other}`{'; ' + said if said else ''}." if other else "TensorFlow has no such name."
        yield f"\n<small>{text}</small>\n"
    if inspect.isclass(value):
        yield from _members(name, value, namespace)


def _members(name: str, cls: type, namespace: str) -> Iterator[str]:
    if issubclass(cls, Enum):
        yield f"Members: {', '.join(f'`{each.name}`' for each in cls)}.\n"
    others = []
    internal = _INTERNAL.get(cls.__name__, "").split()
    cls = type(ag.constant(0)) if cls is ag.Tensor else cls  # what one meets
    for member in sorted(dir(cls)):
        found = inspect.getattr_static(cls, member)
        if member.startswith("_") or member in internal or not _is_ours(found):
            continue
        value = getattr(cls, member)
        doc = inspect.getdoc(value) or ""
        if not doc or member in ARRAY_METHODS:
            others.append(f"`{member}`")
            continue
        is_property = isinstance(found, property)
        label = f"{full(name)}.{member}"
        yield _heading(3, label)
        if not is_property:
            yield f"```python\n{signature(f'{name}.{member}', value)}\n```\n"
        # In a member's text, other members aren't functions of the package.
        yield body(doc, (namespace, _scope(namespace, value)[1] | set(dir(cls)))) + "\n"
    if others:
        arrays = " (`sum`, `T` and so on work as on NumPy's arrays)" if "`T`" in others else ""
        yield f"Other members{arrays}: {', '.join(others)}.\n"


def _is_ours(found: Any) -> bool:
    """Whether it is a method or property that this project defines, rather than Python's (of enums, errors)."""
    function = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
    module = getattr(inspect.unwrap(function), "__module__", "") if callable(function) else ""
    return inspect.isroutine(function) and (module or "").partition(".")[0] in ("autograph", "runtime")


def signature(name: str, value: Any) -> str:
    """The call, with the types that say something; a line for each parameter where it is long."""
    function = value.__init__ if inspect.isclass(value) and type(value) is not type else value
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return f"{full(name)}(...)"
    shown = []
    for parameter in found.parameters.values():
        if parameter.name == "self":
            continue
        annotation = _type(parameter.annotation)
        text = str(parameter.replace(annotation=inspect.Parameter.empty, default=inspect.Parameter.empty))
        if annotation:
            text += f": {annotation}"
        if parameter.default is not inspect.Parameter.empty:
            text += f" = {_shown(parameter.default)}" if annotation else f"={_shown(parameter.default)}"
        shown.append(text)
    result = "" if inspect.isclass(value) else _type(found.return_annotation)
    end = f" -> {result}" if result and result != "None" else ""
    line = f"{full(name)}({', '.join(shown)}){end}"
    if len(line) <= 88:
        return line
    return "\n".join([f"{full(name)}(", *[f"    {each}," for each in shown], f"){end}"])


def _type(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    text = text.strip("'")
    return "" if text in _NOT_SHOWN else text


def _shown(value: Any) -> str:
    if isinstance(value, ag.DType):
        return f"ag.{value.name}"
    text = repr(value)
    return text if not text.startswith("<") or isinstance(value, Enum) else type(value).__name__


def full(name: str) -> str:
    """What a public name is called in programs."""
    return f"ag.{name}" if name else "ag"


def _value(namespace: str) -> Any:
    value: Any = ag
    for part in namespace.split("."):
        value = getattr(value, part)
    return value


# --- docstrings as Markdown ------------------------------------------------------------------------------------------


def _scope(namespace: str, value: Any) -> Scope:
    try:
        function = value.__init__ if inspect.isclass(value) and type(value) is not type else value
        members = dir(value) if inspect.isclass(value) else ()
        return namespace, frozenset([*inspect.signature(function).parameters, *members])
    except (TypeError, ValueError):
        return namespace, frozenset()


def body(doc: str, scope: Scope) -> str:
    """A docstring's paragraphs, lists, code and examples in Markdown."""
    made = []
    for block in re.split(r"\n\s*\n", doc.rstrip()):
        lines = block.splitlines()
        if not lines:
            continue
        indent = min(len(line) - len(line.lstrip()) for line in lines)
        if lines[0].lstrip().startswith(">>>"):
            made.append("```pycon\n" + "\n".join(line[indent:] for line in lines) + "\n```")
        elif indent >= 4:
            made.append("```text\n" + "\n".join(line[indent:] for line in lines) + "\n```")
        else:
            made.append(_paragraph([line[indent:] for line in lines], scope))
    return "\n\n".join(made)


def _paragraph(lines: list[str], scope: Scope) -> str:
    """A paragraph; lines of the form `name: text` in it become a list, with the lines indented below them."""
    if lines[0].strip() in ("Args:", "Attributes:"):
        lines = [line.strip() if len(line) - len(line.lstrip()) <= 4 else line for line in lines[1:]]
    if scope[1]:  # a parameter that begins within a line begins a line of its own
        name = f"(?:{'|'.join(sorted(scope[1]))})"
        text = re.sub(rf"(?<=[.;]) (?={name}(?:, {name})*: )", "\n", "\n".join(lines))
        lines = text.split("\n")
    made: list[str] = []
    in_list = False
    for line in lines:
        item = _ITEM.match(line)
        if item is not None:
            made.append(("" if in_list or not made else "\n") + f"- `{item[1]}`: {_prose(item[2], scope)}")
            in_list = True
        elif in_list and line[:1].isupper() and made[-1].endswith("."):  # a sentence of its own
            made.append("\n" + _prose(line, scope))
            in_list = False
        elif in_list:
            made.append("  " + _prose(line.strip(), scope))
        else:
            made.append(_prose(line.strip(), scope))
    return "\n".join(made)


def _prose(text: str, scope: Scope) -> str:
    """Text with Markdown's characters taken literally, and names in backquotes linked to their entries."""
    parts = re.split(r"(``?[^`]+``?)", text)
    return "".join(_linked(part, scope) if part.startswith("`") else _escaped(part) for part in parts)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _linked(code: str, scope: Scope) -> str:
    namespace, parameters = scope
    name = code.strip("`").removeprefix("ag.").removesuffix("()")
    for candidate in (f"{namespace}.{name}" if namespace else name, name):
        if candidate in _names() and name not in parameters:
            page = path(candidate.rpartition(".")[0]).removeprefix("api/")
            return f"[`{code.strip('`')}`]({page}#{_anchor(full(candidate))})"
    return code


_NAMES: set[str] = set()


def _names() -> set[str]:
    """The names that have entries."""
    if not _NAMES:
        _NAMES.update(name for _, names in sections() for name, value in names.items() if _has_entry(value))
    return _NAMES
