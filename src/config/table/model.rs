//! The settings of the model and its provider.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::config::Config;
use crate::config::setting::{Applies, Setting, read_fields, setting};
use crate::config::units::small;
use crate::config::value::{BadValue, Kind, object};
use co_llm::{ProviderSettings, provider_table};

/// Returns true if a profile has this setting too.
fn is_of_provider(setting: &Setting) -> bool {
    !matches!(setting.name, "providers" | "prices" | "stall_timeout")
}

/// The settings of the model, in the order of the help.
pub(super) static SETTINGS: &[Setting] = &[
    setting(
        "provider",
        "(the first whose key is set, else {fallback})",
        Kind::Choice(&provider_table::NAMES, |c, v| {
            c.llm.provider = Some(v.to_owned());
        }),
        "The provider that answers. If it is not set, a base_url means a server that speaks OpenAI's \
         protocol, one of these if the address is its own, and a model that starts with {model_prefixes} means its maker. Else the first of \
         {key_variables} that is in the environment names the provider; without any, {fallback} \
         on this machine answers.",
    )
    .strict()
    .applies(Applies::NextChat),
    setting(
        "model",
        "(the preferred one of the server's)",
        Kind::Text(|c, v| c.llm.model = Some(v)),
        "The model's name, as its provider calls it. If it is not set, co asks the server for its models and takes the newest one of \
         the family that it prefers. The chat says which one answers.",
    )
    .strict()
    .applies(Applies::NextChat),
    setting(
        "base_url",
        "(the provider's own)",
        Kind::Url(|c, v| c.llm.base_url = Some(v)),
        "Where requests are sent, such as http://127.0.0.1:8080/v1/. Azure needs it: there it names your resource, such as \
         https://NAME.openai.azure.com.",
    )
    .strict()
    .applies(Applies::NextChat),
    setting(
        "api_key_env",
        "(the provider's usual one)",
        Kind::Text(|c, v| c.llm.key_env = Some(v)),
        "The environment variable with the key. The key itself is never a setting. Without this setting a key in the \
         environment goes to its vendor's own servers only, and to no other base_url. If a later layer sets another base_url or \
         provider, no prompt is sent until that layer names the key, too.",
    )
    .applies(Applies::NextChat),
    setting(
        "api_key_file",
        "(none)",
        Kind::Path(|c, v| c.llm.key_file = Some(v)),
        "A file with the key, which nobody else can read.",
    )
    .applies(Applies::NextChat),
    setting(
        "api_key_cmd",
        "(none)",
        Kind::Argv(|c, v| c.llm.key_cmd = Some(v)),
        "A program that prints the key, and its arguments, such as { 'pass', 'show', 'openai' }. It is asked again after the server \
         refused what it printed.",
    )
    .applies(Applies::NextChat),
    setting(
        "headers",
        "{}",
        Kind::Pairs(|c, v| c.llm.headers = v),
        "Headers that go with every request.",
    )
    .applies(Applies::NextChat),
    setting(
        "extra_body",
        "(none)",
        Kind::Object(|c, v| c.llm.extra_body = Some(v)),
        "Fields that are put into every request's body, such as { temperature = 0 }.",
    )
    .applies(Applies::NextChat),
    setting(
        "max_output_tokens",
        "none",
        Kind::Limit(1..=u32::MAX as u64, |c, v| c.llm.max_output_tokens = v.map(small)),
        "The longest answer to ask for, in tokens; none leaves it to the provider.",
    )
    .applies(Applies::NextChat),
    setting(
        "context_window",
        "none",
        Kind::Limit(1000..=1_000_000_000, |c, v| c.llm.context_window = v),
        "How many tokens the model can read. Needed only for models that co does not know. Ollama is \
         asked for that many, as far as its model can read them; unset, for what is set there, else 8192.",
    )
    .applies(Applies::NextChat),
    setting(
        "images",
        "(what the server or the model's family says)",
        Kind::Flag(|c, v| c.llm.images = Some(v)),
        "Whether the model takes images, such as |co-@file|:shot.png. Needed only for models of which co does not know it.",
    )
    .applies(Applies::NextChat),
    setting(
        "protocol",
        "(the provider's usual one)",
        Kind::Choice(&provider_table::PROTOCOL_NAMES, |c, v| {
            c.llm.protocol = provider_table::Protocol::named(v);
        }),
        "The format of requests. OpenAI's own server is asked over openai_responses, other servers with OpenAI's format over \
         openai, which are chat completions.",
    )
    .applies(Applies::NextChat),
    setting(
        "effort",
        "(the provider's usual one)",
        Kind::Choice(&co_llm::Effort::NAMES, |c, v| c.llm.effort = v.parse().ok()),
        "How hard the model thinks. co says it in the words of each family of models; |co-/effort| changes it for one chat.",
    )
    .applies(Applies::NextChat),
    setting(
        "providers",
        "{}",
        Kind::Tables {
            accepts: "a table from names to tables of settings of the provider, of |co-provider| to |co-effort|",
            read: set_profiles,
        },
        "Further providers, such as { work = { provider = 'openrouter', api_key_env = 'WORK_KEY' }, local = { base_url = \
         'http://127.0.0.1:8080' } }. |co-/model| and |co-model| choose one as `work`, or as `work/` and a model. Each takes the \
         settings above, and nothing of them reaches another one.",
    )
    .strict()
    .applies(Applies::NextChat),
    setting(
        "prices",
        "{}",
        Kind::Prices(|c, v| c.prices = v),
        "What models cost, by their name or as provider/model, such as { ['my-model'] = { input = 3, \
         cached = 0.3, output = 15 } }. The winbar, /usage and /export then say what a chat has cost; \
         `≥ $0.98` if a part of it was answered by a model without a price. For Claude at Anthropic's own server \
         co knows the list prices of November 2026.",
    ),
    setting(
        "stall_timeout",
        "120",
        Kind::Number(1..=3600, |c, v| c.stall_timeout = Duration::from_secs(v)),
        "Seconds a model may send nothing before its answer counts as broken off.",
    )
    .applies(Applies::NextChat),
];

/// Reads the profiles in a table. The name of a profile must not contain `/`, which separates it from a model.
fn set_profiles(config: &mut Config, value: &Value, home: Option<&Path>) -> Result<(), BadValue> {
    let mut profiles = Vec::new();
    for (name, fields) in object(value)? {
        if name.is_empty() || name.contains('/') {
            return Err(BadValue);
        }
        let settings = SETTINGS.iter().filter(|it| is_of_provider(it));
        let profile = read_fields(&fields, settings, home)?;
        profiles.push(ProviderSettings {
            name: Some(name),
            ..profile.llm
        });
    }
    config.providers = profiles;
    Ok(())
}
