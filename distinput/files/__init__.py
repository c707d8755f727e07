# SPDX-License-Identifier: Apache-2.0
"""The only door to files: local paths, globs, and whatever fsspec can open (floor 2).

* `paths`: `as_paths`, `list_matching`, `local_path`
* `source`: `Source`, `open_binary`, `read_range`, `size_of`, `stamp_of`
* `mapping`: `mapped`
* `sink`: `Sink`
* `buffers`: `Buffers`, the memory that sources read into
* `compression`: `Compression`, `Deflater`, `Inflater`
"""
