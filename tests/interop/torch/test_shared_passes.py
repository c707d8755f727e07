# SPDX-License-Identifier: Apache-2.0
"""The numbers of passes: one for all workers of a pass, in whatever order they come."""

import io
import pickle
import random
import threading
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from hypothesis import given
from hypothesis import strategies as st

from distinput.errors import InvalidArgumentError
from distinput.interop.torch.readers import LAST_PASS, SharedPasses
from distinput.run.threads import LoaderWorker


def worker(number: int, draw: int, lasts: bool = False) -> LoaderWorker:
    return LoaderWorker(number, 4, lasts, draw)


def test_passes_are_numbered_from_0() -> None:
    passes = SharedPasses()
    assert [passes.begin() for _ in range(3)] == [(0, 1), (1, 2), (2, 3)]
    assert (passes.next, passes.begun) == (3, 3)


def test_the_workers_of_a_pass_have_one_number() -> None:
    passes = SharedPasses()
    for epoch in range(600):  # also past 256 passes, when serial numbers begin again
        order = random.Random(epoch).sample(range(4), 4)
        assert {passes.begin(worker(number, 1000 + epoch)) for number in order} == {(epoch, epoch + 1)}


def test_workers_that_persist_count_for_themselves() -> None:
    passes = SharedPasses()
    for epoch in range(3):
        assert {passes.begin(worker(number, 5, True), epoch) for number in range(4)} == {(epoch, epoch + 1)}


def test_a_program_that_seeds_pytorch_for_each_epoch_has_other_passes_all_the_same() -> None:
    passes = SharedPasses()
    for epoch in range(3):
        assert {passes.begin(worker(number, 5)) for number in (epoch % 4, 0, 1, 2, 3)[1:]} == {(epoch, epoch + 1)}
    for _ in range(3):
        passes.set_next(0)
        assert {passes.begin(worker(number, 5))[0] for number in (2, 0, 1, 3)} == {0}


def test_the_next_number_can_be_set_also_before_workers_come() -> None:
    passes = SharedPasses()
    passes.set_next(7)
    assert passes.begin(worker(1, 3))[0] == 7
    assert passes.begin(worker(0, 3))[0] == 7
    assert passes.next == 8
    for wrong in (-1, LAST_PASS + 1):
        with pytest.raises(InvalidArgumentError, match=f"from 0 to {LAST_PASS}"):
            passes.set_next(wrong)


def test_a_pass_that_resumes_is_known_to_all() -> None:
    passes = SharedPasses()
    passes.begin()
    assert passes.resume_next() == 2
    assert passes.begin(worker(0, 9))[1] == passes.resumed
    assert passes.begin(worker(1, 9))[1] == passes.resumed
    assert passes.begin(worker(0, 10))[1] != passes.resumed


class Words:
    """The words of `SharedPasses`, in which every read and write gives another worker its turn.

    Args:
      words: the memory.
      turn: called before each access.
    """

    def __init__(self, words: Any, turn: Any) -> None:
        self.words, self.turn = words, turn

    def __getitem__(self, at: int) -> int:
        self.turn()
        return int(self.words[at])

    def __setitem__(self, at: int, value: int) -> None:
        self.turn()
        self.words[at] = value


@given(st.lists(st.integers(0, 2), max_size=40), st.integers(1, 3))
def test_workers_that_come_at_the_same_time_agree(turns: list[int], passes_before: int) -> None:
    """Three workers, on threads that take turns at every access to the memory as the example says."""
    shared = SharedPasses()
    for _ in range(passes_before):
        shared.begin()
    found: dict[int, Any] = {}
    gates = [threading.Semaphore(0) for _ in range(3)]
    back = threading.Semaphore(0)

    def play(number: int) -> None:
        mine = SharedPasses.__new__(SharedPasses)

        def turn() -> None:
            back.release()
            gates[number].acquire()

        mine._words = Words(shared._words, turn)  # type: ignore[assignment]
        gates[number].acquire()
        found[number] = mine.begin(worker(number, 77))
        done[number] = True
        back.release()

    done = [False] * 3
    threads = [threading.Thread(target=play, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    order = [*turns, *[0, 1, 2] * 20]
    for number in order:
        if not done[number]:
            gates[number].release()
            back.acquire()
    for thread in threads:
        thread.join()
    assert set(found.values()) == {(passes_before, passes_before + 1)}
    assert (shared.next, shared.begun) == (passes_before + 1, passes_before + 1)


@pytest.mark.parametrize("copied", [SharedPasses.copy, lambda passes: pickle.loads(pickle.dumps(passes))])
def test_a_copy_counts_on_by_itself(copied: Any) -> None:
    passes = SharedPasses()
    passes.set_next(4)
    passes.resume_next()
    other = copied(passes)
    assert other.resumed == 1
    assert other.begin() == (4, 1)
    assert (passes.next, passes.begun) == (4, 0)


class _MultiProcessingDataLoaderIter:
    """Sends something as PyTorch's does to the workers that it starts, here to the same process."""

    def __init__(self, passes: SharedPasses) -> None:
        buffer = io.BytesIO()
        ForkingPickler(buffer).dump(passes)
        self.passes = pickle.loads(buffer.getvalue())


def test_what_a_loader_worker_is_sent_shares_the_memory() -> None:
    passes = SharedPasses()
    other = _MultiProcessingDataLoaderIter(passes).passes
    assert other.begin() == (0, 1)
    assert passes.next == 1
