# SPDX-License-Identifier: Apache-2.0
"""Descriptions of clusters, and resolvers that read them from the environment.

Everything here depends only on the mapping of variables that it is given, so all of it can be tried without a cluster.
"""
