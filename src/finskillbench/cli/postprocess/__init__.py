"""What is done with a run folder when the run is over: shown, judged again, joined with others, handed on."""
