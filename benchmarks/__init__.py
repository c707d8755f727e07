# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: how fast distinput is beside a limit of the machine and beside its peers; see README.md."""
