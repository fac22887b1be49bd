"""What every page that is written from templates shares: escaping, control characters, digests for its policy."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from finskillbench.runs.afterwards.show import printable


@cache
def environment(folder: Path) -> Environment:
    """Templates of a folder: all is escaped that is not marked as safe, and control characters are made plain."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )


def source_digest(text: str) -> str:
    """How a content security policy names a style or a script that stands in the page."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _shown(value: object) -> object:
    return value if isinstance(value, Markup) or not isinstance(value, str) else printable(value)
