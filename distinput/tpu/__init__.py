# SPDX-License-Identifier: Apache-2.0
"""The devices of accelerators as `tf.tpu` describes them; see `distinput.tpu.experimental`."""

from distinput.tpu import experimental

__all__ = ["experimental"]
