# SPDX-License-Identifier: Apache-2.0
"""Functions of one element called once for a whole block, where that gives the same results."""
