# SPDX-License-Identifier: Apache-2.0
"""Floor 2: the node, from which every pipeline is built, and its printed form."""
