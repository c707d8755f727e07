# SPDX-License-Identifier: Apache-2.0
"""JAX: batches as global arrays on the devices of a mesh."""

from distinput.errors import EngineMissing

try:
    import jax as _jax  # noqa: F401 - checked before the modules below need it
except ImportError as error:
    raise EngineMissing(
        f"interop.jax: needs JAX, which is not installed ({error}); use `pip install 'distinput[jax]'`"
    ) from error

from distinput.interop.jax.batches import GlobalBatches, GlobalIterator, batches, to_global

__all__ = ["GlobalBatches", "GlobalIterator", "batches", "to_global"]
