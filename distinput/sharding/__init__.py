# SPDX-License-Identifier: Apache-2.0
"""Floor 5: which part of a pipeline each worker reads, and the plan that tells this beforehand."""
