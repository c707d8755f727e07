# SPDX-License-Identifier: Apache-2.0
"""Input: from a data set of the user's to the parts that each replica gets in each step."""
