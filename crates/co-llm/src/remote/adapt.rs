//! Finds out from a refusal which change of the request the server asks for.

use super::options::LEAST_ROOM;
use super::request_info::RequestInfo;
use crate::fault::{Fault, numbers};
use crate::provider_table::Protocol;
use crate::server_memory::Adaptation;

/// The largest number of changes that co makes to one request.
pub(super) const MAX_ADAPTATIONS: usize = 4;

/// Returns the change that the server asks for, or `None` if co can make no such change. `limit` is the output limit of the
/// refused request.
pub(super) fn find(info: &RequestInfo, fault: &Fault, limit: Option<u64>) -> Option<Adaptation> {
    let (Fault::BadRequest { body, .. }
    | Fault::NotFound { body, .. }
    | Fault::Forbidden { body, .. }
    // Some servers report a refusal as a failure of their own.
    | Fault::Server {
        explained: true,
        body,
        ..
    }) = fault
    else {
        return None;
    };
    let words = body.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    let adapted = |adaptation| info.adaptations.contains(&adaptation);
    let chat = info.protocol == Protocol::OpenAi;
    let refuses = says(&REFUSED);
    // These are about a thought that an earlier answer has, or about one call.
    let of_a_block = says(&["signature", "block", "messages.", "messages["]);
    let found = if chat
        && says(&["/v1/responses", "v1/responses", "responses api"])
        && !adapted(Adaptation::UseChatCompletions)
    {
        Adaptation::UseResponses
    } else if info.protocol == Protocol::Responses
        && says(&["chat/completions", "chat completions"])
        && !adapted(Adaptation::UseResponses)
    {
        Adaptation::UseChatCompletions
    } else if says(&["reasoning_content", "reasoning_details"]) {
        let demands = says(&["missing", "must", "required"]);
        match demands && !refuses {
            true => Adaptation::WithReasoning,
            false => Adaptation::WithoutReasoning,
        }
    } else if says(&["cache_control"]) {
        Adaptation::WithoutCacheMarks
    } else if says(&["prompt_cache_key"]) {
        Adaptation::WithoutCacheKey
    } else if says(&["reasoning summar", "reasoning.summary"]) {
        Adaptation::WithoutSummary
    } else if says(&["encrypted content", "encrypted_content"]) && refuses {
        Adaptation::WithoutEncrypted
    } else if says(&["includethoughts", "include_thoughts"]) {
        Adaptation::WithoutThoughts
    } else if asks_without_tools(&words) {
        Adaptation::WithoutTools
    } else if says(&["effort", "thinking_level", "thinkinglevel", "think"]) && !of_a_block {
        Adaptation::WithoutEffort
    } else if says(&["stream_options"]) {
        Adaptation::WithoutStreamOptions
    } else if chat && says(&["max_completion_tokens"]) && refuses {
        Adaptation::NewTokenLimit
    } else if let Some(most) = limit.and_then(|limit| limit_of_answers(&words, limit)) {
        Adaptation::AnswerLimit(most)
    } else if chat && says(&["with a length of 9"]) {
        Adaptation::NineCharacterIds
    } else if chat
        && ((says(&["system"]) && says(&["role", "message"]) && refuses)
            || says(&["only user and assistant roles"]))
    {
        Adaptation::SystemInPrompt
    } else if chat && says(&["content"]) && says(&["string", "null", "nil", "none"]) {
        Adaptation::EmptyContent
    } else {
        return None;
    };
    let possible = match found {
        Adaptation::WithoutEffort => info.effort.is_some(),
        _ => true,
    };
    possible.then_some(found)
}

/// Phrases by which servers say that they do not support something.
const REFUSED: [&str; 12] = [
    "not support",
    "unsupported",
    "n't support",
    "not permitted",
    "not allowed",
    "must not",
    "should not",
    "extra input",
    "unexpected",
    "unrecognized",
    "unknown",
    "instead",
];

