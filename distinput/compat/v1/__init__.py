# SPDX-License-Identifier: Apache-2.0
"""The counterpart of `tf.compat.v1`; its names for graphs and sessions are declined."""

from typing import TYPE_CHECKING, Any

from distinput.compat.v1 import distribute
from distinput.names.absent import absent
from distinput.random import set_seed as set_random_seed

__all__ = ["distribute", "set_random_seed"]

if not TYPE_CHECKING:  # a type checker that saw this would accept every name

    def __getattr__(name: str) -> Any:
        raise AttributeError(absent(__name__, name, __all__))
