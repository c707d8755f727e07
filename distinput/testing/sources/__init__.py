# SPDX-License-Identifier: Apache-2.0
"""Sources of random pipelines: what each makes, and, in plain Python, the list of its elements."""

from distinput.testing.pipeline import Ingredient
from distinput.testing.sources.arrays import KINDS
from distinput.testing.sources.databases import DATABASES
from distinput.testing.sources.memory import MEMORY
from distinput.testing.sources.parts import PARTS
from distinput.testing.sources.records import RECORDS
from distinput.testing.sources.tables import TABLES
from distinput.testing.sources.text_rows import TEXT_ROWS

__all__ = ["KINDS", "SOURCES"]

SOURCES: tuple[Ingredient, ...] = (*MEMORY, *RECORDS, *TABLES, *TEXT_ROWS, *DATABASES, *PARTS)
"""Where random pipelines begin."""
