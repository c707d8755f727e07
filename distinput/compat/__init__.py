# SPDX-License-Identifier: Apache-2.0
"""The counterpart of `tf.compat`, of which one name carries over: `v1.distribute.experimental.TPUStrategy`."""

from distinput.compat import v1

__all__ = ["v1"]
