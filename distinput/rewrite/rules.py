# SPDX-License-Identifier: Apache-2.0
"""The table of rewrites, and their application.

A rule is a plain function `Node -> Node | None`, in most cases one pattern of a `match` and its replacement: it returns the
better node, or None where it does not apply. Rules change how a pipeline runs, never its elements.
"""

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING

from distinput.columns.state import Digest
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import later
from distinput.plan.families import Batching
from distinput.plan.node import Node, walk
from distinput.plan.seeds import placed

if TYPE_CHECKING:
    from distinput.ops import on_workers
    from distinput.plan import fingerprint as fingerprints
else:
    on_workers = later("distinput.ops.on_workers")
    fingerprints = later("distinput.plan.fingerprint")  # layouts are for states

Rule = Callable[[Node], Node | None]


# ----------------------------------------------------------------------------
# The table. Rules about certain ops stand in `rewrite.steps` and `rewrite.files`, which load these ops; the one about all
# ops that make batches stands here.
# ----------------------------------------------------------------------------


def read_for_batches(node: Node) -> Node | None:
    """What reads or gathers rows is told how many of them make a batch, so that batches are views of its blocks."""
    match node:
        case Batching():
            source = node.input.for_groups(int(node.batch_size))
            return None if source is None else node.with_inputs((source,))
    return None


def _rule(of: str, function: str, *ops: str) -> Rule:
    """A rule that is imported with the first of the ops it is about: an op that was never imported cannot occur in a tree.

    Args:
      of: the module, such as `rewrite.steps`.
      function: the rule in it.
      *ops: files in `ops/`; the rule can only fire in a tree with an op from one of them.
    """
    files = [f"distinput.ops.{op}" for op in ops]
    loaded: Rule | None = None

    def rule(node: Node) -> Node | None:
        nonlocal loaded
        if loaded is None:
            if not any(file in sys.modules for file in files):
                return None
            loaded = getattr(import_module(f"distinput.{of}"), function)
        return loaded(node)

    rule.__name__ = function
    return rule


FIRST: list[Rule] = [
    _rule("sharding.own_rows", "own_shares", "shard_batches"),
    _rule("rewrite.rules_of_steps", "balanced_concatenations", "concatenate"),
]
"""Tried once, from the root down, on the tree as it was described: they look through many ops, before others fuse these."""

RULES: list[Rule] = [
    _rule("rewrite.rules_of_steps", "concatenate_of_slices", "concatenate"),
    _rule("rewrite.rules_of_steps", "map_of_map", "map"),
    _rule("rewrite.rules_of_steps", "map_rows_of_map_rows", "map_rows"),
    _rule("rewrite.rules_of_steps", "zip_of_zip", "zip"),
    read_for_batches,
    _rule("rewrite.rules_of_steps", "batch_then_unbatch", "unbatch"),
    _rule("rewrite.rules_of_steps", "prefetch_of_prefetch", "prefetch"),
    _rule("rewrite.rules_of_steps", "prefetch_of_views", "prefetch"),
    _rule("rewrite.rules_of_steps", "shard_of_one", "shard"),
    _rule("rewrite.rules_of_steps", "shuffle_of_one", "shuffle"),
    _rule("rewrite.rules_of_steps", "skip_nothing", "take"),
    _rule("rewrite.rules_of_steps", "skip_of_skip", "take"),
    _rule("rewrite.rules_of_steps", "take_everything", "take"),
    _rule("rewrite.rules_of_steps", "take_of_take", "take"),
    _rule("rewrite.rules_of_files", "select_before_filter", "select"),
    _rule("rewrite.rules_of_files", "select_before_order", "select"),
    _rule("rewrite.rules_of_files", "select_in_files", "select"),
    _rule("rewrite.rules_of_files", "select_in_made", "select"),
    _rule("rewrite.rules_of_files", "filter_in_files", "filter"),
    _rule("rewrite.rules_of_steps", "part_of_range", "take"),
    _rule("rewrite.rules_of_steps", "skip_before_take", "take"),
    _rule("rewrite.rules_of_files", "read_after_shuffle", "source"),
]
"""Tried at each node, inputs before what reads them, until none fires."""


