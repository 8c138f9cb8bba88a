//! Compares the lists of settings, variables, programs and times in `doc/co.txt` with those of the code.

mod lists;

use std::path::Path;

use crate::support::ROOT;

/// Returns the section of `text` that starts at the line with `tag`, without the line.
fn section<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let start = text.find(tag)?;
    let body = &text[start + text[start..].find('\n')? + 1..];
    let end = body.find("\n====").map_or(body.len(), |end| end + 1);
    Some(&body[..end])
}

/// Returns where the list of settings in `section` is not `list`, if anywhere.
fn difference(section: &str, list: &str) -> Option<String> {
    // Words of welcome may come first; the list itself begins at its first entry.
    let entry = list.lines().next()?;
    let Some(start) = section.find(entry) else {
        return Some(format!("there is no entry {entry}"));
    };
    let mut lines = section[start..].trim_end().lines();
    let mut wanted = list.trim_end().lines();
    loop {
        match (lines.next(), wanted.next()) {
            (None, None) => return None,
            (is, shall) if is == shall => {}
            (is, shall) => {
                let [is, shall] = [is, shall].map(|line| line.unwrap_or("the end"));
                return Some(format!("it has {is:?} where {shall:?} belongs"));
            }
        }
    }
}

#[test]
fn the_help_lists_every_setting_as_the_code_does() {
    let file = Path::new(ROOT).join("doc/co.txt");
    let Ok(help) = std::fs::read_to_string(&file) else {
        // Nothing to hold the list to until there is a help.
        return;
    };
    let list = lists::settings_list();
    let section = section(&help, "*co-settings*").unwrap_or("");
    if let Some(why) = difference(section, &list) {
        panic!("doc/co.txt, *co-settings*: {why}; the list is\n\n{list}");
    }
}

#[test]
fn the_help_names_every_setting_and_keeps_its_width() {
    let help = lists::settings_list();
    for setting in co::config::settings() {
        assert!(help.contains(&format!("*co-{}*", setting.name)));
        assert!(help.contains(&format!("${}", setting.variable())));
    }
    for rule in co_policy::DENY_RULES {
        assert!(help.contains(rule), "{rule}");
    }
    for line in help.lines() {
        assert!(line.chars().count() <= 78, "{line}");
        assert_eq!(line.trim_end(), line);
    }
}

/// Checks that the section with `tag` has `text` as it is.
#[track_caller]
fn has(tag: &str, text: &str) {
    let help = std::fs::read_to_string(Path::new(ROOT).join("doc/co.txt")).unwrap();
    let section = section(&help, tag).unwrap_or_else(|| panic!("doc/co.txt has no {tag}"));
    assert!(
        section.contains(text),
        "doc/co.txt, {tag}, must have this:\n\n{text}"
    );
}

#[test]
fn the_help_lists_what_runs_unasked_as_the_tables_do() {
    has("*co-unasked*", &lists::unasked());
    for tool in co::workspace::files::NAMES {
        has("*co-unasked*", &format!("`{tool}`"));
    }
}

#[test]
fn the_help_lists_the_environment_as_the_executor_builds_it() {
    has("*co-environment*", &lists::environment());
    has("*co-inherit*", &lists::inherited());
}

#[test]
fn the_help_lists_the_names_of_secrets_as_policy_does() {
    has("*co-secret-files*", &lists::secret_files());
}

#[test]
fn the_help_lists_what_others_obey_as_policy_does() {
    has("*co-obeyed*", &lists::obeyed_files());
}

#[test]
fn the_help_says_the_times_that_the_code_has() {
    let seconds = co::config::MODEL_TIMEOUT.as_secs();
    has(
        "*co-time-out*",
        &format!("A command of the model has {seconds} s,"),
    );
    let millis = co_exec::STOP_GRACE_PERIOD.as_millis();
    has("*co-ending*", &format!("SIGKILL after {millis} ms."));
    let seconds = co_exec::DRAIN_TIMEOUT.as_secs();
    has("*co-ending*", &format!("{seconds} s at most, and shows it"));
}

#[test]
fn a_list_that_differs_is_seen() {
    let text =
        "Top *other*\nx\n====\nSettings   *co-settings*\nWords.\n\na  *co-a*\n  A.\n\n====\nMore\n";
    let section = section(text, "*co-settings*").unwrap();
    assert_eq!(section, "Words.\n\na  *co-a*\n  A.\n\n");
    assert_eq!(difference(section, "a  *co-a*\n  A.\n"), None);
    for other in [
        "a  *co-a*\n  B.\n",
        "a  *co-a*\n  A.\n\nb  *co-b*\n",
        "b\n",
        "a  *co-a*\n",
    ] {
        assert!(difference(section, other).is_some(), "{other}");
    }
}
