# SPDX-License-Identifier: Apache-2.0
"""The laws of a pipeline: functions that raise `AssertionError` with what is broken.

They hold for every pipeline that distinput can describe; call them on your own to see that a new op, format or function
keeps them too. `distinput.testing` has their names.
"""
