"""The files of checkpoints: whole or not there, whatever ends the process; damaged ones are refused; old ones go."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path

import pytest

import autograph as ag
from autograph.saving.checkpoint_files import index_of, prefix_of
from runtime.ops.strings import wire

ROOT = Path(__file__).resolve().parents[2]
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def make(value=1.0):
    return ag.train.Checkpoint(a=ag.Variable([value, value]), b=ag.Variable(["text"]), c=ag.Variable(value))


def started(script, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


# Ends as by kill -9 at the N-th call that changes files, for each N, and looks at what is left.
_ENDS_ANYWHERE = """
    import os, sys
    import autograph as ag

    def make(value):
        return ag.train.Checkpoint(a=ag.Variable([value] * 1000), b=ag.Variable([value] * 1000))

    def exiting(name, left):
        function = getattr(os, name)
        def call(*args, **kwargs):
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
            return function(*args, **kwargs)
        setattr(os, name, call)

    folder, kind = sys.argv[1:]
    options = ag.train.CheckpointOptions(experimental_sharding_callback=ag.train.experimental.MaxShardSizePolicy(4000))
    first = make(1.0)
    manager = ag.train.CheckpointManager(first, folder, max_to_keep=1)
    def save():
        if kind == "write":
            first.write(folder + "/same", options)
        else:
            manager.save(options=options)

    save()
    for number in range(1000):
        first.a.assign([number + 2.0] * 1000)
        first.b.assign([number + 2.0] * 1000)
        pid = os.fork()
        if pid == 0:
            left = [number]
            for name in ("replace", "fsync", "unlink", "open"):
                exiting(name, left)
            save()
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        found = make(0.0)
        path = folder + "/same" if kind == "write" else ag.train.latest_checkpoint(folder)
        assert path is not None, number
        (found.read if kind == "write" else found.restore)(path).assert_consumed()
        value = float(found.a[0])
        assert 1.0 <= value <= number + 2.0 and set(found.a.numpy()) == set(found.b.numpy()) == {value}, (number, value)
        if status == 0:
            assert value == number + 2.0
            print("points", number)
            break
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", ["write", "manager"])
def test_ending_at_any_change_of_files_leaves_a_whole_checkpoint(tmp_path, kind):
    process = started(_ENDS_ANYWHERE, tmp_path, kind)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert int(output.split()[1]) > 8


