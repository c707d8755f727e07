# SPDX-License-Identifier: Apache-2.0
"""Compiled loops over NumPy arrays and numbers, each with a readable reference implementation (floor 0).

Nothing here imports numba before a kernel is first called, see `distinput.kernels.kernel`. The kernels:

* `balance`: `deal_by_size`
* `crc32`: `crc32`
* `crc32c`: `crc32c`, `masked_crc32c`
* `example`: `locate_features`, `count_values`, `fill_floats`, `fill_int64s`, `fill_bytes_spans`
* `gather`: `gather_rows`, `place_rows`
* `lines`: `scan_lines`
* `plain_csv`: `plain_csv`
* `ragged`: `gather_spans`, `pad_spans`, `spans_to_offsets`
* `sequence_example`: `locate_steps`
* `shuffle`: `shuffle_steps`, `drain_steps`, `exchange_rows`, `drain_rows`, `slots_at`, `permute`
* `tar`: `scan_samples`, `locate_members`
* `tfrecord`: `scan_records`, `frame_records`
* `windows`: `fill_windows`

`python -m distinput.kernels` compiles all of them into the cache, for an image or a read-only installation.
"""
