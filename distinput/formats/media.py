# SPDX-License-Identifier: Apache-2.0
"""Video and audio: windows of files, decoded through the package `av` (PyAV), or `torchcodec` on a device."""

import errno
import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import chain
from threading import Lock
from typing import Any, ClassVar, NamedTuple

import numpy as np

from distinput.columns.block import Block, ColumnBlock, rows_within
from distinput.columns.column import Ints
from distinput.columns.ragged import column_of_arrays
from distinput.errors import (
    DataLossError,
    DistinputError,
    EngineMissing,
    InvalidArgumentError,
    UnimplementedError,
    importing,
)
from distinput.files.folder import without_notes
from distinput.files.paths import local_path
from distinput.files.source import check_unchanged, naming, open_ranges, read_range, size_of, stamp_of
from distinput.formats.format import BLOCK_ROWS, PlacedBlocks, Position, check_reached, cut_rows
from distinput.formats.tables import CountedTable, LruCache
from distinput.kernels.kernel import renewed
from distinput.names.lazy import dataclass
from distinput.plan.check import integer
from distinput.values.spec import Spec, TensorSpec

_DECODERS = 32  # open at a time
_KEPT_BYTES = 64 << 20
_LACKING = 1.0  # seconds that a file may be shorter than it says, and the part of it that it may lack
_LACKING_PART = 0.05
_UNSTATED = 0.1  # seconds that the last packets may last without saying so
_MOST_PIXELS = 1 << 26
_STATES_DURATION = {"flac", "matroska,webm", "mov,mp4,m4a,3gp,3g2,mj2"}
"""Containers whose headers say how long they are, as AVI and WAV do; others are measured by what is there."""

_STATES_TIMES = {"matroska,webm", "mov,mp4,m4a,3gp,3g2,mj2", "mpegts"}
"""Containers that say of each packet of video when its frame is shown. In others frames are counted from the first one on."""

_NO_FRAME: tuple[int, Any] = -1, None


class _Windows(CountedTable):
    """What video and audio share: windows of a number of units, frames or samples, that begin every so many units."""

    __slots__ = ()
    spec_from_file: ClassVar[bool] = False
    resumes: ClassVar[bool] = True
    has_columns: ClassVar[bool] = True
    tail: str

    @classmethod
    def of_folder(cls, paths: list[str]) -> list[str]:
        paths = without_notes(paths)
        return [path for path in paths if path.lower().endswith(cls.suffixes)] or paths

    def spec_of(self, path: str) -> Spec:
        return self.spec(path)

    def past(self, path: str, position: Position | None) -> Position | None:
        row = self.first_row(path, position)
        try:
            return {"row": row + 1} if row < self.rows(path) else None
        except (DistinputError, OSError):
            return None

    @abstractmethod
    def opened(self, path: str) -> "_File": ...

    def read_groups(self, path: str, position: Position | None, size: int, given: int) -> PlacedBlocks:
        row, file = self.first_row(path, position), self.opened(path)
        check_reached(path, file.rows, row, "window")
        most = 1
        while row < file.rows:
            _, stop = next(cut_rows(file.rows - row, most, size, given))
            records: list[dict[str, Any]] = []
            damage: Exception | None = None
            try:
                for number in range(row, row + stop):
                    records += [file.record(number)]
            except (DistinputError, OSError) as error:  # what comes before it is handed over first
                damage = error
            if records:
                nbytes = max(getattr(value, "nbytes", 0) for value in records[0].values())
                most = rows_within(1, nbytes, BLOCK_ROWS)
                row, given = row + len(records), given + len(records)
                yield file.block_of(records), {"row": row}
            if damage is not None:
                raise damage

    def check_tail(self, **numbers: float) -> None:
        """Refuse options that are not right.

        Args:
          **numbers: those that must be more than 0, by name.

        Raises:
          InvalidArgumentError: one is not right.
        """
        if self.tail not in ("drop", "pad"):
            raise InvalidArgumentError(f"{self.name}: tail must be 'drop' or 'pad', got {self.tail!r}")
        for name, number in numbers.items():
            if isinstance(number, str | None) or not number > 0:
                raise InvalidArgumentError(f"{self.name}: {name} must be more than 0, got {number}")


