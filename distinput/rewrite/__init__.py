# SPDX-License-Identifier: Apache-2.0
"""Floor 5: rules that look at two nodes at once, tried bottom-up until none fires."""

from distinput.rewrite.rules import RULES, rewrite
from distinput.rewrite.running import Running

__all__ = ["RULES", "Running", "rewrite"]
