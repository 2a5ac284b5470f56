"""A directory as resources, which can't be left.

A path leads to a resource when, links resolved, it is a regular file below the
directory, no larger than the limit, and no part of it begins with a dot unless
hidden files are asked for. Everything else is not found.
"""

import logging
import os
import re
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, Literal

from mcpkit.context import Context
from mcpkit.errors import SetupError
from mcpkit.files import OPEN_FLAGS, absent, contents_of, regular_file
from mcpkit.protocol.content import File
from mcpkit.protocol.results import MAX_COMPLETIONS, Result

MAX_FILE: Final = 10 * 1024 * 1024
"""How large a file may be unless the developer says otherwise, in bytes."""

MAX_LISTED: Final = 1000
"""How many files may be listed one by one."""

_MAX_SCANNED: Final = 10_000
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_SEPARATORS: Final = frozenset("/\\\0")

_logger: Final = logging.getLogger("mcpkit")


class Directory:
    """The files of a directory.

    Args:
        path: Where it is.
        hidden: Files and folders that begin with a dot are read too.
        max_size: How large a file may be, in bytes.
        mime_type: The type of all files; by default it is guessed by the name.

    Raises:
        SetupError: There is no directory at the path, or the limit is none.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        hidden: bool = False,
        max_size: int,
        mime_type: str | None = None,
    ) -> None:
        if max_size < 1:
            raise SetupError(f"max_size is one or more, not {max_size!r}")
        try:
            self.root = Path(path).resolve(strict=True)
        except OSError as error:
            raise SetupError(f"there is no directory {os.fspath(path)!r}") from error
        if not self.root.is_dir():
            raise SetupError(f"{os.fspath(path)!r} is no directory")
        self._hidden = hidden
        self._max_size = max_size
        self._mime_type = mime_type

    def read(self, path: str, ctx: Context) -> File | None:
        """Return the contents of a file, or `None` when there is none."""
        found = self._find(path)
        if found is None:
            return None
        try:
            with self._open(found[0]) as file:
                data = file.read(self._max_size + 1)
        except FileNotFoundError:
            return None
        if len(data) > self._max_size:
            _logger.warning("%s is larger than max_size and is not served", found[0])
            return None
        text, mime_type = contents_of(data, path, self._mime_type)
        return File(ctx.params["uri"], text, mime_type)

    def complete(self, value: str) -> Result:
        """Return the files and folders that what was typed may become.

        A folder ends in a slash, so that what is in it can be asked for next.
        """
        folder, slash, start = value.rpartition("/")
        if slash and not folder:
            return Result.completion([])
        # One more than may be sent tells that there are more.
        values = list(islice(self._names(folder, start), MAX_COMPLETIONS + 1))
        more = len(values) > MAX_COMPLETIONS or None
        return Result.completion(values[:MAX_COMPLETIONS], has_more=more)

    def files(self) -> list[str]:
        """Return the paths of all files, in order. Linked folders are not entered.

        Raises:
            SetupError: They are too many to be listed.
        """
        found = list(islice(self._walk(""), MAX_LISTED + 1))
        if len(found) > MAX_LISTED:
            raise SetupError(
                f"there are more than {MAX_LISTED} files in {str(self.root)!r}; leave "
                "out list_files"
            )
        return found

    def size(self, path: str) -> int:
        """Return the size of a file."""
        return self.root.joinpath(path).stat().st_size

    def _walk(self, folder: str) -> Iterator[str]:
        for path in self._names(folder):
            if not path.endswith("/"):
                yield path
            elif not self.root.joinpath(path).is_symlink():
                yield from self._walk(path.removesuffix("/"))

    def _names(self, folder: str, start: str = "") -> Iterator[str]:
        """Yield what is in a folder, in order: files, and folders with a slash."""
        found = self._find(folder)
        if found is None:
            return
        try:
            with os.scandir(found[0]) as entries:
                names = [entry.name for entry in islice(entries, _MAX_SCANNED)]
        # It is a file, or a folder that is not ours to read.
        except OSError:
            return
        for name in sorted(names):
            path = f"{folder}/{name}" if folder else name
            if name.startswith(start) and (kind := self._kind(path)) is not None:
                yield f"{path}/" if kind == "folder" else path

    def _kind(self, path: str) -> Literal["file", "folder"] | None:
        found = self._find(path)
        if found is None:
            return None
        status = found[1]
        if stat.S_ISDIR(status.st_mode):
            return "folder"
        fits = stat.S_ISREG(status.st_mode) and status.st_size <= self._max_size
        return "file" if fits else None

    def _find(self, path: str) -> tuple[Path, os.stat_result] | None:
        """Return where a path leads, links resolved, if that is below the root."""
        parts = path.split("/") if path else []
        if not all(map(self._is_seen, parts)) or _DRIVE.match(path):
            return None
        try:
            found = self.root.joinpath(*parts).resolve(strict=True)
            status = found.stat()
        # Older Pythons raise a RuntimeError for links that lead in a circle.
        except (OSError, RuntimeError):
            return None
        if not found.is_relative_to(self.root):
            return None
        within = found.relative_to(self.root).parts
        return (found, status) if all(map(self._is_seen, within)) else None

    def _is_seen(self, name: str) -> bool:
        if not name or not _SEPARATORS.isdisjoint(name) or not _is_unicode(name):
            return False
        return name not in (".", "..") and (self._hidden or not name.startswith("."))

    def _open(self, found: Path) -> BinaryIO:
        """Open a file that was found, although it may have been replaced since.

        Raises:
            FileNotFoundError: It is no regular file, or a link took the place of
                a part of its path.
            OSError: It can't be read.
        """
        try:
            if os.open not in os.supports_dir_fd:
                return regular_file(os.open(found, OPEN_FLAGS))
            descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
            for part in found.relative_to(self.root).parts:
                outer = descriptor
                try:
                    descriptor = os.open(part, OPEN_FLAGS | os.O_NOFOLLOW, dir_fd=outer)
                finally:
                    os.close(outer)
            return regular_file(descriptor)
        except OSError as error:
            raise absent(error) from error


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    # Bytes that are no text in the encoding of the file system.
    except UnicodeEncodeError:
        return False
    return True
