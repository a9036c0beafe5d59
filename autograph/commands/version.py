"""`autograph --version --verbose`: what a report of a problem should say of the machine it happened on."""

from __future__ import annotations

import ctypes
import os
import platform
import re
from importlib import metadata

from autograph.commands import cache
from autograph.commands.files import DISTRIBUTION, UsageError, installed_version
from runtime.codegen.passes.parallelize import cores
from runtime.gpu import cuda, cuda_driver
from runtime.llvm import processor

_VARIABLES = re.compile("AUTOGRAPH_")


def report() -> str:
    """The versions of Python and of what this project uses, the processor, the folder of kernels, the GPU, and the
    environment variables of this project."""
    lines = [
        ("autograph", installed_version()),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()}, {platform.python_compiler()})"),
        ("system", platform.platform()),
        ("processor", _processor()),
        ("GPU", _gpu()),
        *_packages(),
    ]
    try:
        lines += [(f"cache {name}", value) for name, value in cache.facts()]
    except UsageError as error:
        lines.append(("cache", str(error)))
    lines += [(name, value) for name, value in sorted(os.environ.items()) if _VARIABLES.match(name)]
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:{width}}  {value}" for name, value in lines)


def _processor() -> str:
    try:
        name = processor.name()
        wide = [feature for feature in ("avx512f", "avx2", "fma", "neon") if processor.features().get(feature)]
    except ValueError as error:  # AUTOGRAPH_PROCESSOR names none
        return str(error)
    return f"{name} ({platform.machine()}{''.join(', ' + each for each in wide)}), {cores()} cores to use"


def _packages() -> list[tuple[str, str]]:
    """Each distribution that this one needs or can use, with the version that is installed."""
    try:
        needed = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        needed = []
    names = {match[0]: "extra ==" in each for each in needed if (match := re.match(r"[\w.-]+", each))}
    found = []
    for name, is_optional in sorted({"llvmlite": False, **names}.items(), key=lambda item: (item[1], item[0].lower())):
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            if not is_optional:
                found.append((name, "not installed"))
    return found


def _gpu() -> str:
    """The GPUs that NVIDIA's driver finds, or why there is none."""
    found = cuda_driver.driver()
    if found is None or not found.devices:
        return f"none ({cuda.why_none()})"
    names = []
    for number in range(found.devices):
        text = ctypes.create_string_buffer(256)
        found.status("cuDeviceGetName", text, len(text), number)
        names.append(text.value.decode(errors="replace"))
    return f"{', '.join(names)} (driver for CUDA {found.version_text()})"
