# SPDX-License-Identifier: Apache-2.0
"""Facts that must be equal on all workers before they take steps, as small JSON values; differences in words."""

import json
import platform
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distinput.core.digest import Digest
from distinput.distribute.input.names import NameList, names_said
from distinput.plan.describe import describe
from distinput.plan.node import Node

__all__ = ["JobFacts", "differing_files", "file_names", "groups", "of_pipeline", "said"]

JobFacts = Mapping[str, Any]
"""`about`: named values that must be equal; `steps`: the pipeline, None if it may differ; `python`: for functions."""

_LETTERS = 100
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PUBLIC = {
    "choose": "choose_from_datasets",
    "draw": "sample_from_datasets",
    "files": "file names",
    "generator": "from_generator",
    "slices": "from_tensor_slices",
}
_DECIDING = ("filter", "take_while")
"""Ops whose functions select elements. Other functions may hold values that differ per worker, such as a folder."""
_MOST = 3


def of_pipeline(node: Node) -> list[Any]:
    """A description of each step of a tree, inputs first, without folders and modification times of files."""
    return [_of_step(step) for step in node.steps]


def _of_step(step: Node) -> dict[str, Any]:
    given = {name: _text(value) for name, value in step.arguments().items() if name not in step.indifferent}
    found = {"op": step.op, "inputs": len(step.inputs), "given": given, **step.identity, **step.file_facts()}
    return {name: fact for name, fact in found.items() if name not in ("each", "root", "step", "times")}


def _text(value: Any) -> str:
    """An argument as text, the same in every process; a long text is truncated and ends with a digest of all of it."""
    if isinstance(value, Mapping):
        text = "{" + ", ".join(sorted([f"{_text(k)}: {_text(v)}" for k, v in value.items()])) + "}"
    elif isinstance(value, set | frozenset):
        text = "{" + ", ".join(sorted(map(_text, value))) + "}"
    else:
        text = value if isinstance(value, str) else _ADDRESS.sub("", describe(value, None))
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS // 2]}... ({Digest(3).add(text).word})"


PYTHON = f"{platform.python_implementation()} {platform.python_version()}"


def groups(facts: Sequence[Any]) -> list[list[int]]:
    """Groups of workers with equal values, each in order; largest first, ties by their first worker."""
    texts = [json.dumps(fact, sort_keys=True) for fact in facts]
    counts = Counter(texts)
    order = sorted(counts, key=lambda text: (-counts[text], texts.index(text)))
    return [[worker for worker, text in enumerate(texts) if text == one] for one in order]


def said(facts: Sequence[JobFacts], names: Mapping[int, Mapping[int, NameList]]) -> tuple[list[str], list[str]]:
    """The differences between workers: a sentence for each, and hints about harmless ones that may explain a mismatch.

    Args:
      facts: the facts of each worker.
      names: the file names for the steps in `differing_files`: step -> worker -> names.
    """
    first, *others = groups(facts)
    wrong: list[str] = []
    hints: list[str] = []
    for group in others:
        compared = _Pair(facts[group[0]], facts[first[0]], _who(group), _who(first[:1]))
        here = {step: (of[group[0]], of[first[0]]) for step, of in names.items()}
        wrong += compared.about() or list(compared.steps(here))
        hints += compared.hints()
    return wrong, hints


def _who(workers: Sequence[int]) -> str:
    if len(workers) == 1:
        return f"worker {workers[0]}"
    some = ", ".join(map(str, workers[:_MOST]))
    return f"workers {some}" + (f" and {len(workers) - _MOST} more" if len(workers) > _MOST else "")


def differing_files(facts: Sequence[JobFacts]) -> list[int]:
    """The steps whose lists of files differ, so that workers have to exchange the names."""
    pipelines = [fact["steps"] for fact in facts]
    if any(steps is None for steps in pipelines) or len({len(steps) for steps in pipelines}) > 1:
        return []
    found = []
    for number, steps in enumerate(zip(*pipelines, strict=True)):
        told = [(step.get("files"), step.get("set"), step.get("sizes"), _contents(step)) for step in steps]
        if all(step.get("files") for step in steps) and any(one != told[0] for one in told):
            found.append(number)
    return found


