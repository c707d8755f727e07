# SPDX-License-Identifier: Apache-2.0
"""The names of `tf.distribute.experimental`."""

from distinput.distribute.context import ValueContext
from distinput.distribute.strategies.central_storage import CentralStorageStrategy

__all__ = ["CentralStorageStrategy", "ValueContext"]
