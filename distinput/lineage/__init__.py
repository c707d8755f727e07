# SPDX-License-Identifier: Apache-2.0
"""Which records a step is made of, computed from positions, without reading them.

`numbered` has pipelines of the numbers of records, `followed` those whose states tell them, `step_records` the records of the
steps of a distributed dataset, and `history` the ledger that a job keeps.
"""

from distinput.distribute.input.located import Located, Place, Records, Seen

__all__ = ["Located", "Place", "Records", "Seen"]
