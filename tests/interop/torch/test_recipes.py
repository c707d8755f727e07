# SPDX-License-Identifier: Apache-2.0
"""Real loader workers, real ranks, and the programs of docs/feeds/pytorch.md, all in one process of their own.

One test, because loading Lightning and the Trainer takes longer than everything that is done with them.
"""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import distinput as di
from distinput.interop.torch import IterableView
from tests.engines.processes import start, wait_for
from tests.interop.torch.recipes import OF_RANKS, RANKS, recipes

DATASET = di.data.Dataset.range(22).shuffle(22, seed=1).batch(4)
EPOCHS = [[batch.tolist() for batch in DATASET.iter_pass(number)] for number in range(8)]


def of_rank(epoch: int, rank: int = 0) -> list[list[int]]:
    view = IterableView(DATASET, rank, 2)
    view.set_epoch(epoch)
    return [step.tolist() for step in view]


def test_real_workers_and_ranks_and_the_recipes_of_the_page(tmp_path: Path) -> None:
    output = tmp_path / "output.txt"
    with output.open("wb") as file:
        process = start(
            [sys.executable, "-m", "tests.interop.torch.recipes", str(tmp_path)], {"TQDM_DISABLE": "1"}, file, "torch"
        )
        wait_for([process], 240)
    answers = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.glob("*.json")}
    failed = {name: answer["error"] for name, answer in answers.items() if "error" in answer}
    assert not failed, "\n".join(f"{name}: {text}" for name, text in failed.items())
    found = {name: answer["result"] for name, answer in answers.items()}
    check_loader_workers(found)
    check_restarts(found)
    check_ranks(found)
    check_uses(found)
    for name, snippet in recipes().items():
        printed = found[f"{name}-0" if name in OF_RANKS else name]
        assert snippet.prints is not None
        assert printed.splitlines()[-1:] == snippet.prints.splitlines(), name


def check_loader_workers(found: dict[str, Any]) -> None:
    """Every kind of worker gives the same epochs, in new orders, and sees `set_epoch`."""
    expected = [of_rank(0), of_rank(1), of_rank(7)]
    for kind, epochs in found["loader_workers"].items():
        assert epochs == expected[: len(epochs)], kind
    # Two passes at once may be of one number, but each is whole.
    for steps in found["loaders_at_once"]:
        assert steps in expected[:2]


def check_restarts(found: dict[str, Any]) -> None:
    for number, epoch, rest, after in found["loader_restarts"]:
        assert epoch == 1 + number // 6
        assert [*EPOCHS[1], *EPOCHS[2]][number:][: len(rest)] == rest
        assert after == EPOCHS[epoch + 1]
    for workers in (0, 2) if importlib.util.find_spec("torchdata") else ():
        told = found[f"stateful-{workers}"]
        first, second, third = (of_rank(epoch) for epoch in range(3))
        assert told["epochs"] == [first, second, third]
        assert told["same"] == [[*second[2:], None, *third], [*third, None, *of_rank(3)]]
        assert told["elastic"] == [EPOCHS[1][2:]]


def check_ranks(found: dict[str, Any]) -> None:
    for rank in range(RANKS):
        assert found[f"forked-{rank}"] == [of_rank(0, rank), of_rank(1, rank)]
    if not importlib.util.find_spec("accelerate"):
        return
    told = [found[f"accelerate-{rank}"] for rank in range(RANKS)]
    for epoch in range(2):
        ranks = zip(*[rank["epochs"][epoch] for rank in told], strict=True)
        joined = [[row for part in parts for row in part] for parts in ranks]
        assert joined == EPOCHS[epoch]
    for rank in told:
        assert rank["kind"] == "Loader"
        assert rank["restored"]
        for name, sharder in (("dispatched", "DataLoaderDispatcher"), ("sharded", "IterableDatasetShard")):
            assert (
                f"InvalidArgumentError: IterableView: Accelerate's {sharder} would shard the batches again"
                in rank[name]
            )


def check_uses(found: dict[str, Any]) -> None:
    """Errors of workers arrive as they are; frameworks evaluate, predict and measure."""
    told = found["errors_of_workers"]
    assert told["missing"].startswith("NotFoundError: Caught NotFoundError in DataLoader worker process 0.")
    assert "missing.txt" in told["missing"]
    assert told["unordered"].startswith("InvalidArgumentError: Caught InvalidArgumentError in DataLoader worker")
    assert "in_order=False delivers steps in the order in which its workers finish" in told["unordered"]
    assert told["empty"].startswith("InputWarning: Caught InputWarning")
    assert told["corrected"].startswith("StateError: Caught StateError")
    assert told["taken"] == str(list(range(8)))
    if importlib.util.find_spec("lightning"):
        uses = found["uses-lightning"]
        batches = [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0]]
        assert uses.pop("overfit") == batches[:1] * 2
        assert all(seen == batches for seen in uses.values()), uses
    if importlib.util.find_spec("transformers"):
        uses = found["uses-transformers"]
        assert uses["predicted"] == [21, [float(n) for n in range(21)]]
        assert 40 < uses["trained"] < 44, "twice 21 records, in the digits that are printed"
        assert 20 < uses["evaluated"] < 22
