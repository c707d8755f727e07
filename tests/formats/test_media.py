# SPDX-License-Identifier: Apache-2.0
import multiprocessing
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import av
import numpy as np
import pytest

import distinput as di
from distinput.errors import DataLossError, EngineMissing, InvalidArgumentError, NotFoundError, UnimplementedError
from distinput.formats import media
from distinput.formats.media import Audio, Video
from distinput.testing import check_format
from tests.formats.reading import records_until_error


def write_video(
    path: Path | str,
    codec: str = "libx264",
    frames: int = 50,
    size: tuple[int, int] = (16, 32),
    times: Any = None,
    options: Any = None,
    key: int = 12,
    pixels: str = "yuv420p",
    format: str | None = None,
    sizes: Any = (),
) -> str:
    """A video that moves; times are milliseconds."""
    from fractions import Fraction

    try:
        av.codec.Codec(codec, "w")
    except ValueError:
        pytest.skip(f"this build of av does not encode {codec}")
    rng = np.random.default_rng(0)
    with av.open(str(path), "w", format=format) as file:
        stream = file.add_stream(codec, rate=25, options=options or {})
        stream.height, stream.width, stream.pix_fmt = *size, pixels
        stream.codec_context.gop_size = key
        stream.codec_context.time_base = Fraction(1, 1000)
        base = rng.integers(0, 255, (size[0], 2 * size[1], 3), np.uint8)
        for number in range(frames):
            shown = np.ascontiguousarray(np.roll(base, 3 * number, 1)[:, : size[1]])
            frame = av.VideoFrame.from_ndarray(shown, format="rgb24")
            frame.pts, frame.time_base = 40 * number if times is None else times[number], Fraction(1, 1000)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return str(path)


def write_audio(
    path: Path | str, codec: str = "flac", samples: int = 20001, rate: int = 16000, channels: int = 2
) -> np.ndarray[Any, Any]:
    """Noise and a tone; what is returned is int16 [samples, channels]."""
    rng = np.random.default_rng(0)
    sound = np.sin(np.arange(samples) / 20)[:, None] * 8000 + rng.normal(0, 2000, (samples, channels))
    written = sound.astype(np.int16)
    layout = "stereo" if channels == 2 else "mono"
    with av.open(str(path), "w") as file:
        stream = file.add_stream(codec, rate=rate)
        stream.codec_context.layout = layout
        frame = av.AudioFrame.from_ndarray(written.reshape(1, -1), format="s16", layout=layout)
        frame.sample_rate, frame.pts = rate, 0
        file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return written


def whole_video(path: Any) -> tuple[np.ndarray[Any, Any], list[float]]:
    with av.open(str(path)) as file:
        frames = list(file.decode(video=0))
    return np.stack([frame.to_ndarray(format="rgb24") for frame in frames]), [frame.time for frame in frames]


def whole_audio(path: Any) -> np.ndarray[Any, Any]:
    with av.open(str(path)) as file:
        found = [frame.to_ndarray() for frame in file.decode(audio=0)]
        planar = file.streams.audio[0].format.is_planar
        channels = file.streams.audio[0].channels
    joined = np.concatenate([each.T if planar else each.reshape(-1, channels) for each in found])
    most = {"f": 1, "i": 2.0 ** (8 * joined.dtype.itemsize - 1)}[joined.dtype.kind]
    return (joined / most).astype(np.float32)


UNEVEN = [40 * i + i * i % 17 for i in range(50)]

VIDEOS: dict[str, Any] = {
    "a.mp4": {},
    "times.mp4": {"times": UNEVEN},
    "times.mkv": {"times": UNEVEN},
    "open.mp4": {"options": {"x264-params": "open-gop=1:bframes=3:keyint=8:min-keyint=8:scenecut=0"}},
    "refresh.mp4": {"options": {"x264-params": "intra-refresh=1:keyint=10"}},
    "a.ts": {},
    "open.ts": {"options": {"x264-params": "open-gop=1:bframes=3:keyint=8"}},
    "b.mp4": {"codec": "mpeg4", "options": {"bf": "2"}},
    "b.avi": {"codec": "mpeg4", "options": {"bf": "2"}},
    "a.webm": {"codec": "libvpx-vp9", "options": {"cpu-used": "8"}},
    "odd.mkv": {"size": (17, 35), "pixels": "yuv444p"},
    "raw.h264": {"format": "h264"},
}


