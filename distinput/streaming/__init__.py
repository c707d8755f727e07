# SPDX-License-Identifier: Apache-2.0
"""Floor 3: streaming machinery that several ops share: reading ahead, trying threads, fetching rows, padding."""
