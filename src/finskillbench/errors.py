"""The error tree: each branch says whose fault it is.

A message is one line that names the file, row or field and the remedy. The command line prints it and exits with 2;
only `InternalError` is ours to explain.
"""

from collections.abc import Sequence
from enum import StrEnum


class FinSkillBenchError(Exception):
    """Root of every error this package raises on purpose; it can be sent from one process to another."""

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[FinSkillBenchError], args: tuple[object, ...], state: dict[str, object]) -> FinSkillBenchError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class SourceError(FinSkillBenchError):
    """Raw data that cannot be trusted: names the file and, where there is one, the line; `told` is the rest."""

    def __init__(self, file: object, problem: str, *, line: int | None = None, remedy: str = "") -> None:
        where = f"{file}" if line is None else f"{file}, line {line}"
        self.file, self.line, self.told = file, line, problem + (f"; {remedy}" if remedy else "")
        super().__init__(f"{where}: {self.told}")


class InputError(FinSkillBenchError):
    """The user's input is wrong: an argument, a path, a field of a file they wrote."""


class DownloadError(FinSkillBenchError):
    """A public source did not give what it was asked for: names the address without keys, what came, and the remedy.

    `hopeless` says that the source will refuse every other request too, so that none is made.
    """

    def __init__(self, message: str, *, hopeless: bool = False) -> None:
        super().__init__(message)
        self.hopeless = hopeless


class CatalogError(InputError):
    """Mistakes in the files of a user's own catalog, all that were found, each in one line of its own."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = tuple(mistakes)


class EditionError(FinSkillBenchError):
    """An edition on disk is incomplete or altered."""


class DimensionError(InputError):
    """Arrays whose shapes disagree."""


class SkillError(FinSkillBenchError):
    """A skill package, one of its files or one of its scripts cannot be used."""


class Cause(StrEnum):
    """Why a model call failed; what follows from each is told in `finskillbench.harness.failures`."""

    RATE_LIMIT = "rate_limit"
    SERVER = "server_error"
    CONNECTION = "connection"
    TIMEOUT = "timeout"
    DROPPED = "dropped_stream"
    MALFORMED = "malformed_body"
    EMPTY = "empty_choices"
    BAD_REQUEST = "bad_request"
    AUTH = "auth"
    QUOTA = "quota"
    UNKNOWN_MODEL = "unknown_model"
    ADAPTER = "adapter"
    NOT_STARTED = "not_started"


class ProviderError(FinSkillBenchError):
    """A model provider failed.

    `retry_after` is the wait in seconds that the provider asked for, None where it asked for none. `seconds` is what
    the failed call took, set by whoever knows that apart from what it had waited for before.
    """

    def __init__(self, message: str, cause: Cause, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.retry_after = retry_after
        self.seconds: float | None = None


class RunStoppedError(FinSkillBenchError):
    """The run takes no further model call (budget spent, interrupted): its episode is dropped and run on resume."""


class InternalError(FinSkillBenchError):
    """A promise of this package was broken: please report it."""
