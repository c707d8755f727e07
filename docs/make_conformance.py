# SPDX-License-Identifier: Apache-2.0
"""Writes docs/conformance.md, the laws that known loaders keep, and the table of docs/feeds/worker_dies.md.

python docs/make_conformance.py                        write the pages; says which packages are missing
python docs/make_conformance.py --also PYTHON...       with interpreters of other environments for what is missing here
python docs/make_conformance.py --print                print the page of conformance
python docs/make_conformance.py --reports FILE...      take what `python -m distinput.testing.judge --all --json` printed
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from distinput.testing.judge.laws import LAWS
from distinput.testing.judge.loaders import LOADERS
from distinput.testing.judge.loaders.known import CASES, EVERY, Known
from distinput.testing.judge.report import (
    WORDS,
    JudgeReport,
    Verdict,
    as_markdown,
    cell,
    parsed,
    verdict_cell,
)

PAGE = Path(__file__).parent / "conformance.md"
DEATHS = Path(__file__).parent / "feeds" / "worker_dies.md"
OF_DEATHS = ("worker killed", "rank killed", "restart", "restart twice", "elastic restart")
"""The laws of the table in `DEATHS`."""

HEAD = """<!-- Written by docs/make_conformance.py; do not change it by hand. -->
# Conformance of loaders

Which loaders deliver each record once, end on all ranks together, and go on where they stopped? This command finds out, and
writes the page:

```
python docs/make_conformance.py
```

The [judge of loaders](judge.md) runs each loader, as its own documentation shows it, in jobs of {ranks} ranks with
{records} records in batches of {batch}. A verdict follows from
what the loader delivered and from nothing else; each section names the versions. Loaders that shuffle have a seed. Loaders
that start slowly run in jobs of 1 and 2 ranks, and stop after steps 1 and 5. Each verdict links to the jobs and to what they
showed.

* *kept*: the law held in all jobs.
* *broken*: the law did not hold in some job. The link leads to the first such job and what it showed. A loader that makes no
  step for a minute is broken too, and nothing more is tried with it. A library may not claim to keep the law:
  `DistributedSampler` says that it repeats records. The verdict says what a job gets.
* *refused*: in some job the loader raised an error before it delivered anything. Nothing is lost silently.
* {none}: the loader does not offer what the law needs, or runs here without it.

{laws}

"""

TOLD = """
## Known faults, reproduced

Others have reported these faults. Each line is one job that tests one law (`CASES` in `distinput.testing.judge.loaders.known`).

| reported | versions | what the job showed |
|---|---|---|
"""

KILLED = "## A killed input worker"
"""The section that docs/make_killed_worker.py writes."""

SAYS = {
    "exactly once": "all ranks together get each record once",
    "equal steps": "all ranks make the same number of steps; otherwise a collective in the loop waits forever",
    "partial batches": "only the last step is partial, and has exactly the remaining rows",
    "same order": "a loader that is made again gives the same steps",
    "seeds": "another seed gives another order",
    "epochs": "the second epoch has every record, in another order",
    "workers": "with two worker processes the steps are the same",
    "restart": "the state after any step gives exactly the rest",
    "restart twice": "a loader that was restarted has states that also give exactly the rest",
    "elastic restart": "a state gives exactly the rest on another number of ranks too",
    "rank killed": "after SIGKILL to a rank, a new process goes on with exactly the rest",
    "worker killed": "after SIGKILL to a worker process there is an error, or nothing is lost",
    "nothing left": "no thread, process or open file is left behind",
}
"""The laws in a line each."""


def page(reports: Sequence[JudgeReport]) -> str:
    """The whole page.

    Args:
      reports: of the known loaders, in the order of the table.
    """
    ranks = ", ".join(map(str, EVERY["ranks"]))
    laws = "\n".join([f"* *{law}*: {SAYS[law]}." for law in LAWS])
    head = HEAD.format(laws=laws, none=WORDS[Verdict.NOT_JUDGED], **{**EVERY, "ranks": ranks})
    return head + as_markdown(reports) + TOLD + "".join(_cases())


def deaths(reports: Sequence[JudgeReport], text: str) -> str:
    """The page about workers that die, with a new table.

    Args:
      reports: of the known loaders, in the order of the table.
      text: the page.
    """
    before, rest = text[: text.index("| loader |")], text[text.index("| loader |") :]
    lines = [f"| loader | {' | '.join(OF_DEATHS)} |", "|---" * (len(OF_DEATHS) + 1) + "|"]
    page = "../conformance.md"
    for report in reports:
        cells = [verdict_cell(report, law, page) for law in OF_DEATHS]
        lines.append(f"| {' | '.join([cell(report.name, report, page), *cells])} |")
    return before + "\n".join(lines) + "\n" + rest[rest.index("\n\n") + 1 :]


def elsewhere(known: Known, pythons: Sequence[str]) -> JudgeReport | None:
    """The report of the first other interpreter that has the packages of a loader; None if none has.

    Args:
      known: the loader.
      pythons: paths of interpreters.
    """
    for python in pythons:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "report.json")
            words = ["-m", "distinput.testing.judge", "--all", "--only", known.name, "--output", str(file)]
            environment = {**os.environ, "PYTHONPATH": str(PAGE.parents[1])}
            subprocess.run([python, *words], env=environment, stdout=subprocess.DEVNULL, check=True)
            if reports := parsed(file.read_text("utf-8")):
                return reports[0]
    return None


def _cases() -> list[str]:
    lines = []
    for case in CASES.values():
        if case.known.missing:
            continue
        report = case.known.judge([case.law])
        finding = report[case.law]
        said = finding.says if finding.verdict is Verdict.BROKEN else f"{finding.verdict.value}: {finding.says}"
        versions = ", ".join([f"{name} {version}" for name, version in report.versions.items()])
        lines.append(f"| {case.about} | {versions} | {said} |\n")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; see the module."""
    parser = argparse.ArgumentParser(description="judge all known loaders and write the page")
    parser.add_argument("--print", action="store_true", help="print the page, write nothing")
    parser.add_argument("--reports", nargs="+", type=Path, metavar="FILE", help="reports that were made before")
    parser.add_argument("--also", nargs="+", default=[], metavar="PYTHON", help="interpreters of other environments")
    given = parser.parse_args(arguments)
    ready = {report.name: report for path in given.reports or () for report in parsed(path.read_text("utf-8"))}
    missing = set()
    for known in LOADERS:
        if known.name not in ready:
            report = known.judge() if not known.missing else elsewhere(known, given.also)
            missing |= set(known.missing) if report is None else set()
            ready |= {} if report is None else {known.name: report}
    if missing:
        print(f"not installed: {', '.join(sorted(missing))}", file=sys.stderr)
        if not given.print:
            return 1
    reports = [ready[known.name] for known in LOADERS if known.name in ready]
    text = page(reports) + "\n" + "".join(PAGE.read_text("utf-8").partition(KILLED)[1:])
    if given.print:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")
        DEATHS.write_text(deaths(reports, DEATHS.read_text("utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
