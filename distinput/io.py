# SPDX-License-Identifier: Apache-2.0
"""`distinput.io`: the counterpart of the parts of `tf.io` that belong to files of records, and writers."""

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy

if TYPE_CHECKING:
    from distinput.decoders.image import decode_image as decode_image
    from distinput.decoders.image import decode_jpeg as decode_jpeg
    from distinput.decoders.image import decode_png as decode_png
    from distinput.files.local_cache import cache_remote as cache_remote
    from distinput.files.mounts import mount as mount
    from distinput.files.mounts import unmount as unmount
    from distinput.files.retries import Retries as Retries
    from distinput.files.whole_files import matching_files as matching_files
    from distinput.files.whole_files import read_file as read_file
    from distinput.files.whole_files import write_file as write_file
    from distinput.formats import write_index as write_index
    from distinput.formats.arrow_ipc import write_arrow as write_arrow
    from distinput.formats.csv_tuples import decode_csv as decode_csv
    from distinput.formats.example import parse_example as parse_example
    from distinput.formats.example import parse_single_example as parse_single_example
    from distinput.formats.example_encoding import decode_example as decode_example
    from distinput.formats.example_encoding import decode_json_example as decode_json_example
    from distinput.formats.example_encoding import encode_example as encode_example
    from distinput.formats.example_encoding import encode_sequence_example as encode_sequence_example
    from distinput.formats.features import FixedLenFeature as FixedLenFeature
    from distinput.formats.features import FixedLenSequenceFeature as FixedLenSequenceFeature
    from distinput.formats.features import RaggedFeature as RaggedFeature
    from distinput.formats.features import SparseFeature as SparseFeature
    from distinput.formats.features import VarLenFeature as VarLenFeature
    from distinput.formats.megatron import write_megatron as write_megatron
    from distinput.formats.parquet import write_parquet as write_parquet
    from distinput.formats.raw_bytes import decode_base64 as decode_base64
    from distinput.formats.raw_bytes import decode_compressed as decode_compressed
    from distinput.formats.raw_bytes import decode_raw as decode_raw
    from distinput.formats.raw_bytes import encode_base64 as encode_base64
    from distinput.formats.sequence_example import parse_sequence_example as parse_sequence_example
    from distinput.formats.sequence_example import parse_single_sequence_example as parse_single_sequence_example
    from distinput.formats.tensor_message import deserialize_many_sparse as deserialize_many_sparse
    from distinput.formats.tensor_message import parse_tensor as parse_tensor
    from distinput.formats.tensor_message import serialize_many_sparse as serialize_many_sparse
    from distinput.formats.tensor_message import serialize_sparse as serialize_sparse
    from distinput.formats.tensor_message import serialize_tensor as serialize_tensor
    from distinput.formats.tfrecord import TFRecordOptions as TFRecordOptions
    from distinput.formats.tfrecord import TFRecordWriter as TFRecordWriter
    from distinput.formats.tfrecord import write_tfrecord_index as write_tfrecord_index
    from distinput.writers.manifest import verify_files as verify_files
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
