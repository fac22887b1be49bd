"""Where Hermes keeps the id of the call that is served."""

from contextvars import ContextVar

_approval_tool_call_id: ContextVar[str] = ContextVar("tool_call_id", default="")
