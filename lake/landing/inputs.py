"""Which files a landing means, and where they lie below their source's root.

A path is a file, a folder, a glob or any fsspec URL. The root is a label: it is fixed at a source's first landing, and
paths are written relative to it, so that a copy of the folder elsewhere is the same source.
"""

from __future__ import annotations

import dataclasses
import glob
import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from lake.errors import LakeError, MissingExtraError, SourceError, UsageError
from lake.landing.streams import without_suffix

MAGIC = "*?["


@dataclass(frozen=True)
class InputFile:
    """A file to land.

    Attributes:
        where: absolute path, or URL.
        size: bytes as it lies, or None where the server does not say.
        named: given by itself, not found in a folder or by a glob.
        root: root of its source, as this landing has it; empty until `place_below_roots`.
        path: its path below the root, as `_below` writes it.
    """

    where: str
    size: int | None
    named: bool = False
    root: str = ""
    path: str = ""

    @property
    def natural_key(self) -> str:
        """The natural key of a document file: its address on the web, else its path below the root."""
        return self.where if self.where.startswith(("http://", "https://")) else self.path

    def open(self) -> BinaryIO:
        """Open the file for reading."""
        if _is_url(self.where):
            filesystem, path = _filesystem(self.where)
            return cast(BinaryIO, filesystem.open(path, "rb"))
        return Path(self.where).open("rb")


def _is_url(path: str) -> bool:
    """Say whether a path names its protocol."""
    return "://" in path


def find(paths: Sequence[str | os.PathLike[str]], leave_out: str) -> list[InputFile]:
    """Find the files that paths mean, in the order of their names, each once.

    Args:
        paths: files, folders, globs, URLs. In folders every file counts, hidden ones too.
        leave_out: the lake's own folder, which is never landed.

    Raises:
        UsageError: a path means nothing.
    """
    by_place: dict[str, InputFile] = {}
    for path in paths:
        files = list(_find_url(str(path)) if _is_url(str(path)) else _find_local(str(path), leave_out))
        if not files:
            raise UsageError(
                f"{path} names no file; expected a file, a folder with files, a glob or a URL. Look at it."
            )
        for file in files:
            if file.where not in by_place or file.named:
                by_place[file.where] = file
    return sorted(by_place.values(), key=lambda file: file.where)


def _find_local(path: str, lake: str) -> Iterator[InputFile]:
    path = _absolute(path)
    if Path(path).is_file():
        yield InputFile(path, os.path.getsize(path), named=True)
    elif Path(path).is_dir():
        yield from _walk(path, lake)
    elif any(c in path for c in MAGIC):
        for match in sorted(glob.iglob(path, recursive=True, include_hidden=True)):
            if f"{os.path.realpath(match)}/".startswith(f"{lake}/"):
                continue
            if Path(match).is_dir():
                yield from _walk(match, lake) if not path.endswith("**") else ()
            elif Path(match).is_file():
                yield InputFile(match, os.path.getsize(match))


def _walk(folder: str, lake: str) -> Iterator[InputFile]:
    top = os.path.realpath(folder)
    seen = {top}
    for here, folders, names in os.walk(folder, onerror=_refuse, followlinks=True):
        real = {f: os.path.realpath(os.path.join(here, f)) for f in sorted(folders)}
        # A link into the folder itself is left to the walk, and one out of it is followed once: loops end, and no file
        # comes twice or goes by a link's name where it has one of its own.
        inner = {f for f in folders if os.path.islink(os.path.join(here, f)) and f"{real[f]}/".startswith(f"{top}/")}
        folders[:] = [f for f, place in real.items() if f not in inner and place != lake and place not in seen]
        seen.update(real[f] for f in folders)
        for name in sorted(names):
            where = os.path.join(here, name)
            if Path(where).is_file():  # no pipes, sockets and dead links
                yield InputFile(where, os.path.getsize(where))


def _refuse(error: OSError) -> None:
    raise UsageError(f"{error.filename} cannot be listed: {error.strerror}. Make it readable, or name its files.")


def _find_url(url: str) -> Iterator[InputFile]:
    try:
        yield from _find_remote(url)
    except LakeError:
        raise
    except Exception as error:  # each file system has its own
        raise UsageError(
            f"{url} cannot be looked at: {error}. Check the address, the network and your rights."
        ) from error


