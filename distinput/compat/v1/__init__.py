# SPDX-License-Identifier: Apache-2.0
"""The counterpart of `tf.compat.v1`; its names for graphs and sessions are declined."""

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy

if TYPE_CHECKING:
    from distinput.compat.v1 import distribute as distribute
    from distinput.random import set_seed

    set_random_seed = set_seed
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
