# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's names for how workers communicate."""

import pytest

import distinput as di
from distinput.distribute.collectives import multi_worker_strategy as multi_worker_mirrored

experimental = di.distribute.experimental


def test_the_older_names_are_other_names() -> None:
    assert experimental.CollectiveCommunication is experimental.CommunicationImplementation
    assert [one.value for one in experimental.CommunicationImplementation] == ["AUTO", "NCCL", "RING"]
    assert experimental.CollectiveHints(1, 2.0) == experimental.CommunicationOptions(1, 2.0)


def test_the_engine_is_a_member_or_a_name() -> None:
    ring = experimental.CommunicationImplementation.RING
    assert experimental.CommunicationOptions(implementation=ring).implementation is ring
    assert experimental.CommunicationOptions(implementation="RING").implementation is ring
    assert experimental.CommunicationOptions(implementation="mpi").implementation == "mpi"


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValueError, match="bytes_per_pack must be at least 0, got -1"):
        experimental.CommunicationOptions(bytes_per_pack=-1)
    with pytest.raises(ValueError, match="timeout_seconds must be positive, got 0"):
        experimental.CommunicationOptions(timeout_seconds=0)
    with pytest.raises(
        TypeError, match="implementation must be a CommunicationImplementation or the name of an engine"
    ):
        experimental.CommunicationOptions(implementation=3)


@pytest.mark.parametrize("word, engine", [("RING", "torch"), ("NCCL", "torch"), ("mpi", "mpi"), ("AUTO", "found")])
def test_the_engine_that_a_word_stands_for(monkeypatch, word: str, engine: str) -> None:
    monkeypatch.setattr(multi_worker_mirrored, "find_engine", lambda: "found")
    options = experimental.CommunicationOptions(implementation=word)
    assert multi_worker_mirrored._engine(options.implementation, "threads") == engine


@pytest.mark.parametrize("runs, engine", [(False, "jax"), (True, "torch")])
def test_devices_of_jax_have_the_engine_of_jax_unless_another_one_runs(monkeypatch, runs: bool, engine: str) -> None:
    monkeypatch.setattr(multi_worker_mirrored, "find_engine", lambda: "torch")
    monkeypatch.setattr(multi_worker_mirrored, "engine_runs", lambda name: runs)
    assert multi_worker_mirrored._engine(experimental.CommunicationImplementation.AUTO, "jax") == engine


def test_the_older_strategy_has_the_older_arguments() -> None:
    ring = experimental.CollectiveCommunication.RING
    with experimental.MultiWorkerMirroredStrategy(ring) as strategy:
        assert strategy.num_replicas_in_sync == 1
        assert isinstance(strategy, di.distribute.MultiWorkerMirroredStrategy)
        assert type(strategy).__name__ == "MultiWorkerMirroredStrategy"
    with di.distribute.MultiWorkerMirroredStrategy() as strategy:
        assert isinstance(strategy, experimental.MultiWorkerMirroredStrategy)
    assert not isinstance(di.distribute.MirroredStrategy(), experimental.MultiWorkerMirroredStrategy)


def test_a_resolver_as_the_first_argument_of_the_older_strategy_is_a_mistake() -> None:
    resolver = di.distribute.cluster_resolver.TFConfigClusterResolver()
    with pytest.raises(TypeError, match="the first argument is the communication, as in TensorFlow"):
        experimental.MultiWorkerMirroredStrategy(resolver)
