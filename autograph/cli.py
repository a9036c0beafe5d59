"""The command line: `autograph to-code` shows the converted source of functions, `autograph graph` their programs,
`autograph explain` how they run, `autograph compile` makes C libraries of them and `autograph onnx` ONNX models,
`autograph saved-model` shows and runs saved models, `autograph run` runs programs written for TensorFlow,
`autograph serve` shows a page to play with, `autograph cache` shows the folder of compiled kernels.

`to-code` parses files and never runs them; the others import or run them. Exit codes: 0 done; 1 a function can't be
converted or traced (the message says where and why); 2 the command line, the file or the name is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from autograph.commands import to_code
from autograph.commands.files import STDIN, UsageError, installed_version
from autograph.errors import AutographError

_TO_CODE_EXAMPLES = """\
examples:
  autograph to-code model.py:train_step               a function
  autograph to-code model.py:Cell.call                a method
  autograph to-code model.py:make.inner               a function inside a function
  autograph to-code --diff model.py:train_step        original and converted, side by side
  autograph to-code --passes model.py:train_step      the text after each pass that changes it
  autograph to-code --all model.py                    every function of a file
  autograph to-code --check *.py                      only what can't be converted; exit code 1 if there is any
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
  autograph compile model.py:predict --signature "x: float32[3]" --output build --weights build/predict.safetensors
  AUTOGRAPH_PROCESSOR=x86-64-v3 autograph compile model.py:predict --signature "x: float32[3]" --output build
