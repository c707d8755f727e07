# SPDX-License-Identifier: Apache-2.0
"""`WebDataset`: samples in tar archives."""

from collections.abc import Mapping
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import reading
from distinput.decoders.members import MemberDecoder
from distinput.errors import InvalidArgumentError
from distinput.formats import format_named
from distinput.formats.tar import COMPLETE, KEY, URL, as_members
from distinput.plan.check import AUTOTUNE
from distinput.plan.options import SkipErrors

__all__ = ["WebDataset"]


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
