"""Reads single files out of a wheel on an index, without fetching the wheel.

A wheel is a zip file: its list of files stands at its end, and each file can be had with one HTTP range request. Of
a wheel of 400 MB that is a few hundred kB.
"""

import io
import zipfile
from typing import Any

from rlaudit.engines.environments.package_index import open_address
from rlaudit.errors import NotFinished

# The list of files of vLLM's wheels takes 250 to 600 kB; what is read after it, one file's worth.
_BYTES_AT_A_TIME = 1 << 18


def open_wheel(url: str, certificates: str | None = None) -> zipfile.ZipFile:
    """The wheel at an address, to be read in parts. Raises NotFinished when the index does not serve parts."""
    try:
        return zipfile.ZipFile(io.BufferedReader(_RemoteFile(url, certificates), _BYTES_AT_A_TIME))
    except (OSError, zipfile.BadZipFile) as error:
        raise NotFinished(f"{url} could not be read: {error}") from None


class _RemoteFile(io.RawIOBase):
    """A file behind HTTP range requests: each read is one request."""

    def __init__(self, url: str, certificates: str | None) -> None:
        super().__init__()
        self.url = url
        self.certificates = certificates
        self.position = 0
        with self._request(0, 1) as answer:
            if answer.status != 206:
                raise NotFinished(f"{url} is served whole only (status {answer.status}), not in parts")
            self.size = int(answer.headers["Content-Range"].rpartition("/")[2])

    def seekable(self) -> bool:
        """Always."""
        return True

    def readable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is requested until something is read."""
        self.position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size}[whence]
        return self.position

    def readinto(self, buffer: Any) -> int:
        """Read as much as fits, up to the end of the file."""
        count = min(len(buffer), self.size - self.position)
        if count <= 0:
            return 0
        with self._request(self.position, count) as answer:
            part = answer.read()
        buffer[: len(part)] = part
        self.position += len(part)
        return len(part)

    def _request(self, start: int, count: int) -> Any:
        return open_address(self.url, self.certificates, {"Range": f"bytes={start}-{start + count - 1}"})
