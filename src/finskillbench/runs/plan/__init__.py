"""Plan a run and forecast its usage before any model call."""
