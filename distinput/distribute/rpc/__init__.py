# SPDX-License-Identifier: Apache-2.0
"""Calls of registered functions in another process: the names of `tf.distribute.experimental.rpc`."""

from distinput.distribute.rpc.client import Client, Server, StatusOrResult

__all__ = ["Client", "Server", "StatusOrResult"]
