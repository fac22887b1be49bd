"""The skills that an agent writes: SKILL.md files in the episode's scratch space.

The space is a folder that only this user may enter, made when the first skill is saved. Only what was saved here
counts, and no link is followed: a file that somebody put into the folder, or put in a skill's place, is not a skill.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from finskillbench.errors import SkillError
from finskillbench.harness.skills.loader import SKILL_FILE


class OwnSkills:
    """The own skills of one episode, starting with those `remembered` from earlier ones (name to text).

    `scratch_root` is the folder under which the scratch space is made; None: the system's.
    """

    def __init__(self, scratch_root: Path | None, remembered: Mapping[str, str]) -> None:
        self._scratch_root = scratch_root
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._names: set[str] = set()
        for name, text in remembered.items():
            self.save(name, text)

    @property
    def names(self) -> list[str]:
        """Names of what was saved, sorted."""
        return sorted(self._names)

    @property
    def texts(self) -> dict[str, str]:
        """Text of every skill by name; ask before `close`."""
        return {name: self.read(name) for name in self.names}

    def read(self, name: str) -> str:
        """The text saved under `name`; raise `SkillError` where it is no longer the file that was saved."""
        with open(self._open(name, os.O_RDONLY), "rb") as file:  # noqa: PTH123  # opens a descriptor
            return file.read().decode()

    def save(self, name: str, text: str) -> None:
        """Write a skill or replace it; `name` and `text` keep the rules of `finskillbench.harness.skills.memory`."""
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(
                prefix="skills-", dir=self._scratch_root, ignore_cleanup_errors=True
            )
        if name not in self._names:
            (Path(self._scratch.name) / name).mkdir(mode=0o700)
        with open(self._open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:  # noqa: PTH123  # as above
            file.write(text.encode())
        self._names.add(name)

    def close(self) -> None:
        """Remove the scratch space, if one was made."""
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    def _open(self, name: str, flags: int) -> int:
        """Descriptor of a skill's file; neither it nor its folder may be a link, nor it a pipe or a device."""
        assert self._scratch is not None
        try:
            folder = os.open(Path(self._scratch.name) / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                file = os.open(SKILL_FILE, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise SkillError(f"skill {name!r} is not the file it should be: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise SkillError(f"skill {name!r} is not the file it should be: no ordinary file")
        return file
