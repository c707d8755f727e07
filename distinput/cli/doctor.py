# SPDX-License-Identifier: Apache-2.0
"""`distinput doctor`: what is installed here, what the machine offers, and what would make it faster."""

import argparse
from collections.abc import Sequence

from distinput.cli.arguments import add_json
from distinput.cli.exit_status import FINE, FOUND
from distinput.cli.output import print_json, print_table
from distinput.diagnosis import Diagnosis, diagnose
from distinput.diagnosis.diagnosis import ENGINES, PURPOSES
from distinput.diagnosis.packages import Package

__all__ = ["add_arguments", "run"]

_GIB = 1 << 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput doctor`."""
    parser.description = (
        "Say what is installed here, what the machine offers, which loops are compiled, and what would make distinput faster. "
        "Nothing is installed or compiled for it. The exit status is 3 if a package that is needed is missing or too old."
    )
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Look, and say."""
    found = diagnose()
    print_json(found.to_dict()) if given.json else _print(found)
    return FINE if found.well else FOUND


def _print(found: Diagnosis) -> None:
    machine = found.machine
    quota = f" ({machine.core_quota:g} of them busy at a time)" if machine.core_quota is not None else ""
    memory = "memory not known" if machine.memory is None else f"{machine.memory / _GIB:.3g} GiB of memory"
    print(f"distinput {found.version}, Python {machine.python}, {machine.system}")
    print(
        f"{machine.cores} cores{quota}, {memory}, {sum(found.kernels.values())} of {len(found.kernels)} kernels compiled\n"
    )
    print_table(("package", "version", "needs", "extra", "what for"), [*map(_line, _in_order(found.packages))])
    if found.advice:
        print()
    for one in found.advice:
        print(f"{'WRONG' if one.wrong else 'better'}: {one.text}")


def _in_order(packages: Sequence[Package]) -> list[Package]:
    """What is needed, then engines, then the rest."""
    return sorted(packages, key=lambda one: (one.extra != "", one.extra not in ENGINES, one.extra, one.name))


def _line(one: Package) -> Sequence[str]:
    needs = f">={one.least}" if one.least else "any"
    what = PURPOSES.get(one.extra, "") if one.extra else "needed"
    return (one.name, one.found or "-", needs, one.extra or "-", what)
