"""Rows for other programs: flat files, and the trackers MLflow and Weights & Biases."""
