# SPDX-License-Identifier: Apache-2.0
"""A pass that is recorded: what each step, thread and buffer did, and when."""
