# SPDX-License-Identifier: Apache-2.0
"""One module a neighbour: `interop.torch`, `interop.jax`, `interop.keras` and so on, each imported when it is first named.

A neighbour's package is imported by its module alone, so `import distinput` and every other part work without it.
"""

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy

if TYPE_CHECKING:
    from distinput.interop import grain as grain
    from distinput.interop import huggingface as huggingface
    from distinput.interop import jax as jax
    from distinput.interop import keras as keras
    from distinput.interop import ray as ray
    from distinput.interop import tables as tables
    from distinput.interop import torch as torch
else:
    __getattr__, __dir__, _ = lazy(__name__)
    __all__ = []  # none is imported unless it is named
