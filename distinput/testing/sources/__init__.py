# SPDX-License-Identifier: Apache-2.0
"""Sources of random pipelines: what each makes, and, in plain Python, the list of its elements."""

from distinput.testing.pipeline import Ingredient
from distinput.testing.sources.memory import KINDS, MEMORY
from distinput.testing.sources.records import PARTS, RECORDS
from distinput.testing.sources.tables import DATABASES, TABLES, TEXT_ROWS

__all__ = ["KINDS", "SOURCES"]

SOURCES: tuple[Ingredient, ...] = (*MEMORY, *RECORDS, *TABLES, *TEXT_ROWS, *DATABASES, *PARTS)
"""Where random pipelines begin."""
