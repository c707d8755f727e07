# SPDX-License-Identifier: Apache-2.0
"""The words that describe a job."""

import argparse

import pytest

import distinput as di
from distinput.cli import dataset_commands
from distinput.cli.dataset_commands import add_job, on_workers
from distinput.errors import InvalidArgumentError, UnimplementedError

DATASET = di.data.Dataset.range(8).batch(4)


def given(monkeypatch: pytest.MonkeyPatch, found: object, *words: str) -> argparse.Namespace:
    monkeypatch.setattr(dataset_commands, "load", lambda _: found)
    parser = argparse.ArgumentParser()
    add_job(parser)
    return parser.parse_args(["train:ds", *words])


def test_a_dataset_is_cut_for_the_workers_and_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    words = given(monkeypatch, DATASET, "--workers", "3", "--replicas", "2")
    assert on_workers(words, lambda d: d._source.terms.replicas.total) == [6, 6, 6]
    assert on_workers(given(monkeypatch, DATASET), lambda d: d._source.terms.replicas.total) == [1]


def test_a_distributed_dataset_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = di.distribute.MirroredStrategy(["CPU:0"]).experimental_distribute_dataset(DATASET)
    assert on_workers(given(monkeypatch, distributed), lambda d: d is distributed) == [True]


def test_errors_keep_their_kind_where_they_are_the_librarys(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise UnimplementedError("not that")

    with pytest.raises(UnimplementedError, match=r"^not that$"):
        on_workers(given(monkeypatch, DATASET), refuse)
    with pytest.raises(InvalidArgumentError, match=r"train:ds: .*no batch axis"):
        on_workers(given(monkeypatch, DATASET.unbatch(), "--replicas", "2"), lambda d: d.num_steps)
