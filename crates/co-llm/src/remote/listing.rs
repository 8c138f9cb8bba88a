//! Reads the list of models that a server offers.

use std::collections::HashSet;

use serde_json::Value;

use super::frame_reader::text;
use crate::listed_model::ListedModel;
use crate::provider_table::Protocol;

/// Returns the path of the model list, relative to the base address, and its query.
pub(super) fn path(protocol: Protocol) -> (&'static str, Option<&'static str>) {
    match protocol {
        Protocol::Anthropic => ("models", Some("limit=1000")),
        Protocol::Gemini => ("models", Some("pageSize=1000")),
        Protocol::OpenAi | Protocol::Responses => ("models", None),
        Protocol::Ollama => ("api/tags", None),
    }
}

/// Returns the models in a list, without models that cannot hold a conversation.
pub(super) fn read(list: &Value) -> Vec<ListedModel> {
    // Together sends the list itself.
    let rows = [&list["data"], &list["models"], list];
    let rows = rows.into_iter().find_map(Value::as_array);
    let models = rows.into_iter().flatten();
    models
        .filter(|row| converses(row))
        .filter_map(model)
        .collect()
}

/// The largest number of similar names that are shown for an unknown name.
const MAX_NEAREST: usize = 3;

/// Returns the names that are similar to `name`, the most similar first.
pub(super) fn nearest(name: &str, models: &[ListedModel]) -> Vec<String> {
    let pairs = |name: &str| -> HashSet<(u8, u8)> {
        let name = name.to_lowercase();
        let bytes = name.as_bytes();
        bytes.windows(2).map(|pair| (pair[0], pair[1])).collect()
    };
    let wanted = pairs(name);
    let mut likeness: Vec<(usize, &str)> = models
        .iter()
        .map(|model| {
            let offered = pairs(&model.name);
            let common = wanted.intersection(&offered).count();
            (
                200 * common / (wanted.len() + offered.len()).max(1),
                &*model.name,
            )
        })
        .filter(|(percent, _)| *percent >= 40)
        .collect();
    likeness.sort_by_key(|(percent, _)| std::cmp::Reverse(*percent));
    let nearest = likeness.iter().take(MAX_NEAREST);
    nearest.map(|(_, name)| (*name).to_owned()).collect()
}

fn model(row: &Value) -> Option<ListedModel> {
    let name = ["id", "name", "model", "key"]
        .into_iter()
        .map(|field| text(row, field))
        .find(|name| !name.is_empty())?;
    // Gemini lists them as `models/gemini-…`.
    let name = name.strip_prefix("models/").unwrap_or(name).to_owned();
    Some(ListedModel {
        window: window(row),
        images: images(row),
        name,
    })
}

/// Returns the size of the context window in a row of the list. Servers use different names for this field.
fn window(row: &Value) -> Option<u64> {
    const PATHS: [&str; 8] = [
        // What the server really holds goes before what the model could.
        "/loaded_context_length",
        "/meta/n_ctx",
        "/max_model_len",
        "/context_length",
        "/context_window",
        "/max_context_length",
        "/inputTokenLimit",
        "/max_input_tokens",
    ];
    if row["loaded_instances"].is_array() {
        // LM Studio. What it will load a model with is not known.
        let loaded = row.pointer("/loaded_instances/0/config/context_length");
        return loaded.and_then(Value::as_u64);
    }
    let mut sizes = PATHS.iter().filter_map(|path| row.pointer(path)?.as_u64());
    sizes.find(|size| *size > 0)
}

/// Returns true if the row of a model says that the model accepts images, and `None` if the row does not say. Servers use
/// different names for this field.
fn images(row: &Value) -> Option<bool> {
    // OpenRouter and xAI list what a model takes, llama.cpp what it can do.
    let lists = [
        ("/architecture/input_modalities", "image"),
        ("/input_modalities", "image"),
        ("/capabilities", "multimodal"),
    ];
    let lists = lists.into_iter().find_map(|(path, word)| {
        let list = row.pointer(path)?.as_array()?;
        Some(list.iter().any(|it| it == word))
    });
    // Mistral and LM Studio.
    lists.or_else(|| row.pointer("/capabilities/vision")?.as_bool())
}

