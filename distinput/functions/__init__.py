# SPDX-License-Identifier: Apache-2.0
"""Floor 3: user functions: how they are called (inline, on threads, in processes), and what they return and must return."""
