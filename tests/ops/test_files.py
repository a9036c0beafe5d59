"""Files: `ag.io`, `ag.io.gfile`, sound and images. What is expected are TensorFlow 2.21's results and errors."""

import io
import sys
import wave

import numpy as np
import pytest

import autograph as ag

gfile, errors = ag.io.gfile, ag.errors
E = errors.InvalidArgumentError


# --- gfile -----------------------------------------------------------------------------------------------------------


def write(path, content, mode="w"):
    with gfile.GFile(path, mode) as file:
        file.write(content)


@pytest.fixture
def folder(tmp_path):
    gfile.makedirs(tmp_path / "a" / "b")
    write(tmp_path / "f.txt", "héllo\nworld\n")
    write(tmp_path / "g.bin", b"\x00\x01", "wb")
    return tmp_path


def test_reading_and_writing(folder):
    path = folder / "f.txt"
    assert gfile.GFile(path).read() == "héllo\nworld\n"
    assert gfile.GFile(path).read(3) == "hél"
    assert gfile.GFile(path, "rb").read(3) == b"h\xc3\xa9"
    assert gfile.GFile(path).readline() == "héllo\n"
    assert gfile.GFile(path).readlines() == list(gfile.GFile(path)) == ["héllo\n", "world\n"]
    assert gfile.GFile(path).size() == 13
    with gfile.GFile(path, "rb") as file:
        file.seek(2)
        assert (file.read(2), file.tell()) == (b"\xa9l", 4)
        file.seek(-2, 2)
        assert file.read() == b"d\n"
    write(path, "more", "a")
    assert gfile.GFile(path).read() == "héllo\nworld\nmore"
    with gfile.GFile(folder / "empty", "w"):
        pass
    assert gfile.stat(folder / "empty").length == 0


@pytest.mark.parametrize("kind", [str, lambda path: str(path).encode(), lambda path: path])
def test_paths_of_all_kinds(folder, kind):
    assert gfile.exists(kind(folder))
    assert gfile.isdir(kind(folder))
    assert not gfile.isdir(kind(folder / "f.txt"))
    assert sorted(gfile.listdir(kind(folder))) == ["a", "f.txt", "g.bin"]
    assert gfile.glob(kind(folder / "*.txt")) == [str(folder / "f.txt")]
    assert gfile.stat(kind(folder / "f.txt"))[::2] == (13, False)


def test_folders(folder):
    assert gfile.glob([str(folder / "*.bin"), str(folder / "*.txt")]) == [str(folder / n) for n in ("f.txt", "g.bin")]
    assert gfile.glob(str(folder / "*.zzz")) == []
    gfile.mkdir(folder / "a")
    found = [(path, sorted(folders), sorted(names)) for path, folders, names in gfile.walk(folder)]
    assert found[0] == (str(folder), ["a"], ["f.txt", "g.bin"])
    assert [path for path, _, _ in gfile.walk(folder, topdown=False)][-1] == str(folder)
    assert list(gfile.walk(folder / "none")) == []
    gfile.rmtree(folder / "a")
    assert not gfile.exists(folder / "a")
    assert (gfile.join("a", "b", "c"), gfile.join("a", "/b")) == ("a/b/c", "/b")


