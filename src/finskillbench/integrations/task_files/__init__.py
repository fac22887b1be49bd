"""Episodes handed out as folders, for agents that read and write files, and the answers that come back in them."""

from enum import StrEnum


class Layout(StrEnum):
    """The shape of a folder: a plain one, or a task as Harbor reads it."""

    FOLDERS = "folders"
    HARBOR = "harbor"
