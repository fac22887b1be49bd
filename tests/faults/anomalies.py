"""Replies of real providers that are not as documented, each with the thread that reports it, and what we do with it.

`accept`: the answer is taken as it is meant. `record`: it is taken, and incidents say what was odd. `retry`: a failure
of the provider, and the same call is made again. `refuse`: a failure that stays: the episode has status `error`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from tests.faults.server import SUBMIT, USAGE, Reply, answer, error

Deed = Literal["accept", "record", "retry", "refuse"]
RESPONSES, CLAUDE = "openai/gpt-5-mini", "anthropic/claude-sonnet-4-6"


class Anomaly(NamedTuple):
    """A reply, the thread that reports it, and what becomes of an episode that meets it first.

    `follows` are the incidents; `words` are the provider's own, which an error must show; `model` is who is asked.
    """

    thread: str
    what: str
    deed: Deed
    follows: tuple[str, ...]
    reply: Reply
    words: str = ""
    model: str = "openai-api/local/tiny"


_GOOD: dict[str, Any] = json.loads(SUBMIT.body)
_CALL: dict[str, Any] = _GOOD["choices"][0]["message"]["tool_calls"][0]


def _body(value: Any) -> Reply:
    return Reply(body=json.dumps(value).encode())


def _with(**fields: Any) -> Reply:
    """The good answer with other fields at its top; `None` for none at all is written `...`."""
    merged = {**copy.deepcopy(_GOOD), **fields}
    return _body({name: value for name, value in merged.items() if value is not ...})


def _choice(**fields: Any) -> Reply:
    merged = {**copy.deepcopy(_GOOD["choices"][0]), **fields}
    return _with(choices=[{name: value for name, value in merged.items() if value is not ...}])


def _message(finish: str = "stop", **fields: Any) -> Reply:
    return _choice(message={**copy.deepcopy(_GOOD["choices"][0]["message"]), **fields}, finish_reason=finish)


def _text(content: Any, finish: str = "stop", **fields: Any) -> Reply:
    return _message(finish, content=content, tool_calls=None, **fields)


def _call(**fields: Any) -> Reply:
    merged = {**copy.deepcopy(_CALL), **fields}
    return _message(tool_calls=[{name: value for name, value in merged.items() if value is not ...}])


def _function(**fields: Any) -> Reply:
    return _call(function={**_CALL["function"], **fields})


def _stated(**fields: Any) -> Reply:
    """An answer of HTTP 200 that is nothing but an error."""
    return _body({"id": None, "choices": None, "model": None, "usage": None, "error": fields})


def _raw(message: str, code: int, raw: str) -> Reply:
    return _stated(message=message, code=code, metadata={"raw": raw, "provider_name": "Somebody"})


def _usage(**counts: Any) -> Reply:
    merged = {**USAGE, **counts}
    return _with(usage={name: value for name, value in merged.items() if value is not ...})


def _responses(**fields: Any) -> Reply:
    call = {"type": "function_call", "id": "f1", "call_id": "c1", "status": "completed", **_CALL["function"]}
    usage = {"input_tokens": 1000, "output_tokens": 50, "total_tokens": 1050}
    body = {"id": "r1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [call]}
    more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None, "usage": usage}
    return _body({name: value for name, value in {**body, **more, **fields}.items() if value is not ...})


def _events(*events: Mapping[str, Any]) -> Reply:
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Reply(body=text.encode(), headers={"content-type": "text/event-stream"})


_TWICE = json.dumps(_CALL["function"]["arguments"])
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
_NO_PROVIDER = "No allowed providers are available for the selected model"
_THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
_RATE, _SERVER, _MALFORMED, _EMPTY = ("rate_limit",), ("server_error",), ("malformed_body",), ("empty_choices",)
_UNKNOWN, _TALK, _MENDED = ("usage_unknown",), ("text_only",), ("call_repaired",)

ANOMALIES: tuple[Anomaly, ...] = (
    # Failures stated inside a successful reply
    Anomaly(
        "UKGovernmentBEIS/inspect_ai#1534",
        "`choices: null` and an error of code 429 inside a 200",
        "retry",
        _RATE,
        _raw("Provider returned error", 429, "Too Many Requests"),
        "Provider returned error: Too Many Requests",
    ),
    Anomaly(
        "UKGovernmentBEIS/inspect_ai#1536",
        "`choices: null` without an error",
        "retry",
        _EMPTY,
        _with(choices=None),
        "without choices",
    ),
    Anomaly(
        "xyOz-dev/Saturn#43",
        "an error of code 502 inside a 200",
        "retry",
        _SERVER,
        _stated(message="upstream went away", code=502),
        "upstream went away",
    ),
    Anomaly(
        "OpenRouterTeam/ai-sdk-provider#24",
        "an error of code 401 inside a 200",
        "refuse",
        ("auth",),
        _raw("Provider returned error", 401, '{"type":"authentication_error","message":"invalid x-api-key"}'),
        "invalid x-api-key",
    ),
    Anomaly(
        "Alishahryar1/free-claude-code#772",
        "an error of code 402 inside a 200",
        "refuse",
        ("quota",),
        _stated(message="Insufficient credits. This account never purchased credits.", code=402),
        "never purchased credits",
    ),
    Anomaly(
        "open-webui/computer#293",
        'an error "Provider returned error" whose reason stands in `metadata.raw`',
        "retry",
        _RATE,
        _raw("Provider returned error", 429, "z-ai/glm is temporarily rate-limited upstream."),
        "temporarily rate-limited upstream",
    ),
    Anomaly(
        "reVrost/go-openrouter#21",
        "an error of code 400 inside a 200, the upstream's own error as text inside",
        "refuse",
        ("bad_request",),
        _raw("Provider returned error", 400, '{"error": {"message": "must contain the word json"}}'),
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
        "an error object beside the choice, after half of the text",
        "retry",
        _SERVER,
        _choice(
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
        _text("", "network_error"),
        "finished with network_error",
    ),
    Anomaly(
        "togethercomputer/together-python#153",
        "`finish_reason: error` and no content",
        "retry",
        _SERVER,
        _text("", "error"),
        "finished with error",
    ),
    Anomaly(
        "genkit-ai/genkit#6259",
        "`finish_reason: insufficient_system_resource` (DeepSeek)",
        "retry",
        _SERVER,
        _text("", "insufficient_system_resource"),
    ),
    Anomaly(
        "envoyproxy/ai-gateway#2697",
        "an error with a type and no code inside a 200",
        "retry",
        _SERVER,
        _body({"error": {"type": "overloaded_error", "message": "Overloaded"}}),
        "Overloaded",
    ),
    Anomaly(
        "Helicone/helicone#4678",
        "a stream of status 200 that is one error event",
        "retry",
        _SERVER,
        _events(_OVERLOADED),
        "Overloaded",
        CLAUDE,
    ),
    Anomaly(
        "anthropics/anthropic-sdk-python#1918",
        "an error event in the middle of a stream of status 200",
        "retry",
        _SERVER,
        _events(_BEGUN, _OVERLOADED),
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
        _responses(status="failed", output=[], error={"code": "server_error", "message": "could not be generated"}),
        "could not be generated",
        RESPONSES,
    ),
    Anomaly(
        "langchain-ai/langchain#35236",
        "an answer of another protocol in place of `choices`",
        "retry",
        _EMPTY,
        _body({"id": "r1", "object": "response", "output": []}),
    ),
    Anomaly(
        "BerriAI/litellm#40252",
        "`choices: []` with billed tokens (Gemini behind a gateway)",
        "retry",
        _EMPTY,
        _with(choices=[]),
    ),
    Anomaly("BerriAI/litellm#40294", "`choices` that is an object and no list", "retry", _EMPTY, _with(choices={})),
    Anomaly(
        "SillyTavern/SillyTavern#5128",
        "Ollama's own protocol: a `message` without `choices`",
        "retry",
        _EMPTY,
        _body({"model": "m", "message": {"role": "assistant", "content": "hello"}, "done": True}),
    ),
    Anomaly(
        "UKGovernmentBEIS/inspect_ai#3687",
        "a body that is a JSON text and no object",
        "retry",
        _MALFORMED,
        _body("upstream said no"),
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
        _message(tool_calls=[{"id": "", "type": "function"}]),
    ),
    # Answers of the model that came to nothing
    Anomaly(
        "NousResearch/hermes-agent#83882",
        "`finish_reason: MALFORMED_FUNCTION_CALL` and no content",
        "record",
        _TALK,
        _text("", "MALFORMED_FUNCTION_CALL"),
    ),
    Anomaly(
        "pydantic/pydantic-ai#631",
        "`finish_reason: error` for a native MALFORMED_FUNCTION_CALL, the model's own mistake",
        "record",
        _TALK,
        _choice(
            message={"role": "assistant", "content": None},
            finish_reason="error",
            native_finish_reason="MALFORMED_FUNCTION_CALL",
        ),
    ),
    Anomaly("Wei-Shaw/sub2api#7081", "a successful answer with no content at all", "record", _TALK, _text(None)),
    Anomaly(
        "vllm-project/vllm#41902",
        "content and reasoning null, tokens billed",
        "record",
        _TALK,
        _text(None, reasoning=None),
    ),
    Anomaly(
        "vllm-project/vllm#49717",
        "no content, everything in `reasoning`",
        "record",
        _TALK,
        _text("", reasoning_content="I would submit."),
    ),
    Anomaly(
        "vllm-project/vllm#53255",
        "`finish_reason: tool_calls` with no call",
        "record",
        _TALK,
        _message("tool_calls", content=None, tool_calls=[]),
    ),
    Anomaly(
        "vllm-project/vllm#44104",
        "a text and `tool_calls: []`",
        "record",
        _TALK,
        _message(content="Done.", tool_calls=[]),
    ),
    Anomaly(
        "lmstudio-ai/lmstudio-bug-tracker#821",
        "a call written into the text as <tool_call>",
        "record",
        _TALK,
        _text('<tool_call>\n{"name": "submit_answer", "arguments": {}}\n</tool_call>'),
    ),
    Anomaly("vincent-pli/mcp-cli-host#1", "`tool_calls: null` beside a text", "record", _TALK, _text("Done.")),
    Anomaly(
        "BerriAI/litellm#40477",
        "a filter declined: `content_filter` and no content",
        "record",
        ("refused",),
        _text(None, "content_filter"),
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
        _stated(message=_FILTERED, code="content_filter"),
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
        "foundation-model-stack/fms-guardrails-orchestrator#74",
        "`finish_reason: MAX_TOKENS`",
        "record",
        ("max_tokens",),
        _text("Let me think about", "MAX_TOKENS"),
    ),
    Anomaly(
        "openai/codex#11558",
        "the Responses protocol: `status: incomplete`",
        "record",
        ("max_tokens",),
        _responses(status="incomplete", output=[], incomplete_details={"reason": "max_output_tokens"}),
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
        _raw("Provider returned error", 400, _LONG_INSIDE),
    ),
    # Side fields of a complete answer
    Anomaly("openai/openai-openapi#20", "`finish_reason: null`", "accept", (), _choice(finish_reason=None)),
    Anomaly("PowerShell/AIShell#350", '`finish_reason: "null"`', "accept", (), _choice(finish_reason="null")),
    Anomaly("XiaomiMiMo/MiMo-Code#2244", "no `finish_reason`", "accept", (), _choice(finish_reason=...)),
    Anomaly(
        "openai/openai-dotnet#64", "`finish_reason: stop` beside a call", "accept", (), _choice(finish_reason="stop")
    ),
    Anomaly("vibrantlabsai/ragas#1548", "`finish_reason: eos`", "accept", (), _choice(finish_reason="eos")),
    Anomaly(
        "huggingface/text-generation-inference#2344",
        "`finish_reason: eos_token`",
        "accept",
        (),
        _choice(finish_reason="eos_token"),
    ),
    Anomaly(
        "567-labs/instructor#2464",
        "the older `function_call` in place of `tool_calls`",
        "accept",
        (),
        _text(None, "function_call", function_call=_CALL["function"]),
    ),
    Anomaly(
        "langchain-ai/langchain#31198",
        "`function_call` beside `tool_calls`",
        "accept",
        (),
        _message(function_call=_CALL["function"]),
    ),
    Anomaly("strands-agents/harness-sdk#1259", "a call with `id: null`", "accept", (), _call(id=None)),
    Anomaly("vercel/ai#19091", "a call with an empty id", "accept", (), _call(id="")),
    Anomaly("ggml-org/llama.cpp#11992", "a call without an id", "accept", (), _call(id=...)),
    Anomaly(
        "ggml-org/llama.cpp#20198",
        "arguments as an object",
        "accept",
        (),
        _function(arguments=json.loads(_CALL["function"]["arguments"])),
    ),
    Anomaly(
        "huggingface/text-generation-inference#2136",
        "the calls as one object in place of a list, arguments as an object",
        "accept",
        (),
        _message(
            tool_calls={"id": 0, "function": {**_CALL["function"], "arguments": {"answer": {"weights": {"T00": 1.0}}}}}
        ),
    ),
    Anomaly("sgl-project/sglang#3637", "a call with `content: null`", "accept", (), _message(content=None)),
    Anomaly(
        "NousResearch/hermes-agent#4748",
        "content as a list of thoughts and texts (Mistral)",
        "accept",
        (),
        _message(content=[_THOUGHT, {"type": "text", "text": "I submit."}]),
    ),
    Anomaly(
        "mistralai/client-python#252",
        "content as a list with an empty thought between texts",
        "accept",
        (),
        _message(content=[{"type": "text", "text": "I "}, {"type": "thinking", "thinking": []}, "submit."]),
    ),
    Anomaly("letta-ai/letta#1258", "no `model`", "accept", (), _with(model=...)),
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
        _function(name="get_task_data", arguments=None),
    ),
    # Token counts
    Anomaly("microsoft/foundry-local#173", "`usage: null`", "record", _UNKNOWN, _with(usage=None)),
    Anomaly(
        "openai/openai-agents-python#1179",
        "all counts null",
        "record",
        _UNKNOWN,
        _with(usage={"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}),
    ),
    Anomaly(
        "vercel/ai#20102",
        "the Responses protocol without usage",
        "record",
        _UNKNOWN,
        _responses(usage=...),
        model=RESPONSES,
    ),
    Anomaly(
        "seangalliher/ProbOS#1078",
        "all counts 0",
        "record",
        _UNKNOWN,
        _with(usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
    ),
    Anomaly("archestra-ai/archestra#5914", "input counted as 0", "record", _UNKNOWN, _usage(prompt_tokens=0)),
    Anomaly(
        "philschmid/easyllm#42",
        "an output of 37.25 tokens and no total",
        "record",
        _UNKNOWN,
        _usage(completion_tokens=37.25, total_tokens=...),
    ),
    Anomaly("razzant/claudexor#173", "a negative count", "record", _UNKNOWN, _usage(completion_tokens=-4)),
    Anomaly(
        "AstrBotDevs/AstrBot#9905",
        "more cached tokens than input",
        "record",
        _UNKNOWN,
        _usage(prompt_tokens_details={"cached_tokens": 4000}),
    ),
    Anomaly("mozilla-ai/any-llm#824", "input null, output and total known", "accept", (), _usage(prompt_tokens=None)),
    Anomaly(
        "567-labs/instructor#1104",
        "details null",
        "accept",
        (),
        _usage(prompt_tokens_details=None, completion_tokens_details=None),
    ),
    Anomaly(
        "BerriAI/litellm#15376",
        "details of null counts",
        "accept",
        (),
        _usage(prompt_tokens_details={"cached_tokens": None}, completion_tokens_details={"reasoning_tokens": None}),
    ),
    Anomaly(
        "vercel/ai#12425",
        "reasoning beside the output in place of inside it (xAI)",
        "accept",
        (),
        _usage(completion_tokens=30, total_tokens=1050, completion_tokens_details={"reasoning_tokens": 20}),
    ),
    # Calls with one possible meaning, and with none
    Anomaly(
        "FoundationAgents/OpenManus#989", "arguments encoded twice", "record", _MENDED, _function(arguments=_TWICE)
    ),
    Anomaly(
        "quarkiverse/quarkus-langchain4j#2642",
        "arguments encoded twice, with spaces",
        "record",
        _MENDED,
        _function(name="get_task_data", arguments='"{ \\"field\\": \\"expected_returns\\" }"'),
    ),
    Anomaly(
        "tontinton/maki#505",
        "`functions.` before the name of a tool",
        "record",
        _MENDED,
        _function(name="functions.submit_answer"),
    ),
    Anomaly(
        "anomalyco/opencode#2421",
        "`mcp__server__` before the name of a tool",
        "record",
        _MENDED,
        _function(name="mcp__fsb__submit_answer"),
    ),
    Anomaly(
        "vllm-project/vllm#32587",
        "control tokens behind the name of a tool (gpt-oss)",
        "record",
        _MENDED,
        _function(name="submit_answer<|channel|>commentary"),
    ),
    Anomaly(
        "NousResearch/hermes-agent#100807",
        "a name that only resembles a tool",
        "record",
        ("unknown_tool",),
        _function(name="mcp_fsb_submit"),
    ),
    Anomaly(
        "MoonshotAI/kimi-cli#2513",
        "arguments that are the text of a text",
        "record",
        ("invalid_arguments",),
        _function(arguments='"submit it"'),
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


def good() -> Reply:
    """The answer that follows."""
    return answer(("submit_answer", _CALL["function"]["arguments"]))
