"""Replies of real providers that are not as documented, each with the thread that reports it, and what we do with it.

`accept`: the answer is taken as it is meant. `record`: it is taken, and incidents say what was odd. `retry`: a failure
of the provider, and the same call is made again. `refuse`: a failure that stays: the episode has status `error`.
"""

from __future__ import annotations

import json

from tests.faults.answers import (
    CALL,
    CLAUDE,
    RESPONSES,
    Anomaly,
    body_of,
    choice_of,
    events,
    message_of,
    responses,
    stated,
    text_of,
    upstream,
    with_fields,
)
from tests.faults.odd_answers import ODD_ANSWERS
from tests.faults.server import Reply, answer, error

_OVERLOADED = {"type": "error", "error": {"details": None, "type": "overloaded_error", "message": "Overloaded"}}
_BEGUN = {
    "type": "message_start",
    "message": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 1},
    },
}
_FILTERED = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
_LONG = "This model's maximum context length is 200 tokens. However, your request has 203 input tokens."
_LONG_INSIDE = json.dumps({"error": {"message": _LONG, "type": "invalid_request_error", "code": 400}})
_FUNCTION_FAILED = "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."
_NO_FORMAT = "The model produced output that does not match the expected peg-native format"
_NO_PROVIDER = "No allowed providers are available for the selected model"
_RATE = ("rate_limit",)
_SERVER = ("server_error",)
_MALFORMED = ("malformed_body",)
_EMPTY = ("empty_choices",)
_TALK = ("text_only",)

