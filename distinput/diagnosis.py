# SPDX-License-Identifier: Apache-2.0
"""What is installed here, what the machine offers, and what would make distinput faster on it."""

import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from importlib import metadata
from typing import Any

from distinput import __version__
from distinput.kernels.kernel import cached_kernels
from distinput.names.lazy import dataclass
from distinput.run.threads import CGROUP, cores, limit_words, memory

__all__ = ["ENGINES", "PURPOSES", "Advice", "Diagnosis", "Machine", "Package", "diagnose", "packages", "this_machine"]


# ----------------------------------------------------------------------------
# What the machine, or the container, lets this process use.
# ----------------------------------------------------------------------------


_UNLIMITED = 1 << 60


@dataclass(frozen=True)
class Machine:
    """What this process may use.

    Args:
      system: the operating system and the kind of its processor.
      python: the version of Python.
      cores: those that the process may run on.
      core_quota: cores that a container may keep busy, which can be fewer; None without such a limit.
      memory: bytes, of the machine or of the container, whichever has less; None if it is not known.
      open_files: how many a process may have open; None if it is not known.
    """

    system: str
    python: str
    cores: int
    core_quota: float | None
    memory: int | None
    open_files: int | None


def this_machine(cgroup: str | os.PathLike[str] = CGROUP) -> Machine:
    """This machine.

    Args:
      cgroup: where Linux has the limits of a container.

    Source: cpu.max and memory.max of Linux, Documentation/admin-guide/cgroup-v2.rst.
    """
    return Machine(
        f"{platform.system()} {platform.machine()}",
        ".".join(map(str, sys.version_info[:3])),
        cores(),
        _quota(cgroup),
        memory(cgroup),
        _open_files(),
    )


def _quota(cgroup: str | os.PathLike[str]) -> float | None:
    words = limit_words(cgroup, "cpu.max")
    return int(words[0]) / int(words[1]) if len(words) == 2 and words[0].isdigit() and words[1].isdigit() else None


def _open_files() -> int | None:
    limit = os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") and "SC_OPEN_MAX" in os.sysconf_names else -1
    return limit if 0 < limit < _UNLIMITED else None


# ----------------------------------------------------------------------------
# The packages that distinput needs or can use, as its own metadata names them; none is imported.
# ----------------------------------------------------------------------------


_OF_DEVELOPERS = frozenset({"bench", "dev", "docs", "engines", "lint", "neighbours", "outside", "proofs", "test"})
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[^]]*\])?(?P<limits>[^;]*)(?:;(?P<when>.*))?")
_EXTRA = re.compile(r"""extra == ['"](?P<extra>[\w-]+)['"]""")
_LEAST = re.compile(r">=\s*(?P<least>[\d.]+)")


@dataclass(frozen=True)
class Package:
    """A package of others.

    Args:
      name: as `pip install` takes it.
      extra: the extra of distinput that installs it; "" for those that distinput needs.
      least: the oldest version that works; "" if any does.
      found: the version that is installed; None if it is not.
    """

    name: str
    extra: str
    least: str
    found: str | None

    @property
    def fits(self) -> bool:
        """Whether it is installed, and not too old."""
        return self.found is not None and _numbers(self.found) >= _numbers(self.least)

    @property
    def install(self) -> str:
        """The command that installs it."""
        if self.extra:
            return f"pip install -U 'distinput[{self.extra}]'"
        return f"pip install --upgrade '{self.name}>={self.least}'"


def packages(requirements: Iterable[str] | None = None) -> list[Package]:
    """All packages that users of distinput may have, those that it needs first, then by extra.

    Args:
      requirements: as `importlib.metadata.requires` gives them; None: those of the distinput that is installed.

    >>> [numpy] = packages(["numpy>=2.0"])
    >>> numpy.extra, numpy.least, numpy.fits
    ('', '2.0', True)
    >>> packages(["no-such-package>=1; extra == 'torch'"])
    [Package(name='no-such-package', extra='torch', least='1', found=None)]
    """
    by_name: dict[tuple[str, str], Package] = {}
    for text in _of_distinput() if requirements is None else requirements:
        words = _REQUIREMENT.match(text)
        if words is None:
            continue
        extra = _EXTRA.search(words["when"] or "")
        least = _LEAST.search(words["limits"])
        key = ("" if extra is None else extra["extra"], words["name"])
        if key[0] not in _OF_DEVELOPERS:
            by_name[key] = Package(
                words["name"], key[0], "" if least is None else least["least"], _version(words["name"])
            )
    return [by_name[key] for key in sorted(by_name)]


