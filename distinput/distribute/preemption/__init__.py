# SPDX-License-Identifier: Apache-2.0
"""Machines that are taken away with notice: all workers save at the same step and end."""
