#!/bin/sh
# Codex CLI plays one episode: sh codex.sh MODEL {mcp_url} {prompt_file} {log_file} [BASE_URL]
# The key is OPENAI_API_KEY; the default of BASE_URL is OpenAI's server.
set -eu
export HOME="$PWD/.home" CODEX_HOME="$PWD/.home/codex" # no skill, memory or setting of yours
mkdir -p "$CODEX_HOME"
cat >"$CODEX_HOME/config.toml" <<TOML
model_provider = "key"
check_for_update_on_startup = false
analytics.enabled = false
skills.bundled.enabled = false
web_search = "disabled"
mcp_servers.finskillbench.url = "$2"
model_providers.key = { name = "key", base_url = "${5:-https://api.openai.com/v1}", env_key = "OPENAI_API_KEY", wire_api = "responses" }
TOML
exec codex exec --model "$1" --json --ephemeral --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox \
    - <"$3" >"$4"
