"""Which standard-library modules are converted, and which of CPython's own tests are run on them.

Each row: the modules whose functions are converted while the tests run (copies that the tests import afresh, without
their C accelerators, count too), and the test modules of the ``test`` package.

Not here, since they count the frames between a helper and its caller, or print a frame's variables, and converted code
has more of both: `typing` (isinstance checks of protocols) and `traceback` (`capture_locals` shows ``ag__``).
"""

from __future__ import annotations

TARGETS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "argparse": (("argparse",), ("test_argparse",)),
    "ast": (("ast",), ("test_ast", "test_unparse")),
    "base64": (("base64",), ("test_base64",)),
    "bisect": (("bisect",), ("test_bisect",)),
    "calendar": (("calendar",), ("test_calendar",)),
    "cmd": (("cmd",), ("test_cmd",)),
    "collections": (("collections", "_collections_abc"), ("test_collections", "test_ordered_dict")),
    "colorsys": (("colorsys",), ("test_colorsys",)),
    "configparser": (("configparser",), ("test_configparser",)),
    "contextlib": (("contextlib",), ("test_contextlib", "test_contextlib_async")),
    "copy": (("copy",), ("test_copy",)),
    "csv": (("csv",), ("test_csv",)),
    "dataclasses": (("dataclasses",), ("test_dataclasses",)),
    "datetime": (("datetime", "_pydatetime"), ("test_datetime",)),
    "decimal": (("decimal", "_pydecimal"), ("test_decimal",)),
    "difflib": (("difflib",), ("test_difflib",)),
    "enum": (("enum",), ("test_enum",)),
    "fnmatch": (("fnmatch", "glob"), ("test_fnmatch", "test_glob")),
    "fractions": (("fractions",), ("test_fractions",)),
    "functools": (("functools",), ("test_functools",)),
    "gettext": (("gettext",), ("test_gettext",)),
    "graphlib": (("graphlib",), ("test_graphlib",)),
    "heapq": (("heapq",), ("test_heapq",)),
    "html": (("html", "html.parser", "_markupbase"), ("test_html", "test_htmlparser")),
    "http.cookies": (("http.cookies",), ("test_http_cookies",)),
    "ipaddress": (("ipaddress",), ("test_ipaddress",)),
    "json": (("json", "json.decoder", "json.encoder", "json.scanner"), ("test_json",)),
    "numbers": (("numbers",), ("test_abstract_numbers",)),
    "pickle": (("pickle",), ("test_pickle",)),
    "pprint": (("pprint",), ("test_pprint",)),
    "queue": (("queue",), ("test_queue",)),
    "random": (("random",), ("test_random",)),
    "reprlib": (("reprlib",), ("test_reprlib",)),
    "sched": (("sched",), ("test_sched",)),
    "shlex": (("shlex",), ("test_shlex",)),
    "statistics": (("statistics",), ("test_statistics",)),
    "string": (("string",), ("test_string",)),
    "stringprep": (("stringprep",), ("test_stringprep",)),
    "textwrap": (("textwrap",), ("test_textwrap",)),
    "tokenize": (("tokenize",), ("test_tokenize",)),
    "urllib.parse": (("urllib.parse",), ("test_urlparse",)),
    "weakref": (("weakref", "_weakrefset"), ("test_weakref", "test_weakset")),
}

# Quick and full of control flow: what pytest runs each time.
SLICE = ("bisect", "colorsys", "fractions", "graphlib", "heapq", "shlex", "string", "textwrap")
