"""Saved models that are damaged, newer or hostile: errors of ours; nothing is run, written, or read elsewhere."""

from __future__ import annotations

import json
import os
import random
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest

import autograph as ag
from tests.saving import golden_models
from tests.serial.test_graphs import mutated

OURS = (ag.errors.DataLossError, ag.errors.NotFoundError, ag.errors.UnimplementedError)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original")
    (folder / "words.txt").write_text("one two three")
    model = golden_models.make(folder / "words.txt")
    ag.saved_model.save(model, folder / "model", model.__call__)
    return folder / "model"


@pytest.fixture()
def folder(original, tmp_path):
    return Path(shutil.copytree(original, tmp_path / "model"))


def edit(folder, change):
    """Changes the document, and makes its checksum right."""
    path = folder / "saved_model.json"
    document = json.loads(path.read_text())
    document.pop("crc32")
    change(document)
    checksum = zlib.crc32(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())
    path.write_text(json.dumps({**document, "crc32": checksum}))


def files(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_newer_version(folder):
    edit(folder, lambda document: document.update(version=2))
    with pytest.raises(ag.errors.UnimplementedError, match="of version 2, written by a newer autograph"):
        ag.saved_model.load(folder)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"null", b"[" * 100_000, b"\xff\xfe", b'{"format": "autograph checkpoint"}']
)
def test_something_else(folder, content):
    (folder / "saved_model.json").write_bytes(content)
    with pytest.raises(ag.errors.DataLossError):
        ag.saved_model.load(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_what_is_no_file(folder, tmp_path):
    """Nothing waits for a pipe, or reads a device that never ends."""
    path = folder / "saved_model.json"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ag.errors.DataLossError, match="it is not a regular file"):
        ag.saved_model.load(folder)
    path.unlink()
    path.mkdir()
    with pytest.raises(ag.errors.DataLossError, match="it is not a regular file"):
        ag.saved_model.load(folder)


@pytest.mark.parametrize("pattern", ["data-*", "assets/*", "assets"])
def test_links_out_of_the_folder(folder, tmp_path, pattern):
    (path,) = folder.glob(pattern)
    moved = tmp_path / "elsewhere"
    path.rename(moved)
    try:
        path.symlink_to(moved)
    except OSError:
        pytest.skip("links can't be made here")
    with pytest.raises(ag.errors.DataLossError, match="a link out of the saved model"):
        ag.saved_model.load(folder)
    path.unlink()
    path.symlink_to(moved.rename(folder / "within").name)  # a link inside the folder is one of its files
    if pattern == "data-*":
        ag.saved_model.load(folder)


def test_missing_files(folder):
    (folder / "assets" / "words.txt").unlink()
    with pytest.raises(ag.errors.DataLossError, match="no file assets/words.txt"):
        ag.saved_model.load(folder)
    next(folder.glob("data-*")).unlink()
    with pytest.raises(ag.errors.DataLossError, match="is incomplete"):
        ag.saved_model.load(folder)


@pytest.mark.parametrize("change", [
    lambda d: d.update(data="../data-0123456789abcdef.safetensors"),
    lambda d: d.update(data="/etc/passwd"),
    lambda d: d.update(data=3),
    lambda d: d["tensors"].append({"asset": "../secret"}),
    lambda d: d["tensors"].append({"asset": "assets/.."}),
    lambda d: d["tensors"].append({"asset": "assets/../../secret"}),
    lambda d: d["tensors"].append({"asset": "/etc/passwd"}),
    lambda d: d["tensors"].append({"array": "no"}),
    lambda d: d.update(constants=10**9),
    lambda d: d["variables"][0].update(shape=[7]),
    lambda d: d["variables"][0].update(dtype="string"),
    lambda d: d["objects"][0].update(kind="os.system"),
    lambda d: d["objects"][0].update(children=[["a", 10**9]]),
    lambda d: d["objects"].append({"kind": "tuple", "children": [[0, len(d["objects"])]]}),
    lambda d: d["functions"][0].update(parameters=[{"name": "a b", "kind": "POSITIONAL_ONLY"}]),
    lambda d: d["functions"][0].update(traces=[999]),
    lambda d: d["traces"][0].update(graph=d["traces"][1]["graph"]),
    lambda d: d["traces"][0].update(written=[0, 0]),
    lambda d: d["traces"][0].update(is_none=[]),
    lambda d: d["traces"][0]["specs"].clear(),
    lambda d: d["traces"][0]["variables"].clear(),
    lambda d: d["traces"][0].update(result={"composite": ["Popen", [], []]}),
    lambda d: d["signatures"].update(other=99),
    lambda d: d.update(aliases={"other": 99}),
    lambda d: d.update(aliases=[0]),
    lambda d: d.pop("program"),
])  # fmt: skip
def test_changed_by_hand(folder, change):
    edit(folder, change)
    with pytest.raises(ag.errors.DataLossError):
        ag.saved_model.load(folder)


def test_names_of_attributes_mean_nothing(folder):
    def change(document):
        first = document["objects"][0]["children"]
        first += [["__class__", 1], ["__dict__", 1], ["variables", 1], ["__setattr__", 1]]

    edit(folder, change)
    loaded = ag.saved_model.load(folder)
    assert type(loaded).__name__ == "LoadedModule" and isinstance(loaded.variables, tuple)


def test_random_changes_of_bytes(folder):
    contents = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.parent == folder}
    before, generator, refused = set(files(folder)), random.Random(0), 0
    for _ in range(300):
        path, data = generator.choice(list(contents.items()))
        data = bytearray(data)
        for _ in range(generator.choice([1, 1, 3, 20])):
            where = generator.randrange(len(data))
            kind = generator.random()
            if kind < 0.6:
                data[where] = generator.randrange(256)
            elif kind < 0.8:
                del data[where : where + generator.randint(1, 40)]
            else:
                data[where:where] = generator.choice([b"[", b"{", b'"', b"-1", b"9" * 30, b"\0", b"null"])
        path.write_bytes(data)
        try:
            ag.saved_model.load(folder)
        except OURS:
            refused += 1
        path.write_bytes(contents[path])
    assert refused > 250 and set(files(folder)) == before


def test_random_changes_with_a_right_checksum(folder):
    path = folder / "saved_model.json"
    original, generator, refused = path.read_text(), random.Random(1), 0
    for _ in range(300):
        parts = ["traces", "functions", "objects", "variables", "tensors", "program", "arrays", "signatures"]

        def change(document):
            for _ in range(generator.choice([1, 1, 3])):
                part = generator.choice(parts)
                mutated(generator, document[part] if generator.random() < 0.95 else document)

        try:
            edit(folder, change)
        except (KeyError, TypeError):  # the change took a part away
            path.write_text(original)
            continue
        try:
            ag.saved_model.load(folder)
        except OURS:
            refused += 1
        path.write_text(original)
    assert refused > 150


def test_loading_writes_nothing(folder):
    before = files(folder)
    ag.saved_model.load(folder)
    assert files(folder) == before


def test_values_that_were_changed(folder):
    path = next(folder.glob("data-*"))
    data = np.fromfile(path, np.uint8)
    data[-1] ^= 1
    data.tofile(path)
    with pytest.raises(ag.errors.DataLossError, match="doesn't match its checksum"):
        ag.saved_model.load(folder)
