# SPDX-License-Identifier: Apache-2.0
"""Settings that PyTorch keeps for each thread, such as `torch.no_grad()`, carried to the threads of replicas."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["USUAL", "TorchModes"]


@dataclass(frozen=True, slots=True)
class TorchModes:
    """The settings of one thread, which the threads of replicas do not see by themselves.

    Args:
      gradients: whether operations are recorded for gradients.
      inference: whether inference mode is on, in which tensors never take part in gradients.
      autocast: the kinds of devices for which it is enabled, each with its dtype.
      cached: whether autocast keeps the weights that it has cast.
      default: the device of new tensors, None for the CPU.
    """

    gradients: bool = True
    inference: bool = False
    autocast: tuple[tuple[str, Any], ...] = ()
    cached: bool = True
    default: Any = None

    @classmethod
    def here(cls, kinds: Sequence[str]) -> "TorchModes":
        """Those of the calling thread."""
        gradients, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        autocast = tuple([(kind, torch.get_autocast_dtype(kind)) for kind in kinds if torch.is_autocast_enabled(kind)])
        # Making a tensor takes a quarter of the time that asking for the default device does.
        default = None if torch.empty(0).device.type == "cpu" else torch.get_default_device()
        if gradients and not (inference or autocast or default):
            return USUAL
        return cls(gradients, inference, autocast, torch.is_autocast_cache_enabled(), default)

    def contexts(self) -> list[AbstractContextManager[Any]]:
        """Context managers in which a thread has them."""
        found: list[AbstractContextManager[Any]] = []
        if self.inference:
            found.append(torch.inference_mode())
        if self.gradients == self.inference:  # inference mode disables gradients, without it they are enabled
            found.append(torch.set_grad_enabled(self.gradients))
        found += [torch.autocast(kind, dtype, cache_enabled=self.cached) for kind, dtype in self.autocast]
        if self.default is not None:
            found.append(self.default)
        return found


USUAL = TorchModes()
"""Those of a thread on which nothing was set."""
