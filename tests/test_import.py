"""`import autograph` stays light: what only compiling needs isn't loaded by it. (llvmlite is: whoever calls a function
needs it, a loop that waits for its kernel at once.)"""

import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_LOADED = [
    "numba", "scipy", "runtime.codegen.lower.lower_graph", "runtime.engine.partition",
    "runtime.llvm.program", "runtime.graph.drawing", "autograph.commands", "doctest", "unittest",
    "autograph.data.dataset", "autograph.distribute.strategy", "autograph.saving.checkpoint", "autograph.summaries",
    "autograph.onnx_models", "autograph.c_library", "runtime.serial", "runtime.collectives",
    "autograph.interop", "autograph.testing", "torch", "jax", "pytest",
]  # fmt: skip


def test_what_importing_does_not_load():
    script = f"import sys, autograph; print(*[name for name in {NOT_LOADED} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120, cwd=ROOT
    )
    assert done.stdout.split() == []


def test_what_a_first_call_does_not_load():
    script = (
        "import sys, autograph; from runtime.engine import background; background.QUIET = 60; "
        "autograph.function(autograph.exp)(autograph.constant(1.0)); "
        f"print(*[name for name in {NOT_LOADED} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120, cwd=ROOT
    )
    assert done.stdout.split() == []


def test_a_namespace_is_complete_once_it_is_asked_for():
    """Whatever has imported parts of it before; and it is the same object ever after."""
    script = """
        import autograph.data.dataset, pickle
        import autograph as ag
        assert float(ag.nn.compute_average_loss(ag.ones([3]))) == 1.0  # the only strategy is one replica
        assert float(ag.nn.scale_regularization_loss(ag.ones([3]))) == 3.0
        assert ag.data.__name__ == "autograph.namespaces.data", ag.data
        from autograph import data, distribute
        import autograph.distribute.strategy
        assert data is ag.data and ag.distribute is distribute and distribute.Strategy
        assert "Strategy" in dir(distribute) and "contexts" not in dir(distribute)
        assert ag.data.Dataset.range(3)._repr_html_() and ">>>" in ag.data.Optional.__doc__
        assert pickle.loads(pickle.dumps(ag.saved_model.load)) is ag.saved_model.load
        for name in ("data", "train"):
            try:
                getattr(ag, name).Adam
            except AttributeError as error:
                print(str(error).split(":")[0])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120, cwd=ROOT
    )
    assert not done.stderr
    assert len(done.stdout.splitlines()) == 2 and all("Adam" in line for line in done.stdout.splitlines())


def test_a_spec_of_a_dataset_is_read_before_datasets_are_imported():
    import autograph as ag

    spec = pickle.dumps(ag.data.DatasetSpec(ag.TensorSpec((), ag.int64)))
    script = f"""
        import pickle
        import autograph as ag
        traced = ag.function(lambda rows: rows.reduce(ag.constant(0, ag.int64), ag.add), [pickle.loads({spec!r})])
        concrete = traced.get_concrete_function()
        print(int(concrete(ag.data.Dataset.range(4))))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120, cwd=ROOT
    )
    assert done.stdout.split() == ["6"], done.stderr


def test_two_threads_that_ask_for_a_namespace_get_the_same_functions():
    script = """
        import threading
        import autograph as ag
        found, together = [], threading.Barrier(4)
        def ask():
            together.wait()
            found.append((ag.train, ag.train.latest_checkpoint))
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for each in threads: each.start()
        for each in threads: each.join()
        print(len(found), len(set(found)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120, cwd=ROOT
    )
    assert done.stdout.split() == ["4", "1"], done.stderr
