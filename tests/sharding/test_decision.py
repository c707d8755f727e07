# SPDX-License-Identifier: Apache-2.0
"""Which policy is applied is decided once, by one function, and everybody who asks is told the same."""

from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.errors import NotFoundError
from distinput.plan.options import Decision, Share
from distinput.sharding.policies import TooFewFilesError, decide, policy_named, policy_of
from tests.distribute.workers import with_policy
from tests.sharding.ops_of_others import STRETCHES

POLICY = di.data.experimental.AutoShardPolicy


def lines(folder: Path, files: int) -> Dataset:
    for number in range(files):
        (folder / f"{number}.txt").write_text(f"{number}\n")
    return di.data.TextLineDataset(di.data.Dataset.list_files(str(folder / "*.txt"), shuffle=False))


@pytest.mark.parametrize(
    "files, workers, applied, reason",
    [
        (3, 2, "FILE", "enough_files"),
        (3, 3, "FILE", "enough_files"),
        (2, 3, "DATA", "too_few_files"),
        (2, 1, "FILE", "enough_files"),
    ],
)
def test_auto_is_file_where_there_are_enough(
    files: int, workers: int, applied: str, reason: str, tmp_path: Path
) -> None:
    decision = decide(lines(tmp_path, files).node, workers)
    assert (decision.asked.name, decision.applied.name, decision.reason) == ("AUTO", applied, reason)


def test_auto_is_data_where_there_are_no_files() -> None:
    decision = decide(di.data.Dataset.range(4).node, 2)
    assert (decision.applied.name, decision.reason) == ("DATA", "not_files")
    assert decision.sentence.endswith("not FILE, since range reads no files")


def test_file_that_cannot_be_is_an_error_of_the_decision(tmp_path: Path) -> None:
    with pytest.raises(TooFewFilesError, match="only has 2 file"):
        decide(lines(tmp_path, 2).node, 3, POLICY.FILE)
    with pytest.raises(NotFoundError, match="unshardable source dataset: range"):
        decide(di.data.Dataset.range(4).node, 2, POLICY.FILE)
    assert decide(di.data.Dataset.range(4).node, 1, POLICY.FILE).applied.name == "FILE"


@pytest.mark.parametrize("name", ["OFF", "DATA", "HINT", "BALANCED"])
def test_others_are_applied_as_asked(name: str) -> None:
    node = with_policy(di.data.Dataset.range(4), POLICY[name]).node
    policy = policy_named(name)
    assert decide(node, 2) == Decision(policy, policy, "asked", policy.sentence)
    assert policy_of(node) is policy


def test_what_is_asked_goes_before_the_options() -> None:
    node = with_policy(di.data.Dataset.range(4), POLICY.OFF).node
    assert decide(node, 2, POLICY.DATA).applied.name == "DATA"
    assert decide(node, 2, STRETCHES).applied is STRETCHES


class Counted:
    """A function that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, name: Any) -> Dataset:
        self.calls += 1
        return di.data.TextLineDataset(name)


def test_functions_are_called_for_the_decision_and_not_for_each_worker(tmp_path: Path) -> None:
    lines(tmp_path, 8)
    function = Counted()
    node = di.data.Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False).flat_map(function).batch(4).node
    decision = decide(node, 8)
    calls = function.calls
    assert decide(node, 8) == decision
    trees = [decision.applied.shard(node, Share(8, worker)) for worker in range(8)]
    assert function.calls == calls
    assert [Dataset(tree).to_list() for tree in trees] == [[[b"%d" % worker]] for worker in range(8)]


def test_names_are_listed_once_for_a_decision(tmp_path: Path) -> None:
    lines(tmp_path, 3)
    listed: list[bytes] = []

    def seen(name: bytes) -> bool:
        listed.append(name)
        return True

    names = di.data.Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False).filter(seen)
    dataset = di.data.TextLineDataset(names)
    assert dataset.node.spec is not None
    listed.clear()
    decision = decide(dataset.node, 3)
    assert (decision.applied.name, len(listed)) == ("FILE", 3)
    listed.clear()
    decision.applied.shard(dataset.node, Share(3, 0))
    assert listed == []
