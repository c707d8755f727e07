# SPDX-License-Identifier: Apache-2.0
"""The suite for an op, a source or a whole pipeline: every law of datasets, one after the other."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from distinput.data.dataset import Dataset
from distinput.distribute.core.mirrored import MirroredStrategy
from distinput.names.lazy import dataclass
from distinput.plan.node import INFINITE
from distinput.testing.elements import hold
from distinput.testing.laws.elements import check_blocks, check_facts, check_rewrites, check_same_as, check_spec
from distinput.testing.laws.restarts import check_nothing_left, check_positions, check_processes, check_restart
from distinput.testing.laws.shares import check_distributed, check_policy, check_shards, check_workers
from distinput.values.spec import TensorSpec


@dataclass(frozen=True)
class _Subject:
    """What is checked, and how."""

    make: Callable[[], Dataset]
    elements: Sequence[Any] | None
    policies: tuple[Any, ...]
    state_bytes: int

    def batched(self) -> Callable[[], Dataset] | None:
        """The pipeline in global batches; None where its elements cannot be batched."""
        dataset = self.make()
        spec = dataset.node.spec
        shapes = [leaf.shape for leaf in spec.leaves if isinstance(leaf, TensorSpec) and leaf.shape is not None]
        if not shapes or len(shapes) < len(spec.leaves) or spec.structure.sparse or dataset.cardinality() == INFINITE:
            return None
        if all(None not in shape for shape in shapes):
            return lambda: self.make().batch(3)
        return lambda: self.make().ragged_batch(3)


def _same(subject: _Subject) -> bool | None:
    if subject.elements is None:
        return False
    check_same_as(subject.make(), subject.elements)
    return None


def _restart(subject: _Subject) -> None:
    check_restart(subject.make(), fresh=subject.make, state_bytes=subject.state_bytes)


def _shards(subject: _Subject) -> None:
    for shards in (2, 3):
        check_shards(subject.make(), shards)


def _policies(subject: _Subject) -> bool:
    applies = [check_policy(subject.make, policy, workers) for policy in subject.policies for workers in (2, 3)]
    return any(applies)


def _distributed(subject: _Subject) -> bool | None:
    batches = subject.batched()
    if batches is None:
        return False
    for replicas in (2, 3):
        check_distributed(MirroredStrategy([f"CPU:{index}" for index in range(replicas)]), batches())
    check_workers(batches, workers=2, replicas=2, even=False)
    return None


LAWS: Mapping[str, Callable[[_Subject], bool | None]] = MappingProxyType(
    {
        "same elements": _same,
        "spec": lambda subject: check_spec(subject.make()),
        "facts": lambda subject: check_facts(subject.make()),
        "restart": _restart,
        "rewrites": lambda subject: check_rewrites(subject.make()),
        "positions": lambda subject: check_positions(subject.make()),
        "blocks": lambda subject: check_blocks(subject.make),
        "shards": _shards,
        "policies": _policies,
        "distributed": _distributed,
        "another process": lambda subject: check_processes(subject.make),
        "nothing left": lambda subject: check_nothing_left(subject.make),
    }
)
"""The laws of datasets by name. A function returns False where the law does not apply."""


def check_dataset(
    make: Callable[[], Dataset],
    elements: Sequence[Any] | None = None,
    *,
    policies: Sequence[Any] = ("DATA",),
    leave_out: Collection[str] = (),
    state_bytes: int = 4096,
) -> tuple[str, ...]:
    """Check all laws of datasets on a pipeline: try an op or a source of your own before and after others.

    The laws, by name:

    * same elements: a pass yields `elements`, if these are given;
    * spec: every element fits `element_spec`, and the cardinality is true;
    * facts: what the steps declare about themselves, such as `needs`, is true;
    * restart: from every state, through JSON, exactly the rest follows, in the same and in an equal pipeline;
    * rewrites: rules change neither elements nor states;
    * positions: `start_at` and `fetch`, where available, lead to the same elements as reading on;
    * blocks: nothing depends on how many elements travel together;
    * shards: `shard` keeps every n-th element;
    * policies: workers that share the pipeline by a policy read each element once;
    * distributed: replicas get the rows of each batch, and sums and means over them are right;
    * another process: another process gets the same elements, and continues from a state of this one;
    * nothing left: no thread, process or open file is left behind.

    How much of a pipeline is looked at: "same elements" and "distributed" read all of it; "spec", "shards" and "policies" all
    of up to 10,000 elements, or the first 200 if it does not end; the others, which begin anew at many places, the first 200,
    and "positions" the first 60 of each step. "facts" leaves out steps with more than 1,000. Nothing is known of what happens
    only later: make the pipeline of few records, with small files and small buffers.

    Args:
      make: makes the pipeline, anew at each call and always the same. If it can be pickled, as a function of a module can,
        it is tried in another process as well.
      elements: its elements, where they are known; see `check_same_as`.
      policies: names of auto-sharding policies under which workers together read each element once. DATA does so always;
        FILE and BALANCED do for ops that look at one element at a time.
      leave_out: names of laws not to check.
      state_bytes: the largest size of a state as JSON.

    Returns:
      The names of the laws that were checked. Those that do not apply to this pipeline are missing: "distributed" for
      elements that cannot be batched, "another process" where `make` cannot be pickled.

    Raises:
      AssertionError: a law is broken; the message begins with its name.
      ValueError: an unknown name in `leave_out`.

    >>> import distinput as di
    >>> check_dataset(lambda: di.data.Dataset.range(7).map(lambda x: x * 2), [0, 2, 4, 6, 8, 10, 12])
    ('same elements', 'spec', 'facts', 'restart', 'rewrites', 'positions', 'blocks', 'shards', 'policies', 'distributed',
     'nothing left')
    """
    subject = _Subject(make, elements, tuple(policies), state_bytes)
    return hold("check_dataset", LAWS, lambda check: check(subject), leave_out)
