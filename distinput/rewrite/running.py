# SPDX-License-Identifier: Apache-2.0
"""The tree that runs, and which rules made it: what a state has to say so that another process builds the same one."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from distinput.core.digest import Digest
from distinput.plan.node import Node, walk
from distinput.rewrite.rules import rewrite

__all__ = ["Running"]


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
            from distinput.plan.places import placed  # with what only such steps need

            plan = placed(plan)
        node, fired = rewrite(plan, only=only)
        return Running(node, tuple(sorted(set(fired))))

    @cached_property
    def layout(self) -> str:
        """A hash of the layout of the states."""
        from distinput.plan.layout import layout

        return Digest(6).add(layout(self.node)).word
