"""Export episodes as folders for agents that read and write files, and import their answers."""

from enum import StrEnum

ANSWER = "answer.json"
"""Answer of an agent, in its working directory."""
IMAGE = "python:3.13.1-slim-bookworm"
"""Python image of Harbor tasks, as in our Dockerfile."""


class Layout(StrEnum):
    """Layout of a task folder: plain, or a task of Harbor."""

    FOLDERS = "folders"
    HARBOR = "harbor"
