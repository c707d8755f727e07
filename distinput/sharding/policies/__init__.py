# SPDX-License-Identifier: Apache-2.0
"""The policies that divide a pipeline among workers, their table, and the tree that one worker runs by one of them.

The rules of FILE and AUTO are those of tensorflow/core/grappler/optimizers/data/auto_shard.cc. Trees are never changed in
place, so nothing is left behind if a pipeline turns out to be indivisible half way.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from distinput.errors import InvalidArgumentError, NotFoundError
from distinput.names.lazy import failures, later, load_extensions, placed
from distinput.ops.shard import Shard
from distinput.plan.families import Rows, kept_apart
from distinput.plan.node import Needs, Node, walk
from distinput.plan.options import AutoShardPolicy, Decision, Policy, Share, options_of
from distinput.run.run import Run
from distinput.sharding.own_rows import FrameworkLegacyRebatch, FrameworkRebatch, in_use, own_rows, with_common_order
from distinput.values.spec import DatasetSpec

if TYPE_CHECKING:
    from distinput.functions import inference
    from distinput.names import words
    from distinput.ops import map as maps
else:
    inference, maps = later("distinput.functions.inference"), later("distinput.ops.map")  # for functions
    words = later("distinput.names.words")  # for messages alone

# ----------------------------------------------------------------------------
# DATA: every n-th element; of batches that are cut for replicas, every n-th piece.
# ----------------------------------------------------------------------------


def _by_data(node: Node, share: Share) -> Node:
    """A shard below trailing steps without states of their own; each global batch is cut by itself."""
    if node.transparent:
        return node.with_inputs((_by_data(node.inputs[0], share),))
    if isinstance(node, FrameworkRebatch) and share.num_replicas:
        node = FrameworkLegacyRebatch(node.input, share.num_replicas, origin=node.origin)
    shard = Shard(node, share.num_workers, share.index, origin=node.origin)
    return own_rows(shard) or shard


DATA = Policy(
    "DATA",
    "pieces of each global batch, piece i to worker i modulo the number of workers",
    _by_data,
    reads_everything=True,
)


# ----------------------------------------------------------------------------
# HINT: elements are divided where the pipeline says `shard(SHARD_HINT, SHARD_HINT)`.
# ----------------------------------------------------------------------------


def _at_hints(node: Node, share: Share) -> Node:
    node = node.with_changed_inputs(lambda source: _at_hints(source, share))
    if isinstance(node, Shard) and node.is_hint:
        return Shard(node.input, share.num_workers, share.index, origin=node.origin)
    return node


HINT = Policy("HINT", "elements, where the pipeline says shard(SHARD_HINT, SHARD_HINT)", _at_hints)


# ----------------------------------------------------------------------------
# OFF: every worker reads everything.
# ----------------------------------------------------------------------------


def _everything(node: Node, _: Share) -> Node:
    return node


OFF = Policy("OFF", "every worker reads and delivers everything", _everything, divides=False, reads_everything=True)


# ----------------------------------------------------------------------------
# FILE: whole files.
# ----------------------------------------------------------------------------


class TooFewFilesError(InvalidArgumentError):
    """Policy FILE needs at least one file per worker."""


_CURE = "; use policy DATA, or AUTO, which takes DATA here"
_FLATTENING = ("flat_map", "interleave")
"""Steps by their names: this is asked of every pipeline, and those without them need not load them."""


def _refusal(node: Node, num_workers: int) -> NotFoundError | TooFewFilesError | None:
    """Why the files of a pipeline cannot be divided; None if they can.

    Functions are called on made-up elements to see whether they make readers, and up to `num_workers` names are listed.
    """

    def check(names: Node) -> Node:
        _check_enough(_without_shuffles(names, []), num_workers)
        return names

    try:
        _at_names(node, check, Share(num_workers, 0))
    except (NotFoundError, TooFewFilesError) as error:
        return error
    return None


def _decide(node: Node, num_workers: int) -> Decision:
    if num_workers > 1 and (why_not := _refusal(node, num_workers)) is not None:
        raise why_not
    return Decision(FILE, FILE, "asked", FILE.sentence)


def _by_file(node: Node, share: Share) -> Node:
    """The tree with a shard on the names of files.

    Raises:
      NotFoundError: a source is no file, or an op stands in the way.
    """
    return _at_names(node, lambda names: _names_of_worker(names, share), share)


def _by_file_unless_alone(node: Node, share: Share) -> Node:
    return node if share.num_workers == 1 else _by_file(node, share)


FILE = Policy("FILE", "whole files, file i to worker i modulo the number of workers", _by_file_unless_alone, _decide)


def _at_names(node: Node, change: Callable[[Node], Node], share: Share) -> Node:
    """The tree with `change` applied to each list of file names.

    Raises:
      NotFoundError: a source is no file, or an op stands in the way.
    """

    def below(source: Node) -> Node:
        return _at_names(source, change, share)

    if node.about_the_whole:
        return below(node.inputs[0])
    if node.reads_files:
        return node.with_inputs((change(node.inputs[0]),))
    if not node.inputs:
        raise NotFoundError(f"Found an unshardable source dataset: {node.op}; {node.op} reads no files{_CURE}")
    if node.op in _FLATTENING:
        dealt = _after_inner(node.inputs[0], share)
        if dealt is not None:
            return node.with_inputs((dealt,))
    if _makes_readers(node):
        return node.with_inputs((change(node.inputs[0]),))
    if node.needs <= Needs.PLACES:
        return node.with_inputs(tuple([below(source) for source in node.inputs]))
    if in_use("map") and isinstance(node, maps.RandomKeys):
        raise NotFoundError(
            "policy FILE: map(rng=True) needs to know where each element stands in the whole, and a worker that reads some of "
            f"the files does not{_CURE}"
        )
    raise NotFoundError(
        f"Did not find a shardable source: {node.op} must see all "
        f"elements, so workers cannot divide the files that it reads{_CURE}"
    )


def _after_inner(node: Node, share: Share) -> Node | None:
    """Below a flat_map: the tree with a shard right after the flat_map or reader over listed names that feeds it.

    TensorFlow means "slices of datasets" by this; for a reader over a list it divides records, not files. To TensorFlow a
    generator is a flat_map over a tensor, so the generator's elements are divided, too.
    """
    makes = node.reads_files or node.op in _FLATTENING
    if node.op == "generator" or (makes and isinstance(node.inputs[0], Rows)):
        return Shard(node, share.num_workers, share.index, origin=node.origin)
    if not makes and len(node.inputs) == 1 and node.needs <= Needs.PLACES:
        below = _after_inner(node.inputs[0], share)
        return None if below is None else node.with_inputs((below,))
    return None


def _makes_readers(node: Node) -> bool:
    """True if its function builds datasets that read files."""
    if in_use("map") and isinstance(node, maps.Map):  # TensorFlow's rule counts datasets that are elements, too
        known = vars(node).get("spec")
        if known is not None and not any(isinstance(leaf, DatasetSpec) for leaf in known.leaves):
            return False
        results = [getattr(result, "node", result) for result in inference.results_of(node.call, node.input)]
        return any(_reads_files(root) for root in results if isinstance(root, Node))
    return any(_reads_files(root) for root in node.made)


def _reads_files(tree: Node) -> bool:
    """True if a step reads files, or calls a function that builds such a tree."""
    return any(step.reads_files or any(_reads_files(root) for root in step.made) for step in walk(tree))


def _names_of_worker(names: Node, share: Share) -> Node:
    """The names of one worker; they are sharded before they are shuffled, so that all workers agree on the split."""
    shuffles: list[Node] = []
    bare = _without_shuffles(names, shuffles)
    sharded: Node = Shard(bare, share.num_workers, share.index, origin=names.origin)
    return shuffles[0].with_inputs((sharded,)) if shuffles else sharded


def _without_shuffles(node: Node, shuffles: list[Node]) -> Node:
    """The tree without its shuffles, which are added to the list, the last one first."""
    if node.shuffles:
        shuffles.append(node)
        return _without_shuffles(node.inputs[0], shuffles)
    return node.with_changed_inputs(lambda source: _without_shuffles(source, shuffles))


def _check_enough(names: Node, num_workers: int) -> None:
    """Refuse fewer names than workers.

    Raises:
      TooFewFilesError: on every worker alike, before anything is read.
    """
    found = _count_up_to(names, num_workers)
    if 0 < found < num_workers:
        raise TooFewFilesError(
            f"Could not apply FILE based sharding: the dataset only has {found} file(s), which is not enough for the required "
            f"{num_workers} shards/workers; {num_workers} workers need as many files, and there are only {found}{_CURE}"
        )


def _count_up_to(names: Node, most: int) -> int:
    """The number of names, at most `most`."""
    if names.cardinality >= 0:
        return min(most, names.cardinality)
    found = 0
    with Run() as run:
        stream = names.open(names.start(0), run)
        for block, _ in stream:
            found += block.size
            if found >= most:
                break
        stream.close()  # type: ignore[attr-defined]
    return min(most, found)


# ----------------------------------------------------------------------------
# AUTO: FILE where there are enough files, else DATA.
# ----------------------------------------------------------------------------


_FILE_OF_AUTO = replace(FILE, shard=_by_file)
"""A single worker shards its file names, too, since states that were saved with this policy contain that step."""


def _decide_auto(node: Node, num_workers: int) -> Decision:
    why_not = _refusal(node, num_workers)
    if why_not is None:
        return Decision(AUTO, _FILE_OF_AUTO, "enough_files", _FILE_OF_AUTO.sentence)
    reason = "too_few_files" if isinstance(why_not, TooFewFilesError) else "not_files"
    plain = str(why_not).removesuffix(_CURE).split("; ")[-1]  # behind TensorFlow's own words
    return Decision(AUTO, DATA, reason, f"{DATA.sentence}; not FILE, since {plain}")


def _shard_auto(node: Node, share: Share) -> Node:
    return _decide_auto(node, share.num_workers).applied.shard(node, share)


AUTO = Policy("AUTO", "FILE where there are enough files, else DATA", _shard_auto, _decide_auto)


# ----------------------------------------------------------------------------
# The table of policies.
# ----------------------------------------------------------------------------


POLICIES: dict[str, Policy | str] = {
    "AUTO": AUTO,
    "BALANCED": "distinput.sharding.policies.balanced:BALANCED",
    "DATA": DATA,
    "FILE": FILE,
    "HINT": HINT,
    "OFF": OFF,
}
"""Each policy by its name, or where it is, as `package.module:NAME`."""


def policy_named(name: str) -> Policy:
    """The policy of that name.

    Raises:
      InvalidArgumentError: there is none.
    """
    if name not in POLICIES:
        load_extensions()
    found = POLICIES.get(name)
    if found is None:
        known = words.meant(name, sorted(POLICIES), "known are")
        raise InvalidArgumentError(f"there is no policy {name!r}; {known}{failures()}")
    if isinstance(found, str):
        found = POLICIES[name] = placed(found)
    return found


def register_policy(policy: Policy) -> Policy:
    """Add a policy of your own to the known ones.

    Set it as the option `experimental_distribute.auto_shard_policy` of a dataset, or ask `shard_plan` and `explain` about it.
    Workers compare policies by their names, and all of them must register it.

    Args:
      policy: its name is none of the known ones.

    Returns:
      The policy.

    Raises:
      TypeError: it is no `Policy`.
      InvalidArgumentError: another policy has that name, or it is not in capital letters.

    >>> import distinput as di
    >>> from distinput.ops.shard import Shard
    >>> from distinput.plan.options import Policy
    >>> def backwards(node, share):
    ...     return Shard(node, share.num_workers, share.num_workers - 1 - share.index)
    >>> BACKWARDS = register_policy(Policy("BACKWARDS", "every n-th element, the first one to the last worker", backwards))
    >>> options = di.data.Options()
    >>> options.experimental_distribute.auto_shard_policy = BACKWARDS
    >>> ds = di.data.Dataset.range(5).with_options(options)
    >>> di.data.experimental.auto_shard_dataset(ds, num_workers=2, index=0).to_list()
    [1, 3]
    """
    if not isinstance(policy, Policy):
        raise TypeError(f"register_policy: needs a Policy, got {policy!r}")
    if not (policy.name.isidentifier() and policy.name.isupper()):
        raise InvalidArgumentError(
            f"register_policy: the name of a policy must be one word in capital letters, got {policy.name!r}"
        )
    known = POLICIES.get(policy.name)
    taken = known is not None and known != policy
    if taken or policy.name in AutoShardPolicy.__members__:
        raise InvalidArgumentError(f"register_policy: there is a policy {policy.name} already; choose another name")
    POLICIES[policy.name] = policy
    return policy


# ----------------------------------------------------------------------------
# Which policy divides a pipeline: decided here, once, for all who need to know.
# ----------------------------------------------------------------------------


def policy_of(node: Node) -> Policy:
    """The policy in the options of a tree."""
    return _policy(options_of(node).experimental_distribute.auto_shard_policy)


def decide(node: Node, num_workers: int, asked: AutoShardPolicy | Policy | None = None) -> Decision:
    """Which policy is applied to a tree, and why: AUTO is FILE where that works, else DATA.

    Args:
      node: the pipeline; the same on all workers, who so decide alike.
      num_workers: W.
      asked: the policy to ask about; None: the one in the options of the tree.

    Raises:
      NotFoundError: policy FILE, and a source is no file.
      TooFewFilesError: policy FILE, and there are fewer files than workers.
    """
    policy = policy_of(node) if asked is None else _policy(asked)
    if policy.decide is None:
        return Decision(policy, policy, "asked", policy.sentence)
    return policy.decide(node, num_workers)


def _policy(asked: AutoShardPolicy | Policy) -> Policy:
    return asked if isinstance(asked, Policy) else policy_named(AutoShardPolicy(asked).name)


# ----------------------------------------------------------------------------
# Auto-sharding: the part of a pipeline that one of several workers reads.
# ----------------------------------------------------------------------------


def auto_shard(
    node: Node,
    num_workers: int,
    index: int,
    num_replicas: int | None = None,
    policy: AutoShardPolicy | Policy | None = None,
    decision: Decision | None = None,
) -> Node:
    """The tree that worker `index` of `num_workers` runs.

    Args:
      node: the pipeline, its global batches cut for the replicas. Ops without a seed draw one on each worker, unless
        `with_seed` gave them one: then workers shuffle differently and disagree on which rows are whose.
      num_workers: W.
      index: from 0.
      num_replicas: replicas of all workers.
      policy: None: the one in the options of the tree.
      decision: what `decide` returned for this tree, or for one with the same sources; None: it is called now.

    Raises:
      NotFoundError: policy FILE, and a source is no file; or policy BALANCED, and an op needs to see all elements.
      TooFewFilesError: policy FILE, and there are fewer files than workers.
    """
    if decision is None:
        decision = decide(node, num_workers, policy)
    applied = decision.applied
    if num_workers > 1 and applied.divides:
        node = with_common_order(node)
    own = applied.shard(node, Share(num_workers, index, num_replicas))
    # Several workers may be of one process: as threads, as lanes of an earlier job, or where a program asks for each of them.
    return own if num_workers == 1 else kept_apart(own, node, (applied.name, num_workers, index))
