# SPDX-License-Identifier: Apache-2.0
"""The options that hold for a tree."""

from distinput.ops.identity import WithOptions
from distinput.plan.node import Node
from distinput.plan.options import Options

__all__ = ["options_of"]


def options_of(node: Node) -> Options:
    """Those of later inputs over earlier ones, the node's own over all.

    Source: the merging of `tf.data.Dataset.options`.
    """
    merged = Options()
    for source in node.inputs:
        merged = merged.merge(options_of(source))
    return merged.merge(node.options) if isinstance(node, WithOptions) else merged