@dataclass(frozen=True)
class Video(_Windows):
    """Windows of videos: dicts with the pixels of consecutive frames, their times, and the path of the file.

    `frames` is uint8 [frames, height, width, 3] in RGB, `times` float64 [frames] in seconds as the file says them, `path`
    bytes. With `tail="pad"` there is also `mask`, bool [frames], false for frames that only fill up a window. The frames are
    those that decoding the whole file from its beginning gives, wherever reading begins. They are turned as players turn them.

    Windows are counted, and any of them is reached by its number: `global_shuffle` holds nothing in memory, shards and
    restarts go straight to their place. To count them, a file is read once. It is not decoded if its container tells the times
    of frames, as MP4, MOV, Matroska, WebM and MPEG-TS do. Others, such as AVI, are decoded from their beginning.

    Args:
      frames: in a window.
      stride: frames from the beginning of a window to that of the next; None: as many as a window reaches over.
      step: frames from each frame of a window to the next one.
      tail: of the frames behind the last whole window: "drop" leaves them out; "pad" makes a window of them, and of a file
        that is shorter than a window, in which the last frame is repeated.
      resize: (height, width) to which frames are scaled; None: as they are. Files may then differ.
      device: where torchcodec decodes, such as "cuda" or "cpu"; elements are in the memory of the host. None: PyAV decodes.

    Raises:
      NotFoundError: a file is not there.
      EngineMissing: the package that decodes is not installed.
      InvalidArgumentError: an option has an invalid value; or a file has no video.
      DataLossError: a file is damaged or cut short; the message says at what time.
      UnimplementedError: the size of frames changes within a window.

    >>> import distinput as di
    >>> videos = di.data.VideoDataset(["a.mp4", "b.mp4"], frames=8, step=2, resize=(112, 112))
    >>> videos.element_spec["frames"]
    TensorSpec(shape=(8, 112, 112, 3), dtype=uint8)
    """

    suffixes: ClassVar[tuple[str, ...]] = tuple(str.split(".mp4 .m4v .mov .mkv .webm .avi .mpg .mpeg .ts .3gp"))
    name: ClassVar[str] = "video"
    frames: int = 16
    stride: int | None = None
    step: int = 1
    tail: str = "drop"
    resize: tuple[int, int] | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        resize: Any = (1, 1) if self.resize is None else self.resize
        if not isinstance(resize, Sequence) or isinstance(resize, str) or len(resize) != 2:
            raise InvalidArgumentError(f"{self.name}: resize must be (height, width), got {resize!r}")
        height, width = resize
        own = {"frames": self.frames, "step": self.step, **({} if self.stride is None else {"stride": self.stride})}
        whole = {name: integer(self.name, name, number) for name, number in own.items()}
        height, width = integer(self.name, "resize", height), integer(self.name, "resize", width)
        self.check_tail(**whole, height=height, width=width)
        for name, number in whole.items():
            object.__setattr__(self, name, number)
        if self.resize is not None:  # a list, such as one from JSON, is the same
            object.__setattr__(self, "resize", (height, width))

    @property
    def reach(self) -> int:
        """Frames from the first one of a window to behind its last one."""
        return (self.frames - 1) * self.step + 1

    @property
    def apart(self) -> int:
        """Frames from the beginning of a window to that of the next."""
        return self.frames * self.step if self.stride is None else self.stride

    def spec(self, path: str | None) -> Spec:
        del path
        height, width = self.resize or (None, None)
        leaves = {
            "frames": TensorSpec((self.frames, height, width, 3), np.uint8),
            "path": TensorSpec((), bytes),
            "times": TensorSpec((self.frames,), np.float64),
        }
        return Spec.of(leaves | ({"mask": TensorSpec((self.frames,), np.bool_)} if self.tail == "pad" else {}))

    def opened(self, path: str) -> "_File":
        return _Frames(self, path, stamp_of(path))


