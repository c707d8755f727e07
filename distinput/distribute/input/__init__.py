# SPDX-License-Identifier: Apache-2.0
"""Distributed input: from the user's dataset to the part of each step that each replica gets."""
