# SPDX-License-Identifier: Apache-2.0
"""Floor 3: how users' functions are called (here, on threads, in processes), and what they return and must return."""