"""
_ONNX_EXAMPLES = """\
examples:
  autograph onnx model.py:predict --signature "x: float32[None, 3]" --output predict.onnx
  autograph onnx model.py:loss --signature "x: float64[8], n: int32" --output loss.onnx --external-data
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
    "llvm": "the kernel as LLVM IR",
    "optimized-llvm": "the same after LLVM's passes",
    "asm": "the kernel's assembly for this machine",
    "device-passes": "what each pass changes that prepares the kernel for all threads of a GPU",
    "device-kernel": "the kernel as all threads of a GPU run it, as Python",
    "ptx": "the same as PTX, NVIDIA's assembly language (sm_90),",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    parser = _parser()
    given = sys.argv[1:] if arguments is None else arguments
    # argparse would take `-:function` for an option.
    options = parser.parse_args([STDIN + each[1:] if each.startswith("-:") else each for each in given])
    try:
        if options.version:
            if not options.verbose:
                print(f"autograph {installed_version()}")
                return 0
            # Loads the code generator.
            from autograph.commands import version

            print(version.report())
            return 0
        if options.command is None:
            parser.print_help()
            return 0
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
        if options.command == "onnx":
            from autograph.commands import onnx_model

            return onnx_model.run(options)
        if options.command == "saved-model":
            from autograph.commands import saved_model

            return saved_model.run(options)
        if options.command == "run":
            from autograph.commands import run

            return run.run(options)
        if options.command == "serve":
            from autograph.commands import serve

            return serve.run(options)
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
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="with --version: also print what a bug report should contain: versions, processor, cache, GPU",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    convert = _command(
        commands,
        "to-code",
        help="print the converted source of functions",
        description="Prints the converted source of functions. Files are parsed, never run.",
        examples=_TO_CODE_EXAMPLES,
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
    graph = _command(
        commands,
        "graph",
        help="print the traced program of a function, at each stage from the graph to machine code",
        description="Imports a file, traces a function of it and prints the program at a stage of its compilation.",
        examples=_GRAPH_EXAMPLES,
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
        help="show the gradient's program: forward computes the results and what backward needs, backward the gradient",
    )
    form = graph.add_mutually_exclusive_group()
    for stage, text in _STAGES.items():
        form.add_argument(f"--{stage}", action="store_true", help=f"print {text} instead")
    form.add_argument("--dot", metavar="FILE", help="write the graph in Graphviz's DOT language instead (- prints it)")
    form.add_argument("--svg", metavar="FILE", help="write a picture instead, where Graphviz is installed")
    form.add_argument("--html", metavar="FILE", help="write a page with foldable regions beside the source instead")
    explain = commands.add_parser(
        "explain",
        help="say how a function's program runs: kernels, loops, what isn't native and why",
        description="Imports a file, traces a function of it, and says how the program runs.",
    )
    _takes_function(explain)
    explain.add_argument("--compile", action="store_true", help="compile too, to see how long that takes")
    explain.add_argument(
        "--measure", action="store_true", help="compile it and run it a few times on ones, unless that has effects"
    )
    explain.add_argument(
        "--html", metavar="FILE", help="write a page too: the source, a timeline, kernels under the machine's roofline"
    )
    library = _command(
        commands,
        "compile",
        help="compile a function to a C library, which needs no Python",
        description="Imports a file and compiles one of its functions to a C library: a header and libraries to link.",
        examples=_COMPILE_EXAMPLES,
    )
    _takes_function(library)
    library.add_argument("--output", required=True, metavar="DIR", help="the folder to write to")
    library.add_argument("--name", help="the name of files and functions (default: the function's name)")
    library.add_argument("--gradient", action="store_true", help="define NAME_gradient, too")
    library.add_argument(
        "--weights", metavar="FILE.safetensors", help="write tensors and variables to this file, which NAME_load reads"
    )
    model = _command(
        commands,
        "onnx",
        help="export a function as an ONNX model",
        description="Imports a file and writes a function of it as an ONNX model.",
        examples=_ONNX_EXAMPLES,
    )
    _takes_function(model)
    model.add_argument("--output", required=True, metavar="FILE", help="the model's file")
    model.add_argument("--external-data", action="store_true", help="write large weights to FILE.data beside it")
    saved = _command(
        commands,
        "saved-model",
        help="show what a saved model holds, or run a signature of it",
        description="Shows the signatures, functions and variables of a saved model, or runs a signature.",
        examples=_SAVED_MODEL_EXAMPLES,
    )
    saved.add_argument("action", choices=("show", "run"), help="print the contents, or call a signature")
    saved.add_argument("folder", metavar="DIR", help="the folder of the saved model")
    saved.add_argument(
        "inputs",
        metavar="NAME=VALUE",
        nargs="*",
        help="run: the inputs, written as in Python (numbers, strings, lists), or @FILE.npy",
    )
    saved.add_argument("--signature", default="serving_default", metavar="NAME", help="run: which signature")
    saved.add_argument("--output", metavar="DIR", help="run: write each result to NAME.npy in this folder, too")
    saved.add_argument("--program", metavar="NAME", help="show: print the graphs of this function or signature")
    run = _command(
        commands,
        "run",
        help="run a program written for TensorFlow: `import tensorflow` gives this project",
        description="Runs a program as `python` does, with this project under TensorFlow's name.",
        examples=_RUN_EXAMPLES,
    )
    run.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module, as in `python -m`")
    run.add_argument("script", metavar="SCRIPT", help="the file")
    run.add_argument("arguments", metavar="...", nargs=argparse.REMAINDER, help="its arguments")
    serve = commands.add_parser(
        "serve",
        help="serve a page that shows the stages of a program as you type it",
        description="Serves a page on this machine: a program on the left, and on the right each of its stages, from "
        "the converted source to assembly. The code runs in child processes with limits of time and memory.",
    )
    serve.add_argument("--port", type=int, default=0, help="the port to listen on (default: a free one)")
    cache = commands.add_parser(
        "cache",
        help="show or empty the folder of compiled kernels",
        description="Compiled kernels are kept in a folder (AUTOGRAPH_CACHE_DIR), up to a size (AUTOGRAPH_CACHE_SIZE).",
    )
    cache.add_argument(
        "action", choices=("info", "clear"), help="print the folder, number and size of kernels, or remove them all"
    )
    return parser


def _command(commands: Any, name: str, help: str, description: str, examples: str) -> argparse.ArgumentParser:
    """A command whose help ends with examples, as they are."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def _takes_function(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="FILE.py:function", help="a file and a dotted name in it")
    parser.add_argument("--signature", default="", metavar="TEXT", help="the arguments, as for `graph`")


def _width(text: str) -> int:
    value = int(text)
    if value < 43:
        raise argparse.ArgumentTypeError("two columns need at least 43 characters")
    return value


if __name__ == "__main__":
    sys.exit(main())
