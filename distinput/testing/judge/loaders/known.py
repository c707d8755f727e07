# SPDX-License-Identifier: Apache-2.0
"""A loader of a library that many use, as its own documentation shows it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from distinput.testing.judge.judging import judge
from distinput.testing.judge.loaders.records import files
from distinput.testing.judge.report import JudgeReport

__all__ = ["EVERY", "Known", "made"]

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
