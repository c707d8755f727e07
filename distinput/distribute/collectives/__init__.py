# SPDX-License-Identifier: Apache-2.0
"""Calls between workers, the same over every engine: compared first, never hanging, ending alike on all."""