_FAILURES: tuple[Anomaly, ...] = (
    # Failures stated inside a successful reply
    Anomaly(
        "UKGovernmentBEIS/inspect_ai#1534",
        "`choices: null` and an error of code 429 inside a 200",
        "retry",
        _RATE,
        upstream("Provider returned error", 429, "Too Many Requests"),
        "Provider returned error: Too Many Requests",
    ),
    Anomaly(
        "UKGovernmentBEIS/inspect_ai#1536",
        "`choices: null` without an error",
        "retry",
        _EMPTY,
        with_fields(choices=None),
        "without choices",
    ),
    Anomaly(
        "xyOz-dev/Saturn#43",
        "an error of code 502 inside a 200",
        "retry",
        _SERVER,
        stated(message="upstream went away", code=502),
        "upstream went away",
    ),
    Anomaly(
        "OpenRouterTeam/ai-sdk-provider#24",
        "an error of code 401 inside a 200",
        "refuse",
        ("auth",),
        upstream("Provider returned error", 401, '{"type":"authentication_error","message":"invalid x-api-key"}'),
        "invalid x-api-key",
    ),
    Anomaly(
        "Alishahryar1/free-claude-code#772",
        "an error of code 402 inside a 200",
        "refuse",
        ("quota",),
        stated(message="Insufficient credits. This account never purchased credits.", code=402),
        "never purchased credits",
    ),
    Anomaly(
        "open-webui/computer#293",
        'an error "Provider returned error" with its reason in `metadata.raw`',
        "retry",
        _RATE,
        upstream("Provider returned error", 429, "z-ai/glm is temporarily rate-limited upstream."),
        "temporarily rate-limited upstream",
    ),
    Anomaly(
        "reVrost/go-openrouter#21",
        "an error of code 400 inside a 200, the upstream's own error as text inside",
        "refuse",
        ("bad_request",),
        upstream("Provider returned error", 400, '{"error": {"message": "must contain the word json"}}'),
        "must contain the word json",
    ),
    Anomaly(
        "Kilo-Org/cloud#4080",
        "HTTP 404: no provider may serve the model",
        "refuse",
        ("unknown_model",),
        Reply(404, json.dumps({"error": {"message": _NO_PROVIDER, "code": 404}}).encode()),
        _NO_PROVIDER,
    ),
    Anomaly(
        "genkit-ai/genkit#6259",
        "an error object next to the choice, after half of the text",
        "retry",
        _SERVER,
        choice_of(
            message={"role": "assistant", "content": "half of"},
            finish_reason="error",
            error={"code": 502, "message": "lost its upstream"},
        ),
        "lost its upstream",
    ),
    Anomaly(
        "genkit-ai/genkit#6259",
        "`finish_reason: network_error` (z.AI)",
        "retry",
        _SERVER,
        text_of("", "network_error"),
        "finished with network_error",
    ),
    Anomaly(
        "togethercomputer/together-python#153",
        "`finish_reason: error` and no content",
        "retry",
        _SERVER,
        text_of("", "error"),
        "finished with error",
    ),
    Anomaly(
        "genkit-ai/genkit#6259",
        "`finish_reason: insufficient_system_resource` (DeepSeek)",
        "retry",
        _SERVER,
        text_of("", "insufficient_system_resource"),
    ),
    Anomaly(
        "envoyproxy/ai-gateway#2697",
        "an error with a type and no code inside a 200",
        "retry",
        _SERVER,
        body_of({"error": {"type": "overloaded_error", "message": "Overloaded"}}),
        "Overloaded",
    ),
    Anomaly(
        "Helicone/helicone#4678",
        "a stream of status 200 that is one error event",
        "retry",
        _SERVER,
        events(_OVERLOADED),
        "Overloaded",
        CLAUDE,
    ),
    Anomaly(
        "anthropics/anthropic-sdk-python#1918",
        "an error event in the middle of a stream of status 200",
        "retry",
        _SERVER,
        events(_BEGUN, _OVERLOADED),
        "Overloaded",
        CLAUDE,
    ),
    Anomaly(
        "anthropics/anthropic-sdk-typescript#616",
        "HTTP 529, overloaded",
        "retry",
        _SERVER,
        Reply(529, json.dumps(_OVERLOADED).encode()),
        "Overloaded",
        CLAUDE,
    ),
    Anomaly(
        "openai/openai-agents-python#4515",
        "the Responses protocol: `status: failed` with an error",
        "retry",
        _SERVER,
        responses(status="failed", output=[], error={"code": "server_error", "message": "could not be generated"}),
        "could not be generated",
        RESPONSES,
    ),
    Anomaly(
        "langchain-ai/langchain#35236",
        "an answer of another protocol in place of `choices`",
        "retry",
        _EMPTY,
        body_of({"id": "r1", "object": "response", "output": []}),
    ),
    Anomaly(
        "BerriAI/litellm#40252",
        "`choices: []` with billed tokens (Gemini behind a gateway)",
        "retry",
        _EMPTY,
        with_fields(choices=[]),
    ),
    Anomaly("BerriAI/litellm#40294", "`choices` that is an object", "retry", _EMPTY, with_fields(choices={})),
    Anomaly(
        "SillyTavern/SillyTavern#5128",
        "Ollama's own protocol: a `message` without `choices`",
        "retry",
        _EMPTY,
        body_of({"model": "m", "message": {"role": "assistant", "content": "hello"}, "done": True}),
    ),
    Anomaly(
        "UKGovernmentBEIS/inspect_ai#3687",
        "a body that is a JSON text and no object",
        "retry",
        _MALFORMED,
        body_of("upstream said no"),
        "upstream said no",
    ),
    Anomaly(
        "NEKOparapa/AiNiee#151",
        "a page of HTML with status 200",
        "retry",
        _MALFORMED,
        Reply(body=b"<html>login required</html>", headers={"content-type": "text/html"}),
        "login required",
    ),
    Anomaly(
        "Liquid4All/ifstruct#5",
        "JSON nested 200,000 deep",
        "retry",
        _MALFORMED,
        Reply(body=b'{"choices": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
        "nested too deeply",
    ),
    Anomaly(
        "lmstudio-ai/lmstudio-bug-tracker#830",
        "a tool call without a function",
        "retry",
        _MALFORMED,
        message_of(tool_calls=[{"id": "", "type": "function"}]),
    ),
    # Answers of the model that came to nothing
    Anomaly(
        "NousResearch/hermes-agent#83882",
        "`finish_reason: MALFORMED_FUNCTION_CALL` and no content",
        "record",
        _TALK,
        text_of("", "MALFORMED_FUNCTION_CALL"),
    ),
    Anomaly(
        "pydantic/pydantic-ai#631",
        "`finish_reason: error` for a native MALFORMED_FUNCTION_CALL, the model's own mistake",
        "record",
        _TALK,
        choice_of(
            message={"role": "assistant", "content": None},
            finish_reason="error",
            native_finish_reason="MALFORMED_FUNCTION_CALL",
        ),
    ),
    Anomaly("Wei-Shaw/sub2api#7081", "a successful answer with no content at all", "record", _TALK, text_of(None)),
    Anomaly(
        "vllm-project/vllm#41902",
        "content and reasoning null, tokens billed",
        "record",
        _TALK,
        text_of(None, reasoning=None),
    ),
    Anomaly(
        "vllm-project/vllm#49717",
        "no content, everything in `reasoning`",
        "record",
        _TALK,
        text_of("", reasoning_content="I would submit."),
    ),
    Anomaly(
        "vllm-project/vllm#53255",
        "`finish_reason: tool_calls` with no call",
        "record",
        _TALK,
        message_of("tool_calls", content=None, tool_calls=[]),
    ),
    Anomaly(
        "vllm-project/vllm#44104",
        "a text and `tool_calls: []`",
        "record",
        _TALK,
        message_of(content="Done.", tool_calls=[]),
    ),
    Anomaly(
        "lmstudio-ai/lmstudio-bug-tracker#821",
        "a call written into the text as <tool_call>",
        "record",
        _TALK,
        text_of('<tool_call>\n{"name": "submit_answer", "arguments": {}}\n</tool_call>'),
    ),
    Anomaly("vincent-pli/mcp-cli-host#1", "`tool_calls: null` with a text", "record", _TALK, text_of("Done.")),
    Anomaly(
        "BerriAI/litellm#40477",
        "a filter declined: `content_filter` and no content",
        "record",
        ("refused",),
        text_of(None, "content_filter"),
    ),
    Anomaly(
        "openai/openai-python#786",
        "HTTP 400: a filter declined the prompt (Azure)",
        "record",
        ("usage_unknown", "refused"),
        error(400, _FILTERED, "content_filter"),
    ),
    Anomaly(
        "BerriAI/litellm#16231",
        "the same error inside a 200",
        "record",
        ("usage_unknown", "refused"),
        stated(message=_FILTERED, code="content_filter"),
    ),
    Anomaly(
        "groq/groq-typescript#28",
        "HTTP 400 `tool_use_failed`: the server could not read the model's call",
        "record",
        ("usage_unknown", "text_only"),
        Reply(
            400,
            json.dumps(
                {"error": {"message": _FUNCTION_FAILED, "code": "tool_use_failed", "failed_generation": "{oops"}}
            ).encode(),
        ),
    ),
    Anomaly(
        "ggml-org/llama.cpp#27025",
        "HTTP 500: llama.cpp could not read the model's call",
        "record",
        ("usage_unknown", "text_only"),
        Reply(500, json.dumps({"error": {"code": 500, "message": _NO_FORMAT, "type": "server_error"}}).encode()),
    ),
    Anomaly(
        "foundation-model-stack/fms-guardrails-orchestrator#74",
        "`finish_reason: MAX_TOKENS`",
        "record",
        ("max_tokens",),
        text_of("Let me think about", "MAX_TOKENS"),
    ),
    Anomaly(
        "openai/codex#11558",
        "the Responses protocol: `status: incomplete`",
        "record",
        ("max_tokens",),
        responses(status="incomplete", output=[], incomplete_details={"reason": "max_output_tokens"}),
        model=RESPONSES,
    ),
    Anomaly(
        "UKGovernmentBEIS/inspect_ai#2634",
        "HTTP 400: the conversation is too long (vLLM)",
        "record",
        ("context_overflow",),
        error(400, _LONG),
    ),
    Anomaly(
        "truefoundry/models#873",
        "the same inside a 200, as the words of an upstream",
        "record",
        ("context_overflow",),
        upstream("Provider returned error", 400, _LONG_INSIDE),
    ),
)
ANOMALIES = (*_FAILURES, *ODD_ANSWERS)


def good() -> Reply:
    """The answer that follows."""
    return answer(("submit_answer", CALL["function"]["arguments"]))
