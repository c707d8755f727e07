# SPDX-License-Identifier: Apache-2.0
"""Floor 1: what one iteration shares: threads, processes, cancellation, calls of functions."""
