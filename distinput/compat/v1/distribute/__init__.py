# SPDX-License-Identifier: Apache-2.0
"""The counterpart of `tf.compat.v1.distribute`; strategies are those of TensorFlow 2."""

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy

if TYPE_CHECKING:
    from distinput.compat.v1.distribute import experimental as experimental
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
