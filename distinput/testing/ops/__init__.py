# SPDX-License-Identifier: Apache-2.0
"""Ops of random pipelines: what each does to a dataset, and, in plain Python, to a list."""

from distinput.testing.ops.balanced import BALANCED
from distinput.testing.ops.batching import BATCHING
from distinput.testing.ops.choosing import CHOOSING
from distinput.testing.ops.flattening import FLATTENING
from distinput.testing.ops.grouping import GROUPING
from distinput.testing.ops.mapping import MAPPING
from distinput.testing.ops.packing import PACKING
from distinput.testing.ops.passing import PASSING
from distinput.testing.ops.random_maps import RANDOM_MAPS
from distinput.testing.ops.several import SEVERAL
from distinput.testing.ops.shuffling import SHUFFLING
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
