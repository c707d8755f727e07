# SPDX-License-Identifier: Apache-2.0
"""States that earlier versions saved are restored, for ever, and exactly the rest follows."""

import json
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import distinput
from distinput.columns.state import VERSION
from distinput.ops.first_come import FirstCome
from distinput.plan.families import walk_made
from distinput.plan.node import Node
from distinput.rewrite import rewrite
from tests.distribute.workers import on_workers
from tests.states.corpus import DISTRIBUTED, PIPELINES, put_data, shown
from tests.states.keep import HERE, MOST

FILES = sorted(HERE.glob("v*/*.json"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_data(tmp_path)
    monkeypatch.chdir(tmp_path)


def check(dataset: Any, passes: list[dict[str, Any]]) -> None:
    """Every state of one worker's passes is followed by what followed it when it was saved."""
    for kept in passes:
        for saved in kept["states"]:
            rest = kept["elements"][saved["after"] :]
            with dataset.restore(json.loads(json.dumps(saved["state"]))) as iterator:
                found = [shown(element) for element in islice(iterator, len(rest) if rest else None)]
                assert found == rest
                if saved["after"] + len(rest) < MOST:
                    assert next(iterator, None) is None


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_kept_state_is_restored(file: Path) -> None:
    kept = json.loads(file.read_text())
    if file.stem in PIPELINES:
        check(PIPELINES[file.stem](), kept["workers"][0])
        return
    replicas, make = DISTRIBUTED[file.stem]
    # Every worker is restored as often as the others, since they compare where they are.
    results = on_workers(
        replicas, lambda strategy, worker: check(make(strategy), kept["workers"][worker]), timeout=60.0
    )
    for result in results:
        if isinstance(result, Exception):
            raise result


@pytest.mark.parametrize("name", [*PIPELINES, *DISTRIBUTED])
def test_every_pipeline_of_the_corpus_has_states_of_this_version(name: str) -> None:
    file = HERE / f"v{VERSION}" / f"{name}.json"
    assert file.exists(), (
        "no state of this pipeline is kept yet: run python -m tests.states.keep and commit the new file"
    )
    passes = [kept for worker in json.loads(file.read_text())["workers"] for kept in worker]
    assert {saved["state"]["version"] for kept in passes for saved in kept["states"]} == {VERSION}


def ops(kind: type = Node) -> set[type]:
    """The classes of steps that distinput has."""
    for file in sorted((Path(distinput.__file__).parent / "ops").glob("*.py")):
        import_module(f"distinput.ops.{file.stem}")
    found: set[type] = (
        {kind} if kind.__module__.startswith("distinput.ops.") and not kind.__name__.startswith("_") else set()
    )
    return found.union(*[ops(inner) for inner in kind.__subclasses__()])


def test_the_corpus_has_every_op() -> None:
    seen: set[type] = set()

    def look(node: Node) -> None:
        for tree in (node, rewrite(node)[0]):
            seen.update([type(step) for step in walk_made(tree)])

    def fed(strategy: Any, _: int, make: Any) -> None:
        source: Any = make(strategy)._source
        pieces = [source.batches.pieces] if hasattr(source, "batches") else []
        for dataset in pieces or getattr(source, "datasets", None) or [source.dataset]:
            look(dataset.node)

    for make in PIPELINES.values():
        look(make().node)
    for replicas, distributed in DISTRIBUTED.values():
        for result in on_workers(replicas, partial(fed, make=distributed), timeout=60.0):
            if isinstance(result, Exception):
                raise result
    seen.add(FirstCome)  # its states are restored by the service that made them
    assert {kind.__name__ for kind in ops() if not any(issubclass(other, kind) for other in seen)} == set()
