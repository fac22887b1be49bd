"""Data channel between the caller and the child, which no third process reads."""

import os
import tempfile


class Channel:
    """A memory file for payload and result, and a pipe for printed output.

    `descriptors` go to the child; call `close_child_ends` once they are sent.
    """

    def __init__(self, payload: bytes) -> None:
        """Raise OSError if the system refuses."""
        # Without memfd, use an unnamed file on disk.
        memory = getattr(os, "memfd_create", _file_without_name)
        self.printed = bytearray()
        self._memory_fd: int = memory("call")
        try:
            os.write(self._memory_fd, payload)
            self.printed_fd, self._printing_fd = os.pipe()
        except OSError:
            os.close(self._memory_fd)
            raise
        os.set_blocking(self.printed_fd, False)

    @property
    def descriptors(self) -> tuple[int, int]:
        return self._memory_fd, self._printing_fd

    def close_child_ends(self) -> None:
        """Close the child's ends, so that the pipe closes with the child."""
        os.close(self._printing_fd)

    def read_printed(self, most: int) -> bool:
        """Read printed output, keeping the first `most` bytes; False if nothing was read."""
        try:
            data = os.read(self.printed_fd, 1 << 16)
        except BlockingIOError:
            return False
        self.printed += data[: max(0, most - len(self.printed))]
        return bool(data)

    def body(self, most: int) -> bytes:
        return os.pread(self._memory_fd, min(most, os.fstat(self._memory_fd).st_size), 0)

    def close(self) -> None:
        os.close(self.printed_fd)
        os.close(self._memory_fd)


def _file_without_name(name: str) -> int:
    with tempfile.TemporaryFile(prefix=name) as file:
        return os.dup(file.fileno())
