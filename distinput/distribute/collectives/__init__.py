# SPDX-License-Identifier: Apache-2.0
"""Collective calls, the same on every engine: compared first, bounded in time, with the same outcome on all workers."""