def register_rule(rule: Rule, *, first: bool = False) -> Rule:
    """Add a rule of your own to those that are tried on every pipeline; may be used as a decorator.

    A state tells which rules fired, by their names: whoever restores it must have registered them. `check_rewrites` of
    `distinput.testing` checks that all rules change neither elements nor states.

    Args:
      rule: a named function from a node to a better one, or to None.
      first: it looks through many ops, so it is tried once, from the root down, before the others change the tree.

    Returns:
      The rule.

    Raises:
      TypeError: it is no function with a name.
      InvalidArgumentError: another rule has that name.

    >>> from distinput.ops.shuffle import Shuffle
    >>> @register_rule
    ... def shuffle_of_none(node):
    ...     match node:
    ...         case Shuffle(source) if source.cardinality == 0:
    ...             return source
    ...     return None
    >>> import distinput as di
    >>> rewrite(di.data.Dataset.range(0).shuffle(5).node)[1]
    ['shuffle_of_none']
    """
    name = getattr(rule, "__name__", None)
    if not callable(rule) or not isinstance(name, str) or not name.isidentifier():
        raise TypeError(f"register_rule: a rule must be a function with a name, got {rule!r}")
    table = FIRST if first else RULES
    for known in (*FIRST, *RULES):
        if known.__name__ != name:
            continue
        if (known.__module__, known.__qualname__) != (rule.__module__, rule.__qualname__):
            raise InvalidArgumentError(
                f"register_rule: there is a rule {name!r} already, of {known.__module__}; choose another name"
            )
        (FIRST if known in FIRST else RULES).remove(known)  # a cell of a notebook that was run again
    table.append(rule)
    return rule


# ----------------------------------------------------------------------------
# Rules are tried until none fires.
# ----------------------------------------------------------------------------


def rewrite(
    node: Node, rules: Sequence[Rule] | None = None, only: Collection[str] | None = None
) -> tuple[Node, list[str]]:
    """The tree that runs for `node`, and the names of the rules that fired, in order.

    Args:
      node: the tree as the user described it.
      rules: what is tried; None: `FIRST` and `RULES`.
      only: names of the rules of these that may fire; None: all.
    """
    fired: list[str] = []
    if rules is not None:
        return _rewritten(node, _named(rules, only), fired), fired
    running = _rewritten(_first(node, _named(FIRST, only), fired), _named(RULES, only), fired)
    if "distinput.ops.on_workers" in sys.modules:  # without which no tree has such a step
        return on_workers.as_without(node, running, fired, partial(rewrite, only=only))
    return running, fired


def _named(rules: Sequence[Rule], names: Collection[str] | None) -> Sequence[Rule]:
    return rules if names is None else tuple([rule for rule in rules if rule.__name__ in names])


def _first(node: Node, rules: Sequence[Rule], fired: list[str]) -> Node:
    if node.skips_failures and node.inputs[0].may_fail:
        return node  # a worker that reads its own rows only would not know of the errors of others
    for rule in rules:
        better = rule(node)
        if better is not None:
            fired.append(rule.__name__)
            return better.same_as(node)
    inputs = tuple([_first(source, rules, fired) for source in node.inputs])
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        return node.with_inputs(inputs).same_as(node)
    return node


def _rewritten(node: Node, rules: Sequence[Rule], fired: list[str]) -> Node:
    inputs = tuple([_rewritten(source, rules, fired) for source in node.inputs])
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        node = node.with_inputs(inputs).same_as(node)
    for rule in rules:
        better = rule(node)
        if better is not None:
            fired.append(rule.__name__)
            return _rewritten(better.same_as(node), rules, fired)
    return node


# ----------------------------------------------------------------------------
# The tree that runs, and which rules made it: what a state has to say so that another process builds the same one.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Running:
    """What runs for a described tree.

    Args:
      node: the tree.
      rules: the names of the rules that fired, each once, in alphabetical order.

    >>> import distinput as di
    >>> Running.of(di.data.Dataset.range(9).map(abs).map(abs).node).rules
    ('map_of_map',)
    """

    node: Node
    rules: tuple[str, ...] = ()

    @staticmethod
    def of(plan: Node, only: Collection[str] | None = None) -> "Running":
        """The rewritten tree.

        Rules that did not fire had no effect, so with those that did as `only` the same tree is built again, also by a release
        that has more rules.

        Args:
          plan: the tree as the user described it.
          only: names of the rules that may fire; None: all.
        """
        if any(step.differs_by_place for step in walk(plan)):
            plan = placed(plan)
        node, fired = rewrite(plan, only=only)
        return Running(node, tuple(sorted(set(fired))))

    @cached_property
    def layout(self) -> str:
        """A hash of the layout of the states."""
        return Digest(6).add(fingerprints.layout(self.node)).word
