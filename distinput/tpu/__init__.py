# SPDX-License-Identifier: Apache-2.0
"""The devices of accelerators as `tf.tpu` describes them; see `distinput.tpu.experimental`."""

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy

if TYPE_CHECKING:
    from distinput.tpu import experimental as experimental
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
