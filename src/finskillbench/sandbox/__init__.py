"""Runs Python scripts that nobody trusts, warm, and knows nothing of what they compute.

`runner` is the asyncio side; `server`, `worker`, `child` and `confine` are the process that it keeps, `frames` what
the two say to each other, `scratch` the folders that scripts leave behind, `script` a script's own command line. This
file imports nothing, because the warm process imports it.
"""
