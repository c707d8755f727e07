# SPDX-License-Identifier: Apache-2.0
"""All access to files: local paths, globs, and whatever fsspec can open (floor 2).

* `paths`: `as_paths`, `list_matching`, `local_path`
* `source`: `FileStream`, `open_binary`, `open_ranges`, `read_range`, `size_of`, `stamp_of`
* `remote`: `RemoteFile`, `RemoteStream`, `fetch`, `ranges_of`
* `version`: `FileMetadata`, `changed`
* `retries`: `Retries`, `persistently`; `local_cache`: `cache_remote`
* `concurrent_requests`: `ask_each`
* `mapping`: `mapped`
* `mounts`: `mount`; `storage`: `stored`, for `storage_options=` and `filesystem=`; `object_store`: obstore's door
* `directory`: `named_files`, `list_files`
* `sink`: `Sink`
* `unfinished`: `Unfinished`, `Upload`
* `buffers`: `Buffers`, the memory that sources read into
* `compression`: `Compression`, `Deflater`, `Inflater`; `codecs` and `snappy_frames` have the codecs
"""
