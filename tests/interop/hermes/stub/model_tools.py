"""Where Hermes keeps lists of tools."""

_TOOL_DEFS_CACHE_MAX = 8
