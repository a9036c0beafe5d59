"""mkdocs' hooks: add the pages of the API reference and of the examples, which aren't files of `docs`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from docs import api_pages, example_pages


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    assert config.nav is not None
    (reference,) = [part["Reference"] for part in config.nav if "Reference" in part]
    namespaces = [namespace for namespace, names in api_pages.sections() if names]
    reference.append({"Namespaces": [{api_pages.full(each): api_pages.path(each)} for each in namespaces]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, text in (api_pages.pages() | example_pages.pages()).items():
        files.append(File.generated(config, path, content=text))
    names = json.dumps(api_pages.addresses(), separators=(",", ":"))
    files.append(File.generated(config, "api/names.js", content=f"const apiNames = {names}\n"))
    return files
