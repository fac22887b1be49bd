"""Complete answers with odd side fields, token counts or calls, and waits and quotas, as trackers report them."""

from __future__ import annotations

import json

from tests.faults.answers import (
    CALL,
    RESPONSES,
    Anomaly,
    call_of,
    choice_of,
    function_of,
    message_of,
    responses,
    text_of,
    usage_of,
    with_fields,
)
from tests.faults.server import SUBMIT, Reply, error

_TWICE = json.dumps(CALL["function"]["arguments"])
_THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
_RATE = ("rate_limit",)
_UNKNOWN = ("usage_unknown",)
_MENDED = ("call_repaired",)

ODD_ANSWERS: tuple[Anomaly, ...] = (
    # Side fields of a complete answer
    Anomaly("openai/openai-openapi#20", "`finish_reason: null`", "accept", (), choice_of(finish_reason=None)),
    Anomaly("PowerShell/AIShell#350", '`finish_reason: "null"`', "accept", (), choice_of(finish_reason="null")),
    Anomaly("XiaomiMiMo/MiMo-Code#2244", "no `finish_reason`", "accept", (), choice_of(finish_reason=...)),
    Anomaly(
        "openai/openai-dotnet#64", "`finish_reason: stop` with a call", "accept", (), choice_of(finish_reason="stop")
    ),
    Anomaly("vibrantlabsai/ragas#1548", "`finish_reason: eos`", "accept", (), choice_of(finish_reason="eos")),
    Anomaly(
        "huggingface/text-generation-inference#2344",
        "`finish_reason: eos_token`",
        "accept",
        (),
        choice_of(finish_reason="eos_token"),
    ),
    Anomaly(
        "567-labs/instructor#2464",
        "the older `function_call` in place of `tool_calls`",
        "accept",
        (),
        text_of(None, "function_call", function_call=CALL["function"]),
    ),
    Anomaly(
        "langchain-ai/langchain#31198",
        "`function_call` and `tool_calls`",
        "accept",
        (),
        message_of(function_call=CALL["function"]),
    ),
    Anomaly("strands-agents/harness-sdk#1259", "a call with `id: null`", "accept", (), call_of(id=None)),
    Anomaly("vercel/ai#19091", "a call with an empty id", "accept", (), call_of(id="")),
    Anomaly("ggml-org/llama.cpp#11992", "a call without an id", "accept", (), call_of(id=...)),
    Anomaly(
        "ggml-org/llama.cpp#20198",
        "arguments as an object",
        "accept",
        (),
        function_of(arguments=json.loads(CALL["function"]["arguments"])),
    ),
    Anomaly(
        "huggingface/text-generation-inference#2136",
        "the calls as one object in place of a list, arguments as an object",
        "accept",
        (),
        message_of(
            tool_calls={"id": 0, "function": {**CALL["function"], "arguments": {"answer": {"weights": {"T00": 1.0}}}}}
        ),
    ),
    Anomaly("sgl-project/sglang#3637", "a call with `content: null`", "accept", (), message_of(content=None)),
    Anomaly(
        "NousResearch/hermes-agent#4748",
        "content as a list of thoughts and texts (Mistral)",
        "accept",
        (),
        message_of(content=[_THOUGHT, {"type": "text", "text": "I submit."}]),
    ),
    Anomaly(
        "mistralai/client-python#252",
        "content as a list with an empty thought between texts",
        "accept",
        (),
        message_of(content=[{"type": "text", "text": "I "}, {"type": "thinking", "thinking": []}, "submit."]),
    ),
    Anomaly("letta-ai/letta#1258", "no `model`", "accept", (), with_fields(model=...)),
    Anomaly(
        "EricLBuehler/mistral.rs#79",
        "a complete answer that is sent as text/plain",
        "accept",
        (),
        Reply(body=SUBMIT.body, headers={"content-type": "text/plain"}),
    ),
    Anomaly(
        "ogx-ai/ogx#3456",
        "arguments null",
        "record",
        ("invalid_arguments",),
        function_of(name="get_task_data", arguments=None),
    ),
    # Token counts
    Anomaly("microsoft/foundry-local#173", "`usage: null`", "record", _UNKNOWN, with_fields(usage=None)),
    Anomaly(
        "openai/openai-agents-python#1179",
        "all counts null",
        "record",
        _UNKNOWN,
        with_fields(usage={"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}),
    ),
    Anomaly(
        "vercel/ai#20102",
        "the Responses protocol without usage",
        "record",
        _UNKNOWN,
        responses(usage=...),
        model=RESPONSES,
    ),
    Anomaly(
        "seangalliher/ProbOS#1078",
        "all counts 0",
        "record",
        _UNKNOWN,
        with_fields(usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
    ),
    Anomaly("archestra-ai/archestra#5914", "input counted as 0", "record", _UNKNOWN, usage_of(prompt_tokens=0)),
    Anomaly(
        "philschmid/easyllm#42",
        "an output of 37.25 tokens and no total",
        "record",
        _UNKNOWN,
        usage_of(completion_tokens=37.25, total_tokens=...),
    ),
    Anomaly("razzant/claudexor#173", "a negative count", "record", _UNKNOWN, usage_of(completion_tokens=-4)),
    Anomaly(
        "AstrBotDevs/AstrBot#9905",
        "more cached tokens than input",
        "record",
        _UNKNOWN,
        usage_of(prompt_tokens_details={"cached_tokens": 4000}),
    ),
    Anomaly("mozilla-ai/any-llm#824", "input null, output and total known", "accept", (), usage_of(prompt_tokens=None)),
    Anomaly(
        "567-labs/instructor#1104",
        "details null",
        "accept",
        (),
        usage_of(prompt_tokens_details=None, completion_tokens_details=None),
    ),
    Anomaly(
        "BerriAI/litellm#15376",
        "details of null counts",
        "accept",
        (),
        usage_of(prompt_tokens_details={"cached_tokens": None}, completion_tokens_details={"reasoning_tokens": None}),
    ),
    Anomaly(
        "vercel/ai#12425",
        "reasoning next to the output instead of inside it (xAI)",
        "accept",
        (),
        usage_of(completion_tokens=30, total_tokens=1050, completion_tokens_details={"reasoning_tokens": 20}),
    ),
    # Calls with one possible meaning, and with none
    Anomaly(
        "FoundationAgents/OpenManus#989", "arguments encoded twice", "record", _MENDED, function_of(arguments=_TWICE)
    ),
    Anomaly(
        "quarkiverse/quarkus-langchain4j#2642",
        "arguments encoded twice, with spaces",
        "record",
        _MENDED,
        function_of(name="get_task_data", arguments='"{ \\"field\\": \\"expected_returns\\" }"'),
    ),
    Anomaly(
        "tontinton/maki#505",
        "`functions.` before the name of a tool",
        "record",
        _MENDED,
        function_of(name="functions.submit_answer"),
    ),
    Anomaly(
        "anomalyco/opencode#2421",
        "`mcp__server__` before the name of a tool",
        "record",
        _MENDED,
        function_of(name="mcp__fsb__submit_answer"),
    ),
    Anomaly(
        "vllm-project/vllm#32587",
        "control tokens behind the name of a tool (gpt-oss)",
        "record",
        _MENDED,
        function_of(name="submit_answer<|channel|>commentary"),
    ),
    Anomaly(
        "NousResearch/hermes-agent#100807",
        "a name that only resembles a tool",
        "record",
        ("unknown_tool",),
        function_of(name="mcp_fsb_submit"),
    ),
    Anomaly(
        "MoonshotAI/kimi-cli#2513",
        "arguments that are the text of a text",
        "record",
        ("invalid_arguments",),
        function_of(arguments='"submit it"'),
    ),
    # Waits and quotas
    Anomaly(
        "openai/openai-node#1863",
        "HTTP 429 with `Retry-After: 600`",
        "retry",
        ("rate_limit", "wait_capped"),
        error(429, "later", retry_after="600"),
    ),
    Anomaly(
        "openai/openai-python#3555",
        "HTTP 503 with `Retry-After: 99999999`",
        "retry",
        ("server_error", "wait_capped"),
        error(503, "later", retry_after="99999999"),
    ),
    Anomaly(
        "google-gemini/gemini-cli#10925",
        "HTTP 429 whose body is a list (Google)",
        "retry",
        _RATE,
        Reply(429, json.dumps([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota"}}]).encode()),
    ),
    Anomaly(
        "langchain-ai/langchainjs#1929",
        "HTTP 429 `insufficient_quota`",
        "refuse",
        ("quota",),
        error(429, "You exceeded your current quota", "insufficient_quota"),
        "exceeded your current quota",
    ),
)
