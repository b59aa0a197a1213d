"""Releases and tags: small JSON files below `refs/` that name exact versions of tables.

A release is made whole or not at all: its file is written aside, fsynced and linked to its number, which fails when
the number is taken. So of several publishers one wins, a kill leaves no half a file, and nothing is ever rewritten.
Object stores do the same with a conditional put.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lake.errors import ConflictError, InternalError, NotFoundError, UsageError
from lake.files import write_if_absent, write_whole
from lake.identity import H

if TYPE_CHECKING:
    from lake.storage.table import Snapshot

TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
CONDITIONAL = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory")


@dataclass(frozen=True)
class TableVersion:
    """One table of a release.

    Attributes:
        version: Delta version.
        rows: number of rows.
        digest: sums modulo 2^64 of the first and second halves of the rows' hashes, 32 hex digits.
        contract_version: version of the contract that it was audited under.
    """

    version: int
    rows: int
    digest: str
    contract_version: str


@dataclass(frozen=True)
class MemoVersion:
    """A kernel's memo as a release used it."""

    fingerprint: str
    version: int | None


@dataclass(frozen=True)
class Release:
    """An immutable, audited set of table versions.

    Attributes:
        number: 1, 2, ...
        parent: the release it was built on, or None.
        tables: by name, such as `examples`.
        raw_pins: Delta version of each raw table it was built from; None where nothing had landed.
        memos: by kernel.
        git_commit: of the project, None outside a repository.
        project_digest: of models, macros, tests, contracts, seeds and kernels.
        created_at: ISO 8601, UTC.
        home: the lake it lies in.
    """

    number: int
    parent: int | None
    tables: Mapping[str, TableVersion]
    raw_pins: Mapping[str, int | None]
    memos: Mapping[str, MemoVersion]
    git_commit: str | None
    project_digest: str
    created_at: str
    home: str = field(default="", compare=False, repr=False)

    def table(self, name: str) -> TableVersion:
        """Return a table's version.

        Raises:
            NotFoundError: the release has no such table; the message lists those that it has.
        """
        if name not in self.tables:
            raise NotFoundError(
                f"release {self.number} has no table {name!r}; it has {', '.join(sorted(self.tables))}."
            )
        return self.tables[name]

    def uri(self, name: str) -> str:
        """Return where a published table lies."""
        return f"{self.home.rstrip('/')}/tables/{name}"

    def snapshot(self, name: str) -> Snapshot:
        """Return the version of a table that the release names: its files and schema.

        Raises:
            NotFoundError: the release has no such table.
            InternalError: the table's folder is gone.
        """
        from lake.storage.table import snapshot

        version = self.table(name).version
        state = snapshot(self.uri(name), version)
        if state is None:
            raise InternalError(
                f"release {self.number} names {name} version {version}, and {self.uri(name)} is not there. "
                "Bring it back from a backup."
            )
        return state

    def as_json(self) -> dict[str, Any]:
        """Return the release as its file holds it."""
        return {k: v for k, v in asdict(self).items() if k != "home"}


@dataclass(frozen=True)
class Lineage:
    """Code that is known to make a release's rows, so that a build by the same code may take them over.

    A release may have several: a branch that builds equal rows by other code adds its own. It is a note and no part of
    the release: without it the next build makes all rows anew.

    Attributes:
        tables: hashes of the code of each extended model, by kind of record.
        audits: hash of what each table was audited by.
        memos: Delta's id of each kernel's memo, empty where it has none: one that was deleted and filled anew may lack
            results.
        project_digest: of a project with this code that built the release's rows last.
        raw_pins: Delta versions of the raw tables that it built them from.
    """

    tables: Mapping[str, Mapping[str, str]]
    audits: Mapping[str, str]
    memos: Mapping[str, str]
    project_digest: str
    raw_pins: Mapping[str, int | None]