def test_copies_and_other_names(folder):
    gfile.copy(folder / "f.txt", folder / "h.txt")
    gfile.copy(folder / "g.bin", folder / "h.txt", overwrite=True)
    assert gfile.stat(folder / "h.txt").length == 2
    gfile.rename(folder / "h.txt", folder / "i.txt")
    gfile.rename(folder / "g.bin", folder / "i.txt", overwrite=True)
    gfile.remove(folder / "i.txt")
    assert sorted(gfile.listdir(folder)) == ["a", "f.txt"]


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda d: gfile.GFile(d / "none").read(), errors.NotFoundError),
        (lambda d: gfile.GFile(d / "f.txt", "q"), E),
        (lambda d: gfile.GFile(d / "f.txt").write("x"), errors.PermissionDeniedError),
        (lambda d: gfile.GFile(d / "f.txt", "w").read(), errors.PermissionDeniedError),
        (lambda d: write(d / "none" / "f", "x"), errors.NotFoundError),
        (lambda d: gfile.mkdir(d / "none" / "x"), errors.NotFoundError),
        (lambda d: gfile.listdir(d / "f.txt"), errors.NotFoundError),
        (lambda d: gfile.copy(d / "f.txt", d / "g.bin"), errors.AlreadyExistsError),
        (lambda d: gfile.copy(d / "none", d / "x"), errors.NotFoundError),
        (lambda d: gfile.rename(d / "f.txt", d / "g.bin"), errors.AlreadyExistsError),
        (lambda d: gfile.rename(d / "none", d / "x"), errors.NotFoundError),
        (lambda d: gfile.stat(d / "none"), errors.NotFoundError),
        (lambda d: gfile.remove(d / "none"), errors.NotFoundError),
        (lambda d: gfile.remove(d / "a"), errors.FailedPreconditionError),
        (lambda d: gfile.rmtree(d / "none"), errors.NotFoundError),
        (lambda d: ag.io.read_file(d / "none"), errors.NotFoundError),
        (lambda d: ag.io.read_file(d / "a"), errors.FailedPreconditionError),
        (lambda d: ag.io.read_file([str(d / "f.txt")]), E),
    ],
)
def test_errors_of_files(folder, call, error):
    with pytest.raises(error):
        call(folder)


def test_whole_files_in_staged_code(folder):
    @ag.function
    def double(source, target):
        content = ag.io.read_file(source)
        ag.io.write_file(target, ag.strings.join([content, content]))
        return ag.io.read_file(target)  # after it is written

    target = folder / "new" / "twice"
    found = double(str(folder / "g.bin"), str(target))
    assert found.numpy() == target.read_bytes() == b"\x00\x01\x00\x01"
    write(folder / "g.bin", b"z", "wb")
    assert double(str(folder / "g.bin"), str(target)).numpy() == b"zz"
    with pytest.raises(errors.NotFoundError, match="none"):
        double(str(folder / "none"), str(target))


def test_files_that_match(folder):
    pattern = [str(folder / "*.bin"), str(folder / "*.txt")]
    expected = [str(folder / name).encode() for name in ("f.txt", "g.bin")]
    assert ag.io.matching_files(pattern).numpy().tolist() == expected
    assert ag.function(ag.io.matching_files)(ag.constant(pattern)).numpy().tolist() == expected
    assert ag.io.matching_files(str(folder / "*.zz")).shape == [0]


# --- sound -----------------------------------------------------------------------------------------------------------

SOUND = np.array([[0.0, 0.5], [-0.5, 1.0], [-1.0, 0.25], [2.0, -2.0]], np.float32)
TOP = 32767 / 32768
HELD = [[0.0, 0.5], [-0.5, TOP], [-1.0, 0.25], [TOP, -1.0]]
FILE = (
    b"RIFF4\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00@\x1f\x00\x00\x00}\x00\x00\x04\x00\x10\x00data\x10\x00"
    b"\x00\x00\x00\x00\x00@\x00\xc0\xff\x7f\x00\x80\x00 \xff\x7f\x00\x80"
)


def test_sound():
    assert ag.audio.encode_wav(SOUND, 8000).numpy() == FILE
    audio, rate = ag.audio.decode_wav(FILE)
    assert (audio.numpy().tolist(), int(rate), rate.dtype) == (HELD, 8000, ag.int32)
    assert ag.audio.decode_wav(FILE, 1).audio.numpy().tolist() == [row[:1] for row in HELD]
    assert ag.audio.decode_wav(FILE, 3).audio.numpy().tolist() == [[*row, row[1]] for row in HELD]
    assert ag.audio.decode_wav(FILE, 2, 2).audio.numpy().tolist() == HELD[:2]
    assert ag.audio.decode_wav(FILE, -1, 6).audio.numpy().tolist() == [*HELD, [0.0, 0.0], [0.0, 0.0]]