@dataclass(frozen=True)
class Audio(_Windows):
    """Windows of audio: dicts with the samples, the sample rate, the time of the first sample, and the path of the file.

    `samples` is float32 [samples, channels] between -1 and 1, `rate` int64, `start` float64 in seconds, `path` bytes. With
    `tail="pad"` there is also `mask`, bool [samples], false for those that only fill up a window. The samples are those that
    decoding the whole file from its beginning gives, wherever reading begins. Nothing is resampled.

    Windows are counted, and any of them is reached by its number, as those of videos. FLAC and WAV are read at once from any
    place on. Others, such as MP3, are decoded once to count samples. Since their decoders remember what they heard, windows
    that do not come in turn are decoded from the beginning of the file.

    Args:
      seconds: in a window; it has the nearest number of samples.
      stride: seconds from the beginning of a window to that of the next; None: as many as a window has.
      tail: of the samples behind the last whole window: "drop" leaves them out; "pad" makes a window of them, and of a file
        that is shorter than a window, which zeros fill up.

    Raises:
      NotFoundError: a file is not there.
      EngineMissing: the package `av` is not installed.
      InvalidArgumentError: an option has an invalid value; or a file has no audio.
      DataLossError: a file is damaged or cut short; the message says at what time.

    >>> import distinput as di
    >>> di.data.AudioDataset(["a.flac", "b.wav"], seconds=0.5).element_spec["samples"]
    TensorSpec(shape=(None, None), dtype=float32)
    """

    suffixes: ClassVar[tuple[str, ...]] = (".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a", ".aac", ".aiff", ".wma")
    name: ClassVar[str] = "audio"
    seconds: float = 1.0
    stride: float | None = None
    tail: str = "drop"

    def __post_init__(self) -> None:
        self.check_tail(seconds=self.seconds, stride=self.seconds if self.stride is None else self.stride)

    def spec(self, path: str | None) -> Spec:
        del path
        leaves = {
            "path": TensorSpec((), bytes),
            "rate": TensorSpec((), np.int64),
            "samples": TensorSpec((None, None), np.float32),
            "start": TensorSpec((), np.float64),
        }
        return Spec.of(leaves | ({"mask": TensorSpec((None,), np.bool_)} if self.tail == "pad" else {}))

    def opened(self, path: str) -> "_File":
        return _Samples(self, path, stamp_of(path))


# ----------------------------------------------------------------------------
# The windows of a file.
# ----------------------------------------------------------------------------


