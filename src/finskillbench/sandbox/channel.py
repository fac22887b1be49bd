"""What passes between the owner of a call and the child that serves it, through no third process's memory."""

import os
import tempfile


class Channel:
    """A file in memory that holds the payload and later the result, and a pipe for what the script prints.

    `descriptors` are what the child gets of it; `handed_over` once they are sent.
    """

    def __init__(self, payload: bytes) -> None:
        """OSError if the system refuses."""
        # Where no file can be had in memory, it is one without a name on the disk.
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
        """The memory file, and the end of the pipe to print to."""
        return self._memory_fd, self._printing_fd

    def handed_over(self) -> None:
        """Close what only the child needs, so that the pipe ends with it."""
        os.close(self._printing_fd)

    def read_printed(self, most: int) -> bool:
        """Keep the first `most` bytes of what the script prints, drop the rest; False while there is no more."""
        try:
            data = os.read(self.printed_fd, 1 << 16)
        except BlockingIOError:
            return False
        self.printed += data[: max(0, most - len(self.printed))]
        return bool(data)

    def body(self, most: int) -> bytes:
        """What the child has left, `most` bytes of it."""
        return os.pread(self._memory_fd, min(most, os.fstat(self._memory_fd).st_size), 0)

    def close(self) -> None:
        """Let go of everything."""
        os.close(self.printed_fd)
        os.close(self._memory_fd)


def _file_without_name(name: str) -> int:
    with tempfile.TemporaryFile(prefix=name) as file:
        return os.dup(file.fileno())
