"""Store the contents of a run folder: record, journal, rows and trajectories."""
