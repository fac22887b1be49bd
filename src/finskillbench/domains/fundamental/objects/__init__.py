"""What the fundamental subtasks share: the catalog, the reports that episodes can be about, the pools drawn from."""
