//! Detects calls and ends of reasoning that a model wrote into its text because the server or the chat template does not
//! recognize them.

use serde_json::Value;

use crate::provider::Delta;

const CALL: &str = "the model wrote a call as text; its server or template does not support tools";
const REASONING: &str =
    "the model wrote its reasoning as text; its server or template does not mark its beginning";

/// The largest number of bytes of an answer that are searched.
const MAX_LENGTH: usize = 1024 * 1024;
/// The largest number of lines of an answer that are parsed as JSON.
const MAX_TRIES: usize = 32;

/// Texts that begin a call in the chat templates of models.
const MARKS: [&str; 9] = [
    "<|tool_call",
    "<|python_tag|>",
    "<｜tool",
    "[TOOL_CALLS]",
    "<function=",
    "<invoke name=",
    "functools[",
    "to=functions.",
    "<start_function_call>",
];
/// Tags around calls. In a call, JSON, another tag or the name of a tool follows the tag. In prose about tags, other text
/// follows.
const TAGS: [&str; 6] = [
    "tool_call>",
    "tool_calls>",
    "function_call>",
    "function_calls>",
    "<tools>",
    "<tool_use>",
];

/// The tag that begins reasoning.
const THINK: &str = "<think>";
/// Texts that begin and end reasoning in the chat templates of models.
const THOUGHTS: [(&str, &str); 7] = [
    (THINK, "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis", "<|channel|>final"),
];

/// The text and the reasoning of an answer.
#[derive(Debug, Default)]
pub(super) struct StrayText {
    text: String,
    reasoning: String,
}

impl StrayText {
    pub(super) fn push(&mut self, delta: &Delta) {
        let (whole, piece) = match delta {
            Delta::Text(piece) => (&mut self.text, piece),
            Delta::Reasoning(piece) => (&mut self.reasoning, piece),
            _ => return,
        };
        if whole.len() < MAX_LENGTH {
            whole.push_str(piece);
        }
    }

    /// Returns a notice for the person if the text contains a call of one of the tools, or reasoning whose beginning is missing.
    pub(super) fn notice(&self, tools: &[String]) -> Option<&'static str> {
        // A model that calls within its reasoning gives no answer.
        let text = match self.text.trim().is_empty() {
            true => self.reasoning.as_str(),
            false => self.text.as_str(),
        };
        if !tools.is_empty() && (has_marked_call(text, tools) || has_json_call(text, tools)) {
            return Some(CALL);
        }
        has_reasoning(&self.text).then_some(REASONING)
    }
}

/// Returns the parts of a text that are not code: neither in a fenced block nor between backticks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fence: Option<&str> = None;
    let lines = text.lines().filter(move |line| {
        let line = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|it| line.starts_with(it));
        match (fence, mark) {
            (None, None) => true,
            (None, Some(_)) => {
                fence = mark;
                false
            }
            (Some(open), mark) => {
                if mark == Some(open) {
                    fence = None;
                }
                false
            }
        }
    });
    lines.flat_map(|line| line.split('`').step_by(2))
}

/// Returns true if a text contains the end of reasoning without its beginning, or begins with reasoning in an unknown form.
fn has_reasoning(text: &str) -> bool {
    let prose: Vec<&str> = prose(text).collect();
    let has = |tag: &str| prose.iter().any(|part| part.contains(tag));
    let start = text.trim_start();
    THOUGHTS.iter().any(|(open, close)| {
        let begins = start.starts_with(open) && *open != THINK;
        has(close) && (begins || !has(open))
    })
}

fn has_marked_call(text: &str, tools: &[String]) -> bool {
    // Gemma's templates use a fence.
    let fence = |line: &str| matches!(line.trim(), "```tool_code" | "```tool_call");
    let in_prose = |mark: &str| prose(text).any(|part| part.contains(mark));
    let holds_call = |tag: &&str| {
        text.match_indices(*tag).any(|(at, tag)| {
            let rest = text[at + tag.len()..].trim_start();
            rest.starts_with(['{', '[', '<']) || tools.iter().any(|tool| rest.starts_with(&**tool))
        })
    };
    text.lines().any(fence)
        || MARKS.into_iter().any(in_prose)
        || TAGS.iter().any(|tag| in_prose(tag) && holds_call(tag))
}