def _of_distinput() -> list[str]:
    try:
        return metadata.requires("distinput") or []
    except metadata.PackageNotFoundError:  # a copy of the sources that is not installed
        return []


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with: 2.13.0+cpu is (2, 13, 0)."""
    leading = re.match(r"[\d.]*", version)
    return tuple(int(part) for part in leading[0].split(".") if part) if leading else ()


# ----------------------------------------------------------------------------
# `diagnose`: the packages, the machine and the compiled kernels, with advice.
# ----------------------------------------------------------------------------


ENGINES = ("torch", "mpi", "jax", "dask", "ray")
"""Extras through which several processes work on one dataset."""

PURPOSES = {
    "arrayrecord": "reads ArrayRecord files",
    "crc32c": "checks TFRecord files while the compiled kernels are not ready",
    "dask": "coordinator with workers and parameter servers in other processes",
    "delta": "reads tables of Delta Lake",
    "huggingface": "to and from `datasets`",
    "iceberg": "reads tables of Iceberg",
    "images": "decodes images; JPEG with simplejpeg",
    "jax": "engine for several processes; feeds of JAX",
    "keras": "feeds of Keras",
    "lance": "reads tables of Lance",
    "mpi": "engine for several processes",
    "obstore": "reads s3://, gs://, az:// and https:// faster than fsspec",
    "opentelemetry": "metrics of each step for OpenTelemetry",
    "progress": "progress bars",
    "ray": "coordinator with workers in other processes; Ray Data",
    "tables": "pandas and polars",
    "tls": "encrypted connections of a Dask cluster, with certificates of its own",
    "torch": "engine for several processes; feeds of PyTorch",
    "video": "decodes video and audio",
}
"""What each extra is for."""

_FEW_FILES = 1024


@dataclass(frozen=True)
class Advice:
    """Something that could be better.

    Args:
      wrong: True if something does not work as it is; False if it would be faster, or offer more.
      text: what, and what to do about it.
    """

    wrong: bool
    text: str


@dataclass(frozen=True)
class Diagnosis:
    """What was found.

    Args:
      version: of distinput.
      machine: what this process may use.
      packages: those that distinput needs, and those that it can use.
      kernels: the compiled loops by name, and whether each is compiled on disk, for the next program to load.
      advice: what could be better, what is wrong first.
    """

    version: str
    machine: Machine
    packages: Sequence[Package]
    kernels: dict[str, bool]
    advice: Sequence[Advice]

    @property
    def well(self) -> bool:
        """Whether nothing is wrong."""
        return not any(one.wrong for one in self.advice)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        found = [{**asdict(one), "fits": one.fits} for one in self.packages]
        return {**asdict(self), "packages": found, "well": self.well}


def diagnose() -> Diagnosis:
    """Look at this machine, what is installed on it, and the compiled kernels; nothing is imported or compiled for it.

    >>> import distinput as di
    >>> found = diagnose()
    >>> found.version == di.__version__, found.machine.cores >= 1
    (True, True)
    """
    machine, known, kernels = this_machine(), packages(), cached_kernels()
    advice = [*_of_packages(known), *_of_kernels(kernels), *_of_machine(machine)]
    return Diagnosis(__version__, machine, known, kernels, sorted(advice, key=lambda one: not one.wrong))


def _of_packages(known: Sequence[Package]) -> Iterator[Advice]:
    for one in known:
        if one.found is None and not one.extra:
            yield Advice(True, f"{one.name} is not installed, and distinput needs it: {one.install}")
        elif one.found is not None and not one.fits:
            yield Advice(True, f"{one.name} {one.found} is older than {one.least}: {one.install}")
    there = {extra for extra in {one.extra for one in known} if all(one.fits for one in known if one.extra == extra)}
    if known and there.isdisjoint(ENGINES):
        yield Advice(
            False, "no engine for several processes is installed: pip install 'distinput[torch]', or [mpi], [jax]"
        )
    pillow = [one for one in known if one.name == "pillow"]
    if pillow and not pillow[0].fits:
        yield Advice(False, "images cannot be decoded: pip install 'distinput[images]'")
        there |= {"images"}
    faster = {"images": "decoding JPEG images", "obstore": "reading s3://, gs://, az:// and https://"}
    for extra, what in faster.items():
        if any(one.extra == extra for one in known) and extra not in there:
            yield Advice(
                False,
                f"{what} would be faster: pip install 'distinput[{extra}]'; distinput bench, before and after, measures by how "
                "much",
            )


def _of_kernels(kernels: dict[str, bool]) -> Iterator[Advice]:
    if os.environ.get("DISTINPUT_KERNELS") == "reference":
        yield Advice(
            False, "DISTINPUT_KERNELS=reference: nothing is compiled, and many steps are slow; unset this variable"
        )
    elif os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        yield Advice(False, "NUMBA_DISABLE_JIT is set: numba compiles nothing, and many steps are slow; unset it")
    elif missing := sum(not there for there in kernels.values()):
        yield Advice(
            False,
            f"{missing} of {len(kernels)} kernels are not compiled yet; programs compile them in the background when they need "
            "them. `distinput kernels build` compiles all of them at once, for all later programs",
        )


def _of_machine(machine: Machine) -> Iterator[Advice]:
    if machine.core_quota is not None and machine.core_quota < machine.cores:
        yield Advice(
            False,
            f"this container may keep {machine.core_quota:g} of its {machine.cores} cores busy: choose num_parallel_calls "
            "accordingly, or let AUTOTUNE measure",
        )
    if machine.open_files is not None and machine.open_files < _FEW_FILES:
        yield Advice(
            False,
            f"a process may open only {machine.open_files} files: run `ulimit -n 65536` before a job with many files",
        )
