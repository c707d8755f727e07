# SPDX-License-Identifier: Apache-2.0
"""An object that is uploaded while it is written appears whole or not at all; against a server see `test_s3`."""

import threading
from typing import Any

import pytest

from distinput.files import object_store
from distinput.files.object_store import MultipartUpload
from tests.patience import threads_since

obstore = pytest.importorskip("obstore")
MB = bytes(1 << 20)


@pytest.fixture
def store() -> Any:
    return obstore.store.MemoryStore()


def test_an_object_appears_when_it_is_finished(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "PART_BYTES", 1 << 20)
    upload = MultipartUpload(store, "a")
    for part in (MB, b"", MB[:5], MB):
        upload.add(part)
    assert not list(obstore.list(store))
    upload.finish()
    assert obstore.head(store, "a")["size"] == 2 * len(MB) + 5


def test_nothing_is_left_of_an_upload_that_is_given_up(store: Any) -> None:
    before = threading.enumerate()
    upload = MultipartUpload(store, "a")
    upload.add(MB)
    upload.discard()
    upload.discard()
    assert not list(obstore.list(store))
    assert threads_since(before) == []


def test_an_upload_that_fails_is_an_error_of_whoever_writes(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr(object_store.obstore, "put", fails)
    upload = MultipartUpload(store, "a")
    with pytest.raises(OSError, match="no room"):
        upload.finish()
    upload.discard()
