"""Postprocess a finished run: rescore, merge, show, explain failures, score external answers."""
