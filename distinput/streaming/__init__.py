# SPDX-License-Identifier: Apache-2.0
"""Floor 3: what several ops stream with: reading ahead, trying threads, fetching rows, groups by key, padding."""
