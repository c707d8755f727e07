# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError, NotFoundError

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate(["b/2.png", "b/1.PNG", "a/deep/3.bmp", "c/1.png", "b/.hidden.png", ".git/1.png"]):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (2, 3), (number, 0, 0)).save(path, "PNG")
    (tmp_path / "b" / "notes.txt").write_text("text")
    return tmp_path


def firsts(dataset: Any) -> list[tuple[int, int]]:
    return [(int(image[0, 0, 0]), int(label)) for image, label in dataset]


def test_classes_and_images_are_sorted(folder: Path) -> None:
    made = di.data.ImageFolderDataset(folder)
    assert made.class_names == ("a", "b", "c")
    assert firsts(made) == [(2, 0), (1, 1), (0, 1), (3, 2)]
    assert made.element_spec[0] == di.TensorSpec([None, None, None], "uint8")
    assert len(made) == 4
    assert sorted(firsts(made.global_shuffle(seed=1))) == sorted(firsts(made))


def test_classes_in_an_order_of_ones_own(folder: Path) -> None:
    made = di.data.ImageFolderDataset(str(folder), class_names=["c", "a"], channels=1, num_parallel_calls=None)
    assert [(image.shape, int(label)) for image, label in made] == [((3, 2, 1), 0), ((3, 2, 1), 1)]


@pytest.mark.parametrize("names", [None, ["c", "a"]])
def test_labels_are_known_without_opening_an_image(folder: Path, names: list[str] | None) -> None:
    for path in folder.rglob("*.*g"):
        path.write_bytes(b"no image")
    made = di.data.ImageFolderDataset(folder, class_names=names, decode=False)
    assert made.labels.tolist() == [int(label) for _, label in made]
    assert made.labels.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        made.labels[0] = 1


def test_bytes_and_remote_files(folder: Path) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    for path in sorted(folder.rglob("*.png")):
        memory.pipe(f"/pictures/{path.relative_to(folder)}", path.read_bytes())
    made = di.data.ImageFolderDataset("memory://pictures", decode=False)
    assert made.class_names == ("b", "c")
    assert [(content, int(label)) for content, label in made] == [
        ((folder / "b/2.png").read_bytes(), 0),
        ((folder / "c/1.png").read_bytes(), 1),
    ]


def test_classes_are_folders_below_the_url_of_a_local_folder(folder: Path) -> None:
    made, wanted = di.data.ImageFolderDataset(f"file://{folder}"), di.data.ImageFolderDataset(folder)
    assert made.class_names == wanted.class_names
    assert made.labels.tolist() == wanted.labels.tolist()


def test_a_link_to_a_folder_above_shows_no_image_again(folder: Path) -> None:
    wanted = di.data.ImageFolderDataset(folder).labels.tolist()
    (folder / "a" / "again").symlink_to(folder, target_is_directory=True)
    assert di.data.ImageFolderDataset(folder).labels.tolist() == wanted


@pytest.mark.parametrize("notes", [False, True])
def test_a_folder_without_images_moves_no_label(folder: Path, notes: bool) -> None:
    import fsspec

    (folder / "aa" / "deep").mkdir(parents=True)
    if notes:
        (folder / "aa" / "deep" / "notes.txt").write_text("text")
    memory, names = fsspec.filesystem("memory"), ["a", "aa", "b", "c"]
    root = f"pictures_{notes}"
    memory.put(str(folder), f"/{root}", recursive=True)
    memory.makedirs(f"/{root}/aa/deep", exist_ok=True)
    for place in (folder, f"file://{folder}", f"memory://{root}"):
        with pytest.raises(
            InvalidArgumentError, match=r"class 'aa' has no images; remove its folder, or give class_names"
        ):
            di.data.ImageFolderDataset(place)
        made = di.data.ImageFolderDataset(place, class_names=names)
        assert made.class_names == tuple(names)
        assert firsts(made) == [(2, 0), (1, 2), (0, 2), (3, 3)]
        with pytest.raises(InvalidArgumentError, match=r"there are no images in folders"):
            di.data.ImageFolderDataset(place, class_names=["aa"])


def test_what_cannot_be_right_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        di.data.ImageFolderDataset(folder / "nowhere")
    with pytest.raises(InvalidArgumentError, match=r"class 'd' has no images; images are in subfolders"):
        di.data.ImageFolderDataset(folder, class_names=["a", "d"])
    with pytest.raises(InvalidArgumentError, match="there are no images in folders"):
        di.data.ImageFolderDataset(folder / "a" / "deep" / "..", class_names=[])
    with pytest.raises(InvalidArgumentError, match="channels must be 0, 1, 3 or 4, got 2"):
        di.data.ImageFolderDataset(folder, channels=2)
    with pytest.raises(InvalidArgumentError, match=r"2\.png is in no class"):
        di.data.ImageFolderDataset(folder / "b")
    (folder / "a" / "bad.jpg").write_bytes(b"text")
    with pytest.raises(InvalidArgumentError, match=r"bad\.jpg: decode_image: it must be a JPEG"):
        di.data.ImageFolderDataset(folder).to_list()


def test_a_state_goes_on_with_the_rest(folder: Path) -> None:
    made = di.data.ImageFolderDataset(folder)
    iterator = iter(made)
    next(iterator)
    rest = made.restore(iterator.state())
    assert np.array_equal(firsts(rest), firsts(iterator))


def test_a_remote_folder_is_no_pattern(tmp_path: Path) -> None:
    files = {f"/{tmp_path.name}[1]/cat/a.png": b"cat", f"/{tmp_path.name}[1]/cat/b.png/c.png": b"deep"}
    fsspec.filesystem("memory").pipe({**files, f"/{tmp_path.name}1/dog/1.png": b"dog"})
    images = di.data.ImageFolderDataset(f"memory://{tmp_path.name}[1]", decode=False)
    assert images.class_names == ("cat",)
    assert [image for image, _ in images] == [b"cat", b"deep"]
    with pytest.raises(NotFoundError, match="this directory has no files"):
        di.data.ImageFolderDataset(f"memory://{tmp_path.name}2")


def test_one_folder_and_no_class_twice(folder: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="directory must be one folder, got 2"):
        di.data.ImageFolderDataset([folder / "a", folder / "b"])
    with pytest.raises(InvalidArgumentError, match="class_names has a name twice"):
        di.data.ImageFolderDataset(folder, class_names=["a", "a"])


@pytest.mark.parametrize("root", ["memory://", "memory:///"])
def test_the_root_of_a_store_has_classes(root: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = fsspec.filesystem("memory")
    monkeypatch.setattr(type(memory), "store", {})
    monkeypatch.setattr(type(memory), "pseudo_dirs", [""])
    for name in ("a/deep/3.bmp", "c/1.png"):
        memory.pipe(f"/{name}", (folder / name).read_bytes())
    assert firsts(di.data.ImageFolderDataset(root)) == [(2, 0), (3, 1)]
