# SPDX-License-Identifier: Apache-2.0
"""`diagnose`: the packages, the machine and the compiled kernels, with advice."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from distinput import __version__
from distinput.diagnosis.machine import Machine, this_machine
from distinput.diagnosis.packages import Package, packages
from distinput.kernels.kernel import cached_kernels

__all__ = ["Advice", "Diagnosis", "diagnose"]

ENGINES = ("torch", "mpi", "jax", "dask", "ray")
"""Extras through which several processes work on one dataset."""

PURPOSES = {
    "arrayrecord": "reads ArrayRecord files",
    "crc32c": "checks TFRecord files while the compiled kernels are not ready",
    "dask": "coordinator with workers and parameter servers in other processes",
    "huggingface": "to and from `datasets`",
    "images": "decodes images; JPEG at twice Pillow's speed with simplejpeg",
    "jax": "engine for several processes; feeds of JAX",
    "keras": "feeds of Keras",
    "mpi": "engine for several processes",
    "obstore": "reads s3://, gs://, az:// and https:// faster than fsspec",
    "opentelemetry": "metrics of each step for OpenTelemetry",
    "progress": "progress bars",
    "ray": "coordinator with workers in other processes; Ray Data",
    "tables": "pandas and polars",
    "tls": "encrypted connections of a Dask cluster, with certificates of its own",
    "torch": "engine for several processes; feeds of PyTorch",
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
    faster = {"images": "decoding JPEG images", "obstore": "reading s3://, gs://, az:// and https://"}
    for extra, what in faster.items():
        if any(one.extra == extra for one in known) and extra not in there:
            yield Advice(False, f"{what} would be faster: pip install 'distinput[{extra}]'")


def _of_kernels(kernels: dict[str, bool]) -> Iterator[Advice]:
    if os.environ.get("DISTINPUT_KERNELS") == "reference":
        yield Advice(False, "DISTINPUT_KERNELS=reference: nothing is compiled, and many steps are slow; unset it")
    elif os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        yield Advice(False, "NUMBA_DISABLE_JIT is set: numba compiles nothing, and many steps are slow; unset it")
    elif missing := sum(not there for there in kernels.values()):
        yield Advice(
            False,
            f"{missing} of {len(kernels)} kernels are not compiled yet; programs compile them in the background when they need "
            "them. All at once, for all later programs: python -m distinput.kernels",
        )


def _of_machine(machine: Machine) -> Iterator[Advice]:
    if machine.core_quota is not None and machine.core_quota < machine.cores:
        yield Advice(
            False,
            f"this container may keep {machine.core_quota:g} of its {machine.cores} cores busy: choose num_parallel_calls "
            "by that, or let AUTOTUNE measure",
        )
    if machine.open_files is not None and machine.open_files < _FEW_FILES:
        yield Advice(
            False, f"a process may open {machine.open_files} files only: `ulimit -n 65536` before a job of many files"
        )
