# SPDX-License-Identifier: Apache-2.0
"""Floor 4: the ops, one file each. An op is a frozen dataclass that says its spec, its start and its stream."""
