# SPDX-License-Identifier: Apache-2.0
"""Who the workers are: descriptions of clusters, and resolvers that read them from the environment.

Everything here is a function of the mapping it is given, so all of it can be tried without a cluster.
"""
