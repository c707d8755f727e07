# SPDX-License-Identifier: Apache-2.0
"""What is told of known loaders, each as a job and a law: to be found again, or to be seen mended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from distinput.testing.judge.finding import Ruling
from distinput.testing.judge.loaders.known import Known

__all__ = ["CASES", "Case"]

_HERE = "distinput.testing.judge.loaders"


@dataclass(frozen=True)
class Case:
    """One loader in one job, under one law.

    Args:
      about: what is told, in words.
      known: the loader, with the job in its options.
      law: the law.
    """

    about: str
    known: Known
    law: str

    def finding(self) -> Ruling:
        """What the judge finds."""
        return self.known.judge([self.law])[self.law]


def _case(about: str, name: str, make: str, packages: tuple[str, ...], law: str, **options: Any) -> Case:
    given: Mapping[str, Any] = {"workers": (), **options}
    return Case(about, Known(name, f"{_HERE}.{make}", packages, options=given), law)


CASES: Mapping[str, Case] = {
    "steps of ElasticIterator": _case(
        "Grain's `ElasticIterator` gives ranks different numbers of steps",
        "Grain, `ElasticIterator`",
        "grain:elastic",
        ("grain",),
        "equal steps",
        records=10,
        ranks=4,
        batch=1,
    ),
    "restart after shuffle": _case(
        "a stream of Hugging Face that was shuffled, and stopped after 300 of 1,000 records",
        "Hugging Face, `shuffle(buffer_size=128)`",
        "huggingface:stream_in_128",
        ("datasets", "torchdata"),
        "restart",
        records=1000,
        ranks=1,
        batch=10,
        stops=(30,),
    ),
    "steps of split_by_node": _case(
        "WebDataset's `split_by_node` deals whole files, so ranks have very different numbers of steps",
        "WebDataset, `split_by_node`",
        "webdataset:split_by_node",
        ("webdataset", "torch"),
        "equal steps",
        records=103,
        ranks=2,
        batch=12,
    ),
    "duplicates of DistributedSampler": _case(
        "PyTorch's `DistributedSampler` evens ranks out with records that come twice",
        "PyTorch, `DistributedSampler`",
        "torch:padding_sampler",
        ("torch",),
        "exactly once",
        records=10,
        ranks=4,
        batch=3,
    ),
    "batches by workers": _case(
        "batches of Grain's `DataLoader` depend on the number of its worker processes",
        "Grain, `DataLoader`",
        "grain:index_loader",
        ("grain",),
        "workers",
        records=16,
        ranks=1,
        batch=2,
        workers=(2,),
    ),
}
"""The cases by name."""
