"""Which files a path names."""

from __future__ import annotations

from pathlib import Path

from lake.landing.inputs import find


def test_links_out_of_a_folder_are_followed_once_and_links_into_it_are_left_to_the_walk(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside / "z", outside / "deep"):
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text("text")
    (inside / "a_link_into_it").symlink_to(inside / "z")
    (inside / "loop").symlink_to(inside)
    (inside / "out").symlink_to(outside)
    (outside / "deep" / "back").symlink_to(outside)
    (inside / "out_again").symlink_to(outside)
    found = [Path(p.where).relative_to(inside).as_posix() for p in find([inside], str(tmp_path / "lake"))]
    assert found == ["out/deep/a.txt", "z/a.txt"]
