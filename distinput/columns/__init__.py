# SPDX-License-Identifier: Apache-2.0
"""Floor 1: many elements together: columns, blocks of them, and queues of rows."""
