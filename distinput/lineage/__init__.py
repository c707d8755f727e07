# SPDX-License-Identifier: Apache-2.0
"""Which records a step is made of, computed from positions, without reading them."""

from distinput.distribute.input.located import Located, Place, Records, Seen

__all__ = ["Located", "Place", "Records", "Seen"]
