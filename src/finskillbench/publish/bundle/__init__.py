"""A run as somebody submits it to a leaderboard: written by its owner, read and judged by whoever holds the truth.

    manifest.json        whose it is, of which edition, models, mounts, settings, and the digest of every other file
    manifest.json.sig    an SSH signature of it, unless the bundle is unsigned
    rows.parquet         one line per episode, with the scores that are claimed
    answers.jsonl        what was submitted for each, so that every score can be computed again
    trajectories/        everything said and done, where the owner added it

The same run makes the same bytes. Nothing of the truth is in it, and nothing that looks like a key.
"""
