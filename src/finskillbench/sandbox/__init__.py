"""Sandboxed execution of untrusted Python in forked children of a warm process.

`runner` is the asyncio side and `process` its server process. The server runs `start`, `server`, `worker`, `child` and
`guards`. `frames` is the wire format, `channel` passes data between caller and child, `scratch` removes folders.
`script` is the command line of a script, `snippet` runs code of an agent.

Modules of the server import their siblings relatively and nothing else of this library, since `start` loads them under
another package name. This file imports nothing for the same reason.
"""