_SAVES_FOR_EVER = """
    import sys
    import autograph as ag

    parts = [ag.Variable([0.0] * 20000) for _ in range(5)]
    manager = ag.train.CheckpointManager(ag.train.Checkpoint(parts=parts), sys.argv[1], max_to_keep=2)
    while True:
        for part in parts:
            part.assign_add([1.0] * 20000)
        manager.save()
        print(manager.latest_checkpoint, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_kill_9(tmp_path):
    generator = random.Random(1)
    for number in range(3):
        folder = tmp_path / str(number)
        process = started(_SAVES_FOR_EVER, folder)
        for _ in range(generator.randint(1, 12)):
            said = process.stdout.readline()
        if generator.random() < 0.7:
            try:
                process.wait(generator.random() * 0.01)
            except subprocess.TimeoutExpired:
                pass
        process.kill()
        process.wait()
        process.stdout.close()
        parts = [ag.Variable([0.0] * 20000) for _ in range(5)]
        latest = ag.train.latest_checkpoint(folder)
        assert int(latest.rpartition("-")[2]) >= int(said.strip().rpartition("-")[2])
        ag.train.Checkpoint(parts=parts).restore(latest).assert_consumed()
        assert {float(x) for part in parts for x in part.numpy()} == {float(latest.rpartition("-")[2])}


def test_an_error_while_writing_leaves_nothing_and_the_old_one(tmp_path):
    checkpoint = make(1.0)
    path = checkpoint.write(tmp_path / "c")
    before = sorted(os.listdir(tmp_path))
    checkpoint.a.assign([5.0, 5.0])
    (tmp_path / "c.index").rename(tmp_path / "kept")
    (tmp_path / "c.index").mkdir()  # can't be replaced by a file
    with pytest.raises(OSError):
        checkpoint.write(tmp_path / "c")
    (tmp_path / "c.index").rmdir()
    (tmp_path / "kept").rename(tmp_path / "c.index")
    assert sorted(os.listdir(tmp_path)) == before
    found = make(0.0)
    found.read(path).assert_consumed()
    assert float(found.a[0]) == 1.0


def test_writing_again_leaves_no_files_behind(tmp_path):
    checkpoint = make()
    for _ in range(3):
        checkpoint.write(tmp_path / "c")
    assert len(os.listdir(tmp_path)) == 2


def test_a_folder_may_be_moved_and_a_checkpoint_renamed(tmp_path):
    checkpoint = make(3.0)
    checkpoint.save(tmp_path / "old" / "c")
    (tmp_path / "old").rename(tmp_path / "new")
    latest = ag.train.latest_checkpoint(tmp_path / "new")
    assert latest == str(tmp_path / "new" / "c-1")
    for file in (tmp_path / "new").glob("c-1*"):
        file.rename(file.with_name(file.name.replace("c-1", "best")))
    found = make(0.0)
    found.restore(tmp_path / "new" / "best").assert_consumed()
    assert float(found.c) == 3.0


def test_relative_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoint = make()
    assert checkpoint.save("c") == "c-1"
    assert ag.train.latest_checkpoint(".") == "./c-1"
    checkpoint.restore("./c-1").assert_consumed()


def test_shards(tmp_path):
    variables = [ag.Variable([float(i)] * 100) for i in range(10)]
    policy = ag.train.experimental.MaxShardSizePolicy(1000)
    options = ag.train.CheckpointOptions(experimental_sharding_callback=policy)
    path = ag.train.Checkpoint(v=variables).save(tmp_path / "c", options)
    assert len(list(tmp_path.glob("*-of-00005.safetensors"))) == 5  # two in each
    found = [ag.Variable([-1.0] * 100) for _ in range(10)]
    ag.train.Checkpoint(v=found).restore(path).assert_consumed()
    assert [float(v[99]) for v in found] == list(map(float, range(10)))
    with pytest.raises(ag.errors.InvalidArgumentError):
        ag.train.experimental.MaxShardSizePolicy(0)
    with pytest.raises(ag.errors.InvalidArgumentError):
        ag.train.CheckpointOptions(experimental_sharding_callback=3)


def test_writing_in_another_thread_takes_the_values_of_the_call(tmp_path):
    v = ag.Variable(ag.zeros([1000]))

    @ag.function
    def step():
        v.assign_add(ag.ones([1000]))

    checkpoint = ag.train.Checkpoint(v=v)
    paths, seen = [], []
    options = ag.train.CheckpointOptions(enable_async=True, experimental_write_callbacks=[seen.append, lambda: None])
    for _ in range(20):
        step()
        paths.append(checkpoint.save(tmp_path / "c", options))
        step()
        v.assign_add(ag.ones([1000]))
    checkpoint.sync()
    assert seen == paths
    for number, path in enumerate(paths):
        found = ag.train.load_variable(path, "v" + VALUE)
        assert set(found) == {3.0 * number + 1}


def test_an_error_in_another_thread_is_raised_by_sync(tmp_path):
    (tmp_path / "file").write_text("no folder")
    checkpoint = make()
    checkpoint.write(tmp_path / "file" / "c", ag.train.CheckpointOptions(enable_async=True))
    with pytest.raises(OSError):
        checkpoint.sync()
    checkpoint.sync()


class TestManager:
    def test_keeps_the_latest_ones(self, tmp_path):
        checkpoint = make()
        manager = ag.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=2)
        assert manager.latest_checkpoint is None and manager.checkpoints == []
        paths = [manager.save() for _ in range(4)]
        assert paths == [str(tmp_path / f"ckpt-{n}") for n in (1, 2, 3, 4)]
        assert manager.checkpoints == paths[2:]
        assert manager.latest_checkpoint == ag.train.latest_checkpoint(tmp_path) == paths[3]
        assert len(os.listdir(tmp_path)) == 5
        assert manager.save(9) == str(tmp_path / "ckpt-9")
        again = ag.train.CheckpointManager(make(), tmp_path, max_to_keep=2)
        assert again.checkpoints == [paths[3], str(tmp_path / "ckpt-9")]
        assert again.restore_or_initialize() == str(tmp_path / "ckpt-9")
        assert again.save() == str(tmp_path / "ckpt-6")
        assert not index_of(prefix_of(paths[3])).exists()

    def test_keeps_one_in_so_many_hours(self, tmp_path, monkeypatch):
        clock = [1e9]
        monkeypatch.setattr("time.time", lambda: clock[0])
        manager = ag.train.CheckpointManager(make(), tmp_path, 1, keep_checkpoint_every_n_hours=2)
        for _ in range(7):
            clock[0] += 3600
            manager.save()
        kept = sorted(path.name for path in tmp_path.glob("*.index"))
        assert kept == ["ckpt-2.index", "ckpt-4.index", "ckpt-6.index", "ckpt-7.index"]
        assert manager.checkpoints == [str(tmp_path / "ckpt-7")]

    def test_interval(self, tmp_path):
        step = ag.Variable(0)
        manager = ag.train.CheckpointManager(make(), tmp_path, None, step_counter=step, checkpoint_interval=3)
        saved = []
        for _ in range(7):
            step.assign_add(1)
            saved.append(manager.save() is not None)
        assert saved == [True, False, False, True, False, False, True]
        assert manager.save(check_interval=False) is not None

    def test_initialises_where_there_is_nothing(self, tmp_path):
        called = []
        manager = ag.train.CheckpointManager(make(), tmp_path / "new", 1, init_fn=lambda: called.append(1))
        assert manager.restore_or_initialize() is None and called == [1]
        manager.save()
        assert manager.restore_or_initialize() is not None and called == [1]

    def test_what_it_refuses(self, tmp_path):
        with pytest.raises(ValueError, match="positive integer"):
            ag.train.CheckpointManager(make(), tmp_path, 0)
        with pytest.raises(ValueError, match="step_counter"):
            ag.train.CheckpointManager(make(), tmp_path, 1, checkpoint_interval=2)


class TestReader:
    def test_lists_what_there_is(self, tmp_path):
        make().save(tmp_path / "c")
        names = ["a" + VALUE, "b" + VALUE, "c" + VALUE, "save_counter" + VALUE]
        listed = ag.train.list_variables(tmp_path)
        assert listed == [("_CHECKPOINTABLE_OBJECT_GRAPH", []), *zip(names, [[2], [1], [], []])]
        reader = ag.train.load_checkpoint(tmp_path)
        assert reader.has_tensor(names[0]) and not reader.has_tensor("a")
        assert reader.get_variable_to_dtype_map()[names[1]] is ag.string
        assert reader.get_tensor(names[1]).tolist() == [b"text"]
        with pytest.raises(ag.errors.NotFoundError, match="Key a not found"):
            reader.get_tensor("a")

    def test_the_graph_of_objects_is_a_message(self, tmp_path):
        """As TensorFlow's class reads it: nodes with children and values."""
        ag.train.Checkpoint(model=ag.train.Checkpoint(v=ag.Variable([1.0]))).save(tmp_path / "c")
        reader = ag.train.load_checkpoint(tmp_path)
        assert reader.has_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")
        assert reader.get_variable_to_dtype_map()["_CHECKPOINTABLE_OBJECT_GRAPH"] is ag.string

        def read(message):
            return [(number, value) for number, _, value in wire.fields(message)]

        nodes = read(ag.train.load_variable(tmp_path, "_CHECKPOINTABLE_OBJECT_GRAPH"))
        parts = [[(number, dict(read(part))) for number, part in read(node)] for _, node in nodes]
        assert parts[0] == [(1, {1: 1, 2: b"model"}), (1, {1: 2, 2: b"save_counter"})]
        key = b"model/v/.ATTRIBUTES/VARIABLE_VALUE"
        assert [(2, {1: b"VARIABLE_VALUE", 2: b"(root).model.v", 3: key})] in parts


