# SPDX-License-Identifier: Apache-2.0
"""Floor 1: Arrow at the border: columns from and to it, tables of other libraries, values that are adopted."""
