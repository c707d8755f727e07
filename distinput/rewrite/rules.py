# SPDX-License-Identifier: Apache-2.0
"""The table of rewrites, and their application.

A rule is a plain function `Node -> Node | None`: the better node, or None when the rule does not apply. Rules change how a
pipeline runs, never its elements.
"""

from collections.abc import Callable

from distinput.ops.ignore_errors import IgnoreErrors
from distinput.plan.node import Node
from distinput.rewrite import fuse, groups, identities, own_rows, reorder

__all__ = ["FIRST", "RULES", "rewrite"]

Rule = Callable[[Node], Node | None]

FIRST: tuple[Rule, ...] = (own_rows.own_shares,)
"""Tried from the root down on the tree as it was described: they look through many ops, before others melt them together."""

RULES: tuple[Rule, ...] = (
    fuse.map_of_map,
    fuse.map_rows_of_map_rows,
    fuse.zip_of_zip,
    groups.read_for_batches,
    identities.batch_then_unbatch,
    identities.prefetch_of_prefetch,
    identities.prefetch_of_views,
    identities.shard_of_one,
    identities.shuffle_of_one,
    identities.skip_nothing,
    identities.skip_of_skip,
    identities.take_everything,
    identities.take_of_take,
    reorder.skip_before_take,
    reorder.take_before_map,
)


def rewrite(node: Node, rules: tuple[Rule, ...] = RULES) -> tuple[Node, list[str]]:
    """The tree that runs for `node`, and the names of the rules that fired, in order."""
    fired: list[str] = []
    if rules is RULES:
        node = _first(node, fired)
    return _rewritten(node, rules, fired), fired


def _first(node: Node, fired: list[str]) -> Node:
    for rule in FIRST:
        better = rule(node)
        if better is not None:
            fired.append(rule.__name__)
            return better
    inputs = tuple([_first(source, fired) for source in node.inputs])
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        return node.with_inputs(inputs)
    return node


def _rewritten(node: Node, rules: tuple[Rule, ...], fired: list[str]) -> Node:
    below = tuple([rule for rule in rules if rule is not reorder.take_before_map])
    # Elements that are left out are not counted by a `take` behind the function.
    inputs = tuple(
        [_rewritten(source, below if isinstance(node, IgnoreErrors) else rules, fired) for source in node.inputs]
    )
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        node = node.with_inputs(inputs)
    for rule in rules:
        better = rule(node)
        if better is not None:
            fired.append(rule.__name__)
            return _rewritten(better, rules, fired)
    return node
