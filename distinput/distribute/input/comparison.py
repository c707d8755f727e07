# SPDX-License-Identifier: Apache-2.0
"""Compares what the workers have built: facts that must be equal before they take steps; differences in words."""

import os
import platform
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from distinput.columns.state import Digest, common_folder
from distinput.distribute.core.options import InputOptions
from distinput.distribute.core.replicas import CallDescription, Peers
from distinput.errors import FailedPreconditionError, StateError
from distinput.names.lazy import dataclass, library
from distinput.plan.families import fresh_seed
from distinput.plan.node import INFINITE, Node, describe
from distinput.sharding.own_rows import batch_size_of
from distinput.sharding.policies import policy_of
from distinput.values.spec import Spec

if TYPE_CHECKING:
    from distinput.files.manifest import NamesFingerprint

json = library("json")  # for several workers

# ---- Describes how the file lists of two workers differ, even if their machines keep the files in different folders

MOST = 10_000
"""The most names that a worker sends to the others."""
_SHOWN = 3
_TRIED = 20


@dataclass(frozen=True)
class NameList:
    """The names of files and their sizes, -1 if unknown.

    Args:
      paths: the first `MOST` of them.
      sizes: the size of each in bytes.
      count: the number of all files.
    """

    paths: list[str]
    sizes: list[int]
    count: int

    @classmethod
    def of(cls, names: "NamesFingerprint") -> Self:
        """The list of the files named by a step."""
        count = int(names.words["files"])
        first = range(min(count, MOST))
        return cls([names.path(i) for i in first], [names.local_size(i) for i in first], count)

    def as_json(self) -> list[Any]:
        """The fields as JSON, for `NameList(*json)`."""
        return [self.paths, self.sizes, self.count]


def names_said(here: NameList, there: NameList, whom: str) -> Iterator[str]:
    """The differences between the files of one worker and those of another, `whom`."""
    mine, theirs = _aligned(here.paths, there.paths)
    missing, extra = [n for n in theirs if n not in set(mine)], [n for n in mine if n not in set(theirs)]
    if missing or extra or here.count != there.count:
        which = [f"{_some(missing)} missing"] * bool(missing) + [f"{_some(extra)} not there on {whom}"] * bool(extra)
        yield f"{_count(here.count)}, {whom}: {_count(there.count)}" + (": " + ", ".join(which) if which else "")
        return
    if mine != theirs:
        at = next(i for i, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b)
        yield (
            f"the same {_count(here.count)} in another order: file {at + 1} is {mine[at]}, {whom}: {theirs[at]}; "
            "sort them on every worker"
        )
        return
    for name, a, b in zip(mine, here.sizes, there.sizes, strict=True):
        if a != b:
            yield f"{name} {_bytes(a)}, {whom}: {_bytes(b)}"
            return
    yield f"its files are others than those of {whom}, or are being written"


