# SPDX-License-Identifier: Apache-2.0
"""The counterpart of `tf.compat.v1.distribute`; strategies are those of TensorFlow 2."""

from typing import TYPE_CHECKING, Any

from distinput.compat.v1.distribute import experimental
from distinput.names.absent import absent

__all__ = ["experimental"]

if not TYPE_CHECKING:  # a type checker that saw this would accept every name

    def __getattr__(name: str) -> Any:
        raise AttributeError(absent(__name__, name, __all__))
