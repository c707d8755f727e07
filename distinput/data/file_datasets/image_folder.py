# SPDX-License-Identifier: Apache-2.0
"""`ImageFolderDataset`: images in folders that are named by their classes."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from distinput.data.dataset import Dataset
from distinput.decoders.image import decode_image
from distinput.errors import DistinputError, InvalidArgumentError
from distinput.files.mounts import stored
from distinput.files.paths import as_paths, list_matching, local_path
from distinput.files.source import naming, open_binary
from distinput.ops.slices import from_tensor_slices
from distinput.plan.check import AUTOTUNE
from distinput.plan.options import SkipErrors

__all__ = ["ImageFolderDataset"]

_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp")


class ImageFolderDataset(Dataset[Any]):
    """Images in a folder with a subfolder for each class, as pairs of image and label.

    `train/cat/7.jpg` is of the class `cat`; so are images in folders below `train/cat`. Classes are numbered in the order of
    their names, and images come class by class in the order of their paths, the same on every machine: shuffle them with
    `global_shuffle`, which reads nothing beforehand. Images are counted, and any of them is reached at once. Hidden files and
    folders are left out, and files that are no images by their suffixes.

    Args:
      directory: the folder; a path or any fsspec URL.
      class_names: the names of the folders to read, in the order of their labels; None: all of them, sorted.
      channels: 3 for RGB, 1 for gray, 4 for RGBA; 0: as each image has them.
      decode: false to get the bytes of the files in place of pixels.
      num_parallel_calls: threads that read and decode.
      on_error: "raise", "skip" or `SkipErrors(...)`, for an image that cannot be read. None: as `Options.on_error` says, or
        "raise".
      name: a label.
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Attributes:
      class_names: the name of each class, by label.

    Raises:
      NotFoundError: the folder is not there.
      InvalidArgumentError: a class has no images, there are none, or an image is in no class; at iteration, a file is no
        image. The message names it.

    >>> import pathlib
    >>> import distinput as di
    >>> from PIL import Image
    >>> for name, gray in (("train/dog/1.png", 50), ("train/cat/2.png", 100), ("train/cat/1.png", 200)):
    ...     pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
    ...     Image.new("L", (2, 1), gray).save(name)
    >>> images = di.data.ImageFolderDataset("train", channels=1)
    >>> images.class_names, len(images)
    (('cat', 'dog'), 3)
    >>> [(image.ravel().tolist(), int(label)) for image, label in images]
    [([200, 200], 0), ([100, 100], 0), ([50, 50], 1)]
    """

    def __init__(
        self,
        directory: Any,
        *,
        class_names: Sequence[str] | None = None,
        channels: int = 3,
        decode: bool = True,
        num_parallel_calls: int | None = AUTOTUNE,
        on_error: str | SkipErrors | None = None,
        name: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None:
        (root,), storage = stored(as_paths(directory), storage_options, filesystem)
        if channels not in (0, 1, 3, 4):
            raise InvalidArgumentError(f"ImageFolderDataset: channels must be 0, 1, 3 or 4, got {channels}")
        found = _images(root.rstrip("/") or root)
        names = tuple(sorted(found)) if class_names is None else tuple(class_names)
        empty = [each for each in names if each not in found]
        if empty or not names:
            what = f"class {empty[0]!r} has no images" if empty else "there are no images in folders"
            raise InvalidArgumentError(
                f"ImageFolderDataset: {root}: {what}; images are in subfolders named by their classes, such as "
                f"{root}/cat/1.jpg, with one of the suffixes {', '.join(_SUFFIXES)}"
            )
        paths = [path for each in names for path in found[each]]
        labels = np.repeat(np.arange(len(names)), [len(found[each]) for each in names])
        pairs = replace(
            from_tensor_slices((np.array([path.encode() for path in paths], object), labels)), storage=storage
        )
        made = Dataset(pairs).map(
            _Reading(channels, decode), num_parallel_calls=num_parallel_calls, on_error=on_error, name=name
        )
        super().__init__(made.node)
        self.class_names = names


def _images(root: str) -> dict[str, list[str]]:
    """The paths of the images of each class, sorted."""
    found: dict[str, list[str]] = {}
    for path in _files(root):
        parts = path.removeprefix(root).strip("/").split("/")
        if any(part.startswith(".") for part in parts) or not path.lower().endswith(_SUFFIXES):
            continue
        if len(parts) == 1:
            raise InvalidArgumentError(
                f"ImageFolderDataset: {path} is in no class; move it into a folder that is named by its class"
            )
        found.setdefault(parts[0], []).append(path)
    return {name: sorted(paths) for name, paths in found.items()}


def _files(root: str) -> list[str]:
    """The paths of all files below a folder."""
    local = local_path(root)
    if local is None:
        return list_matching(f"{root}/**")
    with naming(root):
        os.stat(local)
    return [f"{folder}/{name}" for folder, _, names in os.walk(local, followlinks=True) for name in names]


@dataclass(frozen=True)
class _Reading:
    """The function of a path and a label."""

    channels: int
    decode: bool

    def __call__(self, path: bytes, label: Any) -> tuple[Any, Any]:
        name = path.decode()
        with naming(name), open_binary(name) as file:
            contents = file.read()
        if not self.decode:
            return contents, label
        try:
            return decode_image(contents, self.channels, expand_animations=False), label
        except DistinputError as error:
            raise type(error)(f"{name}: {error}") from error
