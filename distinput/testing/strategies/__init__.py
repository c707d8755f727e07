# SPDX-License-Identifier: Apache-2.0
"""Strategies of Hypothesis for those who test input code: datasets, specs, jobs, uneven ends, partial batches and faults.

```
from distinput.testing import strategies as some

@given(some.jobs())
def test_my_loader(job):
    judge(my_loader, job.records, ranks=job.ranks, batch=job.batch, laws=["exactly once"]).check()
```

They need Hypothesis (`pip install distinput[test]`).
"""

from distinput.testing.pipelines import pipelines
from distinput.testing.strategies.batches import batch_sizes, partial_batches, uneven_ends
from distinput.testing.strategies.datasets import datasets
from distinput.testing.strategies.faults import Interruption, file_faults, interruptions
from distinput.testing.strategies.jobs import jobs
from distinput.testing.strategies.specs import elements, shapes, specs

__all__ = [
    "Interruption",
    "batch_sizes",
    "datasets",
    "elements",
    "file_faults",
    "interruptions",
    "jobs",
    "partial_batches",
    "pipelines",
    "shapes",
    "specs",
    "uneven_ends",
]
