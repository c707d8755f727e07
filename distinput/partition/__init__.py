# SPDX-License-Identifier: Apache-2.0
"""Floor 3: who reads what, computed from files and numbers; no record is read here."""
