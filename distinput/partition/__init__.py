# SPDX-License-Identifier: Apache-2.0
"""Floor 3: who reads what, as functions of files and numbers; nothing here reads a record."""
