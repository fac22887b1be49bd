"""Runs Python scripts that nobody trusts, warm, and knows nothing of what they compute.

`runner` is the asyncio side, `process` the server that it keeps; inside that run `server`, `worker`, `child` and
`confine`. `frames` is what the two say to each other, `scratch` removes the folders that scripts leave behind, `script`
is a script's own command line. This file imports nothing, because the warm process imports it.
"""
