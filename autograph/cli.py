"""The command line: `autograph to-code` shows what functions are rewritten to, `autograph graph` their programs,
`autograph explain` how they run, `autograph compile` makes C libraries of them, `autograph saved-model` shows and runs
saved models, `autograph run` runs programs written for TensorFlow, `autograph cache` shows the folder of compiled
kernels.

`to-code` parses files and never runs them; the others import or run them. Exit codes: 0 done; 1 a function can't be
converted or traced (the message says where and why); 2 the command line, the file or the name is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import metadata

from autograph.commands import to_code
from autograph.commands.files import STDIN, UsageError
from autograph.errors import AutographError

_TO_CODE_EXAMPLES = """\
examples:
  autograph to-code model.py:train_step               a function
  autograph to-code model.py:Cell.call                a method
  autograph to-code model.py:make.inner               a function inside a function
  autograph to-code --diff model.py:train_step        original and converted, side by side
  autograph to-code --passes model.py:train_step      the text after each pass that changes it
  autograph to-code --all model.py                    every function of a file
  autograph to-code --check *.py                      nothing but an exit code of 1 if something can't be converted
  cat model.py | autograph to-code -:train_step       from standard input
"""
_GRAPH_EXAMPLES = """\
examples:
  autograph graph model.py:step --signature "x: float32[None, 3], n: int32"
  autograph graph model.py:step --signature "x: float32[...], training=True"
  autograph graph model.py:step --signature "x: float64[8]" --passes
  autograph graph model.py:step --signature "x: float64[8]" --kernel
  autograph graph model.py:step --signature "x: float64[8]" --gradient backward --asm
  autograph graph model.py:step --signature "x: float64[8]" --html step.html
"""
_COMPILE_EXAMPLES = """\
examples:
  autograph compile model.py:predict --signature "x: float32[None, 3]" --output build
  autograph compile model.py:loss --signature "x: float64[8], n: int32" --output build --gradient
  AUTOGRAPH_PROCESSOR=x86-64-v3 autograph compile model.py:predict --signature "x: float32[3]" --output build
"""
_SAVED_MODEL_EXAMPLES = """\
examples:
  autograph saved-model show DIR
  autograph saved-model show DIR --program train_step
  autograph saved-model run DIR "x=[[1.0, 2.0, 3.0]]"
  autograph saved-model run DIR x=@images.npy --signature classify --output results
"""
_RUN_EXAMPLES = """\
examples:
  autograph run train.py --epochs 3
  autograph run -m project.train --epochs 3
