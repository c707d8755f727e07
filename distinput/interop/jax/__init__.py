# SPDX-License-Identifier: Apache-2.0
"""JAX: batches as global arrays on the devices of a mesh."""

from distinput.errors import importing

with importing("interop.jax: needs JAX, which is not installed ({error}); use `pip install 'distinput[jax]'`"):
    import jax as _jax  # noqa: F401 - checked before the modules below need it

from distinput.interop.jax.batches import GlobalBatches, GlobalIterator, batches, to_global

__all__ = ["GlobalBatches", "GlobalIterator", "batches", "to_global"]
