//! Reads the limits of a model from Ollama's report.

use std::time::Duration;

use serde_json::Value;

/// The time-out of the request for a model's limits. After it, co uses the default context window.
pub(in crate::remote) const SHOW_TIMEOUT: Duration = Duration::from_secs(10);

/// The limits of a model, as Ollama reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::remote) struct ModelLimits {
    /// The largest context window in tokens that the model supports.
    most: Option<u64>,
    /// The context window in tokens that the model's parameters on the server set.
    set: Option<u64>,
    /// True if the model accepts images. It is `None` if the server does not report this.
    pub(in crate::remote) images: Option<bool>,
}

impl ModelLimits {
    /// Returns the context window to ask for: `wanted`, or else the size that is set on the server, or else `usual`. The result
    /// is never larger than the model supports.
    pub(in crate::remote) fn window(self, wanted: Option<u64>, usual: u64) -> u64 {
        let window = wanted.or(self.set).unwrap_or(usual);
        self.most.map_or(window, |most| window.min(most))
    }

    /// Reads the response to `/api/show`. A response that is not JSON has no limits.
    pub(in crate::remote) fn read(answer: &Value) -> Self {
        // `llama.context_length`, `qwen3.context_length`, ...
        let most = answer["model_info"].as_object().and_then(|facts| {
            let mut found = facts
                .iter()
                .filter(|(name, _)| name.ends_with(".context_length"));
            found.next()?.1.as_u64()
        });
        // Lines such as `num_ctx    16384`.
        let set = answer["parameters"].as_str().and_then(|parameters| {
            let mut lines = parameters.lines();
            let value = lines.find_map(|line| line.trim().strip_prefix("num_ctx "))?;
            value.trim().parse().ok()
        });
        let abilities = answer["capabilities"].as_array();
        let images = abilities.map(|all| all.iter().any(|it| it == "vision"));
        Self { most, set, images }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_window_is_what_is_wanted_as_far_as_the_model_holds_it() {
        let llama = json!({
            "model_info": { "general.architecture": "llama", "llama.context_length": 4096 },
            "parameters": "stop \"<|x|>\"\nnum_ctx                        2048",
        });
        let limits = ModelLimits::read(&llama);
        assert_eq!(limits.window(None, 8192), 2048);
        assert_eq!(limits.window(Some(3000), 8192), 3000);
        assert_eq!(limits.window(Some(100_000), 8192), 4096);
        let unknown = ModelLimits::read(&Value::Null);
        assert_eq!(unknown, ModelLimits::default());
        assert_eq!(unknown.window(None, 8192), 8192);
        assert_eq!(unknown.window(Some(100_000), 8192), 100_000);
    }
}
