"""Runs Python scripts that nobody trusts, warm, and knows nothing of what they compute.

`runner` is the asyncio side, `process` the server that it keeps; inside that run `server`, `worker`, `child`, `confine`
and `calls`. `frames` is what the two say to each other, `channel` what passes between a call's owner and its child past
the server, `scratch` removes the folders that scripts leave behind, `script` is a script's own command line. This file
imports nothing, because the warm process imports it.
"""
