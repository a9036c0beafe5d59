"""A module of the user's has the name of a package of ours: `import autograph` says which file, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NAMES = ["import autograph as ag", "from autograph import function", "import autograph.errors", "import autograph.cli"]


def run(folder: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, text=True, capture_output=True, timeout=120, input=given,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


def says(err: str, path: Path) -> None:
    assert "ImportError: autograph needs its own package 'runtime'" in err, err
    assert str(path) in err and "fix: give that file or folder another name" in err
    assert "the user's module runs" not in err, "importing ours must not run theirs"


def module(folder: Path, kind: str) -> Path:
    """A module `runtime` of the user's, which says so where it runs."""
    text = 'import sys; print("the user\'s module runs", file=sys.stderr)\n'
    if kind == "file":
        (folder / "runtime.py").write_text(text)
        return folder / "runtime.py"
    (folder / "runtime").mkdir()
    (folder / "runtime" / "__init__.py").write_text(text)
    return folder / "runtime"


@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("start", NAMES)
def test_beside_a_script(tmp_path: Path, kind: str, start: str) -> None:
    path = module(tmp_path, kind)
    (tmp_path / "train.py").write_text(start)
    done = run(tmp_path, "train.py")
    assert done.returncode == 1
    says(done.stderr, path)
    assert "Python finds the module" in done.stderr


def test_with_dash_m_dash_c_and_at_the_prompt(tmp_path: Path) -> None:
    path = module(tmp_path, "file")
    (tmp_path / "train.py").write_text("import autograph")
    says(run(tmp_path, "-m", "train").stderr, path)
    says(run(tmp_path, "-c", "import autograph").stderr, path)
    says(run(tmp_path, "-m", "autograph", "--help").stderr, path)
    prompt = run(tmp_path, "-i", "-q", given="import autograph\n1 + 1\nimport autograph\n").stderr
    says(prompt, path)
    assert prompt.count("ImportError: ") == 2, "the second attempt says it too"


def test_the_script_itself_has_the_name(tmp_path: Path) -> None:
    (tmp_path / "runtime.py").write_text("import autograph as ag\nprint('ran')\n")
    says(run(tmp_path, "runtime.py").stderr, tmp_path / "runtime.py")


def test_another_module_is_loaded_already(tmp_path: Path) -> None:
    """As in a notebook, where the file has been renamed since."""
    (tmp_path / "runtime.py").write_text("")
    (tmp_path / "train.py").write_text("import runtime\nimport autograph\n")
    done = run(tmp_path, "train.py")
    says(done.stderr, tmp_path / "runtime.py")
    assert "has imported the module" in done.stderr and "start Python anew" in done.stderr
    made = "import sys, types; sys.modules['runtime'] = types.ModuleType('runtime'); import autograph"
    done = run(ROOT, "-c", made)
    assert "has imported <module 'runtime'> under that name already" in done.stderr


def test_the_name_is_free_again(tmp_path: Path) -> None:
    """Where the user's module has not been loaded, renaming it is enough, in the same process."""
    program = (
        "import os\ntry:\n    import autograph\nexcept ImportError as error:\n    print(error.name, error.path)\n"
        "os.rename('runtime.py', 'my_runtime.py')\nimport importlib; importlib.invalidate_caches()\n"
        "import autograph, my_runtime\nprint(float(autograph.constant(1.0)))\n"
    )
    path = module(tmp_path, "file")
    (tmp_path / "train.py").write_text(program)
    assert run(tmp_path, "train.py").stdout.split() == ["runtime", str(path), "1.0"]


def test_a_folder_that_is_no_package_is_no_matter(tmp_path: Path) -> None:
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime" / "data.txt").write_text("")
    assert run(tmp_path, "-c", "import autograph; print(1)").stdout == "1\n"


def test_a_link_to_our_package_is_ours(tmp_path: Path) -> None:
    for name in ("autograph", "runtime"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = run(tmp_path, "-c", "import autograph; print(1)")
    assert done.stdout == "1\n", done.stderr


def test_half_an_installation(tmp_path: Path) -> None:
    (tmp_path / "autograph").symlink_to(ROOT / "autograph")
    # Nor may an editable installation find it.
    program = (
        "import sys; sys.path = [path for path in sys.path if path != sys.argv[1]]; "
        "sys.meta_path = [each for each in sys.meta_path if '__editable__' not in each.__module__]; import autograph"
    )
    done = run(tmp_path, "-c", program, str(ROOT))
    assert "is missing" in done.stderr and "install autograph-numba again" in done.stderr, done.stderr


def test_our_package_where_the_user_meant_theirs() -> None:
    """A later `import runtime` gives ours."""
    done = run(ROOT, "-c", "import autograph, runtime\nruntime.start_engine()")
    assert (
        "module 'runtime' has no attribute 'start_engine': this is the package that autograph is made of" in done.stderr
    )
    assert str(ROOT / "runtime") in done.stderr
    done = run(ROOT, "-c", "import autograph\nfrom runtime import start_engine")
    assert "ImportError: cannot import name 'start_engine' from 'runtime'" in done.stderr
    assert str(ROOT / "runtime") in done.stderr
