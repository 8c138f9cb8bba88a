//! The names of settings: current and former ones, and suggestions for unknown names.

use super::setting::{PREFIX, Setting, variable};
use super::table::settings;

/// Variables with the prefix that are not settings.
pub(super) const OTHER_VARIABLES: &[&str] = &["CO_CLI_LOG"];

/// A setting, and whether it was found by a former name.
pub(super) struct NamedSetting {
    pub(super) setting: &'static Setting,
    pub(super) former: bool,
}

/// Returns the setting that has or had this name.
pub(super) fn find(name: &str) -> Option<NamedSetting> {
    settings().find_map(|setting| {
        let former = setting.former.contains(&name);
        (former || setting.name == name).then_some(NamedSetting { setting, former })
    })
}

/// Returns the sentence which reports that no setting has this name.
pub(super) fn unknown(name: &str, layer: &str) -> String {
    if name == "api_key" {
        return format!(
            "the setting api_key in {layer} is refused, a key does not belong in settings; name the \
             variable, file or program that has it with api_key_env, api_key_file or api_key_cmd"
        );
    }
    let what = format!("{layer} sets {}, but co has no such setting", shown(name));
    format!(
        "{what}; {}",
        suggest(settings().map(|it| it.name.to_owned()), name)
    )
}

/// Returns a sentence for each variable that has the prefix and is not a setting.
pub(super) fn unknown_variables(names: &[String]) -> Vec<String> {
    let known = |name: &str| {
        let settings = settings().flat_map(Setting::names);
        let mut known = settings.map(variable);
        OTHER_VARIABLES.contains(&name) || known.any(|variable| variable == name)
    };
    let mut names: Vec<&String> = names.iter().collect();
    names.sort();
    let unknown = names.into_iter().filter(|name| {
        // `layers` reports this variable.
        name.starts_with(PREFIX) && !known(name) && *name != "CO_CLI_API_KEY"
    });
    let sentence = |name: &String| {
        let settings = settings().map(|setting| variable(setting.name));
        let others = OTHER_VARIABLES.iter().map(|&name| name.to_owned());
        let near = suggest(settings.chain(others), name);
        format!("{} is set but is not a setting; {near}", shown(name))
    };
    unknown.map(sentence).collect()
}

/// Returns a hint: the nearest name, or the place of the list of all names.
fn suggest(names: impl Iterator<Item = String>, name: &str) -> String {
    let distances = names.map(|known| (distance(&known, name), known));
    let near = distances.min().filter(|(distance, near)| {
        // The common prefix does not count.
        let length = near.strip_prefix(PREFIX).unwrap_or(near).len();
        *distance <= length / 3
    });
    match near {
        Some((_, near)) => format!("did you mean {near}?"),
        None => ":help co-settings lists them all".to_owned(),
    }
}

fn shown(name: &str) -> String {
    let letters = name.chars().take(60);
    letters.flat_map(char::escape_default).collect()
}

/// Returns the edit distance of two words: insertions, deletions, changes and swaps of neighbouring letters.
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().take(80).collect();
    let other: Vec<char> = other.chars().take(80).collect();
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            if i == 0 || j == 0 {
                rows[i][j] = i + j;
                continue;
            }
            let change = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = change.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_one_setting() {
        let mut names: Vec<_> = settings().flat_map(Setting::names).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
    }

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("deny", "deny"), 0);
        assert_eq!(distance("model", "moedl"), 1);
    }

    #[test]
    fn the_other_variables_are_those_that_co_reads() {
        assert_eq!(OTHER_VARIABLES, [crate::logging::VARIABLE]);
    }
}
