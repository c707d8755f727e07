# SPDX-License-Identifier: Apache-2.0
"""Which records a step is made of, computed from positions, without reading them."""

from distinput.lineage.located import Located, Place, Seen
from distinput.lineage.records import Records

__all__ = ["Located", "Place", "Records", "Seen"]
