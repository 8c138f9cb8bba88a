//! Finds out from a refused request how the server wants it.

use super::request_info::RequestInfo;
use crate::fault::Fault;
use crate::provider_table::Protocol;
use crate::server_memory::Adaptation;

/// The most times that one request is changed and sent again.
pub(super) const MAX_ADAPTATIONS: usize = 4;

/// Returns the change that the server asks for; none if its words ask for none that is possible.
pub(super) fn find(info: &RequestInfo, fault: &Fault) -> Option<Adaptation> {
    let (Fault::BadRequest { body, .. }
    | Fault::NotFound { body, .. }
    | Fault::Forbidden { body, .. }) = fault
    else {
        return None;
    };
    let words = body.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    let chat = info.protocol == Protocol::OpenAi;
    let found = if chat && says(&["/v1/responses", "v1/responses", "responses api"]) {
        Adaptation::UseResponses
    } else if info.protocol == Protocol::Responses
        && says(&["chat/completions", "chat completions"])
    {
        Adaptation::UseChatCompletions
    } else if says(&["reasoning_content", "reasoning_details"]) {
        match says(&["must be passed", "is missing", "required"]) {
            true => Adaptation::WithReasoning,
            false => Adaptation::WithoutReasoning,
        }
    } else if says(&["cache_control"]) {
        Adaptation::WithoutCacheMarks
    } else if says(&["prompt_cache_key"]) {
        Adaptation::WithoutCacheKey
    } else if says(&["reasoning summar", "reasoning.summary"]) {
        Adaptation::WithoutSummary
    } else if says(&["encrypted content", "encrypted_content"]) {
        Adaptation::WithoutEncrypted
    } else if says(&["includethoughts", "include_thoughts"]) {
        Adaptation::WithoutThoughts
    } else if says(&[
        "effort",
        "thinking_level",
        "thinkinglevel",
        "thinking",
        "think",
    ]) {
        Adaptation::WithoutEffort
    } else if says(&["stream_options"]) {
        Adaptation::WithoutStreamOptions
    } else if chat && says(&["max_completion_tokens"]) {
        Adaptation::NewTokenLimit
    } else if chat && says(&["with a length of 9"]) {
        Adaptation::NineCharacterIds
    } else if chat && says(&["content"]) && says(&["string", "null", "nonetype"]) {
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

/// Returns the sentence for the person about a change that they should know of.
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
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effort::Effort;
    use crate::remote::request_info::test_info;

    fn check(protocol: Protocol, words: &str, expected: Option<Adaptation>) {
        let info = RequestInfo {
            effort: Some(Effort::High),
            ..test_info(protocol)
        };
        let fault = Fault::BadRequest {
            provider: "x".into(),
            body: words.into(),
        };
        assert_eq!(find(&info, &fault), expected, "{words}");
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
}