class _File:
    """One version of a file, as windows.

    Args:
      format: how it is cut.
      path: of the file.
      stamp: of the version.
    """

    kind: ClassVar[str]

    def __init__(self, format: Any, path: str, stamp: str) -> None:
        self.format, self.path, self.stamp = format, path, stamp
        self._version = self.kind, getattr(format, "device", None), path, stamp
        index = _KEPT.get(self._version)
        if index is None:
            index = self.decoder.index
            _KEPT.put(self._version, index, index.nbytes)
        self.index = index

    @property
    def decoder(self) -> Any:
        """What decodes the file, which may have been closed since it was used last."""
        # A forked process shares the place in an open file with its parent, so it opens files of its own.
        return _decoder(*self._version, os.getpid())

    def windows(self, units: int, reach: int, apart: int) -> int:
        """How many windows there are.

        Args:
          units: in the file.
          reach: units that a window reaches over.
          apart: units from the beginning of a window to that of the next.
        """
        over = units - reach
        if self.format.tail == "drop" or not units:
            return max(0, over // apart + 1)
        return min(max(0, -(-over // apart)) + 1, -(-units // apart))  # none begins behind the end

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many windows there are."""

    @abstractmethod
    def record(self, row: int) -> dict[str, Any]:
        """A window."""

    def block(self, rows: Ints) -> Block:
        """Windows by their numbers, which are in range; they are decoded in their order in the file."""
        order = np.argsort(rows, kind="stable")
        records: list[Any] = [None] * len(rows)
        for place in order:
            records[place] = self.record(int(rows[place]))
        return self.block_of(records)

    def block_of(self, records: Sequence[dict[str, Any]]) -> Block:
        """A block of windows."""
        check_unchanged(self.path, self.stamp)
        spec = self.format.spec(None)
        columns = [
            column_of_arrays([record[name] for record in records], leaf.dtype)
            for name, leaf in zip(sorted(spec.nest), spec.leaves, strict=True)
        ]
        return ColumnBlock(spec.structure, columns, len(records))


class _Frames(_File):
    """A video as windows of frames."""

    kind = "video"

    @property
    def rows(self) -> int:
        return self.windows(self.index.units, self.format.reach, self.format.apart)

    def record(self, row: int) -> dict[str, Any]:
        options, first = self.format, row * self.format.apart
        numbers = first + options.step * np.arange(options.frames)
        mask = numbers < self.index.units
        frames, times = self.decoder.take(numbers[mask], first + options.apart, options.resize)
        if len({frame.shape for frame in frames}) > 1:
            raise UnimplementedError(
                f"{self.path}: at {times[0]:.3f} s: the size of frames changes within a window; state one with resize="
            )
        lacking = options.frames - len(times)
        pixels = np.stack(frames + frames[-1:] * lacking)
        record = {"frames": pixels, "path": os.fsencode(self.path), "times": np.append(times, [times[-1]] * lacking)}
        return record | ({"mask": mask} if options.tail == "pad" else {})


class _Samples(_File):
    """Audio as windows of samples."""

    kind = "audio"

    @property
    def _cut(self) -> tuple[int, int]:
        """Samples in a window, and from the beginning of one to that of the next."""
        made = self.format
        stride = made.seconds if made.stride is None else made.stride
        return max(1, round(made.seconds * self.index.rate)), max(1, round(stride * self.index.rate))

    @property
    def rows(self) -> int:
        return self.windows(self.index.units, *self._cut)

    def record(self, row: int) -> dict[str, Any]:
        index, (reach, apart) = self.index, self._cut
        first = row * apart
        stop = min(first + reach, index.units)
        begin, end = np.searchsorted(index.first, [first, stop - 1], "right") - 1  # the frames that hold these samples
        later = int(np.searchsorted(index.first, first + apart, "right")) - 1
        parts, _ = self.decoder.take(np.arange(begin, end + 1), later, None)
        samples = np.concatenate(parts)[first - index.first[begin] :][: stop - first]
        record = {
            "path": os.fsencode(self.path),
            "rate": np.int64(index.rate),
            "samples": np.concatenate([samples, np.zeros((reach - len(samples), samples.shape[1]), np.float32)]),
            "start": np.float64(index.times[begin] + (first - index.first[begin]) / index.rate),
        }
        return record | ({"mask": np.arange(reach) < len(samples)} if self.format.tail == "pad" else {})


# ----------------------------------------------------------------------------
# Decoders: frames of a file by their numbers, in the order in which they are shown or heard.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Index:
    """The decoded frames of one version of a file.

    Args:
      first: [n + 1] the units before each frame, and all units; those of video are frames, those of audio samples.
      times: [n] seconds at which each is shown.
      pts: [n] the same in units of the stream, by which frames are recognised; None: they are counted from the first one on.
      keys: the numbers of the frames from which on decoding may begin.
      rate: samples of audio in a second.
    """

    first: Ints
    times: np.ndarray[Any, Any]
    pts: Ints | None
    keys: Ints
    rate: int = 0

    @property
    def units(self) -> int:
        return int(self.first[-1])

    @property
    def nbytes(self) -> int:
        return 4 * self.first.nbytes


class _Seekable:
    """A file whose damaged parts may lead before its beginning."""

    def __init__(self, file: Any) -> None:
        self._file, self.read, self.tell, self.close = file, file.read, file.tell, file.close

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go there; -1 if that is nowhere, which the package takes for an error."""
        try:
            return int(self._file.seek(offset, whence))
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno != errno.EINVAL:
                raise
            return -1


class _Packet(NamedTuple):
    """What a packet says: when its frame is shown, whether decoding may begin there, and how long it lasts."""

    pts: int | None
    is_key: bool
    lasts: int


class _PyAv:
    """A file that the package `av` decodes, one thread at a time.

    Args:
      kind: "video" or "audio", the first stream of which is decoded.
      path: of the file.
    """

    def __init__(self, kind: str, path: str) -> None:
        self.kind, self.path = kind, path
        self._lock = renewed(Lock())
        with importing(f"{kind}: the package av is not installed; `pip install 'distinput[video]'`"):
            import av
        self._av = av
        self._time = 0.0
        self._running: Iterator[tuple[int, Any]] = iter(())
        self._kept: dict[tuple[int, tuple[int, int] | None], Any] = {}
        with self._naming_damage():
            self._open()
            self.index = self._indexed()
            self._open()

    def _open(self) -> None:
        """Open the file anew, at its beginning."""
        self.close()
        with naming(self.path):
            self._file = _Seekable(open_ranges(self.path))
        # What is in the file is no reason to open others, as playlists would.
        self._container = self._av.open(self._file, options={"protocol_whitelist": "none"}, metadata_errors="replace")
        streams = getattr(self._container.streams, self.kind)
        if not streams:
            raise InvalidArgumentError(f"{self.path}: {self.kind}: the file has no {self.kind}")
        self._stream = streams[0]
        self._stream.codec_context.options = {"err_detect": "crccheck+explode", "max_pixels": str(_MOST_PIXELS)}
        self._next, self._running = 0, self._numbered(counting=True)

    def close(self) -> None:
        """Close the file."""
        self._running = iter(())
        for each in ("_container", "_file"):
            if each in self.__dict__:
                self.__dict__.pop(each).close()

    __del__ = close

    def _indexed(self) -> _Index:
        """The frames, from the packets where these tell them, or from decoding all."""
        packets = self._packets()
        rate = int(self._stream.rate) if self.kind == "audio" else 0
        pts = np.array([packet.pts for packet in packets if packet.pts is not None], np.int64)
        order = np.argsort(pts, kind="stable")
        if self._tells_times(packets) and len(pts) == len(packets) and (np.diff(pts[order]) > 0).all():
            keys = np.flatnonzero(np.array([packet.is_key for packet in packets])[order])
            lasts = np.array([packet.lasts if self.kind == "audio" else 1 for packet in packets])[order]
            times = pts[order] * float(self._stream.time_base)
            return _Index(np.append(0, np.cumsum(lasts)), times, pts[order], np.union1d(0, keys), rate)
        self._open()
        moments: list[float] = []
        units = [0]
        for number, frame in self._running:
            is_video = self.kind == "video"
            stated = frame.time
            if stated is None:  # as in raw streams
                stated = number / (self._stream.average_rate or 25) if is_video else units[-1] / rate
            moments.append(self._at(stated))
            units.append(units[-1] + (1 if is_video else frame.samples))
        return _Index(np.array(units), np.array(moments), None, np.zeros(1, np.int64), rate)

    def _packets(self) -> "list[_Packet]":
        """The packets that become frames, all of the file having been read."""
        packets: list[_Packet] = []
        end, begins = 0.0, None
        for packet in self._container.demux():
            for at in (packet.pts, packet.dts):
                if at is not None:
                    end = max(end, self._at((at + (packet.duration or 0)) * packet.time_base))
            if packet.size and packet.stream_index == self._stream.index:
                begins = packet.pts if begins is None and packet.is_keyframe else begins
                if not packet.is_discard:  # as an edit list says
                    packets.append(_Packet(packet.pts, packet.is_keyframe, packet.duration or 0))
        self._check_length(end)
        if begins is None:
            return packets
        # What is shown before the first frame that needs no other cannot be decoded, as in a recording that was cut.
        return [packet for packet in packets if packet.pts is None or packet.pts >= begins]

    def _tells_times(self, packets: "list[_Packet]") -> bool:
        """Whether packets tell the frames that they become, and where decoding may begin."""
        format, codec = self._container.format.name, self._stream.codec_context.name
        if self.kind == "video":
            return bool(packets) and format in _STATES_TIMES
        exact = self._stream.time_base * self._stream.rate == 1 and all(packet.lasts for packet in packets)
        return exact and (format == "flac" or (format == "wav" and codec.startswith("pcm_")))

    def _check_length(self, end: float) -> None:
        """Refuse a file that ends long before the time that its header says."""
        container, name, says = self._container, self._container.format.name, 0.0
        if name == "avi":  # the package takes that of a file that was cut to be shorter
            says = float(self._stream.frames * self._stream.time_base)
        elif name == "wav":  # this one too; the size that a stream states is none
            size = int.from_bytes(read_range(self.path, 4, 8), "little")
            there = size_of(self.path) - 8
            if there < size < (1 << 32) - 256:
                raise DataLossError(f"{self.path}: cut short: at {end:.3f} s it ends, {size - there} bytes too early")
        elif name in _STATES_DURATION and container.duration is not None:
            says = (container.duration + max(0, container.start_time or 0)) / self._av.time_base
        rate = getattr(self._stream, "average_rate", None)  # packets do not always say how long they last
        if end + max(_UNSTATED, 2 / rate if rate else 0, min(_LACKING, _LACKING_PART * says)) < says:
            raise DataLossError(f"{self.path}: cut short: at {end:.3f} s it ends, and its header says {says:.3f} s")

    def _at(self, time: Any) -> float:
        """Note the time that is read, for errors."""
        self._time = float(time)
        return self._time

    def take(self, wanted: Ints, later: int, size: tuple[int, int] | None) -> tuple[list[Any], np.ndarray[Any, Any]]:
        """Frames as arrays, and their times.

        Args:
          wanted: their numbers, in order.
          later: a number from which on they are kept for the next call.
          size: (height, width) to which they are scaled.
        """
        with self._lock, self._naming_damage():
            kept = {number: frame for (number, scaled), frame in self._kept.items() if scaled == size}
            left = [number for number in wanted.tolist() if number not in kept]
            if left:
                try:
                    kept |= self._decoded(left, size)
                except BaseException:
                    self._next = -1  # the decoder may be anywhere now
                    raise
            self._kept = {(number, size): kept[number] for number in wanted.tolist() if number >= later}
            return [kept[number] for number in wanted.tolist()], self.index.times[wanted]

    def _decoded(self, wanted: list[int], size: tuple[int, int] | None) -> dict[int, Any]:
        keys = self.index.keys
        before = int(np.searchsorted(keys, wanted[0], "right")) - 1
        if not keys[before] <= self._next <= wanted[0]:
            self._seek(before)
        found, asked = {}, set(wanted)
        while self._next <= wanted[-1]:
            self._at(self.index.times[self._next])
            number, frame = next(self._running, _NO_FRAME)
            if number != self._next or frame.is_corrupt:
                raise DataLossError(f"{self.path}: at {self._time:.3f} s: frame {self._next} is damaged or not there")
            self._next = number + 1
            if number in asked:
                found[number] = _pixels(frame, size) if self.kind == "video" else _sound(frame)
        return found

    def _seek(self, before: int) -> None:
        """Go to a frame from which on decoding may begin, or to one before it if what comes is not right."""
        pts, keys = self.index.pts, self.index.keys
        key = int(keys[before])
        for place in range(before, max(before - 3, 0), -1):
            if pts is None:
                break
            self._at(self.index.times[key])
            try:
                self._container.seek(int(pts[keys[place]]), stream=self._stream)
                running = self._numbered(counting=False)
                number, frame = next(running, _NO_FRAME)
                if number > key:
                    continue
                while 0 <= number < key:  # frames that need those before the place where decoding began
                    number, frame = next(running, _NO_FRAME)
                if number == key:
                    self._next, self._running = key, chain(iter([(key, frame)]), running)
                    return
            except self._av.FFmpegError:
                continue
        self._open()

    def _numbered(self, *, counting: bool) -> Iterator[tuple[int, Any]]:
        """The frames from here on with their numbers, those left out that the index does not have."""
        pts = self.index.pts if "index" in self.__dict__ else None
        for count, frame in enumerate(self._container.decode(self._stream)):
            if pts is not None and frame.pts is not None:
                number = int(np.searchsorted(pts, frame.pts))
                if number < len(pts) and pts[number] == frame.pts:
                    yield number, frame
            elif pts is None and counting:
                yield count, frame

    @contextmanager
    def _naming_damage(self) -> Iterator[None]:
        """Name the file, and the time that was come to, in errors of the package."""
        try:
            yield
        except self._av.FFmpegError as error:
            said = error.strerror or "no reason is given"
            if "_container" not in self.__dict__:
                raise DataLossError(f"{self.path}: cannot be opened as {self.kind}: {said}") from error
            raise DataLossError(
                f"{self.path}: at {self._time:.3f} s: damaged, cut short, or not {self.kind}: {said}"
            ) from error


def _pixels(frame: Any, size: tuple[int, int] | None) -> np.ndarray[Any, Any]:
    """A frame as it is shown: [height, width, 3]."""
    turns = round(frame.rotation / 90) % 4
    if size is not None:
        height, width = size if turns % 2 == 0 else size[::-1]
        frame = frame.reformat(width=width, height=height, format="rgb24", interpolation="BILINEAR")
    pixels: np.ndarray[Any, Any] = np.rot90(frame.to_ndarray(format="rgb24"), turns)
    return pixels


def _sound(frame: Any) -> np.ndarray[Any, Any]:
    """Samples [n, channels] as float32."""
    values: np.ndarray[Any, Any] = frame.to_ndarray()
    values = values.T if frame.format.is_planar else values.reshape(frame.samples, -1)
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    bits = 8 * values.dtype.itemsize
    middle = 128 if values.dtype.kind == "u" else 0
    return np.asarray((values.astype(np.float64) - middle) / 2.0 ** (bits - 1), np.float32)


class _TorchCodec:
    """A video that the package `torchcodec` decodes on a device, one thread at a time.

    Args:
      path: of the file.
      device: such as "cuda:0".
    """

    def __init__(self, path: str, device: str) -> None:
        with importing(
            f"video: device={device!r} decodes with torchcodec, which cannot be loaded: {{error}}; `pip install torchcodec` "
            "brings it, in the version for your torch and CUDA; FFmpeg is installed apart",
            (ImportError, OSError, RuntimeError),  # the latter two where FFmpeg or CUDA is missing
        ):
            from torchcodec.decoders import VideoDecoder
            from torchcodec.transforms import Resize
        self.path, self._resize, self._lock = path, Resize, renewed(Lock())
        self._made: dict[Any, Any] = {}
        source, options = local_path(path) or open_ranges(path), {"dimension_order": "NHWC", "device": device}
        self._make: Any = partial(VideoDecoder, source, **options)
        with self._naming_damage(np.zeros(0, np.int64)):
            count = len(self._decoder(None))
        self.index = _Index(np.arange(count + 1), np.zeros(count), None, np.zeros(1, np.int64))

    def _decoder(self, size: tuple[int, int] | None) -> Any:
        if size not in self._made:
            self._made = {size: self._make(transforms=None if size is None else [self._resize(size)])}
        return self._made[size]

    def take(self, wanted: Ints, later: int, size: tuple[int, int] | None) -> tuple[list[Any], np.ndarray[Any, Any]]:
        """As that of `_PyAv`."""
        del later
        with self._lock, self._naming_damage(wanted):
            found = self._decoder(size).get_frames_at(wanted.tolist())
        return list(found.data.cpu().numpy()), found.pts_seconds.cpu().numpy().astype(np.float64)

    @contextmanager
    def _naming_damage(self, wanted: Ints) -> Iterator[None]:
        """Name the file in errors of the package, and tell files that are damaged from those that it alone cannot decode."""
        with naming(self.path):
            try:
                yield
            except (RuntimeError, ValueError, IndexError) as error:  # of the package
                if "CUDA" in str(error):  # such as too little memory, which is no fault of the file
                    raise
                where = f"at frame {wanted[0]}: " if len(wanted) else ""
                if self._decoded_without(wanted):
                    raise UnimplementedError(
                        f"{self.path}: {where}torchcodec cannot decode this video: {error}; PyAV can: leave device= out"
                    ) from error
                what = f"{where}damaged, cut short, or not video" if where else "cannot be opened as video"
                raise DataLossError(f"{self.path}: {what}: {error}") from error

    def _decoded_without(self, wanted: Ints) -> bool:
        """Whether PyAV can open the file and decode these frames."""
        try:
            _PyAv("video", self.path).take(wanted, int(wanted[-1]) if len(wanted) else 0, None)
        except (DataLossError, EngineMissing):
            return False
        return True


_KEPT: LruCache[_Index] = LruCache(_KEPT_BYTES)
"""Indices of files that were read last."""


@lru_cache(maxsize=_DECODERS)
def _decoder(kind: str, device: str | None, path: str, stamp: str, process: int) -> _PyAv | _TorchCodec:
    """An open decoder of one version of a file, in one process."""
    del stamp, process
    return _PyAv(kind, path) if device is None else _TorchCodec(path, device)
