# SPDX-License-Identifier: Apache-2.0
"""`distinput.io`: the counterpart of the parts of `tf.io` that belong to files of records, and writers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from distinput.decoders.image import decode_image, decode_jpeg, decode_png
from distinput.files.local_cache import cache_remote
from distinput.files.mounts import mount, unmount
from distinput.files.retries import Retries
from distinput.formats.example import parse_example, parse_single_example
from distinput.formats.example_encoding import encode_example, encode_sequence_example
from distinput.formats.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
)
from distinput.formats.sequence_example import parse_sequence_example, parse_single_sequence_example
from distinput.formats.tfrecord import TFRecordOptions, TFRecordWriter
from distinput.names.absent import absent
from distinput.writers.manifest import verify_files

if TYPE_CHECKING:
    from distinput.files.whole_files import matching_files, read_file, write_file
    from distinput.formats import write_index
    from distinput.formats.arrow_ipc import write_arrow
    from distinput.formats.csv_fields import decode_csv
    from distinput.formats.decoded_example import decode_example, decode_json_example
    from distinput.formats.parquet import write_parquet
    from distinput.formats.raw_bytes import decode_base64, decode_compressed, decode_raw, encode_base64
    from distinput.formats.tensor_message import (
        deserialize_many_sparse,
        parse_tensor,
        serialize_many_sparse,
        serialize_sparse,
        serialize_tensor,
    )
    from distinput.formats.tfrecord import write_tfrecord_index

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "Retries",
    "SparseFeature",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "cache_remote",
    "decode_base64",
    "decode_compressed",
    "decode_csv",
    "decode_example",
    "decode_image",
    "decode_jpeg",
    "decode_json_example",
    "decode_png",
    "decode_raw",
    "deserialize_many_sparse",
    "encode_base64",
    "encode_example",
    "encode_sequence_example",
    "matching_files",
    "mount",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "read_file",
    "serialize_many_sparse",
    "serialize_sparse",
    "serialize_tensor",
    "unmount",
    "verify_files",
    "write_arrow",
    "write_file",
    "write_index",
    "write_parquet",
    "write_tfrecord_index",
]

_LOADED_LATER = {
    "decode_base64": "formats.raw_bytes",
    "decode_compressed": "formats.raw_bytes",
    "decode_csv": "formats.csv_fields",
    "decode_example": "formats.decoded_example",
    "decode_json_example": "formats.decoded_example",
    "decode_raw": "formats.raw_bytes",
    "deserialize_many_sparse": "formats.tensor_message",
    "encode_base64": "formats.raw_bytes",
    "matching_files": "files.whole_files",
    "parse_tensor": "formats.tensor_message",
    "read_file": "files.whole_files",
    "serialize_many_sparse": "formats.tensor_message",
    "serialize_sparse": "formats.tensor_message",
    "serialize_tensor": "formats.tensor_message",
    "write_arrow": "formats.arrow_ipc",
    "write_file": "files.whole_files",
    "write_index": "formats",
    "write_parquet": "formats.parquet",
    "write_tfrecord_index": "formats.tfrecord",
}
"""Names and the modules that have them, loaded when they are first named."""


if not TYPE_CHECKING:  # which would take every name for one that is there

    def __getattr__(name: str) -> Any:
        """What a first batch has no use for."""
        if name in _LOADED_LATER:
            return getattr(import_module(f"distinput.{_LOADED_LATER[name]}"), name)
        raise AttributeError(absent("distinput.io", name, __all__))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
