# SPDX-License-Identifier: Apache-2.0
"""Floor 1: nests, specs, columns, blocks, row queues, randomness, and what one iteration shares."""
