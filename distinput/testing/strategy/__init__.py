# SPDX-License-Identifier: Apache-2.0
"""The suite for a strategy: the same program gives the same numbers under every one."""
