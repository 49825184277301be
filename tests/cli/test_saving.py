"""Saving contents: a file that is named is replaced, and a server's words never choose where things go."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolpost.cli.saving import NotSaved, Part, check_target, decoded, file_name, parts_of, save
from toolpost.errors import UsageError


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (Part(b"", "image/png"), "draw.png"),
        (Part(b"", "image/jpeg"), "draw.jpg"),
        (Part(b"", "text/plain; charset=utf-8"), "draw.txt"),
        (Part(b"", None), "draw"),
        (Part(b"", "nonsense"), "draw"),
        (Part(b"", "image/png", "shop://signs/open.gif?size=2#top"), "open.gif"),
        (Part(b"", "image/png", "shop://signs/open/"), "open.png"),
        (Part(b"", None, "file:///home/me/.bashrc"), "bashrc"),
        (Part(b"", None, "file:///..%2F..%2Fetc"), "2F.._2Fetc"),
        (Part(b"", None, "a/../.."), "draw"),
        (Part(b"", None, "C:\\windows\\x"), "C_windows_x"),
        (Part(b"", None, "x://" + "n" * 500), "n" * 100),
    ],
)
def test_a_file_in_a_folder_has_a_harmless_name(part: Part, name: str) -> None:
    assert file_name(part, "draw") == name


def test_one_content_goes_to_the_file_and_further_ones_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "shot.png"
    target.write_text("old")

    files = list(save([Part(b"1"), Part(b"2"), Part(b"3")], str(target), "draw"))

    assert [file.name for file in files] == ["shot.png", "shot-2.png", "shot-3.png"]
    assert [file.read_bytes() for file in files] == [b"1", b"2", b"3"]


def test_in_a_folder_nothing_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "new"

    for _ in range(2):
        list(save([Part(b"1", "image/png"), Part(b"2", "image/png")], f"{folder}/", "draw"))

    assert sorted(file.name for file in folder.iterdir()) == [
        "draw-2.png",
        "draw-3.png",
        "draw-4.png",
        "draw.png",
    ]


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x-2").mkdir()

    with pytest.raises(NotSaved, match="cannot save to"):
        list(save([Part(b"1"), Part(b"2")], str(tmp_path / "folder" / "x"), "draw"))


def test_a_target_that_cannot_be_is_told_before_the_call(tmp_path: Path) -> None:
    check_target(None)
    check_target(str(tmp_path))
    check_target(str(tmp_path / "new.png"))
    check_target(f"{tmp_path / 'new'}/")
    with pytest.raises(UsageError, match="create it first"):
        check_target(str(tmp_path / "missing" / "new.png"))
    with pytest.raises(UsageError, match="-o '' is neither a file nor a folder"):
        check_target("")


def test_what_is_no_base64_is_told() -> None:
    with pytest.raises(NotSaved, match="--json shows it as it came"):
        decoded("a")


def test_blocks_of_no_content_are_left_out() -> None:
    blocks = [
        {"type": "text", "text": "x"},
        {"type": "image", "data": 7},
        {"type": "resource_link", "uri": "x://y"},
        {"type": "resource", "resource": {"uri": "x://y"}},
        {"type": "resource", "resource": {"uri": "x://y", "text": "é"}},
    ]

    assert parts_of(blocks) == [Part("é".encode(), None, "x://y")]
