# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest

from distinput.distribute.collectives.peers import only_peers
from distinput.distribute.core.replicas import CallDescription, Peers
from distinput.errors import AbortedError, FailedPreconditionError, InvalidArgumentError, Mismatch
from tests.distribute.workers import on_workers


def peers_of(strategy: Any) -> Peers:
    peers: Peers = strategy._replicas.peers
    return peers


def test_every_worker_knows_all_replicas() -> None:
    def body(strategy: Any, worker: int) -> Any:
        peers = peers_of(strategy)
        return peers.rank, peers.size, peers.replicas, peers.first_replica

    assert on_workers([2, 1, 3], body) == [(0, 3, [2, 1, 3], 0), (1, 3, [2, 1, 3], 2), (2, 3, [2, 1, 3], 3)]


def test_notes_and_arrays_come_in_the_order_of_the_workers() -> None:
    def body(strategy: Any, worker: int) -> Any:
        arrays = [np.arange(worker), np.array([b"text"] * worker, dtype=object)]
        found = peers_of(strategy).exchange(CallDescription("tell"), lambda: ({"from": worker}, arrays))
        return [(note, [array.tolist() for array in arrays]) for note, arrays in found]

    expected = [({"from": w}, [list(range(w)), [b"text"] * w]) for w in range(3)]
    assert on_workers([1, 1, 1], body) == [expected] * 3


@pytest.mark.parametrize(
    "kind, elsewhere", [(ValueError, ValueError), (InvalidArgumentError,) * 2, (KeyError, AbortedError)]
)
def test_a_failure_reaches_all_and_the_next_call_works(kind: type[Exception], elsewhere: type[Exception]) -> None:
    def body(strategy: Any, worker: int) -> Any:
        def make() -> Any:
            if worker == 1:
                raise kind("poison")
            return worker, []

        peers = peers_of(strategy)
        with pytest.raises(kind if worker == 1 else elsewhere) as caught:
            peers.exchange(CallDescription("tell"), make)
        again = [note for note, _ in peers.exchange(CallDescription("again"), lambda: (worker, []))]
        return str(caught.value), again

    (zero, again), (one, _), _ = on_workers([1, 1, 1], body)
    assert zero.startswith("on worker 1 of 3: ")
    assert "poison" in zero
    assert "on worker" not in one, "who failed sees its own error"
    assert again == [0, 1, 2]


def test_other_calls_are_told_with_the_step_they_belong_to() -> None:
    def body(strategy: Any, worker: int) -> Any:
        peers = peers_of(strategy)
        peers.reached(7)
        peers.exchange(
            CallDescription(f"reduce of {'loss' if worker else 'accuracy'}", name="metric"), lambda: (None, [])
        )

    for error in on_workers([1, 1], body):
        assert isinstance(error, Mismatch)
        assert "reduce of accuracy, after step 7 of the input" in str(error)
        assert "reduce of loss, after step 7 of the input" in str(error)


def test_parts_of_all_replicas_come_in_replica_order() -> None:
    def body(strategy: Any, worker: int) -> Any:
        first = peers_of(strategy).first_replica
        parts = [np.full(1, first + i) for i in range(2 - worker)]
        return [int(part[0]) for part in peers_of(strategy).everywhere(CallDescription("parts"), parts)]

    assert on_workers([2, 1], body) == [[0, 1, 2]] * 2


def test_iterations_are_numbered_in_the_order_in_which_they_begin() -> None:
    def body(strategy: Any, worker: int) -> Any:
        return [peers_of(strategy).next_iteration() for _ in range(2)]

    assert on_workers([1, 1], body) == [["next step of input 1", "next step of input 2"]] * 2


def test_channels_of_the_workers_are_closed_with_them() -> None:
    def body(strategy: Any, worker: int) -> Any:
        peers = peers_of(strategy)
        channel = peers.channel("other")
        total = int(channel.all_reduce(worker + 1))
        peers.close()
        with pytest.raises(FailedPreconditionError, match="was closed"):
            channel.all_reduce(1)
        return total, int(peers.group.all_reduce(1))

    assert on_workers([1, 1], body) == [(3, 2)] * 2


def test_the_only_workers_of_a_process_are_found() -> None:
    before = only_peers()

    def body(strategy: Any, worker: int) -> Any:
        strategy.reduce("SUM", 1.0, axis=None)
        found = only_peers()
        strategy.reduce("SUM", 1.0, axis=None)
        return found

    assert before is None
    assert on_workers([1], body) == [None], "a worker without others has nobody to find"
    assert on_workers([1, 1], body) == [None, None], "several in one process are not guessed among"
