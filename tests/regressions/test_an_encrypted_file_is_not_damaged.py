# SPDX-License-Identifier: Apache-2.0
"""An encrypted Parquet file is told from a damaged one."""

import base64
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import UnimplementedError

encryption = pytest.importorskip("pyarrow.parquet.encryption")


class _Keys(encryption.KmsClient):  # type: ignore[misc]
    """Keys that are kept nowhere."""

    def __init__(self, config: Any) -> None:
        encryption.KmsClient.__init__(self)

    def wrap_key(self, key: bytes, name: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, key: bytes, name: str) -> bytes:
        return base64.b64decode(key)


def _encrypted(path: Path, *, plain_footer: bool) -> None:
    table = pa.table({"a": range(10), "b": range(10)})
    configuration = encryption.EncryptionConfiguration(
        footer_key="k", column_keys={"c": ["a"]}, plaintext_footer=plain_footer
    )
    factory = encryption.CryptoFactory(_Keys)
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), configuration)
    with pa.parquet.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)


def test_an_encrypted_file_is_not_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    _encrypted(path, plain_footer=False)
    with pytest.raises(UnimplementedError, match=rf"{path}: is encrypted.*decrypt"):
        di.data.ParquetDataset(str(path)).to_list()


def test_columns_that_are_not_encrypted_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    _encrypted(path, plain_footer=True)
    assert di.data.ParquetDataset(str(path), columns=["b"]).to_list() == [{"b": n} for n in range(10)]
    with pytest.raises(UnimplementedError, match=rf"{path}: row group 0: is encrypted.*columns="):
        di.data.ParquetDataset(str(path)).to_list()
