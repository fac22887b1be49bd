"""Output of commands: tables, progress and the live view of a run."""
