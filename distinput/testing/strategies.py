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

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from distinput.data.dataset import Dataset
from distinput.testing.judge.job import Job
from distinput.testing.pipeline import Ingredient, Pipeline
from distinput.testing.pipelines import OPS, SOURCES, pipelines
from distinput.values.nest import structure_of
from distinput.values.spec import TensorSpec

# ----------------------------------------------------------------------------
# Datasets: random pipelines, of which only the dataset is wanted.
# ----------------------------------------------------------------------------


def datasets(
    most_ops: int = 4,
    sources: Sequence[Ingredient] = SOURCES,
    ops: Sequence[Ingredient] = OPS,
    *,
    tensors: bool = False,
    batched: bool = False,
) -> st.SearchStrategy[Dataset]:
    """Datasets of random sources and ops; take `pipelines` where the elements that they must give are wanted too.

    Args:
      most_ops: the longest chain of ops.
      sources: what they may begin with.
      ops: what may follow.
      tensors: only those without datasets among their components.
      batched: only those whose elements can be taken apart along their first axis.

    >>> from hypothesis import find
    >>> find(datasets(tensors=True), lambda dataset: dataset.cardinality() == 3).cardinality()
    3
    """

    def wanted(made: Pipeline) -> bool:
        return (made.tensors or not tensors) and (not batched or made.batched)

    last = "batch" if batched and any(op.name == "batch" for op in ops) else None
    return pipelines(most_ops, sources, ops, last).filter(wanted).map(Pipeline.build)


# ----------------------------------------------------------------------------
# Jobs: records, ranks and batches that end unevenly more often than by chance.
# ----------------------------------------------------------------------------


@st.composite
def jobs(draw: st.DrawFn, most_ranks: int = 4, most_batch: int = 6, most_steps: int = 5, seeds: int = 3) -> Job:
    """Jobs for a loader, small ones first.

    Every second one ends at or beside a full step: with all its rows, with one row too many or too few, with fewer rows than
    ranks, or with none at all.

    Args:
      draw: given by Hypothesis.
      most_ranks: the most ranks.
      most_batch: the most rows of a rank in a step.
      most_steps: the most steps.
      seeds: the largest seed.

    >>> from hypothesis import find
    >>> find(jobs(), lambda job: 0 < job.records % job.global_batch < job.ranks)
    Job(records=1, ranks=2, batch=1, seed=0, epoch=0, workers=0)
    """
    ranks = draw(st.integers(1, most_ranks))
    batch = draw(st.integers(1, most_batch))
    rows = ranks * batch
    anywhere = st.integers(0, most_steps * rows)
    edge = st.builds(
        lambda steps, beside: max(0, steps * rows + beside),
        st.integers(0, most_steps - 1),
        st.sampled_from([0, 1, -1, ranks - 1, rows - 1]),
    )
    return Job(draw(anywhere | edge), ranks, batch, draw(st.integers(0, seeds)))


# ----------------------------------------------------------------------------
# What goes wrong: requests that fail, jobs that are stopped and go on, also on other ranks.
# ----------------------------------------------------------------------------


