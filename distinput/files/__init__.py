# SPDX-License-Identifier: Apache-2.0
"""All access to files: local paths, globs, and whatever fsspec can open (floor 2).

* `paths`: `as_paths`, `list_matching`, `local_path`, `ask_each`; `FileLock`
* `folder`: `named_files`, `list_files`, `make_folder`, `names_in`, `remove_file`; `whole_files`: `read_file`, `write_file`
* `source`: `FileStream`, `open_binary`, `open_ranges`, `read_range`, `size_of`, `stamp_of`
* `remote`: `RemoteFile`, `RemoteStream`; `range_requests`: `fetch`, `ranges_of`, `FileMetadata`, `changed`
* `retries`: `Retries`, `persistently`; `local_cache`: `cache_remote`
* `mounts`: `mount`, and `stored` for `storage_options=` and `filesystem=`; `object_store`: obstore's door
* `manifest`: `FileTable`
* `sink`: `Sink`, `Unfinished`, `Upload`
* `compression`: `Compression`, `encoder_of`, `Inflater`
"""
