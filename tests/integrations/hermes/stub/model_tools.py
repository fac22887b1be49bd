"""Cache of tool lists, as Hermes has it."""

_TOOL_DEFS_CACHE_MAX = 8
