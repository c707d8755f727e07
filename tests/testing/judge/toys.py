# SPDX-License-Identifier: Apache-2.0
"""A right loader, and loaders that break one law each, on purpose."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import numpy as np

Steps = list[list[int]]


def own_steps(records: int, rank: int, ranks: int, global_batch: int, order: list[int]) -> Steps:
    """Steps of the global order, each dealt to the ranks one record after the other."""
    return [order[i : i + global_batch][rank::ranks] for i in range(0, records, global_batch)]


def shuffled(records: int, seed: int, epoch: int) -> list[int]:
    """An order for each seed and epoch."""
    order = list(range(records))
    random.Random(1000 * seed + epoch).shuffle(order)
    return order


class Right:
    """Keeps all laws; its state is a number of records of the whole, so that other ranks can go on."""

    def __init__(self, records: int, rank: int, ranks: int, global_batch: int, seed: int, epoch: int) -> None:
        self.size, self.rank, self.ranks, self.records = global_batch, rank, ranks, records
        self.order = shuffled(records, seed, epoch)
        self.done = 0

    def steps(self) -> Steps:
        """What is left."""
        left = self.order[self.done :]
        return own_steps(len(left), self.rank, self.ranks, self.size, left)

    def __iter__(self) -> Iterator[Any]:
        for step in self.steps():
            self.done = min(self.records, self.done + self.size)
            yield np.array(step, np.int64)
        self.done = 0

    def state_dict(self) -> dict[str, Any]:
        """The position."""
        return {"done": self.done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on."""
        self.done = state["done"]


class Lost(Right):
    """Record 5 never comes."""

    def __iter__(self) -> Iterator[Any]:
        for step in super().__iter__():
            yield step[step != 5]


class Repeats(Right):
    """Each rank has as many records as the one with the most: the first ones come twice."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        short = -self.records % self.ranks
        self.order += self.order[:short]
        self.records += short


class Unequal(Right):
    """No step where there are no rows."""

    def __iter__(self) -> Iterator[Any]:
        return (step for step in super().__iter__() if len(step))


class DropsTheTail(Right):
    """The partial step is left out."""

    def steps(self) -> Steps:
        """All but a partial one."""
        return super().steps()[: (self.records - self.done) // self.size]


class EmptyLists(Right):
    """A batch without rows is a list, not an array."""

    def __iter__(self) -> Iterator[Any]:
        return (step if len(step) else [] for step in super().__iter__())


class PartialFirst(Right):
    """The partial step is the first one."""

    def steps(self) -> Steps:
        """The short one first."""
        rest = (self.records - self.done) % self.size
        left = self.order[self.done :]
        head = [left[:rest][self.rank :: self.ranks]] if rest else []
        return head + own_steps(len(left) - rest, self.rank, self.ranks, self.size, left[rest:])


class Unseeded(Right):
    """Another order each time it is made."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        random.shuffle(self.order)


class SeedIgnored(Right):
    """One order for all seeds."""

    def __init__(self, records: int, rank: int, ranks: int, global_batch: int, seed: int, epoch: int) -> None:
        super().__init__(records, rank, ranks, global_batch, 0, epoch)


class EpochIgnored(Right):
    """One order for all epochs."""

    def __init__(self, records: int, rank: int, ranks: int, global_batch: int, seed: int, epoch: int) -> None:
        super().__init__(records, rank, ranks, global_batch, seed, 0)


class OneEpoch(Right):
    """The second epoch is empty."""

    def __init__(self, records: int, rank: int, ranks: int, global_batch: int, seed: int, epoch: int) -> None:
        super().__init__(records, rank, ranks, global_batch, seed, epoch)
        self.done = records * epoch


class StepTooFar(Right):
    """Its state is that of the step that comes next, as a loader that reads ahead may have it."""

    def state_dict(self) -> dict[str, Any]:
        """A position that nobody has got to."""
        return {"done": min(self.records, self.done + self.size)}


class CountsFromTheRestart(Right):
    """After a restart its state counts from there."""

    begun = 0

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on; what was done before is forgotten."""
        super().load_state_dict(state)
        self.begun = self.done

    def state_dict(self) -> dict[str, Any]:
        """The position since the restart."""
        return {"done": self.done - self.begun}


class BeginsAnew(Right):
    """After the last step its state is that of the next epoch."""

    def state_dict(self) -> dict[str, Any]:
        """The position, from 0 again."""
        return {"done": self.done % self.records}


class Forgets(Right):
    """A state that says nothing."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Begin anew."""


class OtherOrder(Right):
    """What is left comes in another order after a restart."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on, and shuffle again."""
        super().load_state_dict(state)
        self.order[self.done :] = sorted(self.order[self.done :])


