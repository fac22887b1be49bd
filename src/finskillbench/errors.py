"""Exception hierarchy, by cause.

A message is one line that names the file, row or field and the remedy. The command line prints it and exits with 2.
`InternalError` alone marks a defect of this package.
"""

from collections.abc import Sequence
from enum import StrEnum


class FinSkillBenchError(Exception):
    """Base of all deliberate errors; picklable across processes."""

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[FinSkillBenchError], args: tuple[object, ...], state: dict[str, object]) -> FinSkillBenchError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class SourceError(FinSkillBenchError):
    """Invalid raw data, with the file and, if known, the line; `problem` is the message without both."""

    def __init__(self, file: object, problem: str, *, line: int | None = None, remedy: str = "") -> None:
        where = f"{file}" if line is None else f"{file}, line {line}"
        self.file, self.line, self.problem = file, line, problem + (f"; {remedy}" if remedy else "")
        super().__init__(f"{where}: {self.problem}")


class InputError(FinSkillBenchError):
    """Invalid user input: an argument, a path, or a field of a file."""


class DownloadError(FinSkillBenchError):
    """A failed download; the message names the address without keys, the response, and the remedy.

    `permanent` means that all further requests to this source will fail, so none is made.
    """

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


class CatalogError(InputError):
    """All mistakes found in a user's own catalog, one line each."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = tuple(mistakes)


class EditionError(FinSkillBenchError):
    """An incomplete or altered edition."""


class DimensionError(InputError):
    """Arrays with mismatched shapes."""


class SkillError(FinSkillBenchError):
    """A skill package, or one of its files or scripts, cannot be used."""


class Cause(StrEnum):
    """Cause of a failed model call; `finskillbench.harness.failures` defines the reaction to each."""

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
    """A failed call to a model provider.

    `retry_after` is the wait requested in seconds, `seconds` the call's duration without earlier waits (set by the
    caller).
    """

    def __init__(self, message: str, cause: Cause, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.retry_after = retry_after
        self.seconds: float | None = None


class RunStoppedError(FinSkillBenchError):
    """The run makes no further model calls (budget spent or interrupted); resuming repeats the episode."""


class InternalError(FinSkillBenchError):
    """A violated invariant of this package; please report it."""
