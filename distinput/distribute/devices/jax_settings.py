# SPDX-License-Identifier: Apache-2.0
"""Settings that JAX keeps for each thread, as in `with jax.enable_x64(True):`, carried to the threads of replicas and input.

A setting that a program gives by `jax.config.update` belongs to all threads, and is left alone.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import jax

__all__ = ["JaxSettings"]

_MANAGERS: dict[str, Callable[[Any], Any]] = {
    f"jax_{name}": getattr(jax, manager)
    for name, manager in {
        "debug_infs": "debug_infs",
        "debug_key_reuse": "debug_key_reuse",
        "debug_nans": "debug_nans",
        "default_matmul_precision": "default_matmul_precision",
        "default_prng_impl": "default_prng_impl",
        "disable_jit": "disable_jit",
        "enable_checks": "enable_checks",
        "enable_x64": "enable_x64",
        "log_compiles": "log_compiles",
        "numpy_dtype_promotion": "numpy_dtype_promotion",
        "numpy_rank_promotion": "numpy_rank_promotion",
        "threefry_partitionable": "threefry_partitionable",
        "transfer_guard_device_to_device": "transfer_guard_device_to_device",
        "transfer_guard_device_to_host": "transfer_guard_device_to_host",
        "transfer_guard_host_to_device": "transfer_guard_host_to_device",
    }.items()
    if hasattr(jax, manager) and hasattr(jax.config, f"jax_{name}")
}
"""The context manager of each setting."""


class JaxSettings:
    """The settings of the thread that makes it.

    >>> import threading
    >>> with jax.enable_x64(True):
    ...     settings = JaxSettings()
    >>> with settings.entered():
    ...     print(jax.config.jax_enable_x64)
    True
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        config = jax.config
        self._values = [getattr(config, name) for name in _MANAGERS]

    def entered(self) -> ExitStack:
        """A context manager in which the thread that asks for it has them."""
        config, stack = jax.config, ExitStack()
        for (name, manager), value in zip(_MANAGERS.items(), self._values, strict=True):
            if getattr(config, name) != value:
                stack.enter_context(manager(value))
        return stack

    def bind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, to be called on another thread as on this one."""

        def bound(*args: Any) -> Any:
            with self.entered():
                return function(*args)

        return bound
