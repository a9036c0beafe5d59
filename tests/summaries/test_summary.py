"""`ag.summary`: what programs write, read back by TensorBoard's own reader."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

import autograph as ag

needs_tensorboard = pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason="needs the tensorboard extra"
)
pytestmark = needs_tensorboard


@pytest.fixture
def writer(tmp_path):
    made = ag.summary.create_file_writer(tmp_path)
    yield made
    made.close()


def events(folder):
    """{tag: [(step, tensor), ...]} in the file's order, by TensorBoard's accumulator."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    read = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    read.Reload()
    return {
        tag: [(event.step, make_ndarray(event.tensor_proto)) for event in read.Tensors(tag)]
        for tag in read.Tags()["tensors"]
    }


def summaries(folder):
    """(tag, step, array) of all summaries with tensors, in the order in which they were written."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.util.tensor_util import make_ndarray

    from autograph.summaries.event_files import records

    (path,) = folder.glob("events.out.tfevents.*.v2")
    read = [Event.FromString(record) for record in records(str(path))]
    assert read[0].file_version == "brain.Event:2"
    return [(value.tag, event.step, make_ndarray(value.tensor)) for event in read[1:] for value in event.summary.value]


def in_order(folder):
    """(tag, step, value) of all scalars, in the order in which they were written."""
    return [(tag, step, array.tolist()) for tag, step, array in summaries(folder)]


def test_without_a_writer_nothing_is_written():
    assert not ag.summary.should_record_summaries()
    assert not ag.summary.scalar("x", 1.0)
    assert not ag.summary.histogram("x", [1.0], step=1)
    assert not ag.summary.write("x", lambda: 1 / 0, step=1)
    ag.summary.flush()
    with ag.summary.create_noop_writer().as_default():
        assert not ag.summary.text("x", "y", step=1)


def test_kinds_have_the_metadata_of_their_plugins(writer, tmp_path):
    with writer.as_default(step=2):
        assert ag.summary.scalar("a", 3, description="*what*")
        ag.summary.histogram("b", [1.0])
        ag.summary.image("c", np.zeros([1, 2, 2, 3]))
        ag.summary.text("d", "e")
        ag.summary.write("f", ag.constant([1, 2]), metadata=b"")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(tmp_path))
    read.Reload()
    found = {tag: read.SummaryMetadata(tag) for tag in "abcd"}
    plugins = [found[tag].plugin_data.plugin_name for tag in "abcd"]
    assert plugins == ["scalars", "histograms", "images", "text"]
    assert found["a"].summary_description == "*what*"
    values = events(tmp_path)
    assert values["a"] == [(2, np.float32(3))]
    assert values["a"][0][1].dtype == np.float32
    assert values["d"] == [(2, b"e")]
    assert values["f"][0][1].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("data", "buckets", "expected"),
    [
        (np.arange(17), 4, [[0, 4, 4], [4, 8, 4], [8, 12, 4], [12, 16, 5]]),
        (np.full([2, 2], 2.5), 3, [[2.5, 2.5, 0], [2.5, 2.5, 0], [2.5, 2.5, 4]]),
        (np.zeros([0]), 2, [[0, 0, 0], [0, 0, 0]]),
        (np.arange(3.0), 0, []),
        ([True, False, True], 2, [[0, 0.5, 1], [0.5, 1, 2]]),
    ],
)
def test_buckets_are_those_of_tensorflow(writer, tmp_path, data, buckets, expected):
    with writer.as_default(step=0):
        ag.summary.histogram("h", data, buckets=buckets)
    ((_, found),) = events(tmp_path)["h"]
    assert found.tolist() == expected
    assert found.shape == (buckets, 3)
    assert found.dtype == np.float64


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_images_are_read_back_by_pillow(writer, tmp_path, channels):
    image = pytest.importorskip("PIL.Image")
    import io

    data = np.random.default_rng(0).integers(0, 256, (5, 3, 4, channels), np.uint8)
    with writer.as_default(step=0):
        ag.summary.image("i", data, max_outputs=2)
    ((_, (width, height, *files)),) = events(tmp_path)["i"]
    assert (width, height, len(files)) == (b"4", b"3", 2)
    for file, pixels in zip(files, data):
        assert np.array_equal(np.asarray(image.open(io.BytesIO(file))).reshape(pixels.shape), pixels)


def test_floats_of_images_are_clipped_and_scaled(writer, tmp_path):
    image = pytest.importorskip("PIL.Image")
    import io

    with writer.as_default(step=0):
        ag.summary.image("i", np.array([-1.0, 0.0, 0.5, 1.0, 7.0]).reshape(1, 1, 5, 1))
    file = events(tmp_path)["i"][0][1][2]
    assert np.asarray(image.open(io.BytesIO(file))).tolist() == [[0, 0, 127, 255, 255]]


def test_sounds_are_files_that_tensorboard_knows(writer, tmp_path):
    sounds = np.stack([np.sin(np.arange(50)), np.zeros(50), np.ones(50)]).astype(np.float32)[:, :, None]
    with writer.as_default(step=3):
        assert ag.summary.audio("s", sounds, 8000, max_outputs=2)
    ((step, files),) = events(tmp_path)["s"]
    assert (step, np.shape(files)) == (3, (2, 2))
    for (file, label), sound in zip(np.asarray(files, object), sounds):
        samples, rate = ag.audio.decode_wav(file)
        assert (label, int(rate)) == (b"", 8000)
        np.testing.assert_allclose(samples, sound, atol=1e-4)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.audio import metadata

    read = EventAccumulator(str(tmp_path))
    read.Reload()
    content = read.SummaryMetadata("s").plugin_data.content
    assert metadata.parse_plugin_metadata(content).encoding == metadata.Encoding.Value("WAV")


def test_sounds_that_can_not_be_written(writer):
    with writer.as_default(step=0):
        with pytest.raises(ValueError, match="Sounds must have rank 3. Received rank 1"):
            ag.summary.audio("s", ag.zeros([5]), 8000)
        with pytest.raises(ValueError, match="Unknown encoding: 'mp3'"):
            ag.summary.audio("s", ag.zeros([1, 5, 1]), 8000, encoding="mp3")
        with pytest.raises(ag.errors.InvalidArgumentError, match="max_outputs must not be negative"):
            ag.summary.audio("s", ag.zeros([1, 5, 1]), 8000, max_outputs=-1)
        with pytest.raises(TypeError, match="sample_rate must be an integer that is known"):
            ag.function(lambda rate: ag.summary.audio("s", ag.zeros([1, 5, 1]), rate))(ag.constant(8000))


def test_a_staged_loop_writes_in_order_with_the_values_of_the_run(writer, tmp_path):
    step = ag.Variable(10, dtype=ag.int64)

    @ag.function
    def f(n):
        with writer.as_default(step):
            for i in ag.range(n):
                step.assign_add(1)
                if i % 2 == 0:
                    ag.summary.scalar("even", i * 10)
                else:
                    ag.summary.scalar("odd", i * 100, step=i)
            return ag.summary.scalar("last", n)

    assert f(ag.constant(3))
    assert f(ag.constant(2))
    assert in_order(tmp_path) == [
        ("even", 11, 0), ("odd", 1, 100), ("even", 13, 20), ("last", 13, 3),
        ("even", 14, 0), ("odd", 1, 100), ("last", 15, 2),
    ]  # fmt: skip


def test_a_while_loop_and_the_gradient_write_once(writer, tmp_path):
    @ag.function
    def f(x):
        n = 0
        while x < 100.0:
            x = x * x
            n += 1
            ag.summary.scalar("x", x, step=n)
        return x

    x = ag.constant(3.0)
    with writer.as_default(), ag.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert float(tape.gradient(y, x)) == 8 * 3.0**7
    assert in_order(tmp_path) == [("x", 1, 9), ("x", 2, 81), ("x", 3, 6561)]


def test_conditions(writer, tmp_path):
    @ag.function
    def f(n):
        for i in ag.range(n):
            with ag.summary.record_if(i % 2 == 1):
                ag.summary.scalar("i", i, step=i)

    with writer.as_default(step=0):
        with ag.summary.record_if(False):
            assert not ag.summary.scalar("no", 1)
            with ag.summary.record_if(lambda: ag.constant(True)):
                assert ag.summary.should_record_summaries()
                assert ag.summary.scalar("yes", 1)
            assert not ag.summary.write("no", lambda: 1 / 0)
        f(ag.constant(4))
    assert in_order(tmp_path) == [("yes", 0, 1), ("i", 1, 1), ("i", 3, 3)]


def test_default_steps_nest(writer, tmp_path):
    scalar = ag.summary.scalar
    ag.summary.experimental.set_step(7)
    try:
        with writer.as_default():
            scalar("a", 0)
            with writer.as_default(step=ag.constant(8)):
                scalar("a", 1)
                scalar("a", 2, step=np.int32(9))
            scalar("a", 3)
    finally:
        ag.summary.experimental.set_step(None)
    assert ag.summary.experimental.get_step() is None
    assert [step for _, step, _ in in_order(tmp_path)] == [7, 8, 9, 7]


def test_tags_have_the_scopes_in_front(writer, tmp_path):
    @ag.function
    def f():
        with ag.name_scope("inner"):
            ag.summary.scalar("y", 1)

    with writer.as_default(step=0), ag.name_scope("a"), ag.name_scope("b"):
        ag.summary.scalar("x y:z", 1)
        f()
        with ag.summary.experimental.summary_scope("q r") as (tag, scope):
            assert (tag, scope) == ("a/b/q r", "a/b/qr/")
    assert [tag for tag, *_ in in_order(tmp_path)] == ["a/b/x y:z", "inner/y"]


def test_refusals(writer):
    summary = ag.summary
    with writer.as_default():
        with pytest.raises(ValueError, match="No step set"):
            summary.scalar("x", 1.0)
        with pytest.raises(ValueError, match="scalar shape"):
            summary.scalar("x", [1.0, 2.0], step=1)
        with pytest.raises(TypeError, match="integer"):
            summary.scalar("x", 1.0, step=1.5)
        with pytest.raises(ValueError, match="must be a scalar"):
            summary.scalar("x", 1.0, step=[1, 2])
        with pytest.raises(TypeError, match="string"):
            summary.text("x", 1.0, step=1)
        with pytest.raises(ValueError, match="rank 4"):
            summary.image("x", np.zeros([2, 2]), step=1)
        with pytest.raises(ag.errors.InvalidArgumentError, match="channels"):
            summary.image("x", np.zeros([1, 2, 2, 5]), step=1)
        with pytest.raises(TypeError, match="buckets"):
            summary.histogram("x", [1.0], step=1, buckets=2.5)
    with pytest.raises(ValueError, match="logdir"):
        summary.create_file_writer(None)
    with pytest.raises(ValueError, match="flush"):
        summary.flush(3)


def test_a_closed_writer_is_refused(tmp_path):
    writer = ag.summary.create_file_writer(str(tmp_path))
    default = writer.as_default()
    writer.close()
    writer.close()
    writer.flush()
    for use in (writer.as_default, writer.set_as_default, writer.init):
        with pytest.raises(RuntimeError, match="already closed"):
            use()
    with default, pytest.raises(ag.errors.NotFoundError, match="already closed"):
        ag.summary.scalar("x", 1.0, step=0)


def test_the_queue_is_written_when_it_is_full(tmp_path):
    writer = ag.summary.create_file_writer(tmp_path, max_queue=2)
    default = writer.as_default(step=0)
    default.__enter__()
    try:
        sizes = []
        for _ in range(3):
            ag.summary.scalar("x", 1.0)
            sizes.append(len(in_order(tmp_path)))
        assert sizes == [0, 0, 3]
    finally:
        default.__exit__(None, None, None)
        writer.close()


def test_what_waits_is_written_when_the_process_ends(tmp_path):
    program = (
        "import sys, autograph as ag\n"
        "w = ag.summary.create_file_writer(sys.argv[1])\n"
        "w.set_as_default(step=4)\n"
        "ag.summary.scalar('x', 1.0)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    assert in_order(tmp_path) == [("x", 4, 1)]


def test_a_damaged_file_is_refused(writer, tmp_path):
    from autograph.summaries.event_files import records

    with writer.as_default(step=0):
        ag.summary.scalar("x", 1.0)
    whole = next(tmp_path.iterdir()).read_bytes()
    for damaged in (whole[:-1], whole[:-20], whole[:20] + b"!" + whole[21:]):
        path = tmp_path / "damaged"
        path.write_bytes(damaged)
        with pytest.raises(ag.errors.DataLossError, match="damaged"):
            list(records(str(path)))


def test_without_tensorboard_the_error_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.setitem(sys.modules, "tensorboard.compat", None)
    with pytest.raises(ImportError, match="pip install 'tensorboard"):
        ag.summary.create_file_writer(tmp_path)
