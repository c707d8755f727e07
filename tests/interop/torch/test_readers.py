# SPDX-License-Identifier: Apache-2.0
"""What reads a view, seen from the frames of the call."""

import weakref

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import distinput as di
from distinput.interop.torch import Loader
from distinput.interop.torch.readers import ViewReader, reader, starts_worker


class IterableDatasetShard:
    def read(self) -> ViewReader:
        return (lambda: reader())()


class _IterableDatasetFetcher:
    def __init__(self, collates: bool) -> None:
        self.auto_collation = collates
        self.seen = reader()


def test_without_ranks_or_workers_there_is_one_reader() -> None:
    assert reader() == ViewReader()


def test_a_class_that_shards_is_seen_by_its_name() -> None:
    assert IterableDatasetShard().read() == ViewReader(sharder="IterableDatasetShard")


def test_a_dataloader_says_whether_it_batches() -> None:
    assert [_IterableDatasetFetcher(collates).seen.collates for collates in (True, False)] == [True, False]


class _StatefulMultiProcessingDataLoaderIter:
    def __init__(self) -> None:
        self.seen = starts_worker()


def test_the_start_of_a_loader_worker_is_seen() -> None:
    assert _StatefulMultiProcessingDataLoaderIter().seen
    assert not starts_worker()


@pytest.mark.parametrize("use", ["iterate", "state"])
def test_the_locals_of_a_program_are_not_kept_alive(use: str) -> None:
    loader = Loader(di.data.Dataset.range(12).batch(4))
    model = Model()
    alive = weakref.ref(model)
    if use == "iterate":
        assert len(list(loader)) == 3
    else:
        loader.state_dict()
    del model
    assert alive() is None


class Model:
    """Stands for something large."""
