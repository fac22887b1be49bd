#!/bin/sh
# OpenHands CLI plays one episode: sh openhands.sh {mcp_config} {prompt_file} {log_file}
# The model is LLM_MODEL, as in LiteLLM; the key is LLM_API_KEY; LLM_BASE_URL names another server.
set -eu
export HOME="$PWD/.home" # no skill, memory or setting of yours
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url./absent/.insteadOf # nor the public skills, which it would clone
export GIT_CONFIG_VALUE_0=https://github.com/ PYTHONUNBUFFERED=1 OPENHANDS_SUPPRESS_BANNER=1
mkdir -p "$HOME/.openhands"
cp "$1" "$HOME/.openhands/mcp.json"
exec openhands --headless --json --override-with-envs --file "$2" >"$3"
