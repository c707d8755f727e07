# SPDX-License-Identifier: Apache-2.0
"""Floor 1: what elements are made of: nests, leaves, specs, ragged and sparse tensors."""
