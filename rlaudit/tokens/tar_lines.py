"""The JSON lines of an archive's files, one after the other: what is packed as tar is read as one file.

Nothing is unpacked onto the disk, and no name within the archive is used but for its ending.
"""

import io
import tarfile
from typing import IO, Any

LINES = (".jsonl", ".json", ".ndjson")
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.zst")


class TarLines(io.RawIOBase):
    """Bytes of all members that are called like JSON lines, each ending with the end of a line.

    Raises tarfile.TarError, or what reading the archive raises.
    """

    def __init__(self, packed: Any) -> None:
        # What cannot be opened is closed all the same, when it is collected.
        self._packed = packed
        self._archive: Any = None
        self._archive = tarfile.open(fileobj=packed, mode="r|")  # noqa: SIM115 - closed with this
        self._member: IO[bytes] | None = None
        self._line_ended = True

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As many bytes as there are at once."""
        while True:
            if self._member is None and not self._next():
                return 0
            assert self._member is not None
            data = self._member.read(len(buffer))
            if data:
                self._line_ended = data.endswith(b"\n")
            elif self._line_ended:
                self._member = None
                continue
            else:
                data, self._line_ended = b"\n", True
            buffer[: len(data)] = data
            return len(data)

    def close(self) -> None:
        """The archive as well."""
        if not self.closed:
            if self._archive is not None:
                self._archive.close()
            self._packed.close()
        super().close()

    def _next(self) -> bool:
        """Go on to the next member that holds lines; whether there is one."""
        while (member := self._archive.next()) is not None:
            # What is read already would be kept for as long as the archive is open.
            self._archive.members = []
            if member.isfile() and member.name.endswith(LINES):
                self._member = self._archive.extractfile(member)
                return True
        return False
