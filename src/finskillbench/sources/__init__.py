"""Readers of raw files as checked tables; invalid data raise `SourceError` with file and line."""
