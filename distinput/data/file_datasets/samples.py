# SPDX-License-Identifier: Apache-2.0
"""Datasets whose samples are files of their own: images in folders of their classes, and members of tar archives."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import constructor_of, reading
from distinput.decoders.image import decode_image
from distinput.decoders.members import MemberDecoder
from distinput.errors import DistinputError, InvalidArgumentError, NoMatchError
from distinput.files.folder import all_names_below, join_path, names_in, unlisted
from distinput.files.mounts import stored
from distinput.files.paths import as_paths, local_path
from distinput.files.source import naming, open_binary
from distinput.formats import format_named
from distinput.formats.tar import COMPLETE, KEY, URL, as_members
from distinput.names.lazy import dataclass
from distinput.ops.slices import from_tensor_slices
from distinput.plan.check import AUTOTUNE
from distinput.plan.options import SkipErrors

# ----------------------------------------------------------------------------
# Images in folders that are named by their classes.
# ----------------------------------------------------------------------------


_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp")


class ImageFolderDataset(Dataset[Any]):
    """Images in a folder with a subfolder for each class, as pairs of image and label.

    `train/cat/7.jpg` is of the class `cat`; so are images in folders below `train/cat`. Classes are numbered in the order of
    their names, and images come class by class in the order of their paths, the same on every machine: shuffle them with
    `global_shuffle`, which reads nothing beforehand. Images are counted, and any of them is reached at once. Hidden files and
    folders are left out, and files that are not images by their suffixes.

    Args:
      directory: the folder; a path or any fsspec URL.
      class_names: the names of the folders to read, in the order of their labels, of which some may be without images; None:
        all of them, sorted.
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
      labels: [images] int64, the label of each image in the order of the images, known without opening one; read-only.

    Raises:
      NotFoundError: the folder is not there.
      InvalidArgumentError: a folder has no images and `class_names` is None, a class of `class_names` has no folder, there
        are no images, or one is in no class; at iteration, a file is no image. The message names it.

    >>> import pathlib
    >>> import distinput as di
    >>> from PIL import Image
    >>> for name, gray in (("train/dog/1.png", 50), ("train/cat/2.png", 100), ("train/cat/1.png", 200)):
    ...     pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
    ...     Image.new("L", (2, 1), gray).save(name)
    >>> images = di.data.ImageFolderDataset("train", channels=1)
    >>> images.class_names, images.labels
    (('cat', 'dog'), array([0, 0, 1]))
    >>> [(image.ravel().tolist(), int(label)) for image, label in images]
    [([200, 200], 0), ([100, 100], 0), ([50, 50], 1)]
    """

    @constructor_of
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
        roots, storage = stored(as_paths(directory), storage_options, filesystem)
        if len(roots) != 1:
            raise InvalidArgumentError(f"ImageFolderDataset: directory must be one folder, got {len(roots)}")
        root = roots[0]
        if channels not in (0, 1, 3, 4):
            raise InvalidArgumentError(f"ImageFolderDataset: channels must be 0, 1, 3 or 4, got {channels}")
        if class_names is not None and len(set(class_names)) < len(class_names):
            raise InvalidArgumentError(f"ImageFolderDataset: class_names has a name twice, got {list(class_names)}")
        local = local_path(root)
        images = _images(join_path(root, "") if local is None else local.rstrip("/") or root)
        names = tuple(sorted(images)) if class_names is None else tuple(class_names)
        absent = [each for each in names if each not in images]
        if absent or not any(images[each] for each in names):
            what = f"class {absent[0]!r} has no images" if absent else "there are no images in folders"
            raise InvalidArgumentError(
                f"ImageFolderDataset: {root}: {what}; images are in subfolders named by their classes, such as "
                f"{root}/cat/1.jpg, with one of the suffixes {', '.join(_SUFFIXES)}"
            )
        empty = [each for each in names if not images[each]]
        if empty and class_names is None:
            # Without its class, the labels of those behind it would be others than where the class has images.
            raise InvalidArgumentError(
                f"ImageFolderDataset: {root}: class {empty[0]!r} has no images; remove its folder, or give class_names, "
                "in which a class may be without images"
            )
        paths = [path for each in names for path in images[each]]
        labels = np.repeat(np.arange(len(names), dtype=np.int64), [len(images[each]) for each in names])
        labels.flags.writeable = False
        pairs = replace(
            from_tensor_slices((np.array([os.fsencode(path) for path in paths], object), labels)), storage=storage
        )
        made = Dataset(pairs).map(
            _Reading(channels, decode), num_parallel_calls=num_parallel_calls, on_error=on_error, name=name
        )
        super().__init__(made.node)
        self.class_names, self.labels = names, labels


def _images(root: str) -> dict[str, list[str]]:
    """The paths of the images of each class, sorted; none where its folder has none."""
    files, folders = _files(root)
    found: dict[str, list[str]] = {name: [] for name in folders if not name.startswith(".")}
    for path in files:
        parts = path.removeprefix(root).strip("/").split("/")
        if any(part.startswith(".") for part in parts) or not path.lower().endswith(_SUFFIXES):
            continue
        if len(parts) == 1:
            raise InvalidArgumentError(
                f"ImageFolderDataset: {path} is in no class folder; move it into a folder that is named by its class"
            )
        found.setdefault(parts[0], []).append(path)
    return {name: sorted(paths) for name, paths in found.items()}


def _files(root: str) -> tuple[list[str], list[str]]:
    """The paths of all files below a folder, and the names of the folders in it."""
    local = local_path(root)
    if local is None:
        names = all_names_below(root)
        if not names:
            raise NoMatchError(f"{root}: this directory has no files")
        return [join_path(root, name) for name in names], sorted(set(names_in(root)).difference(names))
    with naming(root):
        os.stat(local)
    paths, folders = [], []
    for folder, below, names in os.walk(local, onerror=unlisted, followlinks=True):
        below[:] = [name for name in below if not _leads_back(folder, name)]
        paths += [f"{folder}/{name}" for name in names]
        folders += below if folder == local else []
    return paths, folders


def _leads_back(folder: str, name: str) -> bool:
    """Whether a folder is a link to the one that it stands in, or to one above."""
    path = f"{folder}/{name}"
    return os.path.islink(path) and Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(path))


@dataclass(frozen=True)
class _Reading:
    """The function of a path and a label."""

    __name__ = "read_image"  # in `explain()` and advice
    channels: int
    decode: bool

    def __call__(self, path: bytes, label: Any) -> tuple[Any, Any]:
        name = os.fsdecode(path)
        with naming(name), open_binary(name) as file:
            contents = file.read()
        if not self.decode:
            return contents, label
        try:
            return decode_image(contents, self.channels, expand_animations=False), label
        except DistinputError as error:
            raise type(error)(f"{name}: {error}") from error


# ----------------------------------------------------------------------------
# Samples in tar archives.
# ----------------------------------------------------------------------------


class WebDataset(Dataset[dict[str, Any]]):
    """The samples of tar archives, as dicts from extension to bytes, in the grouping of the library webdataset.

    Consecutive files that differ in their extensions only are one sample: `7.jpg` and `7.seg.png` are the sample with the key
    `7` and the members `jpg` and `seg.png`. All samples have the members of the first one, or those that `members` states.
    Nothing of an archive is executed, and nothing is written under a name from it.

    Args:
      filenames: a path, a list of paths, or a dataset of paths; any fsspec URL.
      members: the names of the members wanted, such as `["__key__", "jpg"]`; or a dict from names of your own to extensions,
        several of which are separated by ";", such as `{"image": "jpg;png", "label": "cls"}`. `__key__` is the key of the
        sample, `__url__` the name of its archive. None: `__key__` and the members of the first sample; others are an error.
      decode: False: all members are bytes. True: text, class numbers, JSON, arrays and images are decoded by their
        extensions, and the others stay bytes. A dict from members to decoders: only these are decoded, by "text", "class",
        "json", "npy", "npz", "image", "gray" or "bytes", by True for the table of extensions, or by a spec for JSON, such as
        `{"label": TensorSpec([], "int64")}`.
      missing: what to do with a sample that lacks a member: "error"; "skip", which leaves it out; or a dict from the names of
        members to the bytes that take their place.
      compression_type: "" or None, "GZIP" or another codec; "AUTO" goes by the suffix of each name, such as `.tar.gz`.
      max_sample_bytes: the most bytes of a sample, all of which are in memory at once.
      index: true to count records and reach them by their numbers, from an index that is built by reading each file once and
        kept beside it; a path is a folder to keep it in. See `TFRecordDataset`.
      on_error: "raise", "skip" or `SkipErrors(...)`, for a sample without the right members, or the rest of an archive that is
        damaged. None: as `Options.on_error` says, or "raise".
      num_parallel_reads: archives read at a time, whose samples take turns; one after the other when None.
      num_parallel_calls: threads that decode.
      name: a label.
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Raises:
      InvalidArgumentError: at iteration, a sample lacks a member or has one that is not expected; the message names the archive
        and the key.
      DataLossError: at iteration, an archive is damaged or cut short, or a name in it leads out of its folder.
      UnimplementedError: at iteration, an archive holds a sparse file or is one of several volumes.

    >>> import io, tarfile
    >>> import distinput as di
    >>> with tarfile.open("train.tar", "w") as archive:
    ...     for name, content in [("0.cls", b"7"), ("0.txt", b"a cat"), ("1.cls", b"2"), ("1.txt", b"a dog")]:
    ...         header = tarfile.TarInfo(name)
    ...         header.size = len(content)
    ...         archive.addfile(header, io.BytesIO(content))
    >>> di.data.WebDataset("train.tar").to_list()
    [{'__key__': b'0', 'cls': b'7', 'txt': b'a cat'}, {'__key__': b'1', 'cls': b'2', 'txt': b'a dog'}]
    >>> di.data.WebDataset("train.tar", {"text": "txt;json"}).to_list()
    [{'text': b'a cat'}, {'text': b'a dog'}]
    >>> di.data.WebDataset("train.tar", ["cls"], decode=True).to_list()
    [{'cls': 7}, {'cls': 2}]
    """

    @constructor_of
    def __init__(
        self,
        filenames: Any,
        members: Any = None,
        *,
        decode: Any = False,
        missing: Any = "error",
        compression_type: str | None = "AUTO",
        max_sample_bytes: int = 1 << 30,
        index: bool | str = False,
        on_error: str | SkipErrors | None = None,
        num_parallel_reads: int | None = None,
        num_parallel_calls: int | None = AUTOTUNE,
        name: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None:
        skip = missing == "skip"
        if not isinstance(decode, bool | Mapping):
            raise InvalidArgumentError(
                f"WebDataset: decode must be a bool, or a dict from members to decoders, got {decode!r}; use map for functions"
            )
        also = ((COMPLETE,) if skip else ()) + ((KEY, URL) if decode else ())
        stated = {} if members is None else dict(as_members(members))
        reader = format_named(
            "tar",
            index,
            members=members,
            missing="empty" if skip else missing,
            compression_type=compression_type,
            max_sample_bytes=max_sample_bytes,
            also=also,
        )
        node = reading(
            filenames,
            reader,
            num_parallel_reads,
            name,
            on_error=on_error,
            storage_options=storage_options,
            filesystem=filesystem,
        )
        if skip:
            node = Dataset(node).filter(_is_complete).node
        if decode:
            hidden = tuple([each for each in also if each not in stated and not (each == KEY and members is None)])
            extensions = {each: texts[0] for each, texts in stated.items()}
            decoder = MemberDecoder(decode if decode is True else dict(decode), extensions, KEY, URL, hidden)
            node = Dataset(node).map(decoder, num_parallel_calls=num_parallel_calls, on_error=on_error).node
        elif skip:
            node = Dataset(node).map(_without_complete).node
        super().__init__(node)


def _is_complete(sample: dict[str, Any]) -> Any:
    return sample[COMPLETE]


def _without_complete(sample: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sample.items() if name != COMPLETE}
