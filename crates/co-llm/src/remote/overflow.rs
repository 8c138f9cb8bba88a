//! Recognizes error messages that say that a request exceeds the model's context window.
//!
//! The table need not be complete: a chat shortens its largest request once, whatever the error message says.

use serde_json::Value;

use crate::fault::numbers;

/// The phrases by which servers say that a request is too long. A phrase is a list of texts in lower case, which must all occur
/// in the order of the list; numbers and names of models stand between them. The comment at each phrase names the servers that
/// use it, and the source.
///
/// All sources were read on 2026-11-26 and 2026-11-28. "pi 129" is earendil-works/pi issue 129: its author sent too long requests
/// to the vendors.
const PHRASES: &[&[&str]] = &[
    // Names of errors.
    // OpenAI, Groq, DeepSeek; unclecode/crawl4ai issue 44.
    &["context_length_exceeded"],
    // llama.cpp: tools/server/README.md.
    &["exceed_context_size_error"],
    // z.ai; anomalyco/opencode, provider-error.ts.
    &["model_context_window_exceeded"],
    // Vendors.
    // Anthropic; OpenHands/OpenHands issue 4894.
    &["prompt is too long"],
    // Anthropic, with max_tokens; docker/docker-agent issue 569.
    &["exceed context limit"],
    // Anthropic; anomalyco/opencode pull request 18853.
    &["extra usage is required for long context"],
    // OpenAI Responses; pi 129.
    &["exceeds the context window"],
    // OpenAI; BerriAI/litellm issue 18927.
    &["exceed the configured limit of", "tokens"],
    // OpenAI, OpenRouter, vLLM, DeepSeek; refly-ai/refly issue 1177.
    &["maximum context length"],
    // Groq, Cerebras; OpenHands/OpenHands issue 1902, cline/cline issue 5140.
    &["reduce the length"],
    // Gemini; pi 129.
    &["input token count", "exceeds"],
    // xAI; cline/cline issue 3120.
    &["maximum prompt length"],
    // Mistral; anomalyco/opencode, provider-error.ts.
    &["too large for model with", "maximum"],
    // Bedrock; aws-samples/assessment-generator issue 2, openclaw/openclaw issue 58839.
    &["input is too long"],
    // Bedrock; openclaw/openclaw issue 58839.
    &["exceeds the max input token limit"],
    // Kimi; anomalyco/opencode pull request 35920.
    &["exceeded model token limit"],
    // Qwen; QwenLM/qwen-code issue 98.
    &["range of input length should be"],
    // GLM at Volcano Engine; langgenius/dify issue 32221.
    &["input length", "exceeds the maximum length"],
    // z.ai; anomalyco/opencode issue 35918.
    &["tokens in request more than max tokens allowed"],
    // Zhipu's code 1261; its users' code alone.
    &["prompt exceeds max length"],
    // MiniMax; anomalyco/opencode, provider-error.ts.
    &["context window exceeds limit"],
    // GitHub Copilot; anomalyco/opencode, provider-error.ts.
    &["exceeds the limit of", "token"],
    // Cohere; openclaw/openclaw issue 58839.
    &["total tokens exceeds the model's max"],
    // Cohere; cohere-ai/sandbox-topically issue 4.
    &["too many tokens", "cannot exceed"],
    // Doubao at Volcano Engine; agentscope-ai/QwenPaw issue 272.
    &["tokens of image and text exceed"],
    // SiliconFlow; sjzar/chatlog issue 30.
    &["prompt_tokens", "must be less than max_seq_len"],
    // A request above the tokens of a minute will not pass later. OpenAI with status 429, Groq with 413; vanna-ai/vanna-flask
    // issue 11, cottongeeks/podscript issue 20.
    &["request too large for", "limit", "requested"],
    // GitHub Models; cline/cline issue 2115.
    &["request body too large for", "max size", "tokens"],
    // Servers of one's own.
    // LM Studio; anomalyco/opencode issue 2259.
    &["greater than the context length"],
    // LM Studio; lmstudio-ai/lmstudio-bug-tracker issue 546.
    &["with context length of only"],
    // LM Studio; lmstudio-ai/examples issue 29.
    &["exceeds context length"],
    // LM Studio; anomalyco/opencode issue 11141.
    &["n_keep", "n_ctx"],
    // llama.cpp: tools/server/README.md.
    &["exceeds the available context size"],
    // llama.cpp; its source.
    &["exceed the context"],
    // llama-cpp-python; abetlen/llama-cpp-python issue 416.
    &["exceed context window"],
    // vLLM: v1/engine/processor.py.
    &["longer than the maximum model length"],
    // SGLang; anomalyco/opencode, provider-error.ts.
    &["longer than the model's context length"],
    // Ollama; openclaw/openclaw issue 58839.
    &["exceeded", "context length"],
    // Ollama; openclaw/openclaw issue 58839.
    &["context length exceeded"],
    // text-generation-inference; bytedance/UI-TARS-desktop issue 626.
    &["`inputs` tokens", "must be <="],
    // text-generation-inference, older; meta-llama/llama issue 1103.
    &["`inputs` must have less than", "tokens"],
    // TensorRT-LLM; triton-inference-server/tensorrtllm_backend issues 141 and 565.
    &["prompt length", "exceeds maximum"],
    // RKLLM; jaylfc/taOS issue 1738.
    &["but the model context window is"],
    // Gateways.
    // LiteLLM, also with status 500; OpenHands/OpenHands issue 4894.
    &["contextwindowexceedederror"],
];

