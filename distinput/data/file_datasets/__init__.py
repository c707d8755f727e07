# SPDX-License-Identifier: Apache-2.0
"""Datasets over files, a module for each format."""
