"""What a run folder holds: its record, the journal, rows and trajectories."""