/// The largest nesting depth of objects, lists and JSON texts that is searched.
const MAX_DEPTH: usize = 8;

/// The fields of an error that contain the server's own message. Other fields may repeat the request.
const FIELDS: [&str; 10] = [
    "error", "errors", "message", "detail", "msg", "code", "type", "status", "metadata", "raw",
];

/// Returns true if the body of an error contains a known message about a request that is too long.
pub(super) fn is_named(body: &str) -> bool {
    let mut words = Vec::new();
    match serde_json::from_str::<Value>(body) {
        Ok(body) => collect(&body, MAX_DEPTH, &mut words),
        Err(_) => words.push(body.to_lowercase()),
    }
    let mut words = words.iter();
    words.any(|words| PHRASES.iter().any(|phrase| is_in(phrase, words)))
}

/// Returns the size of the context window in a refusal, if the conversation and the output limit `limit` exceed it only together:
/// 200000 for "178959 + 64000 > 200000". Returns `None` if the conversation alone exceeds the window, or for any other message.
pub(super) fn window_of_sum(body: &str, limit: u64) -> Option<u64> {
    let numbers: Vec<u64> = numbers(body).filter(|number| *number > 0).collect();
    if !numbers.contains(&limit) {
        return None;
    }
    let pairs = numbers
        .iter()
        .flat_map(|window| numbers.iter().map(move |used| (*window, *used)));
    // The sum of both leaves as much as the limit, and other pairs leave less than the window does.
    pairs
        .filter(|(window, used)| used < window && window - used < limit && used + limit > *window)
        .max_by_key(|(window, used)| (*window != limit, window - used))
        .map(|(window, _)| window)
}

fn is_in(phrase: &[&str], words: &str) -> bool {
    let mut rest = words;
    phrase.iter().all(|part| {
        let found = rest.split_once(part);
        rest = found.map_or("", |(_, after)| after);
        found.is_some()
    })
}

