# SPDX-License-Identifier: Apache-2.0
"""Known loaders, and what is told of them, each as a job and a law: to be found again, or to be seen mended."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from distinput.names.lazy import dataclass
from distinput.testing.judge.judging import judge
from distinput.testing.judge.loaders.records import files
from distinput.testing.judge.report import JudgeReport, Ruling

# ----------------------------------------------------------------------------
# A loader of a library that many use, as its own documentation shows it.
# ----------------------------------------------------------------------------


EVERY: Mapping[str, Any] = {"records": 97, "ranks": (1, 2, 3, 4), "batch": 4, "workers": (2,)}
"""What all loaders are tried in: a prime number of records, so that all numbers of ranks are uneven."""


def made(name: str) -> Callable[..., Any]:
    """The function of `package.module:function`.

    Raises:
      ValueError: the name has another form, or there is no such function.

    >>> made("distinput.testing.judge.loaders.known:made") is made
    True
    """
    module, _, function = name.partition(":")
    if not module or not function:
        raise ValueError(f"judge: a function is named MODULE:FUNCTION, got {name!r}")
    if module.endswith(".py"):
        raise ValueError(
            f"judge: a module is named without .py and with dots for folders, such as train:{function}, got {name!r}"
        )
    found = getattr(import_module(module), function, None)
    if found is None:
        raise ValueError(f"judge: module {module!r} has no function {function!r}")
    return found  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Known:
    """A loader to judge.

    Args:
      name: as it is printed.
      make: `package.module:function`.
      packages: what must be installed, by the names of the distributions.
      imports: names of the modules of these packages, where they differ.
      options: what it is tried in where that is not what all are tried in.
    """

    name: str
    make: str
    packages: tuple[str, ...]
    imports: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        """What is not installed."""
        names = self.imports or self.packages
        return [package for package, module in zip(self.packages, names, strict=True) if find_spec(module) is None]

    def judge(self, laws: Collection[str] | None = None, **options: Any) -> JudgeReport:
        """The report about it."""
        files()  # before there are processes, so that all of them use the same ones
        given = {**EVERY, **self.options, **options}
        return judge(made(self.make), name=self.name, packages=self.packages, laws=laws, **given)


# ----------------------------------------------------------------------------
# What is told of known loaders, each as a job and a law: to be found again, or to be seen mended.
# ----------------------------------------------------------------------------


_HERE = "distinput.testing.judge.loaders"


@dataclass(frozen=True)
class Case:
    """One loader in one job, under one law.

    Args:
      about: what is told, in words.
      known: the loader, with the job in its options.
      law: the law.
    """

    about: str
    known: Known
    law: str

    def finding(self) -> Ruling:
        """What the judge finds."""
        return self.known.judge([self.law])[self.law]


def _case(about: str, name: str, make: str, packages: tuple[str, ...], law: str, **options: Any) -> Case:
    given: Mapping[str, Any] = {"workers": (), **options}
    return Case(about, Known(name, f"{_HERE}.{make}", packages, options=given), law)


CASES: Mapping[str, Case] = {
    "steps of ElasticIterator": _case(
        "Grain's `ElasticIterator` gives ranks different numbers of steps",
        "Grain, `ElasticIterator`",
        "libraries:elastic",
        ("grain",),
        "equal steps",
        records=10,
        ranks=4,
        batch=1,
    ),
    "restart after shuffle": _case(
        "a stream of Hugging Face that was shuffled, and stopped after 300 of 1,000 records",
        "Hugging Face, `shuffle(buffer_size=128)`",
        "libraries:stream_in_128",
        ("datasets", "torchdata"),
        "restart",
        records=1000,
        ranks=1,
        batch=10,
        stops=(30,),
    ),
    "steps of split_by_node": _case(
        "WebDataset's `split_by_node` deals whole files, so ranks have very different numbers of steps",
        "WebDataset, `split_by_node`",
        "libraries:webdataset_split_by_node",
        ("webdataset", "torch"),
        "equal steps",
        records=103,
        ranks=2,
        batch=12,
    ),
    "duplicates of DistributedSampler": _case(
        "PyTorch's `DistributedSampler` evens ranks out with records that come twice",
        "PyTorch, `DistributedSampler`",
        "libraries:padding_sampler",
        ("torch",),
        "exactly once",
        records=10,
        ranks=4,
        batch=3,
    ),
    "batches by workers": _case(
        "batches of Grain's `DataLoader` depend on the number of its worker processes",
        "Grain, `DataLoader`",
        "libraries:index_loader",
        ("grain",),
        "workers",
        records=16,
        ranks=1,
        batch=2,
        workers=(2,),
    ),
}
"""The cases by name."""