def _find_remote(url: str) -> Iterator[InputFile]:
    filesystem, path = _filesystem(url)
    protocol = url.split("://", 1)[0]

    def whole(name: str) -> str:
        return name if _is_url(name) else f"{protocol}://{name}"

    if protocol in ("http", "https"):
        yield InputFile(url, filesystem.info(path).get("size"), named=True)
    elif any(c in path for c in MAGIC):
        for name, info in sorted(filesystem.glob(path, detail=True).items()):
            if info["type"] == "file":
                yield InputFile(whole(name), info.get("size"))
    elif filesystem.isfile(path):
        yield InputFile(whole(path), filesystem.info(path).get("size"), named=True)
    else:
        for name, info in sorted(filesystem.find(path, detail=True).items()):
            if info["type"] == "file":
                yield InputFile(whole(name), info.get("size"))


def _filesystem(url: str) -> tuple[Any, str]:
    import fsspec

    try:
        return fsspec.core.url_to_fs(url)
    except ImportError as error:
        protocol = url.split("://", 1)[0]
        packages = {"s3": "s3fs", "hf": "huggingface_hub", "http": "aiohttp", "https": "aiohttp", "gs": "gcsfs"}
        raise MissingExtraError(packages.get(protocol, f"what reads {protocol}://"), "remote") from error
    except ValueError as error:
        raise UsageError(f"{url}: {error}. Pass a path, or a URL of a protocol that fsspec knows.") from error


def _first_root(paths: Sequence[str | os.PathLike[str]], files: Sequence[InputFile]) -> str:
    """Return the root of a source that lands for the first time: the folder given, or the deepest common one."""
    given = [str(p) for p in paths]
    if any(c in path for path in given for c in MAGIC):
        folders = [file.where.rsplit("/", 1)[0] for file in files]
    else:
        alone = {file.where for file in files if file.named}
        wholes = [path.rstrip("/") if _is_url(path) else _absolute(path) for path in given]
        folders = [whole.rsplit("/", 1)[0] if whole in alone else whole for whole in wholes]
    common = []
    for names in zip(*(folder.split("/") for folder in folders), strict=False):
        if len(set(names)) > 1:
            break
        common.append(names[0])
    return "/".join(common) or "/"


def _absolute(path: str | os.PathLike[str]) -> str:
    return os.path.abspath(os.path.expanduser(str(path)))


def _normal_root(root: str | os.PathLike[str]) -> str:
    """Return a root as it is recorded: an absolute path or a URL, without a slash at its end."""
    return str(root).rstrip("/") if _is_url(str(root)) else _absolute(root)


def _below(where: str, root: str) -> str | None:
    """Return a file's path below a root (`/`, NFC, no compression suffix), or None if it lies elsewhere.

    A byte of a name that is no UTF-8 is written `\\xe9`: paths are texts in the tables.
    """
    start = root.rstrip("/") + "/"
    if not where.startswith(start):
        return None
    text = os.fsencode(where[len(start) :]).decode("utf-8", "backslashreplace")
    return unicodedata.normalize("NFC", without_suffix(text))


def place_below_roots(
    files: Sequence[InputFile], given: str | os.PathLike[str] | None, recorded: Sequence[str],
    paths: Sequence[str | os.PathLike[str]], source: str,
) -> list[InputFile]:  # fmt: skip
    """Find the root of each file, and its path below it.

    Args:
        files: the files found.
        given: `--root`.
        recorded: roots of the source's earlier landings, the latest first.
        paths: as they were given; they tell the root of a source that lands for the first time.
        source: for the message.

    Returns:
        The files in the same order, with root and path.

    Raises:
        SourceError: a file lies outside every root.
    """
    roots = [_normal_root(given)] if given is not None else list(recorded) or [_first_root(paths, files)]
    placed = []
    for file in files:
        below = ((root, _below(file.where, root)) for root in roots)
        root, path = next(((r, p) for r, p in below if p is not None), (None, ""))
        if root is None:
            expected = "the place given with --root" if given is not None else f"where source {source!r} lay before"
            raise SourceError(
                f"{file.where} lies outside {', '.join(roots)}, {expected}. If the source has moved, "
                f"say where its root lies now with --root DIR; else land it under another --source."
            )
        # A URL that ends in a slash is its own root, with no path below it.
        placed.append(dataclasses.replace(file, root=root, path=path or file.where))
    return placed