def _aligned(here: Sequence[str], there: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names without the folders in which the two workers keep them, as far as these can be recognised.

    >>> _aligned(["/a/x/1", "/a/x/2"], ["/b/c/x/1", "/b/c/y/3"])
    (['x/1', 'x/2'], ['x/1', 'y/3'])
    """
    mine, theirs = _below(here, _folder(here)), _below(there, _folder(there))
    most = len(set(mine) & set(theirs))
    for path in here[:_TRIED]:
        for other in [one for one in there if os.path.basename(one) == os.path.basename(path)][:_TRIED]:
            folders = _before_the_same(path, other)
            if all(one.startswith(folders[0]) for one in here) and all(one.startswith(folders[1]) for one in there):
                cut = _below(here, folders[0]), _below(there, folders[1])
                equal = len(set(cut[0]) & set(cut[1]))
                if equal > most:
                    (mine, theirs), most = cut, equal
    folder = _folder([*mine, *theirs])
    return _below(mine, folder), _below(theirs, folder)


def _before_the_same(a: str, b: str) -> tuple[str, str]:
    """Two paths without their common ending."""
    left, right = a.split("/"), b.split("/")
    while left and right and left[-1] == right[-1]:
        left.pop()
        right.pop()
    return tuple("/".join([*parts, ""]) if parts else "" for parts in (left, right))  # type: ignore[return-value]


def _folder(paths: Sequence[str]) -> str:
    return os.fsdecode(common_folder([os.fsencode(path) for path in paths]))


def _below(paths: Sequence[str], folder: str) -> list[str]:
    return [path[len(folder) :] for path in paths]


def _count(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"


def _bytes(size: int) -> str:
    return "cannot be read" if size < 0 else f"has {size} bytes"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    return f"{shown} {'is' if len(names) == 1 else 'are'}"


# ---- Facts that must be equal on all workers before they take steps, as small JSON values; differences in words

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
    return {name: fact for name, fact in found.items() if name not in ("each", "root", "step", "tags", "times")}


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


# ---- Before the first step, workers compare what they built and where they begin, and raise if that does not match


def compare_datasets(
    peers: Peers,
    dataset: Any,
    refusal: Exception | None,
    options: InputOptions,
    call: str = "experimental_distribute_dataset",
) -> tuple[int, Sequence[str]]:
    """Agree on a seed; return it, with the harmless differences between the workers' datasets of global batches.

    Args:
      peers: the workers.
      dataset: this worker's.
      refusal: the error for which this worker cannot distribute it; raised on all workers.
      options: how it is distributed.
      call: what distributes it, for messages.

    Raises:
      FailedPreconditionError: the workers built different datasets.
    """

    def facts() -> tuple[JobFacts, Node]:
        if refusal is not None:
            raise refusal
        node, policy = dataset.node, policy_of(dataset.node)
        about = {
            **_about([dataset]),
            "policy": policy.name, "balanced_split": options.balanced_split, "tail": options.tail,
        }  # fmt: skip
        may_differ = not policy.divides and not options.balanced_split
        if may_differ:
            about["global batch size"] = batch_size_of(node)
        return _facts(about, None if may_differ else of_pipeline(node)), node

    cure = "Build the dataset alike on every worker, with policy OFF if the data is to differ"
    return _compare(peers, call, facts, cure)


def compare_inputs(peers: Peers, make: Callable[[], Sequence[Any]]) -> None:
    """Check that a user's function made datasets with elements of the same kind on all workers; the data may differ.

    Args:
      peers: the workers.
      make: returns the datasets of this worker; an error that it raises is raised on all workers.

    Raises:
      FailedPreconditionError: the elements differ in kind, or only some of the datasets end.
    """
    cure = "Let the function return datasets of the same elements on every worker"
    _compare(peers, "distribute_datasets_from_function", lambda: (_facts(_about(make()), None), None), cure)


def _about(datasets: Sequence[Any]) -> dict[str, Any]:
    spec = Spec.of(datasets[0].element_spec)
    kinds = [str(getattr(leaf, "dtype", "dataset")) for leaf in spec.leaves]
    named = [f"{path} {kind}".strip() for path, kind in zip(spec.structure.paths, kinds, strict=True)]
    return {
        "distinput": str(sys.modules["distinput"].__version__),
        "elements": ", ".join(named) or "nothing",
        "endless": any(int(dataset.cardinality()) == INFINITE for dataset in datasets),
    }


def _facts(about: dict[str, Any], steps: list[Any] | None) -> JobFacts:
    return {"about": about, "steps": steps, "python": PYTHON}


def _compare(
    peers: Peers, call: str, make: Callable[[], tuple[JobFacts, Node | None]], cure: str
) -> tuple[int, Sequence[str]]:
    """Compare digests of all facts; if they differ, the facts themselves; and if files differ, their names."""
    made: list[tuple[JobFacts, Node | None]] = []

    def word() -> tuple[Any, Sequence[Any]]:
        made.append(make())
        return [Digest(8).add(json.dumps(made[0][0], sort_keys=True)).word, fresh_seed()], []

    words = [note for note, _ in peers.exchange(CallDescription(f"{call}: the dataset"), word)]
    seed = int(words[0][1])
    if len({word for word, _ in words}) == 1:
        return seed, []
    (mine, node), *_ = made
    facts = [note for note, _ in peers.exchange(CallDescription(f"{call}: what differs"), lambda: (mine, []))]
    names: dict[int, dict[int, NameList]] = {}
    if node is not None and (numbers := differing_files(facts)):
        own = file_names(node, numbers)
        told = [note for note, _ in peers.exchange(CallDescription(f"{call}: the files"), lambda: (own, []))]
        names = {n: {w: NameList(*note[str(n)]) for w, note in enumerate(told)} for n in numbers}
    wrong, hints = said(facts, names)
    if wrong:
        raise FailedPreconditionError(
            f"{call}: the workers built different datasets, so records would be lost or delivered twice, or workers "
            f"would wait for each other forever: {'; '.join(wrong)}. {cure}"
        )
    return seed, hints


@dataclass(frozen=True)
class Beginning:
    """The place from which a worker takes steps.

    Args:
      step: how many steps were taken before.
      ended: True if there are no more.
      restored: True if it continues from a saved state.
      number: the number of the pass; None if workers may begin different passes.
      seeds: the seeds that were drawn; None if workers may draw different ones.
      skip: the ranges of steps that are left out.
    """

    step: int
    ended: bool
    restored: bool
    number: int | None = None
    seeds: Sequence[int] | None = None
    skip: Sequence[tuple[int, int]] = ()

    def as_json(self) -> list[Any]:
        """The fields as a few short values, which are sent with the call."""
        seeds = None if self.seeds is None else Digest(3).add(list(self.seeds)).word
        skip = Digest(3).add([list(each) for each in self.skip]).word if self.skip else None
        return [self.step, self.ended, self.number, seeds, skip, self.restored]


def compare_beginnings(peers: Peers, beginning: Beginning) -> None:
    """Check that all workers begin at the same place.

    Args:
      peers: the workers.
      beginning: the place of this worker.

    Raises:
      StateError: some workers were restored, and not all of them to the same place.
      FailedPreconditionError: they begin different passes.
    """
    # Named, since one worker may continue from a checkpoint and another begin anew, at different places in the program.
    description = CallDescription("DistributedIterator: where it begins", name="where an iteration begins")
    places = [note for note, _ in peers.exchange(description, lambda: (beginning.as_json(), []), peers.control)]
    first, *others = groups([one[:-1] for one in places])
    if not others:
        return
    there = places[first[0]]
    wrong = []
    for worker in sorted(group[0] for group in others):
        here = places[worker]
        fact = next(i for i, (a, b) in enumerate(zip(here, there, strict=True)) if a != b)
        wrong.append(f"worker {worker} {_place(here, fact)}, worker {first[0]} {_place(there, fact)}")
    restored = any(one[-1] for one in places)
    cure = "restore the same checkpoint on every worker" if restored else "begin as many passes on every worker"
    raise (StateError if restored else FailedPreconditionError)(
        f"DistributedIterator: all workers must be at the same place, but {'; '.join(wrong)}; {cure}"
    )


def _place(place: Sequence[Any], fact: int) -> str:
    """A place in words, with the fact in which it differs from another place."""
    step, ended, number, _, _, restored = place
    return (
        f"{'restores' if restored else 'begins at'} step {step}"
        + (
            "",
            ", the end" if ended else ", not the end",
            f" of pass {number}",
            " of a shuffle with other seeds",
            ", leaving out other steps (skip=)",
        )[fact]
    )