def file_names(node: Node, steps: Sequence[int]) -> dict[str, Any]:
    """The files named by some steps of a tree, as JSON for `NameList`."""
    return {str(number): NameList.of(node.steps[number].names).as_json() for number in steps}  # type: ignore[attr-defined]


class _Pair:
    """A comparison of two workers, the second of which is in the majority."""

    def __init__(self, here: JobFacts, there: JobFacts, who: str, whom: str) -> None:
        self._here, self._there, self._who, self._whom = here, there, who, whom

    def about(self) -> list[str]:
        """Differences outside the pipeline, such as versions and options."""
        here, there = self._here["about"], self._there["about"]
        return [
            f"{self._who}: {name} {here.get(name)}, {self._whom}: {there.get(name)}"
            for name in {**there, **here}
            if here.get(name) != there.get(name)
        ]

    def steps(self, names: Mapping[int, tuple[NameList, NameList]]) -> Iterator[str]:
        """Differences between the steps of the pipelines."""
        here, there = self._here["steps"], self._there["steps"]
        if here is None or there is None:
            return
        for number, (a, b) in enumerate(zip(here, there, strict=False), 1):
            if (a["op"], a["inputs"]) != (b["op"], b["inputs"]):
                yield f"{self._who}: step {number} is {_name(a)}, {self._whom}: {_name(b)}"
                return
        if len(here) != len(there):
            ends = [f"{len(steps)} steps, the last one {_name(steps[-1])}" for steps in (here, there)]
            yield f"{self._who}: {ends[0]}, {self._whom}: {ends[1]}"
            return
        for number, (a, b) in enumerate(zip(here, there, strict=True), 1):
            for text in self._step(a, b, names.get(number - 1)):
                yield f"{self._who}: step {number} ({_name(a)}): {text}"

    def _step(self, a: Any, b: Any, names: tuple[NameList, NameList] | None) -> Iterator[str]:
        if names is not None:
            yield from names_said(*names, self._whom)
            return
        if a["given"] != b["given"]:
            for name in {**b["given"], **a["given"]}:
                mine, other = a["given"].get(name), b["given"].get(name)
                if mine != other:
                    yield f"{name} {mine}, {self._whom}: {name} {other}"
            return
        if a.get("format") != b.get("format"):
            yield f"reads its files with other options than {self._whom}"
        if self._same_python and _code(a) != _code(b):
            yield f"its function does something else than that of {self._whom}"
        if a["op"] in _DECIDING and a.get("held") != b.get("held"):
            yield f"its function reads other values from outside than that of {self._whom}"
        if _contents(a) != _contents(b):
            yield f"holds other values than {self._whom}"

    def hints(self) -> list[str]:
        """Differences that are allowed, but may explain why elements differ."""
        here, there = self._here["steps"], self._there["steps"]
        found = []
        for number, (a, b) in enumerate(zip(here or (), there or (), strict=False), 1):
            if a.get("held") != b.get("held"):
                found.append(
                    f"{self._who}: the function of step {number} ({_name(a)}) reads other values from outside than that of "
                    f"{self._whom}"
                )
        return found

    @property
    def _same_python(self) -> bool:
        return bool(self._here["python"] == self._there["python"])


def _name(step: Any) -> str:
    return _PUBLIC.get(step["op"], str(step["op"]))


def _code(step: Any) -> Sequence[str]:
    """A digest of what the function of a step does, regardless of its name and of the names it uses."""
    return str(step.get("code", "")).split(" ")[:2]


def _contents(step: Any) -> Any:
    """The names below their common folder, or the values of an array."""
    return step.get("under", step.get("values"))
