//! Decides which servers get reasoning back, and writes the effort into a request.

use serde_json::{Value, json};

use super::request_info::RequestInfo;
use crate::effort::Effort;
use crate::family::{self, Thinking};
use crate::provider_table::Protocol;
use crate::server_memory::Adaptation;

/// The rule for sending reasoning back in chat completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replay {
    Never,
    /// Reasoning is sent back with the calls that it led to.
    WithCalls,
    /// From the first call of a turn on, each message must have its reasoning, even if the reasoning is empty. Otherwise the
    /// server refuses the request.
    Demanded,
}

/// The hosts that refuse a request with reasoning in it.
const NEVER: [&str; 5] = [
    "api.openai.com",
    "api.groq.com",
    "api.cerebras.ai",
    "api.mistral.ai",
    "azure.com",
];

/// Parts of the names of models that require their reasoning back. `docs/PROVIDERS.md` names the sources.
const DEMANDING: [&str; 4] = ["deepseek", "kimi", "moonshot", "mimo"];

impl Replay {
    pub(super) fn of(info: &RequestInfo) -> Self {
        let adapted = |adaptation| info.adaptations.contains(&adaptation);
        let model = info.model.to_lowercase();
        if adapted(Adaptation::WithReasoning) {
            Self::Demanded
        } else if adapted(Adaptation::WithoutReasoning) || NEVER.iter().any(|it| info.is_at(it)) {
            Self::Never
        } else if DEMANDING.iter().any(|part| model.contains(part)) {
            Self::Demanded
        } else {
            Self::WithCalls
        }
    }
}

/// Adds the fields for the effort that the person set. Adds nothing if no effort is set.
pub(super) fn add_effort(info: &RequestInfo, body: &mut Value) {
    let Some(effort) = info.effort else {
        return;
    };
    if info.adaptations.contains(&Adaptation::WithoutEffort) {
        return;
    }
    match info.protocol {
        Protocol::Anthropic => anthropic(info, effort, body),
        Protocol::OpenAi => chat_completions(info, effort, body),
        Protocol::Responses => body["reasoning"]["effort"] = openai(info, effort).into(),
        Protocol::Gemini => gemini(info, effort, body),
        Protocol::Ollama => {
            body["think"] = match info.model.contains("gpt-oss") {
                true => up_to_high(effort).into(),
                false => (effort != Effort::None).into(),
            };
        }
    }
}

fn thinking(info: &RequestInfo) -> Option<Thinking> {
    family::find(&info.model).and_then(|family| family.thinking)
}

/// Returns true if a request gives Claude a fixed thinking budget. Then each call must follow the thinking that led to it.
pub(super) fn has_budget(info: &RequestInfo) -> bool {
    let set = info.effort.is_some_and(|effort| effort != Effort::None);
    set && info.protocol == Protocol::Anthropic && thinking(info) == Some(Thinking::Budget)
}

fn anthropic(info: &RequestInfo, effort: Effort, body: &mut Value) {
    match (thinking(info), effort) {
        (Some(Thinking::Always), Effort::None) => {
            body["output_config"] = json!({ "effort": "low" });
        }
        (_, Effort::None) => body["thinking"] = json!({ "type": "disabled" }),
        (Some(Thinking::Budget), effort) => {
            body["thinking"] = json!({ "type": "enabled", "budget_tokens": budget(effort) });
        }
        (_, effort) => {
            body["thinking"] = json!({ "type": "adaptive", "display": "summarized" });
            body["output_config"] = json!({ "effort": effort.name() });
        }
    }
}

fn budget(effort: Effort) -> u64 {
    match effort {
        Effort::None => 0,
        Effort::Low => 2_048,
        Effort::Medium => 8_192,
        Effort::High => 16_384,
        Effort::Max => 24_576,
    }
}

/// Returns OpenAI's name for an effort.
fn openai(info: &RequestInfo, effort: Effort) -> &'static str {
    match (thinking(info), effort) {
        (Some(Thinking::Always), Effort::None) => "low",
        (_, effort) => effort.name(),
    }
}

fn up_to_high(effort: Effort) -> &'static str {
    match effort {
        Effort::None => "low",
        Effort::Max => "high",
        effort => effort.name(),
    }
}

fn chat_completions(info: &RequestInfo, effort: Effort, body: &mut Value) {
    let model = info.model.to_lowercase();
    if info.is_at("openrouter.ai") {
        let name = if effort == Effort::Max {
            "xhigh"
        } else {
            effort.name()
        };
        body["reasoning"] = json!({ "effort": name });
    } else if DEMANDING.iter().any(|part| model.contains(part)) {
        // These take a switch, and DeepSeek also an effort. Kimi refuses both together.
        match effort {
            Effort::None => body["thinking"] = json!({ "type": "disabled" }),
            effort if model.contains("deepseek") => body["reasoning_effort"] = effort.name().into(),
            _ => body["thinking"] = json!({ "type": "enabled" }),
        }
    } else {
        body["reasoning_effort"] = openai(info, effort).into();
    }
}

