# SPDX-License-Identifier: Apache-2.0
"""Feeding PyTorch: views of a dataset for DataLoader, Lightning, Accelerate and the Trainer of Hugging Face."""

from distinput.errors import importing

with importing("interop.torch: PyTorch is not installed; `pip install 'distinput[torch]'`"):
    import torch  # noqa: F401

from distinput.interop.torch.iterable_view import IterableView, ViewIterator
from distinput.interop.torch.loader import Loader
from distinput.interop.torch.map_view import MapView
from distinput.interop.torch.mesh_place import MeshPlace
from distinput.interop.torch.trainer_feed import TrainerFeed

__all__ = ["IterableView", "Loader", "MapView", "MeshPlace", "TrainerFeed", "ViewIterator"]
