# SPDX-License-Identifier: Apache-2.0
"""Floor 5: the rewrite rules, the only code that looks at two nodes at once."""

from distinput.rewrite.rules import RULES, Running, register_rule, rewrite

__all__ = ["RULES", "Running", "register_rule", "rewrite"]
