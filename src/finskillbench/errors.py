"""The error tree: each branch says whose fault it is.

A message is one line that names the file, row or field and the mend. The command line prints it and exits with 2;
only `InternalError` is ours to explain.
"""


class FinSkillBenchError(Exception):
    """Root of every error this package raises on purpose."""


class SourceError(FinSkillBenchError):
    """Raw data that cannot be trusted: names the file and, where there is one, the line."""

    def __init__(self, file: object, problem: str, *, line: int | None = None, mend: str = "") -> None:
        where = f"{file}" if line is None else f"{file}, line {line}"
        super().__init__(f"{where}: {problem}" + (f"; {mend}" if mend else ""))


class InputError(FinSkillBenchError):
    """The user's input is wrong: an argument, a path, a field of a file they wrote."""


class EditionError(FinSkillBenchError):
    """An edition on disk is incomplete or altered."""


class DimensionError(InputError):
    """Arrays whose shapes disagree."""


class SkillError(FinSkillBenchError):
    """A skill package, one of its files or one of its scripts cannot be used."""


class ProviderError(FinSkillBenchError):
    """A model provider failed; `transient` says whether another try may succeed."""

    def __init__(self, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.transient = transient


class InternalError(FinSkillBenchError):
    """A promise of this package was broken: please report it."""
