"""The template of a raw collection: a small file of every format, with the formats in words beside them."""

from __future__ import annotations

import shutil
from pathlib import Path

from finskillbench.errors import InputError
from finskillbench.sources.raw.formats import TEMPLATE, documentation

README = "README.md"
_ABOUT = """# A collection of raw files

Small files of every format, of two fictional companies: too few to be built. Put your own in their place,
`finskillbench data doctor DIR` says what is missing or wrong, `finskillbench data build --source raw-dir --raw-dir DIR
--out EDITION` builds. What only one half of the benchmark needs may be absent; the other half is built.

"""


def write_template(out: Path) -> list[str]:
    """Copy the template into a new folder; the names of its files.

    Raises
    ------
    InputError : the folder is there and is not empty, or cannot be written.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: exists and is not an empty folder; name a new one")
    try:
        shutil.copytree(TEMPLATE, out, dirs_exist_ok=True)
        (out / README).write_text(_ABOUT + documentation(), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror}); choose another place") from error
    return sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
