# SPDX-License-Identifier: Apache-2.0
"""Datasets over files: those that a format makes are lines of a table, and are made when they are first named.

Their arguments and documentation are those of the format; docs/make_stub.py writes them into the stub beside this file.
"""

from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import Constructor, file_dataset

DATASETS = {
    "ArrayRecordDataset": Constructor(
        "array_record", Dataset[bytes], "filenames * num_parallel_reads name on_error storage_options filesystem"
    ),
    "ArrowDataset": Constructor(
        "arrow",
        Dataset[dict[str, Any]],
        "filenames columns num_parallel_reads nulls trusted "
        "* memory_map on_error storage_options filesystem schema valid partitioning text nested decimals",
    ),
    "AudioDataset": Constructor(
        "audio",
        Dataset[dict[str, Any]],
        "filenames seconds stride tail * num_parallel_reads name on_error storage_options filesystem partitioning",
    ),
    "FixedLengthRecordDataset": Constructor(
        "fixed_length",
        Dataset[bytes],
        "filenames record_bytes header_bytes footer_bytes buffer_size compression_type num_parallel_reads name "
        "* on_error storage_options filesystem",
    ),
    "JsonLinesDataset": Constructor(
        "jsonl",
        Dataset[dict[str, Any]],
        "filenames schema columns compression_type nulls num_parallel_reads name "
        "* index on_error storage_options filesystem partitioning valid text nested decimals",
    ),
    "LitDataDataset": Constructor(
        "litdata",
        Dataset[Any],
        "filenames block_size num_parallel_reads nulls name * on_error storage_options filesystem",
    ),
    "MdsDataset": Constructor(
        "mds", Dataset[dict[str, Any]], "filenames num_parallel_reads name * on_error storage_options filesystem"
    ),
    "MegatronDataset": Constructor(
        "megatron",
        Dataset[Any],
        "filenames documents multimodal num_parallel_reads name * on_error storage_options filesystem",
    ),
    "NpyDataset": Constructor(
        "npy", Dataset[Any], "filenames num_parallel_reads * memory_map on_error storage_options filesystem"
    ),
    "NpzDataset": Constructor(
        "npz",
        Dataset[dict[str, Any]],
        "filenames columns * memory_map num_parallel_reads name on_error storage_options filesystem partitioning",
    ),
    "ParquetDataset": Constructor(
        "parquet",
        Dataset[dict[str, Any]],
        "filenames columns num_parallel_reads nulls * on_error storage_options filesystem schema valid partitioning "
        "text nested decimals",
    ),
    "TFRecordDataset": Constructor(
        "tfrecord",
        Dataset[bytes],
        "filenames compression_type buffer_size num_parallel_reads name * index on_error storage_options filesystem",
    ),
    "TextLineDataset": Constructor(
        "text",
        Dataset[bytes],
        "filenames compression_type buffer_size num_parallel_reads name * index on_error storage_options filesystem text",
    ),
    "VideoDataset": Constructor(
        "video",
        Dataset[dict[str, Any]],
        "filenames frames stride step tail resize * device num_parallel_reads name on_error storage_options filesystem "
        "partitioning",
    ),
}
"""Each dataset that is made of a format. Those that take more than a format are classes: see the files beside this one."""


def __getattr__(name: str) -> Any:
    if name not in DATASETS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, file_dataset(name, DATASETS[name]))