def file_faults(most: float = 0.3, *, stalls: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    """The arguments of a `FaultyFiles`: which share of requests fails, comes short, or does not come back.

    Args:
      most: the largest share of each kind.
      stalls: requests that do not come back are among them; these cost time.

    >>> from hypothesis import find
    >>> find(file_faults(), lambda faults: True)
    {'seed': 0, 'errors': 0.0, 'short': 0.0, 'stalls': 0.0}
    """
    share = st.floats(0, most).map(lambda value: round(value, 2))
    return st.fixed_dictionaries(
        {
            "seed": st.integers(0, 99),
            "errors": share,
            "short": share,
            "stalls": share.map(lambda value: round(value / 10, 3)) if stalls else st.just(0.0),
        }
    )


class Interruption(NamedTuple):
    """A job is stopped, and continues from its state; `check_interrupted` does it.

    Attributes:
      steps: how many steps it makes before that.
      ranks: on how many ranks it goes on.
    """

    steps: int
    ranks: int


def interruptions(job: Job, most: int = 3, *, elastic: bool = True) -> st.SearchStrategy[list[Interruption]]:
    """Interruptions of a job, one after the other, as many steps apart as each says.

    Args:
      job: the job.
      most: how often it is stopped.
      elastic: it may continue with any number of ranks that divides the rows of a step; else with those that it had.

    >>> from hypothesis import find
    >>> find(interruptions(Job(20, 2, 2)), lambda made: any(each.ranks == 4 for each in made))
    [Interruption(steps=0, ranks=4)]
    """
    others = [ranks for ranks in range(1, job.global_batch + 1) if job.on(ranks) is not None and ranks != job.ranks]
    others = [job.ranks, *(others if elastic else ())]  # the simplest one changes nothing
    each = st.builds(Interruption, st.integers(0, job.steps), st.sampled_from(others))
    return st.lists(each, max_size=most)


# ----------------------------------------------------------------------------
# Specs of elements, and elements that fit them.
# ----------------------------------------------------------------------------


DTYPES: tuple[str, ...] = (
    "int64", "float32", "bool", "uint8", "int32", "float64", "int8", "int16", "uint16", "uint32", "uint64", "float16",
    "complex64", "complex128", "object",
)  # fmt: skip
"""Dtypes of leaves; `object` is text."""

_KEYS = ("x", "y", "id", "label")


def shapes(
    most_rank: int = 2, most_size: int = 3, *, unknown: bool = True
) -> st.SearchStrategy[tuple[int | None, ...]]:
    """Shapes of leaves, sizes of 0 among them.

    Args:
      most_rank: the most dimensions.
      most_size: the largest size.
      unknown: some sizes are None.
    """
    size: st.SearchStrategy[int | None] = st.integers(0, most_size)
    return st.lists(size | st.none() if unknown else size, max_size=most_rank).map(tuple)


def specs(
    most_leaves: int = 4, dtypes: Sequence[str] = DTYPES, *, most_rank: int = 2, unknown: bool = True
) -> st.SearchStrategy[Any]:
    """Nests of `TensorSpec`: alone, or in tuples and dicts, also in one another.

    Args:
      most_leaves: the most leaves, about.
      dtypes: of the leaves.
      most_rank: the most dimensions of a leaf.
      unknown: some sizes are None.

    >>> from hypothesis import find
    >>> find(specs(dtypes=["float32"]), lambda spec: isinstance(spec, dict))
    {'x': TensorSpec(shape=(), dtype=float32)}
    """
    leaf = st.builds(TensorSpec, shapes(most_rank, unknown=unknown), st.sampled_from(list(dtypes)).map(np.dtype))
    return st.recursive(leaf, _nests, max_leaves=most_leaves)


def _nests(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    tuples = st.tuples(inner) | st.tuples(inner, inner)
    return tuples | st.dictionaries(st.sampled_from(_KEYS), inner, min_size=1, max_size=3)


def elements(spec: Any, most_size: int = 3) -> st.SearchStrategy[Any]:
    """Elements of a spec: arrays of NumPy in its nest.

    Args:
      spec: a nest of `TensorSpec` with known ranks.
      most_size: the largest size where the spec has None.

    >>> from distinput import TensorSpec
    >>> from hypothesis import find
    >>> find(elements({"x": TensorSpec((None,), np.int32)}), lambda element: len(element["x"]) == 2)
    {'x': array([0, 0], dtype=int32)}
    """
    structure = structure_of(spec)
    leaves = [_array(leaf, most_size) for leaf in structure.flatten(spec)]
    return st.tuples(*leaves).map(lambda made: structure.build(list(made)))


def _array(leaf: TensorSpec, most_size: int) -> st.SearchStrategy[Any]:
    if leaf.shape is None:
        raise ValueError(f"elements: a leaf must have a known rank, got {leaf}")
    sizes = [st.integers(0, most_size) if size is None else st.just(size) for size in leaf.shape]
    return st.tuples(*sizes).flatmap(lambda shape: values(leaf.dtype, shape))


def values(dtype: Any, shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """Arrays of a dtype and a shape, without NaN, so that they can be compared."""
    if np.dtype(dtype) == object:
        count = int(np.prod(shape))
        texts = st.lists(st.binary(max_size=4), min_size=count, max_size=count)
        return texts.map(lambda made: _texts(made, shape))
    each = arrays.from_dtype(np.dtype(dtype), allow_nan=False)
    return arrays.arrays(np.dtype(dtype), shape, elements=each)


def _texts(made: list[bytes], shape: tuple[int, ...]) -> Any:
    array = np.empty(len(made), object)
    array[:] = made
    return array.reshape(shape)


# ----------------------------------------------------------------------------
# Batches that are partial or empty, and parts of data that end at different times.
# ----------------------------------------------------------------------------


def uneven_ends(most_parts: int = 4, most_rows: int = 7) -> st.SearchStrategy[list[int]]:
    """The rows of files, or of ranks: two parts or more, not all of them equal, empty ones among them.

    Args:
      most_parts: the most parts, at least 2.
      most_rows: the most rows in one.

    >>> from hypothesis import find
    >>> find(uneven_ends(), lambda rows: 0 in rows[:-1])
    [0, 1]
    """
    parts = st.lists(st.integers(0, most_rows), min_size=2, max_size=most_parts)
    return parts.filter(lambda rows: len(set(rows)) > 1)


def batch_sizes(batch: int, most_steps: int = 4, *, anywhere: bool = False) -> st.SearchStrategy[list[int]]:
    """The rows of batches in order: full ones, then one with 0 to `batch` rows.

    Args:
      batch: the rows of a full one.
      most_steps: the most batches.
      anywhere: all of them may be partial, as behind a filter.
    """
    size = st.integers(0, batch)
    if anywhere:
        return st.lists(size, max_size=most_steps)
    return st.builds(lambda full, last: [batch] * full + [last], st.integers(0, most_steps - 1), size)


@st.composite
def partial_batches(
    draw: st.DrawFn, spec: Any = None, batch: int = 4, most_steps: int = 4, *, anywhere: bool = False
) -> list[Any]:
    """Batches of one spec, as a loader delivers them: alike but for their rows.

    Args:
      draw: given by Hypothesis.
      spec: a nest of `TensorSpec` of one element with known shapes; any where None.
      batch: the rows of a full batch.
      most_steps: the most batches.
      anywhere: all of them may be partial.

    >>> from distinput import TensorSpec
    >>> from hypothesis import find
    >>> find(partial_batches(TensorSpec((), np.int64), batch=2), lambda made: [len(each) for each in made] == [2, 1])
    [array([0, 0]), array([0])]
    """
    spec = draw(specs(unknown=False)) if spec is None else spec
    structure = structure_of(spec)
    leaves: list[TensorSpec] = structure.flatten(spec)
    for leaf in leaves:
        if leaf.shape is None or None in leaf.shape:
            raise ValueError(f"partial_batches: shapes must be known, got {leaf}")
    return [
        structure.build([draw(values(leaf.dtype, (rows, *leaf.shape))) for leaf in leaves])  # type: ignore[misc]
        for rows in draw(batch_sizes(batch, most_steps, anywhere=anywhere))
    ]