fn converses(row: &Value) -> bool {
    let methods = row["supportedGenerationMethods"].as_array();
    if methods.is_some_and(|all| !all.iter().any(|it| it == "generateContent")) {
        return false;
    }
    let abilities = row["capabilities"].as_array();
    if abilities.is_some_and(|all| !all.is_empty() && all.iter().all(|it| it == "embedding")) {
        return false;
    }
    let kind = [text(row, "type"), text(&row["details"], "family")];
    let other_kind = |kind: &&str| {
        matches!(
            *kind,
            "embeddings" | "embedding" | "image" | "audio" | "moderation" | "rerank"
        ) || kind.ends_with("bert")
    };
    if kind.iter().any(other_kind) {
        return false;
    }
    const OTHERS: [&str; 10] = [
        "embed",
        "whisper",
        "tts-",
        "-tts",
        "dall-e",
        "moderation",
        "rerank",
        "imagen-",
        "-image",
        "transcribe",
    ];
    let name = ["id", "name", "key"].map(|field| text(row, field));
    let name = name.concat().to_lowercase();
    !OTHERS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(list: Value, expected: &[(&str, Option<u64>)]) {
        let read: Vec<_> = read(&list)
            .into_iter()
            .map(|model| (model.name, model.window))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, window)| ((*name).to_owned(), *window))
            .collect();
        assert_eq!(read, expected, "{list}");
    }

    #[test]
    fn servers_that_say_whether_a_model_takes_images() {
        let check = |row: Value, expected| {
            let mut row = row;
            row["id"] = "m".into();
            assert_eq!(read(&json!([row]))[0].images, expected, "{row}");
        };
        check(
            json!({"architecture": {"input_modalities": ["text", "image"]}}),
            Some(true),
        );
        check(json!({"input_modalities": ["text"]}), Some(false));
        check(
            json!({"capabilities": ["completion", "multimodal"]}),
            Some(true),
        );
        check(json!({"capabilities": {"vision": false}}), Some(false));
        check(json!({"capabilities": {}}), None);
        check(json!({}), None);
    }

    #[test]
    fn lists_of_all_servers() {
        check(
            json!({"data": [{"id": "a", "context_length": 9}, {"id": "b", "max_model_len": 8}]}),
            &[("a", Some(9)), ("b", Some(8))],
        );
        check(
            json!({"models": [
                {"name": "models/g", "inputTokenLimit": 7,
                 "supportedGenerationMethods": ["generateContent"]},
                {"name": "models/e", "supportedGenerationMethods": ["embedContent"]},
            ]}),
            &[("g", Some(7))],
        );
        check(
            json!([
                {"id": "t", "type": "chat", "context_length": 3},
                {"id": "Llama-Guard", "type": "moderation", "context_length": 3},
            ]),
            &[("t", Some(3))],
        );
        check(
            json!({"data": [{"id": "l", "max_context_length": 6, "loaded_context_length": 5}]}),
            &[("l", Some(5))],
        );
        check(
            json!({"models": [
                {"type": "llm", "key": "on", "max_context_length": 9,
                 "loaded_instances": [{"id": "on", "config": {"context_length": 4}}]},
                {"type": "llm", "key": "off", "max_context_length": 9, "loaded_instances": []},
                {"type": "embedding", "key": "e", "max_context_length": 9, "loaded_instances": []},
            ]}),
            &[("on", Some(4)), ("off", None)],
        );
        check(json!({"error": "Unexpected endpoint or method."}), &[]);
        check(json!({"data": null}), &[]);
    }

    #[test]
    fn the_nearest_names_come_first() {
        let models = ["llama3", "claude-opus-5-5", "claude-sonnet-5-5"].map(ListedModel::named);
        assert_eq!(
            nearest("claude-sonet-5.5", &models),
            ["claude-sonnet-5-5", "claude-opus-5-5"]
        );
        assert_eq!(nearest("zzz", &models), [""; 0]);
    }

    #[test]
    fn models_that_cannot_converse_are_left_out() {
        check(
            json!({"models": [
                {"name": "nomic-embed-text:latest", "details": {"family": "nomic-bert"}},
                {"name": "all-minilm", "details": {"family": "bert"}},
                {"name": "qwen3", "details": {"family": "qwen3"}},
            ]}),
            &[("qwen3", None)],
        );
        check(
            json!({"data": [{"id": "text-embedding-3-small"}, {"id": "gpt-4o-mini-tts"},
                            {"id": "whisper-1"}, {"id": "gpt-5.1"}]}),
            &[("gpt-5.1", None)],
        );
    }
}
