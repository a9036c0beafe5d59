"""The cost model: no entry without a use, and no use of an entry that isn't there."""

import re
from pathlib import Path

from runtime.codegen import cost_model

ENTRIES = {name: value for name, value in vars(cost_model).items() if name.isupper()}


def used():
    folder = Path(cost_model.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
    return {name for text in texts for name in re.findall(r"\bcost_model\.([A-Z]\w*)", text)}


def test_every_entry_is_used_and_every_use_has_an_entry():
    unused, missing = ENTRIES.keys() - used(), used() - ENTRIES.keys()
    assert not unused, f"read `cost_model.NAME` of these somewhere in runtime/codegen, or delete them: {unused}"
    assert not missing, f"give these a line in runtime/codegen/cost_model.py: {missing}"


def test_entries_are_counts():
    assert all(type(value) is int and value > 0 for value in ENTRIES.values()), ENTRIES


def test_every_entry_says_where_it_was_measured():
    text = Path(cost_model.__file__).read_text(encoding="utf-8")
    groups = re.findall(r"((?:^#.*\n)+)((?:^[A-Z]\w* = .*\n)+)", text, re.MULTILINE)
    named = {name for _, entries in groups for name in re.findall(r"^[A-Z]\w*", entries, re.MULTILINE)}
    assert named == set(ENTRIES)
    silent = [entries for comment, entries in groups if not re.search(r"\b(Benchmark|Estimated|Measured)\b", comment)]
    assert not silent, "these don't say how they were chosen:\n" + "\n".join(silent)