def test_sound_in_staged_code():
    shapes = []

    @ag.function(input_signature=[ag.TensorSpec([], ag.string)])
    def louder(file):
        audio, rate = ag.audio.decode_wav(file, desired_samples=3)
        shapes.append(audio.shape.as_list())
        return ag.audio.encode_wav(audio * 0.5, rate)

    assert ag.audio.decode_wav(louder(FILE)).audio.numpy().tolist() == (np.array(HELD[:3]) / 2).round(4).tolist()
    assert shapes == [[3, None]]


def sound_of(width):
    target = io.BytesIO()
    with wave.open(target, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(width)
        file.setframerate(100)
        file.writeframes(bytes(6))
    return target.getvalue()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ag.audio.decode_wav(b"abcd"), "Header mismatch"),
        (lambda: ag.audio.decode_wav(FILE[:50]), "too short"),
        (lambda: ag.audio.decode_wav(sound_of(1)), "16-bit"),
        (lambda: ag.audio.decode_wav(sound_of(3)), "16-bit"),
        (lambda: ag.audio.encode_wav(SOUND[0], 8000), "2-dimensional"),
        (lambda: ag.audio.encode_wav(SOUND[:, :0], 8000), "must be positive"),
        (lambda: ag.audio.encode_wav(SOUND, 0), "must be positive"),
    ],
)
def test_errors_of_sound(call, message):
    with pytest.raises(E, match=message):
        call()


# --- images ----------------------------------------------------------------------------------------------------------

GREY = np.add.outer(np.arange(5) * 20, np.arange(7) * 15).astype(np.uint8)
RGB = np.stack([GREY, GREY[::-1], 255 - GREY], -1)
RGBA = np.concatenate([RGB, GREY[..., None]], -1)


def file_of(array, kind, mode=None, **options):
    images = pytest.importorskip("PIL.Image")
    image = images.fromarray(array)
    target = io.BytesIO()
    (image.convert(mode) if mode else image).save(target, kind, **options)
    return target.getvalue()


def animation():
    images = pytest.importorskip("PIL.Image")
    frames = [images.fromarray(np.roll(RGB, i, 0)) for i in range(3)]
    target = io.BytesIO()
    frames[0].save(target, "GIF", save_all=True, append_images=frames[1:])
    return target.getvalue()


def test_png():
    image = ag.image
    for pixels in (GREY[..., None], RGBA[..., :2], RGB, RGBA):
        file = image.encode_png(pixels)
        for decode in (image.decode_png, image.decode_image, image.decode_jpeg):
            np.testing.assert_array_equal(decode(file), pixels)
    file = file_of(RGBA, "PNG")
    np.testing.assert_array_equal(image.decode_png(file, 3), RGB)
    np.testing.assert_array_equal(image.decode_png(file, dtype=ag.uint16), RGBA.astype(np.uint16) * 257)
    # TensorFlow's first pixels of the file in grey.
    assert image.decode_png(file, 1).numpy().ravel()[:8].tolist() == [76, 87, 99, 110, 122, 133, 145, 67]
    wide = GREY[..., None].astype(np.uint16) * 250
    file = file_of(wide[..., 0], "PNG")
    np.testing.assert_array_equal(image.decode_png(file, dtype=ag.uint16), wide)
    np.testing.assert_array_equal(image.decode_png(image.encode_png(wide), dtype=ag.uint16), wide)
    assert image.decode_png(file).numpy().ravel()[:7].tolist() == [0, 14, 29, 43, 58, 73, 87]
    np.testing.assert_array_equal(image.decode_image(file, dtype=ag.float32), wide / np.float32(65535))
    colours = file_of(RGB, "PNG", "P")
    assert image.decode_png(colours).numpy().ravel()[:6].tolist() == [0, 102, 255, 0, 102, 255]
    assert image.encode_png(np.stack([RGB, RGB])).shape == [2]


