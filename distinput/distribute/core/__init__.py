# SPDX-License-Identifier: Apache-2.0
"""The thin core: strategies, contexts, values, reductions. Input, variables and workers stand above it and are given to it."""