/// Returns true if an error message, in lower case, says that the model does not support tools. A message about a single call, or
/// about the field `tool_choice`, does not count.
fn asks_without_tools(words: &str) -> bool {
    let says = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    let about_tools = says(&["tool", "function call"]);
    let about_another_field = says(&["tool_choice", "parallel", "strict", "schema", "_id"]);
    let refuses = says(&[
        "not support",
        "n't support",
        "unsupported",
        "found that support",
        "requires --",
        "not enabled",
        "not available",
    ]);
    about_tools && refuses && !about_another_field
}

/// Returns the largest output limit that an error message allows, if the message refuses `limit` as too large: "max_tokens: 64000
/// > 8192".
fn limit_of_answers(words: &str, limit: u64) -> Option<u64> {
    let fields = [
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "maxoutputtokens",
        "max_new_tokens",
        "maximum tokens",
        "output tokens",
        "completion tokens",
    ];
    let named = fields.iter().any(|field| words.contains(field));
    let smaller = numbers(words).filter(|number| (LEAST_ROOM / 8..limit).contains(number));
    smaller.max().filter(|_| named)
}

/// Returns the notice for the person about a change, or `None` if the person need not know of it.
pub(super) fn notice(info: &RequestInfo, adaptation: Adaptation) -> Option<String> {
    let (title, model) = (&info.title, &info.model);
    match adaptation {
        Adaptation::UseResponses => Some(format!(
            "{title} answers for {model} over the Responses protocol only; co uses it from here on"
        )),
        Adaptation::UseChatCompletions => Some(format!(
            "{title} answers for {model} over chat completions only; co uses them from here on"
        )),
        Adaptation::WithoutEffort => Some(format!(
            "{title} takes no effort for {model}; co leaves it out"
        )),
        Adaptation::WithoutTools => Some(format!(
            "{title} takes no tools for {model}: it can only answer with text, until `:Co /restart`"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effort::Effort;
    use crate::remote::request_info::test_info;

    /// The limit of the answer in the refused requests.
    const LIMIT: Option<u64> = Some(64_000);

    fn check(protocol: Protocol, words: &str, expected: Option<Adaptation>) {
        let info = RequestInfo {
            effort: Some(Effort::High),
            ..test_info(protocol)
        };
        let fault = Fault::BadRequest {
            provider: "x".into(),
            body: words.into(),
        };
        assert_eq!(find(&info, &fault, LIMIT), expected, "{words}");
    }

    /// The sentences are those of the servers, as their users report them.
    #[test]
    fn what_servers_say() {
        use Protocol::{Anthropic, OpenAi, Responses};
        check(
            OpenAi,
            "Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. \
             To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            Some(Adaptation::UseResponses),
        );
        check(
            OpenAi,
            "The reasoning_content in the thinking mode must be passed back to the API.",
            Some(Adaptation::WithReasoning),
        );
        check(
            OpenAi,
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index 7",
            Some(Adaptation::WithReasoning),
        );
        check(
            OpenAi,
            "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property \
             'reasoning_content' is unsupported)]",
            Some(Adaptation::WithoutReasoning),
        );
        check(
            Responses,
            "Your organization must be verified to generate reasoning summaries.",
            Some(Adaptation::WithoutSummary),
        );
        check(
            Responses,
            "Encrypted content is not supported with this model.",
            Some(Adaptation::WithoutEncrypted),
        );
        check(
            Anthropic,
            "cache_control: Extra inputs are not permitted",
            Some(Adaptation::WithoutCacheMarks),
        );
        check(
            OpenAi,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            Some(Adaptation::NewTokenLimit),
        );
        check(
            OpenAi,
            "Unsupported value: 'reasoning_effort' does not support 'max' with this model.",
            Some(Adaptation::WithoutEffort),
        );
        check(
            OpenAi,
            "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
            Some(Adaptation::NineCharacterIds),
        );
        check(
            OpenAi,
            "messages.2.content: Input should be a valid string",
            Some(Adaptation::EmptyContent),
        );
        check(OpenAi, "tool_use without tool_result", None);
    }

    #[test]
    fn reasoning_is_demanded_or_refused_in_many_words() {
        use Protocol::{Anthropic, OpenAi, Responses};
        for demand in [
            "Missing `reasoning_content` field in the assistant message at message index 4. For more information, please refer to \
             https://api-docs.deepseek.com/guides/thinking_mode#tool-calls",
            "messages.3: reasoning_content is required in thinking mode",
        ] {
            check(OpenAi, demand, Some(Adaptation::WithReasoning));
        }
        for refusal in [
            "body.messages.2.assistant.reasoning_content: Extra inputs are not permitted",
            "reasoning_content must not be sent",
            "Unrecognized request argument supplied: reasoning_content",
        ] {
            check(OpenAi, refusal, Some(Adaptation::WithoutReasoning));
        }
        // A thought of another model or account. No other option of the request helps.
        for about_a_thought in [
            "messages.1.content.0: Invalid `signature` in `thinking` block",
            "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, \
             a final `assistant` message must start with a thinking block",
        ] {
            check(Anthropic, about_a_thought, None);
        }
        check(
            Responses,
            "The encrypted content gAAA...c90= could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
            None,
        );
    }

    #[test]
    fn models_without_tools() {
        for words in [
            "registry.ollama.ai/library/gemma:2b does not support tools",
            "No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs",
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
            "tools param requires --jinja flag",
            "`tool calling` is not supported with this model",
            "Unsupported value: 'messages[2].role' does not support 'tool' with this model.",
            "This model doesn't support function calling",
        ] {
            check(Protocol::OpenAi, words, Some(Adaptation::WithoutTools));
        }
        for words in [
            "tool_choice 'none' is not supported by this model",
            "parallel_tool_calls is not supported",
            "tools.3.input_schema: JSON schema draft 4 is not supported",
            "`tool_use` ids were found without `tool_result` blocks immediately after",
        ] {
            check(Protocol::OpenAi, words, None);
        }
    }

    #[test]
    fn templates_without_a_system_role() {
        for words in [
            "System role not supported",
            "Jinja Exception: System role not supported",
            "Only user and assistant roles are supported!",
            "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        ] {
            check(Protocol::OpenAi, words, Some(Adaptation::SystemInPrompt));
        }
        let alternate = "After the optional system message, conversation roles must alternate user and assistant roles except for tool \
                         calls and results.";
        check(Protocol::OpenAi, alternate, None);
        let failed = Fault::Server {
            provider: "x".into(),
            status: 500,
            retry_after: None,
            body: "System role not supported".into(),
            explained: true,
        };
        let info = test_info(Protocol::OpenAi);
        assert_eq!(find(&info, &failed, None), Some(Adaptation::SystemInPrompt));
    }

    #[test]
    fn a_content_of_null_has_many_names() {
        for words in [
            "invalid message content type: <nil>",
            "Invalid value for 'content': expected a string, got null.",
        ] {
            check(Protocol::OpenAi, words, Some(Adaptation::EmptyContent));
        }
    }

    #[test]
    fn the_longest_answer_is_what_the_server_names() {
        for (words, most) in [
            (
                "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku-20241022",
                8_192,
            ),
            (
                "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
                8_192,
            ),
            (
                "`max_tokens` must be less than or equal to `32768`, the maximum value for `max_tokens` is less than the \
                 `context_window` for this model",
                32_768,
            ),
            (
                "The maximum tokens you requested exceeds the model limit of 2048. Try again with a maximum tokens value that is \
                 lower than 2048.",
                2_048,
            ),
            (
                "max_tokens is too large: 64000. This model supports at most 4,096 completion tokens.",
                4_096,
            ),
        ] {
            check(
                Protocol::Anthropic,
                words,
                Some(Adaptation::AnswerLimit(most)),
            );
        }
        check(Protocol::Anthropic, "max_tokens: Field required", None);
        check(Protocol::Anthropic, "bad request 4096", None);
    }

    #[test]
    fn a_change_to_the_other_protocol_is_made_once() {
        let mut info = test_info(Protocol::Responses);
        info.adaptations.insert(Adaptation::UseResponses);
        let fault = Fault::BadRequest {
            provider: "x".into(),
            body: "use /v1/chat/completions".into(),
        };
        assert_eq!(find(&info, &fault, None), None);
    }
}
