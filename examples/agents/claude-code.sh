#!/bin/sh
# Claude Code plays one episode: sh claude-code.sh MODEL {mcp_config} {prompt_file} {log_file}
# The key is ANTHROPIC_API_KEY; ANTHROPIC_BASE_URL names another server.
set -eu
export HOME="$PWD/.home" CLAUDE_CONFIG_DIR="$PWD/.home/claude" # no skill, memory or setting of yours
export CLAUDE_CODE_DISABLE_BUNDLED_SKILLS=1 CLAUDE_CODE_DISABLE_AUTO_MEMORY=1
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 # no telemetry, no updates
tools=Bash,Read,Write,Edit
[ ! -d .claude/skills ] || tools=$tools,Skill
exec claude -p --model "$1" --strict-mcp-config --mcp-config "$2" --permission-mode dontAsk \
    --tools "$tools" --allowedTools "$tools,mcp__finskillbench" \
    --output-format stream-json --verbose <"$3" >"$4"
