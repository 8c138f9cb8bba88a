//! The families of models, sorted by preference, and the properties of their models. The data is in `models.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::listed_model::ListedModel;
use crate::price::Price;

/// The properties of the models of a family. An unknown property is `None`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Family {
    /// The pattern for the names of the models. `*` stands for the version.
    name: String,
    /// The first version that has these properties.
    #[serde(default)]
    since: String,
    pub(crate) window: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) thinking: Option<Thinking>,
    /// True if the models accept images.
    #[serde(default)]
    pub(crate) images: bool,
    price: Option<Price>,
}

/// The control that a request has over the thinking of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Thinking {
    /// The model decides how long it thinks, and thinking can be turned off.
    Adaptive,
    /// The model decides how long it thinks, and thinking cannot be turned off.
    Always,
    /// The request sets the number of tokens for thinking.
    Budget,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    family: Vec<Family>,
}

static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("models.toml"))
        .expect("models.toml is a part of this program, and its test reads it");
    file.family
});

/// Returns the family of a model, or `None` for an unknown model. A variant such as `-mini` belongs to the family of its main
/// model.
pub(crate) fn find(model: &str) -> Option<&'static Family> {
    let of = |variants| move |family: &&Family| family.version(model, variants).is_some();
    FAMILIES
        .iter()
        .find(of(false))
        .or_else(|| FAMILIES.iter().find(of(true)))
}

/// Returns the vendor's list price of a model. Returns `None` for a variant, because its price differs from the price of the main
/// model.
pub(crate) fn list_price(model: &str) -> Option<Price> {
    let mut families = FAMILIES.iter();
    families
        .find(|family| family.version(model, false).is_some())?
        .price
}

/// Returns the model to use if the person set no model. It is the newest model of the most preferred family that the server
/// offers, or else the first model on offer.
pub(crate) fn choose(offered: &[ListedModel]) -> Option<&ListedModel> {
    let newest = |family: &Family| {
        let known = offered.iter().filter_map(|model| {
            let version = family.version(&model.name, false)?;
            // The short name means the newest snapshot of a model.
            Some(((version, std::cmp::Reverse(model.name.len())), model))
        });
        known.max_by(|a, b| a.0.cmp(&b.0)).map(|(_, model)| model)
    };
    FAMILIES.iter().find_map(newest).or(offered.first())
}

impl Family {
    /// Returns the version of a model of this family, or `None` for a model of another family. If `variants` is true, variants
    /// such as `-mini` belong to the family.
    fn version(&self, model: &str, variants: bool) -> Option<Vec<u32>> {
        let bare = plain(model);
        let same = |rest: &&str| variants || is_snapshot(rest);
        let version = match self.name.split_once('*') {
            None => bare.strip_prefix(&self.name).filter(same).map(|_| ""),
            Some((start, end)) => {
                let rest = bare.strip_prefix(start)?;
                let length = rest.find(|c: char| !c.is_ascii_digit() && c != '-');
                let version = rest[..length.unwrap_or(rest.len())].trim_end_matches('-');
                let rest = &rest[version.len()..];
                rest.strip_prefix(end).filter(same).map(|_| version)
            }
        }?;
        let numbers = numbers(version);
        let fits = !self.name.contains('*') || !numbers.is_empty();
        (fits && numbers >= self::numbers(&plain(&self.since))).then_some(numbers)
    }
}

/// Returns a model's name in lower case, without its vendor, and with `-` for each dot. Gateways write `vendor/claude-sonnet-5.5`
/// for `claude-sonnet-5-5`.
pub(crate) fn plain(model: &str) -> String {
    let bare = model.rsplit('/').next().unwrap_or(model);
    bare.to_ascii_lowercase().replace('.', "-")
}

/// Returns the numbers of a version. Leaves out the date of a snapshot.
fn numbers(version: &str) -> Vec<u32> {
    let parts = version.split('-').filter(|part| part.len() < 4);
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// Returns true if this end of a name does not change the model, such as a date or `-latest`.
fn is_snapshot(rest: &str) -> bool {
    rest.split('-').all(|part| {
        matches!(part, "" | "latest" | "preview") || part.chars().all(|c| c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(offered: &[&str]) -> Option<String> {
        let offered: Vec<ListedModel> = offered
            .iter()
            .map(|name| ListedModel::named(name))
            .collect();
        choose(&offered).map(|model| model.name.clone())
    }

    #[test]
    fn the_file_can_be_read_and_each_row_matches_something() {
        for family in FAMILIES.iter() {
            let since = if family.since.is_empty() {
                "1"
            } else {
                &family.since
            };
            let model = family.name.replace('*', since);
            assert!(family.version(&model, false).is_some(), "{family:?}");
            assert!(family.window.is_some(), "{family:?}");
        }
    }

    #[test]
    fn the_newest_model_of_the_preferred_family_is_chosen() {
        let check = |offered: &[&str], expected: &str| {
            assert_eq!(chosen(offered).as_deref(), Some(expected), "{offered:?}");
        };
        check(
            &[
                "claude-haiku-5-5",
                "claude-sonnet-4-5-20250929",
                "claude-sonnet-5-5",
                "claude-opus-5-5",
            ],
            "claude-sonnet-5-5",
        );
        check(
            &["claude-sonnet-5-5-20260901", "claude-sonnet-5-5"],
            "claude-sonnet-5-5",
        );
        check(
            &[
                "gpt-4o",
                "gpt-6.1-sol",
                "gpt-6.1-terra",
                "gpt-5.6-terra",
                "gpt-6-astra",
            ],
            "gpt-6.1-terra",
        );
        check(&["gpt-5", "gpt-5.1", "gpt-5-mini"], "gpt-5.1");
        check(
            &[
                "gemini-3.8-flash",
                "gemini-2.5-pro",
                "gemini-3.1-pro-preview",
            ],
            "gemini-3.1-pro-preview",
        );
        check(
            &["vendor/claude-sonnet-5.5", "vendor/claude-sonnet-5"],
            "vendor/claude-sonnet-5.5",
        );
        check(&["smollm2", "llama3"], "smollm2");
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn properties_are_those_of_the_version() {
        let check = |model: &str, window, thinking| {
            let family = find(model).unwrap_or_else(|| panic!("{model}"));
            assert_eq!(
                (family.window, family.thinking),
                (Some(window), thinking),
                "{model}"
            );
        };
        check(
            "claude-sonnet-4-5-20250929",
            200_000,
            Some(Thinking::Budget),
        );
        check(
            "anthropic/claude-sonnet-4.5",
            200_000,
            Some(Thinking::Budget),
        );
        check("claude-sonnet-4-6", 200_000, Some(Thinking::Adaptive));
        check("claude-sonnet-5-5", 1_000_000, Some(Thinking::Adaptive));
        check("claude-opus-5-5", 1_000_000, Some(Thinking::Always));
        check("gpt-5.1", 400_000, Some(Thinking::Adaptive));
        check("gpt-4.1", 1_047_576, None);
        check("gpt-4o-2024-08-06", 128_000, None);
        check("gpt-5-mini", 400_000, Some(Thinking::Adaptive));
        check("claude-3-5-sonnet-20241022", 200_000, None);
        check("gemini-2.5-pro", 1_048_576, Some(Thinking::Budget));
        check("gemini-3.8-flash", 1_048_576, Some(Thinking::Adaptive));
        assert_eq!(find("smollm2"), None);
        assert_eq!(find(""), None);
    }
}
