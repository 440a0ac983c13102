"""Folders and files that only this user can have written: what is in them is executed."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

PART = ".part"  # the suffix of a file being written, or whose writer was killed
_HAS_DIR_FD = os.open in os.supports_dir_fd
# A link is not followed, and a pipe that nobody writes to does not block. Windows has neither.
_SAFELY = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"))
_BINARY = getattr(os, "O_BINARY", 0)
_numbers = itertools.count()


class PrivateFolder:
    """A folder of this user's, held open: files are found in it, whatever becomes of its path.

    Raises:
        OSError: there is no such folder, or others may write to it.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from wend.runtime.private_folder import PrivateFolder
        >>> with tempfile.TemporaryDirectory() as path, PrivateFolder(Path(path)) as folder:
        ...     folder.write("name", b"data")
        ...     folder.read("name", 100)
        b'data'
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = None
        if not _HAS_DIR_FD:
            _check_writer(path.stat(), path)
            return
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _check_writer(os.fstat(self._fd), path)
        except OSError:
            os.close(self._fd)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder."""
        if self._fd is not None:
            os.close(self._fd)

    def read(self, name: str, max_bytes: int, *, is_secret: bool = False) -> bytes:
        """Return the content of a file.

        Raises:
            OSError: there is no regular file of that name and at most that size that only this
                user may write, or read if it is secret.
        """
        path = self.path / name
        fd = os.open(self._at(name), os.O_RDONLY | _SAFELY | _BINARY, dir_fd=self._fd)
        with open(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(f"{path} is no regular file")
            _check_writer(status, path)
            if is_secret and os.name == "posix" and status.st_mode & 0o077:
                raise OSError(f"others may read {path}")
            if status.st_size > max_bytes:
                raise OSError(f"{path} is too large")
            return file.read(max_bytes)

    def touch(self, name: str) -> None:
        """Note that a file has been used, where that is possible."""
        with suppress(OSError):
            os.utime(self._at(name), dir_fd=self._fd)

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the names of what is in the folder, but for folders, and what is known of each."""
        with os.scandir(self.path if self._fd is None else self._fd) as files:
            for file in files:
                with suppress(OSError):
                    if not file.is_dir(follow_symlinks=False):
                        yield file.name, file.stat(follow_symlinks=False)

    def remove(self, name: str) -> None:
        """Remove a file.

        Raises:
            OSError: it cannot be removed.
        """
        os.unlink(self._at(name), dir_fd=self._fd)

    def write(self, name: str, data: bytes, *, replaces: bool = True) -> None:
        """Write a file of which a reader sees all or nothing.

        Args:
            name: its name.
            data: its content.
            replaces: whether it replaces a file of that name, which otherwise stays.

        Raises:
            OSError: it cannot be written.
        """
        part = self._at(f"{name}.{os.getpid()}-{next(_numbers)}{PART}")
        fd = os.open(
            part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY | _BINARY, 0o600, dir_fd=self._fd
        )
        try:
            with open(fd, "wb") as file:
                file.write(data)
            if replaces:
                os.replace(part, self._at(name), src_dir_fd=self._fd, dst_dir_fd=self._fd)
                return
            with suppress(FileExistsError):
                os.link(part, self._at(name), src_dir_fd=self._fd, dst_dir_fd=self._fd)
        finally:
            with suppress(OSError):
                os.unlink(part, dir_fd=self._fd)

    def _at(self, name: str) -> str:
        return str(self.path / name) if self._fd is None else name


def _check_writer(status: os.stat_result, path: Path) -> None:
    """Raise an error if someone else may have written a file, or the files of a folder."""
    if os.name == "posix" and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise PermissionError(f"others may write to {path}")
