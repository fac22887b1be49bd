#!/bin/sh
# mini-swe-agent plays one episode: sh mini-swe-agent.sh MODEL {mcp_url} {prompt_file} {log_file} [BASE_URL]
# The model is named as in LiteLLM; the key is that of its provider, such as OPENAI_API_KEY.
# It has a shell and neither MCP nor skills: the prompt lists tools and skills, and ./tool calls a tool.
set -eu
export HOME="$PWD/.home" MSWEA_CONFIGURED=true MSWEA_SILENT_STARTUP=1 MSWEA_COST_TRACKING=ignore_errors
export LITELLM_LOCAL_MODEL_COST_MAP=True # no download of prices
cat >tool <<TOOL
#!/bin/sh
exec curl -s "$2" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\
    -d "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"\${3:-tools/call}\", \"params\": {\"name\": \"\$1\", \"arguments\": \$2}}"
TOOL
chmod +x tool
{
    cat "$3"
    printf '\n# Tools\nCall a tool from bash: ./tool NAME ARGUMENTS, with the arguments as one JSON object.\n'
    ./tool '' '{}' tools/list
    for skill in .agents/skills/*/SKILL.md; do
        [ -f "$skill" ] && printf '\nSkill %s: %s' "$skill" "$(sed -n 's/^description: *//p' "$skill")"
    done
    printf '\n\nEach command runs in a new shell. After submit_answer, end with the command '
    printf 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT and nothing else.\n'
} >task.md
exec mini --yolo --exit-immediately --model "$1" --output "$4" --task "$(cat task.md)" -c mini.yaml \
    -c 'agent.instance_template={{task}}' ${5:+-c "model.model_kwargs.api_base=$5"}
