# SPDX-License-Identifier: Apache-2.0
"""The machine that figures come from."""

import contextlib
import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

__all__ = ["busy", "machine"]

PACKAGES = (
    *("numpy", "numba", "pyarrow", "google-crc32c"),
    *("tensorflow-cpu", "tensorflow", "grain", "torch", "webdataset", "datasets"),
)


def busy() -> float:
    """How many processes want a core, on average over the last minute; 0 where the system does not say."""
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return 0.0


def machine() -> dict[str, Any]:
    """Where the figures come from, as far as it matters for reading them."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "packages": versions,
    }


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory() -> float | None:
    """GiB of it."""
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None
