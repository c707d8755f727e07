# SPDX-License-Identifier: Apache-2.0
"""The table of rewrites, and their application.

A rule is a plain function `Node -> Node | None`: the better node, or None when the rule does not apply. Rules change how a
pipeline runs, never its elements.
"""

import sys
from collections.abc import Callable
from importlib import import_module

from distinput.plan.node import Node

__all__ = ["FIRST", "RULES", "rewrite"]

Rule = Callable[[Node], Node | None]


def _rule(of: str, function: str, *ops: str) -> Rule:
    """A rule that is loaded with the first of the ops it is about: what nobody has loaded stands in no tree.

    Args:
      of: the module, such as `rewrite.fuse`.
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


FIRST: tuple[Rule, ...] = (_rule("sharding.own_rows", "own_shares", "shard_batches"),)
"""Tried from the root down on the tree as it was described: they look through many ops, before others melt them together."""

RULES: tuple[Rule, ...] = (
    _rule("rewrite.fuse", "concatenate_of_slices", "concatenate"),
    _rule("rewrite.fuse", "map_of_map", "map"),
    _rule("rewrite.fuse", "map_rows_of_map_rows", "map_rows"),
    _rule("rewrite.fuse", "zip_of_zip", "zip"),
    _rule("rewrite.groups", "read_for_batches", "global_shuffle", "reader", "shuffle"),
    _rule("rewrite.identities", "batch_then_unbatch", "unbatch"),
    _rule("rewrite.identities", "prefetch_of_prefetch", "prefetch"),
    _rule("rewrite.identities", "prefetch_of_views", "prefetch"),
    _rule("rewrite.identities", "shard_of_one", "shard"),
    _rule("rewrite.identities", "shuffle_of_one", "shuffle"),
    _rule("rewrite.identities", "skip_nothing", "take"),
    _rule("rewrite.identities", "skip_of_skip", "take"),
    _rule("rewrite.identities", "take_everything", "take"),
    _rule("rewrite.identities", "take_of_take", "take"),
    _rule("rewrite.ranges", "part_of_range", "take"),
    _rule("rewrite.reorder", "skip_before_take", "take"),
)


def rewrite(node: Node, rules: tuple[Rule, ...] = RULES) -> tuple[Node, list[str]]:
    """The tree that runs for `node`, and the names of the rules that fired, in order."""
    fired: list[str] = []
    if rules is RULES:
        node = _first(node, fired)
    return _rewritten(node, rules, fired), fired


def _first(node: Node, fired: list[str]) -> Node:
    if node.skips_failures and node.inputs[0].may_fail:
        return node  # a worker that reads its own rows only would not know of the errors of others
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
    inputs = tuple([_rewritten(source, rules, fired) for source in node.inputs])
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        node = node.with_inputs(inputs)
    for rule in rules:
        better = rule(node)
        if better is not None:
            fired.append(rule.__name__)
            return _rewritten(better, rules, fired)
    return node
