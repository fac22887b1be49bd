"""Runs Python that nobody trusts, warm, and knows nothing of what it computes.

`runner` is the asyncio side, `process` the server that it keeps; inside that run `start`, `server`, `worker`, `child`
and `guards`. `frames` is what the two say to each other, `channel` what passes between a call's owner and its child
past the server, `scratch` removes the folders that scripts leave behind, `script` is a script's own command line,
`snippet` the script that runs a piece of somebody's code.

What the server runs imports its neighbours relatively and nothing else of this library, because `start` loads it under
another name; this file imports nothing for the same reason.
"""