"""


# The stages after the graph, as `runtime/engine/stages.py` names them.
_STAGES = {
    "passes": "the graph as traced, and what each pass changes in it,",
    "kernel": "the native code of each part, as Python,",
    "kernel-passes": "what each pass over the kernel changes",
    "llvm": "the kernel in LLVM's language",
    "optimized-llvm": "the same after LLVM's passes",
    "asm": "the kernel's assembly for this machine",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    parser = _parser()
    given = sys.argv[1:] if arguments is None else arguments
    # argparse would take `-:function` for an option.
    options = parser.parse_args([STDIN + each[1:] if each.startswith("-:") else each for each in given])
    if options.command is None:
        parser.print_help()
        return 0
    try:
        if options.command == "graph":
            # Imports the whole project, numba's generators included: only where it is needed.
            from autograph.commands import graph

            return graph.run(options)
        if options.command == "explain":
            from autograph.commands import explain

            return explain.run(options)
        if options.command == "compile":
            from autograph.commands import compile_library

            return compile_library.run(options)
        if options.command == "saved-model":
            from autograph.commands import saved_model

            return saved_model.run(options)
        if options.command == "run":
            from autograph.commands import run

            return run.run(options)
        if options.command == "cache":
            from autograph.commands import cache

            return cache.run(options)
        return to_code.run(options)
    except UsageError as error:
        print(f"autograph: {error}", file=sys.stderr)
        return 2
    except AutographError as error:
        print(f"autograph: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader (`head`, a pager) has seen enough. Python would complain when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="autograph",
        description="Shows how autograph rewrites, traces and compiles Python functions.",
        epilog=f"{_TO_CODE_EXAMPLES}{_GRAPH_EXAMPLES.partition(chr(10))[2]}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"autograph {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    convert = commands.add_parser(
        "to-code",
        help="print the converted source of functions",
        description="Prints the converted source of functions. Files are parsed, never run.",
        epilog=_TO_CODE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    convert.add_argument(
        "targets",
        metavar="FILE.py:function",
        nargs="+",
        help="a file (- is standard input) and a dotted name in it; with --all and --check a file alone will do",
    )
    how = convert.add_mutually_exclusive_group()
    how.add_argument("--diff", action="store_true", help="print original and converted side by side")
    how.add_argument(
        "--passes", "--each-pass", action="store_true", help="print the text after each pass that changes it"
    )
    how.add_argument("--check", action="store_true", help="print only what can't be converted")
    convert.add_argument("--all", action="store_true", help="take every function of the file")
    convert.add_argument("--width", type=_width, help="columns for --diff (default: the terminal's)")
    convert.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours of --diff")
    graph = commands.add_parser(
        "graph",
        help="print the traced program of a function, at each stage from the graph to machine code",
        description="Imports a file, traces a function of it and prints the program at a stage of its compilation.",
        epilog=_GRAPH_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    graph.add_argument("target", metavar="FILE.py:function", help="a file and a dotted name in it")
    graph.add_argument(
        "--signature",
        default="",
        metavar="TEXT",
        help="the arguments: `name: dtype[shape]` for tensors ([...] for any shape), `name=value` for Python values",
    )
    graph.add_argument("--lines", action="store_true", help="print the user's file and line behind each operation")
    graph.add_argument(
        "--gradient",
        choices=("forward", "backward"),
        help="take the gradient's program instead: forward computes the results and what backward needs",
    )
    form = graph.add_mutually_exclusive_group()
    for stage, text in _STAGES.items():
        form.add_argument(f"--{stage}", action="store_true", help=f"print {text} instead")
    form.add_argument("--dot", metavar="FILE", help="write the graph in Graphviz' language instead (- prints it)")
    form.add_argument("--svg", metavar="FILE", help="write a picture instead, where Graphviz is installed")
    form.add_argument("--html", metavar="FILE", help="write a page with foldable regions beside the source instead")
    explain = commands.add_parser(
        "explain",
        help="say how a function's program runs: kernels, loops, what isn't native and why",
        description="Imports a file, traces a function of it, and says how the program runs.",
    )
    explain.add_argument("target", metavar="FILE.py:function", help="a file and a dotted name in it")
    explain.add_argument("--signature", default="", metavar="TEXT", help="the arguments, as for `graph`")
    explain.add_argument("--compile", action="store_true", help="compile too, to see how long that takes")
    explain.add_argument("--html", metavar="FILE", help="write a page beside the source, too")
    library = commands.add_parser(
        "compile",
        help="compile a function to a C library, which needs no Python",
        description="Imports a file and compiles a function of it to a C library: a header, and what to link.",
        epilog=_COMPILE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    library.add_argument("target", metavar="FILE.py:function", help="a file and a dotted name in it")
    library.add_argument("--signature", default="", metavar="TEXT", help="the arguments, as for `graph`")
    library.add_argument("--output", required=True, metavar="DIR", help="the folder to write to")
    library.add_argument("--name", help="what files and functions are called (default: the function's name)")
    library.add_argument("--gradient", action="store_true", help="define NAME_gradient, too")
    saved = commands.add_parser(
        "saved-model",
        help="show what a saved model holds, or run a signature of it",
        description="Shows the signatures, functions and variables of a saved model, or runs a signature.",
        epilog=_SAVED_MODEL_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    saved.add_argument("action", choices=("show", "run"), help="print what there is, or call a signature")
    saved.add_argument("folder", metavar="DIR", help="the folder of the saved model")
    saved.add_argument(
        "inputs",
        metavar="NAME=VALUE",
        nargs="*",
        help="run: the inputs, as numbers, texts or lists as Python writes them, or @FILE.npy",
    )
    saved.add_argument("--signature", default="serving_default", metavar="NAME", help="run: which signature")
    saved.add_argument("--output", metavar="DIR", help="run: write each result to NAME.npy in this folder, too")
    saved.add_argument("--program", metavar="NAME", help="show: print the graphs of this function or signature")
    run = commands.add_parser(
        "run",
        help="run a program written for TensorFlow: `import tensorflow` gives this project",
        description="Runs a program as `python` does, with this project under TensorFlow's name.",
        epilog=_RUN_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module, as in `python -m`")
    run.add_argument("script", metavar="SCRIPT", help="the file")
    run.add_argument("arguments", metavar="...", nargs=argparse.REMAINDER, help="its arguments")
    cache = commands.add_parser(
        "cache",
        help="show or empty the folder of compiled kernels",
        description="Compiled kernels are kept in a folder (AUTOGRAPH_CACHE_DIR), up to a size (AUTOGRAPH_CACHE_SIZE).",
    )
    cache.add_argument("action", choices=("info", "clear"), help="print what there is, or remove it all")
    return parser


def _width(text: str) -> int:
    value = int(text)
    if value < 43:
        raise argparse.ArgumentTypeError("two columns need at least 43 characters")
    return value


def _version() -> str:
    try:
        return metadata.version("autograph-numba")
    except metadata.PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
