# SPDX-License-Identifier: Apache-2.0
"""Ops of random pipelines: what each does to a dataset, and, in plain Python, to a list."""

from distinput.testing.ops.batching import BATCHING, PACKING
from distinput.testing.ops.grouping import GROUPING
from distinput.testing.ops.mapping import CHOOSING, MAPPING, PASSING, RANDOM_MAPS, SHUFFLING
from distinput.testing.ops.several import BALANCED, FLATTENING, SEVERAL
from distinput.testing.pipeline import Ingredient

__all__ = ["OPS"]

OPS: tuple[Ingredient, ...] = (
    *BALANCED,
    *BATCHING,
    *CHOOSING,
    *FLATTENING,
    *GROUPING,
    *MAPPING,
    *PACKING,
    *PASSING,
    *RANDOM_MAPS,
    *SEVERAL,
    *SHUFFLING,
)
"""What random pipelines go through."""
