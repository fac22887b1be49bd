"""What moved between two runs, models, harnesses or conditions on the same episodes."""
