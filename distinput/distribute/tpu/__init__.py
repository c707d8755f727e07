# SPDX-License-Identifier: Apache-2.0
"""Replicas on JAX devices: one traced program for all of them, compiled over a mesh."""
