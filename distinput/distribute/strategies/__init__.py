# SPDX-License-Identifier: Apache-2.0
"""One file for each strategy; `STRATEGIES` names them all."""

from importlib import import_module

from distinput.distribute.strategy import Strategy

__all__ = ["STRATEGIES", "strategy_class"]

_HERE = "distinput.distribute.strategies"

STRATEGIES: dict[str, str] = {
    "central_storage": f"{_HERE}.central_storage:CentralStorageStrategy",
    "default": f"{_HERE}.default:DefaultStrategy",
    "mirrored": f"{_HERE}.mirrored:MirroredStrategy",
    "multi_worker_mirrored": f"{_HERE}.multi_worker_mirrored:MultiWorkerMirroredStrategy",
    "one_device": f"{_HERE}.one_device:OneDeviceStrategy",
    "parameter_server": f"{_HERE}.parameter_server:ParameterServerStrategy",
    "tpu": f"{_HERE}.tpu:TPUStrategy",
}


def strategy_class(name: str) -> type[Strategy]:
    """The class of a strategy of the table, imported on first use.

    Raises:
      ValueError: an unknown name.
    """
    if name not in STRATEGIES:
        raise ValueError(f"unknown strategy {name!r}; known are {', '.join(STRATEGIES)}")
    module, cls = STRATEGIES[name].split(":")
    found: type[Strategy] = getattr(import_module(module), cls)
    return found