@pytest.mark.parametrize("name", VIDEOS)
def test_frames_are_those_of_decoding_the_whole_file(name: str, tmp_path: Path) -> None:
    path = write_video(tmp_path / name, **VIDEOS[name])
    want, times = whole_video(path)
    made = di.data.VideoDataset(path, frames=4, stride=3, step=2)
    assert len(made) == 15  # the frames 0, 2, 4, 6 to 42, 44, 46, 48
    rows = [*range(15), *np.random.default_rng(1).integers(0, 15, 12).tolist()]
    for row, window in zip(rows, [*made, *(made[row] for row in rows[15:])], strict=True):
        assert sorted(window) == ["frames", "path", "times"]
        assert window["path"] == path.encode()
        np.testing.assert_array_equal(window["frames"], want[3 * row : 3 * row + 7 : 2])
        if None not in times:
            np.testing.assert_allclose(window["times"], times[3 * row : 3 * row + 7 : 2], atol=1e-9)
        else:  # frames of raw streams say no time
            np.testing.assert_allclose(window["times"], np.arange(3 * row, 3 * row + 7, 2) / 25)


AUDIO: dict[str, Any] = {
    "a.wav": {"codec": "pcm_s16le"},
    "b.wav": {"codec": "pcm_s24le", "channels": 1},
    "a.flac": {},
    "a.mkv": {},
    "a.mp3": {"codec": "libmp3lame"},
    "a.m4a": {"codec": "aac"},
}


@pytest.mark.parametrize("name", AUDIO)
def test_samples_are_those_of_decoding_the_whole_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write_audio(path, **AUDIO[name])
    want = whole_audio(path)
    made = di.data.AudioDataset(path, seconds=0.1, stride=0.04)
    assert len(made) == (len(want) - 1600) // 640 + 1
    rows = [*range(len(made)), *np.random.default_rng(1).integers(0, len(made), 12).tolist()]
    for row, window in zip(rows, [*made, *(made[row] for row in rows[len(made) :])], strict=True):
        np.testing.assert_array_equal(window["samples"], want[640 * row : 640 * row + 1600])
        assert window["rate"] == 16000
        assert window["start"] == pytest.approx(float(made[0]["start"]) + 0.04 * row)


def test_samples_of_lossless_files_are_what_was_written(tmp_path: Path) -> None:
    for name, codec in (("a.wav", "pcm_s16le"), ("a.flac", "flac")):
        written = write_audio(tmp_path / name, codec)
        found = np.concatenate([window["samples"] for window in di.data.AudioDataset(tmp_path / name, 0.1, tail="pad")])
        np.testing.assert_array_equal(found[: len(written)], written / np.float32(32768))
        assert not found[len(written) :].any()


