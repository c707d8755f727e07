# SPDX-License-Identifier: Apache-2.0
"""Input: from a dataset of the user's to the parts that each replica gets in each step."""