/// Collects the messages of an error in lower case. Also parses strings as JSON, because a gateway may put the JSON error of an
/// upstream server into a string.
fn collect(value: &Value, depth: usize, words: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| FIELDS.contains(&name.as_str()))
            .for_each(|(_, value)| collect(value, depth, words)),
        Value::Array(values) => values.iter().for_each(|it| collect(it, depth, words)),
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => collect(&inner, depth, words),
            _ => words.push(text.to_lowercase()),
        },
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(body: &Value, expected: bool) {
        assert_eq!(is_named(&body.to_string()), expected, "{body}");
    }

    #[test]
    fn each_phrase_is_in_lower_case() {
        for phrase in PHRASES {
            let words = phrase.concat();
            assert!(
                !words.is_empty() && words == words.to_lowercase(),
                "{words}"
            );
        }
    }

    /// The sentences are those of the servers, as their users report them.
    #[test]
    fn the_window_that_an_answer_would_exceed() {
        for (sentence, limit, window) in [
            (
                "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens`",
                64_000,
                Some(200_000),
            ),
            (
                "This model's maximum context length is 4097 tokens, however you requested 4182 tokens (182 in your prompt; 4000 for \
                 the completion).",
                4_000,
                Some(4_097),
            ),
            (
                "'max_tokens' or 'max_completion_tokens' is too large: 64000. This model's maximum context length is 32768 tokens and \
                 your request has 2104 input tokens (64000 > 32768 - 2104).",
                64_000,
                Some(32_768),
            ),
            (
                "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, \
                 8192 in the completion).",
                8_192,
                Some(131_072),
            ),
            (
                "Requested token count exceeds the model's maximum context length of 256000 tokens. You requested a total of 256878 \
                 tokens: 31216 tokens from the input messages and 225662 tokens for the completion.",
                225_662,
                Some(256_000),
            ),
            (
                "This model's maximum context length is 65536 tokens. However, you requested 69648 tokens (69648 in the messages, 0 in \
                 the completion).",
                8_192,
                None,
            ),
            (
                "prompt is too long: 210543 tokens > 200000 maximum",
                64_000,
                None,
            ),
        ] {
            assert_eq!(window_of_sum(sentence, limit), window, "{sentence}");
        }
    }

    #[test]
    fn what_servers_say() {
        for sentence in [
            "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with \
             a larger context length, or provide a shorter input",
            "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096).",
            "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length \
             of only 32768 tokens, which is not enough.",
            "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)",
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again",
            "Input is too long for requested model.",
            "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000",
            "Input tokens exceed the configured limit of 272000 tokens.",
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]",
            "Input length 203743 exceeds the maximum length 202752",
            "prompt too long; exceeded max context length by 4 tokens",
            "Requested tokens (5136) exceed context window of 4096",
            "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354. Try using a shorter prompt",
            "Total tokens of image and text exceed max message tokens. Request id: 0217",
            "length of prompt_tokens (163280) must be less than max_seq_len (32768).",
            "Request too large for gpt-4o in organization org-z on tokens per min (TPM): Limit 30000, Requested 132819. The input or \
             output tokens must be reduced in order to run successfully.",
            "Request too large for model `llama-3.3-70b-versatile` in organization `org_0` service tier `on_demand` on tokens per minute \
             (TPM): Limit 6000, Requested 10338, please reduce your message size and try again.",
            "Request body too large for gpt-4.1 model. Max size: 8000 tokens.",
            "Input validation error: `inputs` must have less than 4096 tokens. Given: 4545",
            "Encountered an error when fetching new request: Prompt length (5056) exceeds maximum sequence length (2048)",
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 65537. Given: 79993 `inputs` tokens",
            "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 tokens and your \
             request has 2104 input tokens (2000 > 4096 - 2104).",
        ] {
            check(&json!({ "error": { "message": sentence } }), true);
            check(&json!({ "error": sentence }), true);
            check(&json!({ "detail": [{ "msg": sentence }] }), true);
            check(&json!(sentence), true);
            assert!(is_named(sentence), "{sentence}");
        }
        for sentence in [
            "tool_use without tool_result",
            "Rate limit exceeded: too many tokens per minute",
            "Rate limit reached for gpt-4o in organization org-z on tokens per min (TPM): Limit 30000, Used 25000, Requested 8000. \
             Please try again in 6s.",
            "max_tokens: 70000 > 64000, which is the maximum allowed number of output tokens",
            "string too long. Expected a string with maximum length 64, but got a string with length 200 instead.",
            "input length exceeds 1000 characters",
            "",
        ] {
            check(&json!({ "error": { "message": sentence } }), false);
        }
    }

    #[test]
    fn a_gateway_passes_the_words_of_another_server_on() {
        let anthropic = json!({ "type": "error", "error": { "type": "invalid_request_error",
            "message": "prompt is too long: 210543 tokens > 200000 maximum" } });
        for raw in [anthropic.to_string(), "prompt is too long".to_owned()] {
            let metadata = json!({ "raw": raw, "provider_name": "Anthropic" });
            check(
                &json!({ "error": { "message": "Provider returned error", "code": 400, "metadata": metadata } }),
                true,
            );
        }
        let litellm = format!(
            "litellm.BadRequestError: litellm.ContextWindowExceededError: AnthropicError - {anthropic}"
        );
        check(
            &json!({ "error": { "message": litellm, "type": null, "code": "500" } }),
            true,
        );
    }

    #[test]
    fn the_words_of_the_chat_that_an_error_repeats_are_no_overflow() {
        check(
            &json!({ "detail": [{ "msg": "Field required", "input": { "content": "prompt is too long" } }] }),
            false,
        );
    }

    #[test]
    fn a_deep_error_ends_the_search() {
        let mut body = json!("prompt is too long");
        for _ in 0..100 {
            body = json!({ "error": body });
        }
        check(&body, false);
    }
}
