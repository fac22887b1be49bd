"""What a run will do and use, before anything is asked of a model."""