fn gemini(info: &RequestInfo, effort: Effort, body: &mut Value) {
    let config = &mut body["generationConfig"]["thinkingConfig"];
    if thinking(info) == Some(Thinking::Budget) {
        config["thinkingBudget"] = budget(effort).into();
    } else {
        config["thinkingLevel"] = up_to_high(effort).into();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::remote::request_info::test_info;

    fn info(protocol: Protocol, host: &str, model: &str) -> RequestInfo {
        RequestInfo {
            host: host.into(),
            model: model.into(),
            ..test_info(protocol)
        }
    }

    #[test]
    fn reasoning_goes_back_by_host_and_family() {
        let check = |host: &str, model: &str, adapted: Option<Adaptation>, expected| {
            let info = RequestInfo {
                adaptations: adapted.into_iter().collect::<HashSet<_>>(),
                ..info(Protocol::OpenAi, host, model)
            };
            assert_eq!(Replay::of(&info), expected, "{host} {model} {adapted:?}");
        };
        check(
            "api.deepseek.com",
            "deepseek-v4-pro",
            None,
            Replay::Demanded,
        );
        check(
            "openrouter.ai",
            "moonshotai/kimi-k2.6",
            None,
            Replay::Demanded,
        );
        check("api.groq.com", "moonshotai/kimi-k2", None, Replay::Never);
        check("api.cerebras.ai", "qwen-3", None, Replay::Never);
        check("api.mistral.ai", "magistral", None, Replay::Never);
        check("my.openai.azure.com", "gpt-5", None, Replay::Never);
        check("127.0.0.1:8080", "qwen3", None, Replay::WithCalls);
        let refuses = Some(Adaptation::WithoutReasoning);
        check("127.0.0.1:8080", "qwen3", refuses, Replay::Never);
        let demands = Some(Adaptation::WithReasoning);
        check("127.0.0.1:8080", "mystery", demands, Replay::Demanded);
    }

    #[test]
    fn each_family_has_its_own_effort() {
        let check = |protocol, host: &str, model: &str, effort, expected: Value| {
            let info = RequestInfo {
                effort: Some(effort),
                ..info(protocol, host, model)
            };
            let mut body = json!({});
            add_effort(&info, &mut body);
            assert_eq!(body, expected, "{host} {model} {effort}");
        };
        use Effort::{High, Max, None};
        use Protocol::{Anthropic, Gemini, Ollama, OpenAi, Responses};
        check(
            Anthropic,
            "h",
            "claude-sonnet-5-5",
            Max,
            json!({"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "max"}}),
        );
        check(
            Anthropic,
            "h",
            "claude-sonnet-5-5",
            None,
            json!({"thinking": {"type": "disabled"}}),
        );
        check(
            Anthropic,
            "h",
            "claude-opus-5-5",
            None,
            json!({"output_config": {"effort": "low"}}),
        );
        check(
            Anthropic,
            "h",
            "claude-haiku-4-5",
            High,
            json!({"thinking": {"type": "enabled", "budget_tokens": 16_384}}),
        );
        check(
            Responses,
            "h",
            "gpt-5.6-terra",
            None,
            json!({"reasoning": {"effort": "none"}}),
        );
        check(
            Responses,
            "h",
            "gpt-6-astra",
            None,
            json!({"reasoning": {"effort": "low"}}),
        );
        check(
            OpenAi,
            "openrouter.ai",
            "x-ai/grok-4.5",
            Max,
            json!({"reasoning": {"effort": "xhigh"}}),
        );
        check(
            OpenAi,
            "h",
            "deepseek-v4-pro",
            None,
            json!({"thinking": {"type": "disabled"}}),
        );
        check(
            OpenAi,
            "h",
            "deepseek-v4-pro",
            Max,
            json!({"reasoning_effort": "max"}),
        );
        check(
            OpenAi,
            "h",
            "kimi-k2.6",
            High,
            json!({"thinking": {"type": "enabled"}}),
        );
        check(
            OpenAi,
            "h",
            "mystery",
            High,
            json!({"reasoning_effort": "high"}),
        );
        check(
            Gemini,
            "h",
            "gemini-3.8-flash",
            Max,
            json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": "high"}}}),
        );
        check(
            Gemini,
            "h",
            "gemini-2.5-pro",
            High,
            json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": 16_384}}}),
        );
        check(Ollama, "h", "qwen3", High, json!({"think": true}));
        check(Ollama, "h", "gpt-oss:20b", Max, json!({"think": "high"}));
    }
}
