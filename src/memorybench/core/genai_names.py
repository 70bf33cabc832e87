"""Names from OpenTelemetry's conventions for generative AI. memorybench uses them to send spans and to read spans.

`gen_ai.*` is from https://github.com/open-telemetry/semantic-conventions-genai (status: development). The names are
written out because the Python package of the conventions marks its copies as deprecated and has none for memories.
"""

from __future__ import annotations

OPERATION = "gen_ai.operation.name"
PROVIDER_NAME = "gen_ai.provider.name"
AGENT_NAME = "gen_ai.agent.name"
REQUEST_MODEL, RESPONSE_MODEL = "gen_ai.request.model", "gen_ai.response.model"
TEMPERATURE, SEED, MAX_TOKENS = "gen_ai.request.temperature", "gen_ai.request.seed", "gen_ai.request.max_tokens"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS, OUTPUT_TOKENS = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
INPUT_MESSAGES, OUTPUT_MESSAGES = "gen_ai.input.messages", "gen_ai.output.messages"
STORE_ID, RECORD_COUNT = "gen_ai.memory.store.id", "gen_ai.memory.record.count"
QUERY_TEXT, RECORDS = "gen_ai.memory.query.text", "gen_ai.memory.records"
TOOL_NAME = "gen_ai.tool.name"
TOOL_ARGUMENTS, TOOL_RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
EVALUATION_EVENT = "gen_ai.evaluation.result"
EVALUATION_NAME, EVALUATION_VALUE = "gen_ai.evaluation.name", "gen_ai.evaluation.score.value"
EXPLANATION = "gen_ai.evaluation.explanation"
ERROR_TYPE, SERVER_ADDRESS, SERVER_PORT = "error.type", "server.address", "server.port"

CHAT, INVOKE_AGENT = "chat", "invoke_agent"
UPSERT_MEMORY, SEARCH_MEMORY, DELETE_MEMORY = "upsert_memory", "search_memory", "delete_memory"
WRITES = frozenset({UPSERT_MEMORY, "create_memory", "update_memory"})
MEMORY_OPERATIONS = frozenset({*WRITES, SEARCH_MEMORY, DELETE_MEMORY, "create_memory_store", "delete_memory_store"})
EXISTING_MEMORY = "memorybench.memory.existing"
"""The name of the span attribute that contains, as JSON, the memory as it was before an extraction."""
