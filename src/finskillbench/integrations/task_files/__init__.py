"""Export episodes as folders for agents, or as pages for people, and import their answers."""

from enum import StrEnum

ANSWER = "answer.json"
"""Answer of an agent, in its working directory."""
IMAGE = "python:3.13.1-slim-bookworm"
"""Python image of Harbor tasks, as in our Dockerfile."""


class Layout(StrEnum):
    """Layout of an export: plain folders, tasks of Harbor, or pages for people."""

    FOLDERS = "folders"
    HARBOR = "harbor"
    HUMAN = "human"
