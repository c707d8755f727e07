# SPDX-License-Identifier: Apache-2.0
"""Floor 5: what one worker reads of a pipeline, and who reads what, told beforehand."""
