# SPDX-License-Identifier: Apache-2.0
"""A job that a loader is made for, and the function that makes it."""

import inspect
from collections.abc import Callable, Collection, Hashable
from dataclasses import asdict, replace
from typing import Any

from distinput.names.lazy import dataclass

WORDS = ("records", "rank", "ranks", "batch", "global_batch", "seed", "epoch", "workers")
"""What a function that makes loaders may ask for, by the names of its parameters."""


@dataclass(frozen=True)
class Job:
    """What a loader is made for.

    Args:
      records: how many records there are.
      ranks: how many ranks share them.
      batch: the rows of one rank in one step.
      seed: of the order.
      epoch: which pass over the records, from 0.
      workers: threads or processes that each rank's loader may use, 0 for none.

    >>> Job(records=23, ranks=2, batch=4).steps
    3
    """

    records: int
    ranks: int
    batch: int
    seed: int = 0
    epoch: int = 0
    workers: int = 0

    @property
    def global_batch(self) -> int:
        """The rows of all ranks in one step."""
        return self.ranks * self.batch

    @property
    def steps(self) -> int:
        """How many steps deliver all records, if every one of them but the last is full."""
        return -(-self.records // self.global_batch)

    @property
    def all_ranks(self) -> tuple[int, ...]:
        """The ranks by number."""
        return tuple(range(self.ranks))

    @property
    def most_steps(self) -> int:
        """More steps of a rank than any loader needs."""
        return 4 * -(-self.records // self.batch) + 16

    def on(self, ranks: int) -> "Job | None":
        """The same job on other ranks, with the same rows in a step; None where these cannot be divided."""
        batch, rest = divmod(self.global_batch, ranks)
        return None if rest or not batch else replace(self, ranks=ranks, batch=batch)

    def to_json(self) -> dict[str, int]:
        """As JSON."""
        return asdict(self)

    def __str__(self) -> str:
        records = "1 record" if self.records == 1 else f"{self.records} records"
        ranks = "1 rank" if self.ranks == 1 else f"{self.ranks} ranks"
        workers = f", {self.workers} workers each" if self.workers else ""
        return f"{records}, {ranks}, batches of {self.batch}{workers}"


@dataclass(frozen=True)
class Maker:
    """The user's function, called with what it asks for.

    Args:
      function: makes the loader of one rank; its parameters are some of `WORDS`.
      records: what is given to a parameter `records`: their number, or the records' names.

    Raises:
      ValueError: a parameter without default is none of `WORDS`.
    """

    function: Callable[..., Any]
    records: int | Collection[Hashable]

    def __post_init__(self) -> None:
        unknown = [
            parameter.name
            for parameter in inspect.signature(self.function).parameters.values()
            if parameter.name not in WORDS
            and parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        ]
        if unknown:
            raise ValueError(
                f"judge: make_loader may take {', '.join(WORDS)}, but it also wants {unknown[0]!r}; "
                "give it a default or bind it with functools.partial"
            )

    def takes(self, word: str) -> bool:
        """Whether the function asks for this."""
        parameters = inspect.signature(self.function).parameters
        return word in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())

    def __call__(self, job: Job, rank: int) -> Any:
        """The loader of one rank."""
        every = {**asdict(job), "records": self.records, "rank": rank, "global_batch": job.global_batch}
        return self.function(**{word: value for word, value in every.items() if self.takes(word)})