class TestDamage:
    """Errors of ours for whatever a file holds, and no value changes."""

    OURS = (ag.errors.DataLossError, ag.errors.NotFoundError, ag.errors.UnimplementedError)

    def edited(self, path, change):
        document = json.loads(path.read_text())
        document.pop("crc32")
        change(document)
        checksum = zlib.crc32(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())
        path.write_text(json.dumps({**document, "crc32": checksum}))

    def test_a_newer_version(self, tmp_path):
        path = make().write(tmp_path / "c")
        self.edited(tmp_path / "c.index", lambda document: document.update(version=99))
        with pytest.raises(ag.errors.UnimplementedError, match="written by a newer autograph"):
            make().read(path)

    @pytest.mark.parametrize(
        "name", ["../c.data-0123456789abcdef-00000-of-00001.safetensors", "/etc/passwd", "c.index", 3, "x\0", None]
    )
    def test_no_way_out_of_the_folder(self, tmp_path, name):
        path = make().write(tmp_path / "c")
        self.edited(tmp_path / "c.index", lambda document: document.update(shards=[name]))
        with pytest.raises(ag.errors.DataLossError):
            make().read(path)

    def test_values_that_were_changed(self, tmp_path):
        path = make(1.0).write(tmp_path / "c")
        (shard,) = tmp_path.glob("*.safetensors")
        data = bytearray(shard.read_bytes())
        data[-1] ^= 1
        shard.write_bytes(data)
        found = make(0.0)
        with pytest.raises(ag.errors.DataLossError, match="damaged"):
            found.read(path)
        assert float(found.c) == 0.0

    def test_values_that_are_missing(self, tmp_path):
        path = make().write(tmp_path / "c")
        for shard in tmp_path.glob("*.safetensors"):
            shard.unlink()
        with pytest.raises(ag.errors.DataLossError, match="incomplete"):
            make().read(path)

    def test_random_changes_of_bytes(self, tmp_path):
        checkpoint, found = make(1.0), make(0.0)
        path = checkpoint.write(tmp_path / "c")
        files = {file: file.read_bytes() for file in tmp_path.iterdir()}
        generator = random.Random(0)
        refused = 0
        for _ in range(600):
            file, data = generator.choice(list(files.items()))
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
                if not data:
                    break
            file.write_bytes(data)
            try:
                found.read(path).assert_consumed()
                assert float(found.c) == 1.0 and found.b.numpy().tolist() == [b"text"]
            except self.OURS:
                refused += 1
                assert float(found.c) == 0.0
            found.c.assign(0.0)
            file.write_bytes(files[file])
        assert refused > 400

    def test_random_changes_of_an_index_with_a_right_checksum(self, tmp_path):
        found = make(0.0)
        path = make(1.0).write(tmp_path / "c")
        index = tmp_path / "c.index"
        original = index.read_text()
        generator = random.Random(0)
        strange = [None, -1, 0, 1, 7, 1 << 70, 0.5, True, "", "a", "float32", "string", [], {}, [0], {"a": 0}, {"": {}}]

        def change(part):
            while True:
                keys = list(part) if isinstance(part, dict) else list(range(len(part)))
                if not keys:
                    return
                key = generator.choice(keys)
                if isinstance(part[key], (dict, list)) and generator.random() < 0.8:
                    part = part[key]
                else:
                    part[key] = generator.choice(strange)
                    return

        refused = 0
        for _ in range(500):
            self.edited(index, change)
            try:
                found.read(path).expect_partial()
            except (*self.OURS, ag.errors.InvalidArgumentError, ValueError):
                refused += 1
            index.write_text(original)
        assert refused > 300
