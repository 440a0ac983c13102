"""The zip file: named members, written with their digests and read with bounds.

Members are stored, not compressed: what is read is never larger than the file, and arrays can be
mapped into memory by other programs.
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from wend.base.errors import LoadError, explain
from wend.saving.fields import Fields, read_json, write_json

Target: TypeAlias = "str | os.PathLike[str] | BinaryIO"
MANIFEST = "manifest.json"
_NOT_SAVED = "give the file that wend.save has written."


class ArchiveWriter:
    """Collects the members of a file."""

    def __init__(self) -> None:
        self._members: dict[str, bytes] = {}

    def add(self, name: str, data: bytes) -> str:
        """Add a member; return its name."""
        self._members[name] = data
        return name

    def write(self, target: Target, manifest: Mapping[str, Any]) -> None:
        """Write the members, and the manifest with their digests."""
        digests = {name: digest(data) for name, data in self._members.items()}
        data = write_json({**manifest, "members": digests})
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for name, contents in ((MANIFEST, data), *self._members.items()):
                # ZipInfo has a fixed date: equal functions give equal files.
                archive.writestr(zipfile.ZipInfo(name), contents)
        write_whole(target, buffer.getvalue())


class ArchiveReader:
    """The members of a file.

    Args:
        source: the file.
        verify: whether members must have the digests that the manifest says.

    Attributes:
        manifest: the manifest.
        name: the name of the file, for messages.
    """

    def __init__(self, source: Target, *, verify: bool) -> None:
        data, self.name = read_whole(source)
        self._verify = verify
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
            infos = self._archive.infolist()
        except _ZIP_ERRORS as error:
            what = f"{self.name} cannot be read: {error}."
            raise LoadError(explain(what, cure=_NOT_SAVED)) from None
        self._infos = {info.filename: info for info in infos}
        self._check(infos, len(data))
        self.manifest = Fields(read_json(self._contents(MANIFEST), MANIFEST), MANIFEST)
        self._digests = self.manifest.get("members", dict)

    def _check(self, infos: list[zipfile.ZipInfo], size: int) -> None:
        """Check that no member is compressed, listed twice, or laid over another."""
        for info in infos:
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
                what = f"{self.name}: {info.filename!r:.60} is compressed."
                raise LoadError(explain(what, cure="pack the members as they are: zip -0."))
        total = sum(info.file_size for info in infos)
        if len(self._infos) < len(infos) or total > size:
            raise LoadError(f"{self.name}: members are listed twice, or lie over one another")

    def read(self, name: str) -> bytes:
        """Return the bytes of a member.

        Raises:
            LoadError: there is no such member, or it has another digest.
        """
        data = self._contents(name)
        if self._verify and self._digests.get(name) != digest(data):
            what = f"{self.name}: {name} is not as it was saved: it has another digest."
            cure = "load an edited file by wend.load(path, verify=False)."
            raise LoadError(explain(what, cure=cure))
        return data

    def _contents(self, name: str) -> bytes:
        if name not in self._infos:
            what = f"{self.name} has no member {name!r:.60}."
            raise LoadError(explain(what, cure=_NOT_SAVED))
        try:
            return self._archive.read(self._infos[name])
        except _ZIP_ERRORS as error:
            what = f"{self.name}: {name} cannot be read: {error}."
            raise LoadError(explain(what, cure="save it again.")) from None


# What `zipfile` raises for damaged files
_ZIP_ERRORS = (
    *(zipfile.BadZipFile, struct.error, EOFError, OSError, ValueError),
    *(RuntimeError, MemoryError, OverflowError),
)


def digest(data: bytes) -> str:
    """Return the SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def read_whole(source: Target) -> tuple[bytes, str]:
    """Return the bytes of a file, and its name for messages."""
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        return path.read_bytes(), path.name
    return source.read(), str(getattr(source, "name", "the file"))


def write_whole(target: Target, data: bytes) -> None:
    """Write a file whole or not at all: a crash leaves the one that was there."""
    if not isinstance(target, (str, os.PathLike)):
        target.write(data)
        return
    path = Path(target)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make the new name of a file survive a crash, where the system allows that."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
