"""Export episodes as folders for agents that read and write files, and import their answers."""

from enum import StrEnum


class Layout(StrEnum):
    """Layout of a task folder: plain, or a task of Harbor."""

    FOLDERS = "folders"
    HARBOR = "harbor"