class Refs:
    """The releases and tags of one lake.

    Args:
        home: the lake's folder or URL.
    """

    def __init__(self, home: str) -> None:
        self.home = home
        # Two ways to create exactly once: a hard link on file systems, a conditional put on object stores.
        self.store: Folder | Bucket = Bucket(f"{home}/refs") if "://" in home else Folder(Path(home) / "refs")

    def numbers(self) -> list[int]:
        """Return the releases' numbers, ascending."""
        return sorted(int(n[:-5]) for n in self.store.names("releases") if re.fullmatch(r"\d{6,}\.json", n))

    def load(self, number: int) -> Release:
        """Read a release.

        Raises:
            NotFoundError: there is none of that number.
            InternalError: its file cannot be read.
        """
        name = f"releases/{number:06d}.json"
        with self._readable(name, f"no release {number}; there are {self.numbers() or 'none'}."):
            raw = json.loads(self.store.read(name))
            raw["tables"] = {k: TableVersion(**v) for k, v in raw["tables"].items()}
            raw["memos"] = {k: MemoVersion(**v) for k, v in raw["memos"].items()}
            return Release(**raw, home=self.home)

    def last(self) -> Release | None:
        """Return the newest release, or None before the first."""
        numbers = self.numbers()
        return self.load(numbers[-1]) if numbers else None

    def all(self) -> list[Release]:
        """Return every release, the oldest first."""
        return [self.load(number) for number in self.numbers()]

    def find(self, ref: str | int | None = None) -> Release:
        """Return the release of a number or tag; None means the last.

        Raises:
            NotFoundError: there is none.
        """
        if ref is None:
            last = self.last()
            if last is None:
                raise NotFoundError(f"{self.home} has no release yet. Run `lake build`.")
            return last
        if str(ref).isdecimal():
            return self.load(int(ref))
        return self.load(self.tag(str(ref)))

    def add(self, release: Release) -> None:
        """Write a new release.

        Raises:
            ConflictError: its number is taken.
        """
        data = json.dumps(release.as_json(), indent=2, sort_keys=True).encode() + b"\n"
        if not self.store.put_new(f"releases/{release.number:06d}.json", data):
            raise ConflictError(
                f"release {release.number} was published by somebody else on the same parent "
                f"({release.parent or 'none'}). Nothing of yours is visible. Run `lake build --rebase`."
            )

    def remove(self, number: int) -> None:
        """Delete a release's file, and the lineages noted of it."""
        self.store.delete(f"releases/{number:06d}.json")
        for name in self._lineages(number):
            self.store.delete(name)

    def lineages(self, number: int) -> list[Lineage]:
        """Return the codes that are known to make a release's rows.

        Raises:
            InternalError: a file cannot be read.
        """
        found = []
        for name in self._lineages(number):
            with self._readable(name, f"{name} is gone."):
                found.append(Lineage(**json.loads(self.store.read(name))))
        return found

    def add_lineage(self, number: int, lineage: Lineage) -> None:
        """Note that some code makes the rows of a release; the same code's older note is replaced."""
        code = json.dumps([lineage.tables, lineage.audits, lineage.memos], sort_keys=True)
        data = json.dumps(asdict(lineage), indent=2, sort_keys=True).encode() + b"\n"
        self.store.put(f"lineages/{number:06d}-{H(code)}.json", data)

    def _lineages(self, number: int) -> list[str]:
        return [f"lineages/{n}" for n in self.store.names("lineages") if n.startswith(f"{number:06d}-")]

    def clear_drafts(self, min_age_hours: float) -> None:
        """Delete what writers that died left behind."""
        if isinstance(self.store, Folder):
            self.store.clear_drafts(min_age_hours)

    def tags(self) -> dict[str, int]:
        """Return the tags and the numbers of their releases."""
        return {n[:-5]: self.tag(n[:-5]) for n in self.store.names("tags") if n.endswith(".json") and TAG.fullmatch(n)}

    def tag(self, name: str) -> int:
        """Return the number that a tag names.

        Raises:
            NotFoundError: no such tag.
        """
        path = f"tags/{check_tag(name)}.json"
        with self._readable(path, f"no release or tag {name!r}. `lake releases` lists them."):
            return int(json.loads(self.store.read(path))["release"])

    def check_free(self, name: str, number: int) -> None:
        """Refuse a tag that names another release already.

        Args:
            name: of the tag.
            number: of the release that it is to name.

        Raises:
            UsageError: it does, or the name is not allowed.
        """
        if f"{check_tag(name)}.json" in self.store.names("tags") and (named := self.tag(name)) != number:
            raise UsageError(
                f"tag {name} names release {named} already, and tags do not move. Choose another name, or pass --force."
            )

    def add_tag(self, name: str, number: int, force: bool = False) -> None:
        """Give a release a name.

        Args:
            name: letters, digits, `.`, `_`, `-`; not a number.
            number: an existing release.
            force: move a tag that names another release.

        Raises:
            UsageError: the name is not allowed, or the tag names another release.
        """
        path = f"tags/{check_tag(name)}.json"
        self.load(number)
        data = json.dumps({"release": number}).encode() + b"\n"
        if not self.store.put_new(path, data):
            if not force:
                self.check_free(name, number)
            self.store.put(path, data)

    @contextmanager
    def _readable(self, name: str, absent: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise NotFoundError(absent) from error
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InternalError(
                f"{self.home}/refs/{name} cannot be read ({error}); expected the JSON that `lake publish` wrote. "
                "Bring it back from a backup."
            ) from error


def check_tag(name: str) -> str:
    """Return a tag's name if it is allowed.

    Raises:
        UsageError: it is not, or it is a number, which would hide a release's own.
    """
    if not TAG.fullmatch(name) or name.isdecimal():
        raise UsageError(
            f"tag {name!r} is not allowed; expected up to 100 letters, digits, '.', '_' or '-', beginning with a "
            "letter or digit, and not a number. Choose another name."
        )
    return name


class Folder:
    """Refs on a local or mounted file system."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self, folder: str) -> list[str]:
        """List a folder."""
        place = self.root / folder
        return sorted(p.name for p in place.iterdir()) if place.is_dir() else []

    def read(self, name: str) -> bytes:
        """Read a file."""
        return (self.root / name).read_bytes()

    def put_new(self, name: str, data: bytes) -> bool:
        """Write a file whole unless it is there.

        Args:
            name: path below the root, such as `releases/000001.json`.
            data: content.

        Returns:
            Whether it was written.
        """
        return write_if_absent(self._path(name), data)

    def put(self, name: str, data: bytes) -> None:
        """Write a file whole, in place of an older one.

        Args:
            name: path below the root.
            data: content.
        """
        write_whole(self._path(name), data)

    def delete(self, name: str) -> None:
        """Delete a file; one that is gone already is no error."""
        (self.root / name).unlink(missing_ok=True)

    def clear_drafts(self, min_age_hours: float) -> None:
        """Delete drafts of writers that died, once they are old."""
        for draft in self.root.glob("*/.*.draft"):
            with suppress(FileNotFoundError):
                if time.time() - draft.stat().st_mtime > min_age_hours * 3600:
                    draft.unlink()

    def _path(self, name: str) -> Path:
        """Return a file's path; its folder is there."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


class Bucket:
    """Refs on an object store, by fsspec's conditional put."""

    def __init__(self, url: str) -> None:
        import fsspec

        protocol = url.split("://")[0]
        if protocol not in CONDITIONAL:
            raise UsageError(
                f"{protocol}:// has no conditional put that we know of, so two publishers could overwrite each other; "
                f"expected one of {', '.join(CONDITIONAL)}. Keep LAKE_HOME on one of these or on a file system."
            )
        try:
            # No listings cache: a release that somebody has just published must be seen.
            self.files, self.root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        except ImportError as error:
            raise UsageError(f"{url} needs a package of its own: {error}") from error

    def names(self, folder: str) -> list[str]:
        """List a folder."""
        try:
            return sorted(p.rsplit("/", 1)[-1] for p in self.files.ls(f"{self.root}/{folder}", detail=False))
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes:
        """Read an object."""
        return bytes(self.files.cat_file(f"{self.root}/{name}"))

    def put_new(self, name: str, data: bytes) -> bool:
        """Write an object unless it is there.

        Args:
            name: key below the root, such as `releases/000001.json`.
            data: content.

        Returns:
            Whether it was written.
        """
        try:
            self.files.pipe_file(f"{self.root}/{name}", data, mode="create")
        except FileExistsError:
            return False
        return True

    def put(self, name: str, data: bytes) -> None:
        """Write an object in place of an older one.

        Args:
            name: key below the root.
            data: content.
        """
        self.files.pipe_file(f"{self.root}/{name}", data)

    def delete(self, name: str) -> None:
        """Delete an object."""
        self.files.rm_file(f"{self.root}/{name}")