def test_jpeg():
    smooth = np.add.outer(np.arange(16) * 8, np.arange(16) * 8).astype(np.uint8)[..., None].repeat(3, 2)
    file = ag.image.encode_jpeg(smooth)
    found = ag.image.decode_jpeg(file)
    assert np.abs(found.numpy().astype(int) - smooth).max() <= 4
    assert ag.image.decode_jpeg(file, ratio=2).shape == [8, 8, 3]
    assert ag.image.decode_jpeg(file, channels=1).shape == [16, 16, 1]
    assert len(ag.image.encode_jpeg(smooth, quality=20).numpy()) < len(file.numpy())
    assert bool(ag.image.is_jpeg(file))
    assert not bool(ag.image.is_jpeg(ag.image.encode_png(smooth)))
    floats = ag.image.decode_image(file, dtype=ag.float32)
    np.testing.assert_allclose(floats, found.numpy() / 255, rtol=1e-6)


def test_other_formats():
    image = ag.image
    np.testing.assert_array_equal(image.decode_bmp(file_of(RGB, "BMP")), RGB)
    frames = image.decode_gif(animation())
    assert frames.shape == [3, 5, 7, 3]
    np.testing.assert_array_equal(image.decode_image(animation()), frames)
    np.testing.assert_array_equal(image.decode_image(animation(), expand_animations=False), frames[0])
    np.testing.assert_array_equal(frames[0], RGB)


def test_images_in_staged_code():
    shapes = []

    @ag.function(input_signature=[ag.TensorSpec([], ag.string)])
    def thumbnail(file):
        pixels = ag.image.decode_png(file, channels=3)
        shapes.append([pixels.shape, ag.image.decode_image(file).shape, ag.image.decode_gif(file).shape])
        small = ag.image.resize(pixels, [2, 3], antialias=True)
        return ag.image.encode_png(ag.cast(ag.round(small), ag.uint8))

    found = ag.image.decode_png(thumbnail(file_of(RGB, "PNG")))
    np.testing.assert_allclose(found, ag.image.resize(RGB, [2, 3], antialias=True), atol=0.51)
    assert shapes[0][0].as_list() == [None, None, 3]
    assert shapes[0][1].rank is None
    assert shapes[0][2].as_list() == [None, None, None, 3]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ag.image.decode_image(b"hello"), "Unknown image file format"),
        (lambda: ag.image.decode_png(file_of(RGB, "PNG")[:60]), "PNG"),
        (lambda: ag.image.decode_png(file_of(RGB, "PNG"), 5), "channels"),
        (lambda: ag.image.decode_png(file_of(RGB, "BMP")), "wrong op"),
        (lambda: ag.image.decode_bmp(file_of(RGB, "PNG")), "wrong op"),
        (lambda: ag.image.decode_png(animation()), "3 frames"),
        (lambda: ag.image.decode_image(animation(), 1), "GIF"),
        (lambda: ag.image.decode_jpeg(file_of(RGB, "JPEG"), ratio=3), "ratio"),
        (lambda: ag.image.encode_png(RGB.astype(np.float32)), "uint8 or uint16"),
        (lambda: ag.image.encode_jpeg(RGBA[..., :2]), r"\(1, 3\) channels"),
        (lambda: ag.image.encode_jpeg(RGB, quality=101), "quality"),
    ],
)
def test_errors_of_images(call, message):
    with pytest.raises(E, match=message):
        call()


def test_without_pillow_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="pip install pillow"):
        ag.image.decode_png(b"x")
    with pytest.raises(ImportError, match="pip install pillow"):
        ag.image.encode_png(RGB)


def test_what_uses_files_is_not_saved(tmp_path):
    """A saved program that is loaded may not write files."""

    class Program(ag.Module):
        @ag.function(input_signature=[ag.TensorSpec([], ag.string)])
        def run(self, x):
            ag.io.write_file("somewhere", x)
            return x

    with pytest.raises(errors.UnimplementedError, match="uses files of the machine"):
        ag.saved_model.save(Program(), str(tmp_path / "saved"))
