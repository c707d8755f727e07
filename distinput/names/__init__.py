# SPDX-License-Identifier: Apache-2.0
"""Floor 0: names that stand for what is loaded later, and words for people."""
