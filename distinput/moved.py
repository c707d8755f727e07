# SPDX-License-Identifier: Apache-2.0
"""Modules that moved: the old path stays importable for one release, with a warning that names the new one."""

import warnings
from functools import partial
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["moved_spec", "new_path"]

_MOVED_TO = {
    "data.dataset": "data.transformation",
    "data.iterator": "data.optional",
    "distribute.devices": "distribute.devices.names",
    "distribute.input.sources": "distribute.input.step_source",
    "distribute.rpc.client": "distribute.rpc.encoding",
    "distribute.tpu.mesh": "distribute.tpu.device_values",
    "functions.vectorized.answers": "functions.vectorized.stand_in",
    "functions.vectorized.whole_block": "functions.vectorized.transplant",
    "functions.workers": "functions.parts",
    "interop.jax.batches": "interop.jax.placement",
    "interop.torch.loader": "interop.torch.device_copies",
    "lineage.numbered": "lineage.record_numbers",
    "names.lazy": "names.registry",
    "ops.group_by_window": "streaming.groups",
    "ops.map": "ops.random_keys",
    "ops.rebatch": "ops.unbatch",
    "ops.snapshot": "streaming.kept_on_disk",
    "plan.families": "plan.seeds values.randomness",
    "sharding.policies": "sharding.policies.data sharding.policies.file",
    "sharding.policies.balanced": "sharding.file_assignment",
    "tf.datasets": "data.numpy_iterator",
    "tf.tensors": "tf.python_function",
}
"""Each new place, and the old paths of what stands there; those of "" are packages that are no more."""

_MOVED = {old: new for new, paths in _MOVED_TO.items() for old in paths.split()}


def new_path(old: str) -> str | None:
    """Where a module is now; None if it did not move.

    >>> new_path("distinput.streaming.groups"), new_path("distinput.ops.group_by_window")
    ('distinput.ops.group_by_window', None)
    """
    house, _, path = old.partition(".")
    return f"distinput.{_MOVED[path]}" if house == "distinput" and path in _MOVED else None


def moved_spec(name: str) -> ModuleSpec | None:
    """What the import system needs of a moved module; None for others. The old name stands for the very same module."""
    new = new_path(name)
    return None if new is None else ModuleSpec(name, _Alias(new))


class _Alias(Loader):
    """Loads the module of the new path in the place of the old one."""

    def __init__(self, new: str) -> None:
        self._new = new
        self._own_spec: Any = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module; for one whose place is a package a stand-in, which has its names."""
        warnings.warn(
            f"{spec.name} moved: import {self._new} instead; the old path goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        made = import_module(self._new)
        if hasattr(made, "__path__"):
            stand_in = ModuleType(spec.name)
            stand_in.__getattr__ = partial(getattr, made)  # type: ignore[method-assign]
            return stand_in
        self._own_spec = made.__spec__
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own spec back, which the import system has replaced."""
        if self._own_spec is not None:
            module.__spec__ = self._own_spec