/// Returns true if a line begins with a JSON object that has arguments and the name of one of the tools.
fn has_json_call(text: &str, tools: &[String]) -> bool {
    let starts = text.match_indices(['{', '[']).filter(|(at, _)| {
        let before = text[..*at].rsplit('\n').next().unwrap_or_default();
        before.trim().is_empty()
    });
    starts.take(MAX_TRIES).any(|(at, _)| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(Value::Array(calls))) => calls.iter().any(|call| names_tool(call, tools)),
            Some(Ok(call)) => names_tool(&call, tools),
            _ => false,
        }
    })
}

fn names_tool(call: &Value, tools: &[String]) -> bool {
    let call = if call["function"].is_object() {
        &call["function"]
    } else {
        call
    };
    let named = ["name", "tool", "tool_name", "function"];
    let given = ["arguments", "parameters", "args", "input"];
    let name = named.into_iter().find_map(|field| call[field].as_str());
    name.is_some_and(|name| tools.iter().any(|tool| tool == name))
        && given.into_iter().any(|field| !call[field].is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let mut stray = StrayText::default();
        let pieces = text.chars().map(|c| Delta::Text(c.to_string()));
        pieces.for_each(|piece| stray.push(&piece));
        let tools = ["run".to_owned(), "read_file".to_owned()];
        let shown: String = text.chars().take(200).collect();
        assert_eq!(stray.notice(&tools), expected, "{shown}");
    }

    #[test]
    fn calls_of_many_templates() {
        for text in [
            "<tool_call>\n{\"name\": \"run\", \"arguments\": {\"cmd\": \"ls\"}}\n</tool_call>",
            "I look. <tool_call>{\"name\": \"other\", \"arguments\": {}}</tool_call>",
            "<tool_call>run\n<arg_key>cmd</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
            "<tool_call>\n<function=run>\n<parameter=cmd>\nls\n</parameter>\n</function>\n</tool_call>",
            "<function=run>{\"cmd\": \"ls\"}</function>",
            "<function_calls>\n<invoke name=\"run\">\n</invoke>\n</function_calls>",
            "[TOOL_CALLS][{\"name\": \"run\", \"arguments\": {}}]",
            "[TOOL_CALLS]run[ARGS]{}",
            "<|python_tag|>{\"name\": \"run\", \"parameters\": {}}",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.run:0<|tool_call_argument_begin|>{}",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>run",
            "<|channel|>commentary to=functions.run <|message|>{}",
            "{\"name\": \"run\", \"arguments\": {\"cmd\": \"ls\"}}",
            "I look:\n\n```json\n{\n  \"name\": \"run\",\n  \"parameters\": {\"cmd\": \"ls\"}\n}\n```",
            "[{\"function\": {\"name\": \"run\", \"arguments\": \"{}\"}}]",
            "```tool_code\nrun(cmd='ls')\n```",
        ] {
            check(text, Some(CALL));
        }
    }

    #[test]
    fn reasoning_without_its_beginning() {
        check("hm\n</think>\n\nFour.", Some(REASONING));
        check("hm</think>Four.", Some(REASONING));
        check("hm\n[/THINK]Four.", Some(REASONING));
        check("◁think▷hm◁/think▷Four.", Some(REASONING));
        check("<thinking>hm</thinking>\nFour.", Some(REASONING));
        check(
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Four.",
            Some(REASONING),
        );
        check("Write <think>x</think> so.", None);
        check("Write <thinking>x</thinking> so.", None);
        check("The tag `</think>` ends it.", None);
        check("```\n</think>\n```", None);
    }

    #[test]
    fn a_call_within_reasoning_counts_if_there_is_no_answer() {
        let mut stray = StrayText::default();
        stray.push(&Delta::Reasoning("<function=run>{}".into()));
        let tools = ["run".to_owned()];
        assert_eq!(stray.notice(&tools), Some(CALL));
        stray.push(&Delta::Text("Four.".into()));
        assert_eq!(stray.notice(&tools), None);
    }

    #[test]
    fn what_only_speaks_of_calls_is_an_answer() {
        for text in [
            "Four.",
            "The template puts `<tool_call>{...}</tool_call>` around each call.",
            "The tag <tool_call> begins a call.",
            "```xml\n<tool_call>\n{\"name\": \"other\"}\n</tool_call>\n```",
            "{\"name\": \"run\"}",
            "{\"name\": \"co\", \"arguments\": {}}",
            "{\"name\": ",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn a_deep_or_long_text_is_read() {
        check(&"{\"a\": [\n".repeat(10_000), None);
        check(&"a `b` <tool_call> c ".repeat(10_000), None);
    }
}
