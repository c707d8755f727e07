# SPDX-License-Identifier: Apache-2.0
"""The report about one loader."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from distinput.testing.judge.finding import Ruling, Verdict

__all__ = ["JudgeReport", "parsed"]

_MARKS = {Verdict.KEPT: "kept", Verdict.REFUSED: "refused", Verdict.BROKEN: "BROKEN", Verdict.NOT_JUDGED: "-"}


@dataclass(frozen=True)
class JudgeReport:
    """What the laws say about a loader.

    Args:
      name: of the loader.
      findings: one for each law, in order.
      jobs: what it was tried in, in words.
      versions: of the packages that it needs.
      seconds: how long the trial took.

    >>> from distinput.testing.judge.finding import Ruling, Verdict
    >>> report = JudgeReport("mine", (Ruling(Verdict.BROKEN, "2 lost (8, 9)", {"lost": 2}, "exactly once"),))
    >>> report.ok, report["exactly once"].figures["lost"]
    (False, 2)
    >>> print(report)
    mine: 1 of 1 laws is broken
      BROKEN   exactly once  2 lost (8, 9)
    """

    name: str
    findings: tuple[Ruling, ...]
    jobs: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def __getitem__(self, law: str) -> Ruling:
        """The finding of a law.

        Raises:
          KeyError: it was not judged in this trial at all.
        """
        for finding in self.findings:
            if finding.law == law:
                return finding
        raise KeyError(f"judge: no finding of law {law!r}; there are {', '.join(each.law for each in self.findings)}")

    def _with(self, *verdicts: Verdict) -> tuple[str, ...]:
        return tuple([each.law for each in self.findings if each.verdict in verdicts])

    @property
    def broken(self) -> tuple[str, ...]:
        """The laws that are broken."""
        return self._with(Verdict.BROKEN)

    @property
    def kept(self) -> tuple[str, ...]:
        """The laws that are kept in all jobs."""
        return self._with(Verdict.KEPT)

    @property
    def refused(self) -> tuple[str, ...]:
        """The laws in a job of which the loader raised an error before it delivered anything."""
        return self._with(Verdict.REFUSED)

    @property
    def not_judged(self) -> tuple[str, ...]:
        """The laws about what the loader does not offer."""
        return self._with(Verdict.NOT_JUDGED)

    @property
    def ok(self) -> bool:
        """No law is broken."""
        return not self.broken

    def __str__(self) -> str:
        """One line a law."""
        judged = len(self.findings) - len(self.not_judged)
        bad = len(self.broken)
        said = "no law is broken" if not bad else f"{bad} of {judged} laws {'is' if bad == 1 else 'are'} broken"
        packages = ", ".join([f"{name} {version}" for name, version in self.versions.items()])
        width = max((len(each.law) for each in self.findings), default=0)
        lines = [f"{self.name}{f' ({packages})' if packages else ''}: {said}"]
        lines += [f"  {_MARKS[each.verdict]:7}  {each.law:{width}}  {each.says}" for each in self.findings]
        return "\n".join(lines)

    def check(self) -> None:
        """Refuse a loader that breaks a law.

        Raises:
          AssertionError: with the whole report.
        """
        if not self.ok:
            raise AssertionError(str(self))

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "name": self.name,
            "ok": self.ok,
            "versions": dict(self.versions),
            "jobs": list(self.jobs),
            "seconds": round(self.seconds, 3),
            "findings": [each.to_json() for each in self.findings],
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "JudgeReport":
        """What `to_json` gave."""
        findings = tuple(map(Ruling.from_json, value["findings"]))
        return JudgeReport(value["name"], findings, tuple(value["jobs"]), value["versions"], value["seconds"])


def parsed(text: str) -> list[JudgeReport]:
    """The reports in a JSON file of one or more."""
    value = json.loads(text)
    return [JudgeReport.from_json(each) for each in (value if isinstance(value, list) else [value])]