class OfOneRank(Right):
    """Its state counts what this rank has had, which means nothing to another number of ranks."""

    def state_dict(self) -> dict[str, Any]:
        """Records of a rank."""
        return {"own": self.done // self.ranks}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Records of all ranks again."""
        self.done = state["own"] * self.ranks


class Refuses(Right):
    """Does not go on with other ranks, and says so."""

    def state_dict(self) -> dict[str, Any]:
        """Knows its ranks."""
        return {"done": self.done, "ranks": self.ranks}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Look at them."""
        if state["ranks"] != self.ranks:
            raise ValueError(f"saved on {state['ranks']} ranks")
        super().load_state_dict(state)


class OfThisProcess(Right):
    """Its state holds in the process that it was saved in alone."""

    def state_dict(self) -> dict[str, Any]:
        """Knows its process."""
        return {"done": self.done, "process": os.getpid()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """In another one, begin anew."""
        self.done = state["done"] if state["process"] == os.getpid() else 0


class Stops(Right):
    """Raises in the middle."""

    def __iter__(self) -> Iterator[Any]:
        for number, step in enumerate(super().__iter__()):
            if number:
                raise OSError("the disk is gone")
            yield step


class Endless(Right):
    """Never ends."""

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield from super().__iter__()


class Hangs(Right):
    """The second step never comes."""

    def __iter__(self) -> Iterator[Any]:
        for number, step in enumerate(super().__iter__()):
            time.sleep(600 if number else 0)
            yield step


class LeavesAThread(Right):
    """A thread for each pass, which outlives it."""

    def __iter__(self) -> Iterator[Any]:
        threading.Thread(target=threading.Event().wait, daemon=True, name="left").start()
        return super().__iter__()


class LeavesAFile(Right):
    """A file for each pass, which nobody closes."""

    held: list[Any] = []  # noqa: RUF012

    def __iter__(self) -> Iterator[Any]:
        self.held.append(Path(__file__).open("rb"))  # noqa: SIM115
        return super().__iter__()


class WithWorkers(Right):
    """Steps come from processes in turn; with two of them the order is another one, and one that is killed ends its part."""

    def __init__(self, *args: Any, workers: int = 0, **named: Any) -> None:
        super().__init__(*args, **named)
        self.workers = workers

    def steps(self) -> Steps:
        """Those of each worker together."""
        steps = super().steps()
        return [step for worker in range(self.workers) for step in steps[worker :: self.workers]] or steps

    def __iter__(self) -> Iterator[Any]:
        living = [_sleeper() for _ in range(self.workers)]
        for number, step in enumerate(self.steps()):
            if self.workers and living[number % self.workers].poll() is not None:
                continue
            yield np.array(step, np.int64)
            time.sleep(0.05 * self.workers)
        for process in living:
            process.kill()
            process.wait()


class SaysSo(WithWorkers):
    """Looks after its workers, and steps come in their order."""

    def steps(self) -> Steps:
        """In order."""
        return Right.steps(self)

    def __iter__(self) -> Iterator[Any]:
        living = [_sleeper() for _ in range(self.workers)]
        try:
            for step in self.steps():
                time.sleep(0.05 * self.workers)
                if any(process.poll() is not None for process in living):
                    raise RuntimeError("a worker has died")
                yield np.array(step, np.int64)
        finally:
            for process in living:
                process.kill()
                process.wait()


class WaitsForever(WithWorkers):
    """Waits for a worker that has died."""

    def steps(self) -> Steps:
        """In order."""
        return Right.steps(self)

    def __iter__(self) -> Iterator[Any]:
        living = [_sleeper() for _ in range(self.workers)]
        for step in self.steps():
            time.sleep(0.05 * self.workers)
            while any(process.poll() is not None for process in living):
                time.sleep(0.1)
            yield np.array(step, np.int64)
        for process in living:
            process.kill()
            process.wait()


def _sleeper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])


def maker(kind: type[Right]) -> Callable[..., Right]:
    def make(records: int, rank: int, ranks: int, global_batch: int, seed: int, epoch: int) -> Right:
        return kind(records, rank, ranks, global_batch, seed, epoch)

    make.__name__ = make.__qualname__ = kind.__name__.lower()
    return make


def right(records: int, rank: int, ranks: int, global_batch: int, seed: int, epoch: int) -> Right:
    """A loader that keeps all laws."""
    return Right(records, rank, ranks, global_batch, seed, epoch)


def of_this_process(records: int, rank: int, ranks: int, global_batch: int, seed: int, epoch: int) -> Right:
    """See the class."""
    return OfThisProcess(records, rank, ranks, global_batch, seed, epoch)


def with_workers(
    records: int, rank: int, ranks: int, global_batch: int, seed: int, epoch: int, workers: int
) -> WithWorkers:
    """See the class."""
    return WithWorkers(records, rank, ranks, global_batch, seed, epoch, workers=workers)


def says_so(records: int, rank: int, ranks: int, global_batch: int, seed: int, epoch: int, workers: int) -> WithWorkers:
    """See the class."""
    return SaysSo(records, rank, ranks, global_batch, seed, epoch, workers=workers)


def waits_forever(
    records: int, rank: int, ranks: int, global_batch: int, seed: int, epoch: int, workers: int
) -> WithWorkers:
    """See the class."""
    return WaitsForever(records, rank, ranks, global_batch, seed, epoch, workers=workers)


unequal = maker(Unequal)


def without_workers(
    records: int, rank: int, ranks: int, global_batch: int, seed: int, epoch: int, workers: int
) -> Right:
    """Says that it has none."""
    if workers:
        raise ValueError("no workers here")
    return Right(records, rank, ranks, global_batch, seed, epoch)


def of_the_environment(records: int, global_batch: int, seed: int, epoch: int) -> Right:
    """Takes its rank from the environment, as under `torchrun`."""
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    assert (os.environ["LOCAL_RANK"], os.environ["LOCAL_WORLD_SIZE"]) == (str(rank), str(ranks))
    assert int(os.environ["MASTER_PORT"]) > 0
    return Right(records, rank, ranks, global_batch, seed, epoch)


class InStep(Right):
    """No rank begins a step before all others have come to it."""

    def __iter__(self) -> Iterator[Any]:
        for number, step in enumerate(super().__iter__()):
            place = Path(tempfile.gettempdir(), str(number))  # which all ranks of a run share
            place.mkdir(exist_ok=True)
            Path(place, str(self.rank)).touch()
            while len(list(place.iterdir())) < self.ranks:
                time.sleep(0.01)
            self.came(number)
            yield step

    def came(self, number: int) -> None:
        """All ranks have come to a step."""


class DiesInStep(InStep):
    """Rank 1 dies in its second step."""

    def came(self, number: int) -> None:
        """Before the others can come to the third."""
        if number and self.rank:
            os.kill(os.getpid(), signal.SIGKILL)


class OnRank1(Right):
    """Something happens on rank 1 in the place of its second step."""

    def happens(self) -> None:
        """What."""

    def __iter__(self) -> Iterator[Any]:
        for number, step in enumerate(super().__iter__()):
            if number and self.rank:
                self.happens()
            yield step


class HangsOnRank1(OnRank1):
    """It stands still."""

    def happens(self) -> None:
        """Sleep."""
        time.sleep(600)


class DiesOnRank1(OnRank1):
    """It dies."""

    def happens(self) -> None:
        """As by `kill -9`."""
        os.kill(os.getpid(), signal.SIGKILL)


class NeverLeaves(Right):
    """A thread that Python waits for at the end of the program."""

    def __iter__(self) -> Iterator[Any]:
        threading.Thread(target=time.sleep, args=(600,)).start()
        return super().__iter__()


class LeavesEarly(Right):
    """Ends the program."""

    def __iter__(self) -> Iterator[Any]:
        print("enough of it", flush=True)
        sys.exit(5)


class PrintsRubbish(Right):
    """Bytes that are no text, in great number."""

    def __iter__(self) -> Iterator[Any]:
        for step in super().__iter__():
            for stream in (1, 2):
                os.write(stream, bytes(range(256)) * 4096)
            yield step


class LeavesMuch(Right):
    """A process in a session of its own, and shared memory that Python does not know of."""

    def __iter__(self) -> Iterator[Any]:
        subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
        self.memory = SharedMemory(create=True, size=4096)
        resource_tracker.unregister(f"/{self.memory.name}", "shared_memory")
        return super().__iter__()


def in_step(records: int, rank: int, ranks: int, global_batch: int) -> Right:
    """See the class."""
    return InStep(records, rank, ranks, global_batch, 0, 0)


def dies_in_step(records: int, rank: int, ranks: int, global_batch: int) -> Right:
    """See the class."""
    return DiesInStep(records, rank, ranks, global_batch, 0, 0)


def hangs_on_rank_1(records: int, rank: int, ranks: int, global_batch: int) -> Right:
    """See the class."""
    return HangsOnRank1(records, rank, ranks, global_batch, 0, 0)


def dies_on_rank_1(records: int, rank: int, ranks: int, global_batch: int) -> Right:
    """See the class."""
    return DiesOnRank1(records, rank, ranks, global_batch, 0, 0)


def never_leaves(records: int, rank: int, ranks: int, global_batch: int) -> Right:
    """See the class."""
    return NeverLeaves(records, rank, ranks, global_batch, 0, 0)


def leaves_early(records: int, rank: int, ranks: int, global_batch: int) -> Right:
    """See the class."""
    return LeavesEarly(records, rank, ranks, global_batch, 0, 0)


def prints_rubbish(records: int, rank: int, ranks: int, global_batch: int) -> Right:
    """See the class."""
    return PrintsRubbish(records, rank, ranks, global_batch, 0, 0)


def leaves_much(records: int, rank: int, ranks: int, global_batch: int) -> Right:
    """See the class."""
    return LeavesMuch(records, rank, ranks, global_batch, 0, 0)


def refuses_at_once(records: int, rank: int, ranks: int) -> Right:
    """Says no."""
    raise ValueError("not today")


def of_floats() -> list[list[float]]:
    """Batches that do not say which records are in them."""
    return [[0.5]]
