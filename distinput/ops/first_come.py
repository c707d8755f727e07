# SPDX-License-Identifier: Apache-2.0
"""`first_come`: the elements of one pass, each for the one of several programs that asks first."""

import uuid
from contextlib import closing
from typing import Any, ClassVar

from distinput.cluster.input_service import InputService, is_service, opened
from distinput.columns.block import Failure
from distinput.columns.rows import Stream
from distinput.columns.state import Digest, State
from distinput.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from distinput.names.lazy import dataclass
from distinput.ops.on_workers import OncePerWorker
from distinput.plan.families import SameElements, drawn_seeds, with_drawn_seeds
from distinput.plan.fingerprint import layout
from distinput.plan.node import Needs, Node
from distinput.run.run import Run

_LEAST_SECONDS, _MOST_SECONDS, _PART_OF_PASS, _GROWTH = 0.25, 8.0, 16, 4
"""How long a consumer is to be at a portion: that part of the time since it began, within bounds; and how much larger than the
last one a portion may be."""


@dataclass(frozen=True, eq=False)
class FirstCome(SameElements):
    """Keep the elements that no other consumer of the same job has taken.

    The first passes of all consumers are one pass of the job, and so are their second ones. All go through the elements in one
    order, that of the consumer which came first. Who comes to an element that nobody has takes it, and some of the next ones: a
    portion. The service keeps who has which portion, as long as it runs. So a consumer that goes on from its state has the
    portions that it had, and then those that are left.

    Shapes: unchanged. Order: that of the input, without what others have. State: the place in the input, the portion, the job
    and the consumer.

    Args:
      service: a Dask cluster or an executor, as for `on_workers`.
      job: its name.

    Raises:
      InvalidArgumentError: `service` has workers for one dataset alone; or at iteration, the job is one of another pipeline.
      FailedPreconditionError: at iteration, the state is one of a job that the service does not know.
      UnavailableError: at iteration, the service does not answer, or it was started again.
      UnimplementedError: at iteration, the service is Ray's.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import distinput as di
    >>> executor, numbers = ThreadPoolExecutor(1), di.data.Dataset.range(6).node
    >>> first, second = [iter(di.data.Dataset(FirstCome(numbers, executor, "a job"))) for _ in range(2)]
    >>> [int(next(first)), int(next(second)), [int(x) for x in first], [int(x) for x in second]]
    [0, 1, [2, 3, 4, 5], []]

    Source: `job_name` of `tf.data.experimental.service.distribute`.
    """

    by_element = tolerant = harmless = same_end = view_only = True
    needs: ClassVar[Needs] = Needs.ALL
    indifferent: ClassVar[frozenset[str]] = frozenset({"service"})
    service: Any
    job: str

    def __post_init__(self) -> None:
        if not is_service(self.service):
            raise InvalidArgumentError(
                f"distribute: job_name={self.job!r} divides the elements among all that name this job, and {self.service!r} "
                "has workers for this dataset alone; leave out job_name where one program reads; where several do, give all of "
                "them one Dask cluster (in one program: one executor), or consumer_index and num_consumers"
            )

    def start(self, epoch: int) -> State:
        begin = {"input": self.input.start(epoch), "skip": 0}
        return {**begin, "epoch": epoch, "row": 0, "end": 0, "job": "", "consumer": ""}

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        return (state["input"], state["skip"] + ahead) if ahead < state["end"] - state["row"] else None

    def stream(self, state: State, run: Run) -> Stream:
        if run.asked.sampling:  # nobody takes these
            for block, after in self.input.open(state["input"], run):
                yield block, {**state, "input": after}
            return
        with closing(opened(self.service)) as service:
            at = state["input"]
            if isinstance(self.input, OncePerWorker) and not at["times"]:  # decided by the first consumer
                at = {**at, "times": max(1, service.workers())}
            ledger = _Ledger(service, self.job, state["epoch"])
            begun, seeds = ledger.begun({**state, "input": at}, self._word, drawn_seeds(self.input))
            source = self.input if seeds == drawn_seeds(self.input) else with_drawn_seeds(self.input, seeds)
            yield from self._taken(source, begun, ledger, run)

    @property
    def _word(self) -> str:
        """What the steps are, not their files: those have other times at other machines."""
        return Digest(16).add(layout(self.input), [step.identity for step in self.input.steps]).word

    def _taken(self, source: Node, state: State, ledger: "_Ledger", run: Run) -> Stream:
        same = {key: state[key] for key in ("epoch", "job", "consumer")}
        before, over, row, end, own = state["input"], state["skip"], state["row"], state["end"], True
        size, begin, asked_at = 1, Run.clock(), Run.clock()
        for block, after in source.open(before, run):
            if type(block) is Failure:  # not counted, as by `shard`
                yield block, {"input": after, "skip": 0, "row": row, "end": end, **same}
                before, over = after, 0
                continue
            first = min(over, block.size)
            over -= first
            while first < block.size:
                if row == end:
                    if own and row > state["row"]:
                        size = self._next_size(size, asked_at - begin, Run.clock() - asked_at)
                    own, rows = ledger.portion(same["consumer"], row, size)
                    end, asked_at = row + rows, Run.clock() if own else asked_at
                count = min(block.size - first, end - row)
                first, row = first + count, row + count
                if own:
                    place = {"input": before, "skip": first} if first < block.size else {"input": after, "skip": 0}
                    yield block.rows(first - count, first), {**place, "row": row, "end": end, **same}
            before = after

    @staticmethod
    def _next_size(size: int, elapsed: float, took: float) -> int:
        wanted = min(_MOST_SECONDS, max(_LEAST_SECONDS, elapsed / _PART_OF_PASS))
        return max(1, int(min(_GROWTH * size, wanted * size / max(took, 1e-9))))


class _Ledger:
    """Who has which portions of a pass, as the service keeps it.

    Args:
      service: which keeps it.
      job: the name of the job.
      epoch: of which pass of the job it tells.
    """

    def __init__(self, service: InputService, job: str, epoch: int) -> None:
        self._service, self._job, self._epoch = service, job, epoch
        self._pass = f"distinput-job-{job}-{epoch}"

    def begun(self, state: State, word: str, seeds: list[int]) -> tuple[State, list[int]]:
        """The state with which a consumer begins, or goes on, and the drawn seeds that all consumers have."""
        new = {"job": uuid.uuid4().hex, "word": word, "input": state["input"], "seeds": seeds}
        first = self._service.first(self._pass, new)
        if first["word"] != word:
            raise InvalidArgumentError(
                f"distribute: the job {self._job!r} of this service is one of another pipeline; give this one another name"
            )
        if state["job"] and state["job"] != first["job"]:
            raise FailedPreconditionError(
                f"distribute: the state is one of a job {self._job!r} that this service does not know, since the service was "
                "started again, or is another one; who has which elements is lost with it, so begin a job with another name; "
                "consumer_index and num_consumers need no service that lives on"
            )
        if not state["job"]:
            state = {**state, "input": first["input"], "job": first["job"], "consumer": uuid.uuid4().hex}
        return state, first["seeds"]

    def portion(self, consumer: str, row: int, rows: int) -> tuple[bool, int]:
        """Whether the consumer has the portion that begins at a row, and how many rows it has."""
        try:
            owner, count = self._service.first(f"{self._pass}-{row}", (consumer, rows), known=self._pass)
        except LookupError:
            raise UnavailableError(
                f"distribute: the service no longer knows the job {self._job!r}, since it was started again; who has which "
                "elements is lost with it, so begin a job with another name"
            ) from None
        return owner == consumer, int(count)
