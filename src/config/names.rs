//! The names of settings, and suggestions for unknown names.

use strsim::osa_distance;

use super::setting::{PREFIX, Setting};
use super::table::settings;

/// The environment variables with co's prefix that are not settings.
pub(super) const OTHER_VARIABLES: &[&str] = &["CO_CLI_LOG"];

/// The former names of settings, with the current names.
const FORMER: [(&str, &str); 2] = [
    ("sandbox_max_timeout", "shell_max_timeout"),
    ("session_prune_days", "chat_prune_days"),
];

/// Returns the current setting for a former name.
fn renamed(former: &str) -> Option<&'static Setting> {
    let (_, name) = FORMER.iter().find(|(old, _)| *old == former)?;
    find(name)
}

/// Returns the setting with this name.
pub(super) fn find(name: &str) -> Option<&'static Setting> {
    settings().find(|setting| setting.name == name)
}

/// Returns a sentence that reports an unknown name of a setting.
pub(super) fn unknown(name: &str, layer: &str) -> String {
    if name == "api_key" {
        return format!(
            "the setting api_key in {layer} is refused, a key does not belong in settings; name the \
             variable, file or program that has it with api_key_env, api_key_file or api_key_cmd"
        );
    }
    if let Some(setting) = renamed(name) {
        return format!(
            "the setting {name} in {layer} was renamed; write {} instead",
            setting.name
        );
    }
    let what = format!("{layer} sets {}, but co has no such setting", shown(name));
    format!(
        "{what}; {}",
        suggest(settings().map(|it| it.name.to_owned()), name)
    )
}

/// Returns a sentence for each environment variable with co's prefix that is not a setting.
pub(super) fn unknown_variables(names: &[String]) -> Vec<String> {
    let known = |name: &str| {
        OTHER_VARIABLES.contains(&name) || settings().any(|setting| setting.variable() == name)
    };
    let mut names: Vec<&String> = names.iter().collect();
    names.sort();
    let unknown = names.into_iter().filter(|name| {
        // `layers` reports this variable.
        name.starts_with(PREFIX) && !known(name) && *name != "CO_CLI_API_KEY"
    });
    let sentence = |name: &String| {
        let former = name.strip_prefix(PREFIX).map(str::to_lowercase);
        if let Some(setting) = former.as_deref().and_then(renamed) {
            return format!("{name} was renamed; write {} instead", setting.variable());
        }
        let settings = settings().map(Setting::variable);
        let others = OTHER_VARIABLES.iter().map(|&name| name.to_owned());
        let near = suggest(settings.chain(others), name);
        format!("{} is set but is not a setting; {near}", shown(name))
    };
    unknown.map(sentence).collect()
}

/// Returns a hint: the most similar name, or the place where all names are listed.
fn suggest(names: impl Iterator<Item = String>, name: &str) -> String {
    match nearest(names, name) {
        Some(near) => format!("did you mean {near}?"),
        None => ":help co-settings lists them all".to_owned(),
    }
}

/// Returns the known name that is most similar to `name`, or `None` if no name is similar enough.
pub(super) fn nearest(names: impl Iterator<Item = String>, name: &str) -> Option<String> {
    let name: String = name.chars().take(80).collect();
    let distances = names.map(|known| (osa_distance(&known, &name), known));
    let near = distances.min().filter(|(distance, near)| {
        // The common prefix does not count.
        let length = near.strip_prefix(PREFIX).unwrap_or(near).len();
        *distance <= length / 3
    });
    near.map(|(_, near)| near)
}

fn shown(name: &str) -> String {
    let letters = name.chars().take(60);
    letters.flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_one_setting() {
        let mut names: Vec<_> = settings().map(|setting| setting.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
    }

    #[test]
    fn the_other_variables_are_those_that_co_reads() {
        assert_eq!(OTHER_VARIABLES, [crate::logging::VARIABLE]);
    }
}