def test_the_last_window_is_left_out_or_padded(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", frames=10)
    want, times = whole_video(path)
    starts = lambda made: [round(float(window["times"][0]) * 25) for window in made]  # noqa: E731
    assert starts(di.data.VideoDataset(path, 4)) == [0, 4]
    padded = di.data.VideoDataset(path, 4, tail="pad")
    assert starts(padded) == [0, 4, 8]
    last = padded[2]
    assert last["mask"].tolist() == [True, True, False, False]
    np.testing.assert_array_equal(last["frames"], want[[8, 9, 9, 9]])
    assert last["times"].tolist() == [times[8], *times[9:] * 3]
    assert starts(di.data.VideoDataset(path, 4, 3, tail="pad")) == [0, 3, 6]  # which reach over all
    assert starts(di.data.VideoDataset(path, 16)) == []
    assert starts(di.data.VideoDataset(path, 16, tail="pad")) == [0]
    assert starts(di.data.VideoDataset(path, 4, 100, tail="pad")) == [0]  # the next one would begin behind the end
    write_audio(tmp_path / "a.wav", "pcm_s16le", samples=1000)
    assert len(di.data.AudioDataset(tmp_path / "a.wav")) == 0
    window = di.data.AudioDataset(tmp_path / "a.wav", tail="pad")[0]
    assert window["samples"].shape == (16000, 2)
    assert window["mask"].sum() == 1000


def test_frames_are_scaled(tmp_path: Path) -> None:
    paths = [write_video(tmp_path / "a.mp4"), write_video(tmp_path / "b.mp4", size=(32, 16))]
    made = di.data.VideoDataset(paths, 4, resize=(8, 12)).batch(30)
    assert made.element_spec["frames"].shape.as_list() == [None, 4, 8, 12, 3]
    (batch,) = made
    assert batch["frames"].shape == (24, 4, 8, 12, 3)
    with pytest.raises(InvalidArgumentError, match="shapes"):
        di.data.VideoDataset(paths, 4).batch(30).to_list()


def test_a_size_that_changes_within_a_file(tmp_path: Path) -> None:
    parts = [
        write_video(tmp_path / f"{n}.h264", frames=6, size=size, format="h264")
        for n, size in enumerate([(16, 32), (32, 16)])
    ]
    path = tmp_path / "a.h264"
    path.write_bytes(b"".join(Path(part).read_bytes() for part in parts))
    assert [window["frames"].shape for window in di.data.VideoDataset(path, 3)] == [(3, 16, 32, 3)] * 2 + [
        (3, 32, 16, 3)
    ] * 2
    with pytest.raises(UnimplementedError, match=r"at 0\.160 s: the size of frames changes within a window; state one"):
        di.data.VideoDataset(path, 4).to_list()
    assert len(di.data.VideoDataset(path, 4, resize=(8, 8)).to_list()) == 3


def test_frames_that_an_edit_list_leaves_out(tmp_path: Path) -> None:
    path = Path(write_video(tmp_path / "a.mp4", frames=40, key=6))
    whole, _ = whole_video(path)
    content = bytearray(path.read_bytes())
    at = content.index(b"elst") + 16  # where in the file it begins to be shown, in units of 1/16000 s
    start = int.from_bytes(content[at : at + 4], "big") + 8 * 640
    content[at : at + 4] = start.to_bytes(4, "big")
    content[at - 4 : at] = (32 * 40).to_bytes(4, "big")  # for so many milliseconds
    path.write_bytes(content)
    want, _ = whole_video(path)
    np.testing.assert_array_equal(want, whole[8:])
    made = di.data.VideoDataset(path, 2)
    np.testing.assert_array_equal(np.concatenate([window["frames"] for window in made]), want)
    np.testing.assert_array_equal(made[2]["frames"], want[4:6])


def test_a_recording_that_begins_in_the_middle(tmp_path: Path) -> None:
    path = Path(write_video(tmp_path / "a.ts", size=(64, 64), key=10))
    whole, times = whole_video(path)
    content = path.read_bytes()
    path.write_bytes(content[len(content) // 3 // 188 * 188 :])
    found = di.data.VideoDataset(path, 1).to_list()
    at = round((float(found[0]["times"][0]) - times[0]) * 25)
    assert at % 10 == 0
    assert at > 0
    np.testing.assert_array_equal(np.concatenate([window["frames"] for window in found]), whole[at:])


def test_more_pixels_than_a_frame_may_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_video(tmp_path / "a.mp4")
    monkeypatch.setattr(media, "_MOST_PIXELS", 100)
    with pytest.raises(DataLossError, match=rf"{path}: at 0\.000 s"):
        di.data.VideoDataset(path, 2).to_list()


def turned(path: str, matrix: list[int]) -> None:
    """State in the header of an MP4 how frames are turned."""
    content = bytearray(Path(path).read_bytes())
    at = content.index(b"tkhd") + 44
    content[at : at + 36] = np.array(matrix, ">i4").tobytes()
    Path(path).write_bytes(content)


def test_frames_are_turned_as_players_show_them(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4")
    want, _ = whole_video(path)
    one = 1 << 16
    turned(path, [0, one, 0, -one, 0, 0, 0, 0, 1 << 30])  # a telephone held upright: a quarter, clockwise
    made = di.data.VideoDataset(path, 2)
    np.testing.assert_array_equal(made[0]["frames"], np.rot90(want[:2], -1, (1, 2)))
    assert di.data.VideoDataset(path, 2, resize=(20, 10))[0]["frames"].shape == (2, 20, 10, 3)


def test_all_laws_of_formats(tmp_path: Path) -> None:
    video = Video(3, 2, tail="pad", resize=(4, 4))
    check_format(
        video,
        lambda folder: [
            write_video(folder / "a.mp4", frames=9, key=4),
            write_video(folder / "b.mkv", frames=1),
            write_video(folder / "c.avi", "mpeg4", frames=7),
        ],
        leave_out=["damage"],
    )
    paths = [tmp_path / "a.flac", tmp_path / "b.wav"]
    write_audio(paths[0], samples=4000)
    write_audio(paths[1], "pcm_s16le", samples=1000)
    check_format(Audio(0.1, 0.03), paths, leave_out=["damage"])


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.ts", "a.avi", "a.wav", "a.flac"])
def test_files_that_are_cut_short(name: str, tmp_path: Path) -> None:
    path, cut = tmp_path / name, tmp_path / f"cut.{name}"
    if name.endswith(("wav", "flac")):
        write_audio(path, "flac" if name.endswith("flac") else "pcm_s16le", samples=100000)
        format: Any = Audio(0.1)
    else:
        write_video(path, "mpeg4" if name.endswith("avi") else "libx264", frames=90)
        format = Video(4)
    content = path.read_bytes()
    want, _ = records_until_error(format, path)
    assert want
    for size in (0, 10, len(content) // 8, len(content) // 2):
        cut.write_bytes(content[:size])
        found, error = records_until_error(format, cut)
        if name == "a.avi" and size == len(content) // 2:  # what is cut off is an index
            assert len(found) == len(want)
            continue
        if name == "a.ts" and size > 1000:  # says nowhere how long it is
            assert len(found) < len(want)
            assert [each["times"] for each in found[:-1]] == [each["times"] for each in want[: len(found) - 1]]
            continue
        assert isinstance(error, DataLossError)
        assert str(cut) in str(error)
        assert " s: " in str(error) or " s it ends" in str(error) or ": cannot be opened as " in str(error)


def test_a_damaged_frame_is_an_error_with_its_time_and_may_be_left_out(tmp_path: Path) -> None:
    path = Path(write_video(tmp_path / "a.mp4", frames=60, key=10, size=(64, 64)))
    made = di.data.VideoDataset(path, 5)
    want = made.to_list()
    with av.open(str(path)) as file:
        packet = next(
            each for each in file.demux(video=0) if each.pts is not None and float(each.pts * each.time_base) == 1.2
        )
    content = bytearray(path.read_bytes())
    content[packet.pos + 20 : packet.pos + packet.size - 20] = bytes(packet.size - 40)
    path.write_bytes(content)
    with pytest.raises(DataLossError, match=rf"{path}: at 1\.\d+ s: "):
        made.to_list()
    kept = di.data.VideoDataset(path, 5, on_error="skip").to_list()
    times = {tuple(window["times"]): window for window in want}
    assert 8 <= len(kept) < 12
    for window in kept:
        np.testing.assert_array_equal(window["frames"], times[tuple(window["times"])]["frames"])
    assert kept[-1]["times"][-1] == pytest.approx(2.36)


def test_what_is_neither(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    with pytest.raises(NotFoundError, match="nowhere"):
        len(di.data.VideoDataset(tmp_path / "nowhere.mp4"))
    path.write_bytes(b"text" * 1000)
    with pytest.raises(
        DataLossError, match=rf"^{path}: cannot be opened as video: Invalid data found [a-z ]*\n.* text"
    ):
        len(di.data.VideoDataset(path))
    write_video(path)
    with pytest.raises(InvalidArgumentError, match="audio: the file has no audio"):
        len(di.data.AudioDataset(path))
    for options, says in (
        ({"tail": "wrap"}, "video: tail must be 'drop' or 'pad', got 'wrap'"),
        ({"stride": 0}, "video: stride must be more than 0, got 0"),
        ({"resize": (0, 5)}, "video: height must be more than 0, got 0"),
        ({"resize": 112}, r"video: resize must be \(height, width\), got 112"),
        ({"resize": (1, 2, 3)}, r"video: resize must be \(height, width\), got \(1, 2, 3\)"),
        ({"resize": "ab"}, r"video: resize must be \(height, width\), got 'ab'"),
    ):
        with pytest.raises(InvalidArgumentError, match=says):
            di.data.VideoDataset(path, **options)
    for options in ({"frames": 2.5}, {"stride": 0.5}, {"step": 1.5}, {"frames": "4"}, {"resize": (8.0, 8.0)}):
        (name,) = options
        with pytest.raises(TypeError, match=f"video: {name} must be an integer"):
            di.data.VideoDataset(path, **options)
    assert len(di.data.VideoDataset(path, np.int64(2), stride=np.int8(2))) == len(
        di.data.VideoDataset(path, 2, stride=2)
    )


def test_a_file_opens_no_other(tmp_path: Path) -> None:
    write_video(tmp_path / "secret.ts")
    path = tmp_path / "list.mp4"
    path.write_text("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nsecret.ts\n#EXT-X-ENDLIST\n")
    with pytest.raises(DataLossError, match=r"list\.mp4: cannot be opened as video: "):
        len(di.data.VideoDataset(path))
    path.write_text(f"ffconcat version 1.0\nfile {tmp_path}/secret.ts\n")
    with pytest.raises(DataLossError, match=r"list\.mp4: cannot be opened as video: "):
        len(di.data.VideoDataset(path))


def test_a_pipeline_over_windows(tmp_path: Path) -> None:
    for name, label in (("a", "run"), ("b", "jump"), ("c", "run")):
        (tmp_path / f"label={label}").mkdir(exist_ok=True)
        write_video(tmp_path / f"label={label}" / f"{name}.mp4", frames=21, key=6)
    made = di.data.VideoDataset(f"{tmp_path}/*/*.mp4", 4, 2)
    assert len(made) == 27
    key = lambda window: (window["label"], window["path"], round(float(window["times"][0]) * 25))  # noqa: E731
    keys = [key(window) for window in made]
    assert {label for label, _, _ in keys} == {b"run", b"jump"}
    shuffled = made.global_shuffle(seed=3)
    assert sorted(map(key, shuffled)) == sorted(keys)
    parts = [key(window) for index in range(4) for window in made.shard(4, index)]
    assert sorted(parts) == sorted(keys)
    iterator = iter(shuffled)
    first = [key(next(iterator)) for _ in range(10)]
    rest = iter(shuffled)
    rest.set_state(iterator.get_state())
    assert sorted([*first, *(there := list(map(key, rest)))]) == sorted(keys)
    assert there == list(map(key, iterator))
    kept = made.global_shuffle(seed=3, reshuffle_each_iteration=False).batch(4)
    distributed = di.distribute.MirroredStrategy(["cpu:0", "cpu:1"]).experimental_distribute_dataset(kept)
    steps = [[part for parts in step["path"].values for part in parts.tolist()] for step in distributed]
    assert [place.file.encode() for replica in range(2) for place in distributed.locate(3, replica=replica)] == steps[3]


def _times(path: str, found: Any) -> None:
    found.put(sum(float(window["frames"].sum()) for window in di.data.VideoDataset(path, 4)))


def test_a_forked_process_opens_the_file_anew(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4")
    made = di.data.VideoDataset(path, 4)
    want = sum(float(window["frames"].sum()) for window in made)
    iterator = iter(made)
    found = float(next(iterator)["frames"].sum())
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    child = context.Process(target=_times, args=(path, answer))
    child.start()
    assert answer.get(timeout=60) == want
    child.join()
    assert found + sum(float(window["frames"].sum()) for window in iterator) == want


def test_decoders_that_are_open_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert media._decoder.cache_parameters()["maxsize"] == media._DECODERS
    paths = [write_video(tmp_path / f"{number}.mp4", frames=8) for number in range(3)]
    from functools import lru_cache

    monkeypatch.setattr(media, "_decoder", lru_cache(maxsize=1)(media._decoder.__wrapped__))
    made = di.data.VideoDataset(paths, 2, num_parallel_reads=3)
    assert sorted(float(window["times"][0]) for window in made) == sorted([0, 0.08, 0.16, 0.24] * 3)


def test_remote_files(tmp_path: Path) -> None:
    import fsspec

    path = write_video(tmp_path / "a.mp4")
    fsspec.filesystem("memory").pipe("/videos/a.mp4", Path(path).read_bytes())
    found = di.data.VideoDataset("memory://videos/a.mp4", 4).to_list()
    for one, other in zip(found, di.data.VideoDataset(path, 4), strict=True):
        np.testing.assert_array_equal(one["frames"], other["frames"])


def test_without_the_package_the_cure_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_video(tmp_path / "a.mp4")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(EngineMissing, match=r"pip install 'distinput\[video\]'"):
        len(di.data.VideoDataset(path))
    monkeypatch.setitem(sys.modules, "torchcodec", None)
    monkeypatch.setitem(sys.modules, "torchcodec.decoders", None)
    with pytest.raises(EngineMissing, match="pip install torchcodec"):
        len(di.data.VideoDataset(path, device="cuda"))


class _Tensor:
    """A tensor on a device, as far as it is asked."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def cpu(self) -> "_Tensor":
        return self

    def numpy(self) -> Any:
        return self.values


class _Decoder:
    """What torchcodec's VideoDecoder does, as far as it is asked."""

    made: ClassVar[list[Any]] = []

    def __init__(self, source: str, *, dimension_order: str, device: str, transforms: Any) -> None:
        assert dimension_order == "NHWC"
        self.made.append((source, device, transforms))
        if not Path(source).read_bytes():
            raise RuntimeError("no streams")
        self.frames, self.times = whole_video(source)

    def __len__(self) -> int:
        return len(self.frames)

    def get_frames_at(self, indices: list[int]) -> Any:
        if self.made[-1][1] == "cuda:9":
            raise RuntimeError("CUDA out of memory")
        return SimpleNamespace(
            data=_Tensor(self.frames[indices]), pts_seconds=_Tensor([self.times[i] for i in indices])
        )


def _torchcodec() -> str:
    """Why the package cannot be used here; empty where it can."""
    try:
        from torchcodec.decoders import VideoDecoder
    except (ImportError, OSError, RuntimeError) as error:
        return f"torchcodec cannot be loaded: {str(error).splitlines()[0]}"
    return "" if VideoDecoder else "it has no decoder"


@pytest.mark.parametrize("name", VIDEOS)
def test_torchcodec_itself_decodes_the_same_frames(name: str, tmp_path: Path) -> None:
    if missing := _torchcodec():
        pytest.skip(missing)
    path = write_video(tmp_path / name, **VIDEOS[name])
    windows = di.data.VideoDataset(path, 8, 3, tail="pad", device="cpu")
    try:
        last = windows[len(windows) - 1]
    except UnimplementedError as error:  # it cannot read some streams, which PyAV reads
        pytest.skip(str(error))
    for one, other in zip(windows, di.data.VideoDataset(path, 8, 3, tail="pad"), strict=True):
        np.testing.assert_array_equal(one["frames"], other["frames"])
        np.testing.assert_allclose(one["times"], other["times"])
    np.testing.assert_array_equal(one["frames"], last["frames"])
    small = next(iter(di.data.VideoDataset(path, 8, resize=(8, 16), device="cpu")))
    assert small["frames"].shape == (8, 8, 16, 3)


def test_a_video_that_torchcodec_alone_cannot_decode_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_video(tmp_path / "a.mp4")

    class Weak(_Decoder):
        def get_frames_at(self, indices: list[int]) -> Any:
            raise RuntimeError("no more frames left to decode")

    _installed(monkeypatch, Weak)
    with pytest.raises(
        UnimplementedError, match=r"a\.mp4: at frame 0: torchcodec cannot .*PyAV can: leave device= out"
    ):
        list(di.data.VideoDataset(path, 4, device="cpu"))


def _installed(monkeypatch: pytest.MonkeyPatch, decoder: Any) -> None:
    for name, values in (
        ("torchcodec", {}),
        ("torchcodec.decoders", {"VideoDecoder": decoder}),
        ("torchcodec.transforms", {"Resize": lambda size: ("resize", size)}),
    ):
        module = ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)


def test_torchcodec_decodes_on_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_video(tmp_path / "a.mp4")
    _installed(monkeypatch, _Decoder)
    monkeypatch.setattr(_Decoder, "made", [])
    made = di.data.VideoDataset(path, 4, 3, tail="pad", device="cuda:1")
    for one, other in zip(made, di.data.VideoDataset(path, 4, 3, tail="pad"), strict=True):
        np.testing.assert_array_equal(one["frames"], other["frames"])
        np.testing.assert_allclose(one["times"], other["times"])
    assert _Decoder.made == [(path, "cuda:1", None)]
    next(iter(di.data.VideoDataset(path, 4, resize=(16, 32), device="cuda:1")))
    assert _Decoder.made[1:] == [(path, "cuda:1", [("resize", (16, 32))])]
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        di.data.VideoDataset(path, 4, device="cuda:9", on_error="skip").to_list()
    (tmp_path / "b.mp4").write_bytes(b"")
    with pytest.raises(DataLossError, match=r"b\.mp4: cannot be opened as video: no streams"):
        len(di.data.VideoDataset(tmp_path / "b.mp4", device="cuda"))
