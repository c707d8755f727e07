# SPDX-License-Identifier: Apache-2.0
"""The packages that distinput needs or can use, as its own metadata names them; none is imported."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata

__all__ = ["Package", "packages"]

_OF_DEVELOPERS = frozenset({"bench", "docs", "engines", "lint", "neighbours", "proofs", "test"})
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
        return (
            f"pip install --upgrade '{self.name}>={self.least}'"
            if not self.extra
            else f"pip install -U 'distinput[{self.extra}]'"
        )


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
