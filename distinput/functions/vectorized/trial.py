# SPDX-License-Identifier: Apache-2.0
"""A trial of whole blocks on a few elements, real or made up, for `explain()` before the first pass."""

from itertools import islice

from distinput.core.block import Block
from distinput.functions.samples import samples
from distinput.functions.vectorized.verdict import Vectorizer
from distinput.plan.node import Node

__all__ = ["tried"]

_ELEMENTS = 4


def tried(verdict: Vectorizer, source: Node) -> str:
    """What a fresh verdict says of some elements of `source`."""
    try:
        spec = source.spec
        elements = list(islice(samples(source), 1)) * _ELEMENTS  # others may have other shapes
        rows = Block.of_elements(spec.structure, elements) if elements else None
    except Exception:  # noqa: BLE001 - then only a pass can tell
        return str(verdict)
    if rows is not None:
        verdict.refuses(rows.nbytes / rows.size)
        verdict.made(rows)
    return str(verdict)
