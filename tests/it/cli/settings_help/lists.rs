//! Lists of settings, environment variables and programs in the format of `doc/co.txt`.

use co::config::{Setting, settings};
use co_exec::Caller;
use co_policy::{obeyed, programs, secret_names};

/// Columns of a help file.
const WIDTH: usize = 78;

/// Returns the section's text: an entry for each setting, a blank line between two.
pub(super) fn settings_list() -> String {
    let entries: Vec<String> = settings().map(entry).collect();
    entries.join("\n")
}

fn entry(setting: &Setting) -> String {
    let tag = format!("*co-{}*", setting.name);
    let room = WIDTH - setting.name.len();
    let mut text = format!("{}{tag:>room$}\n", setting.name);
    let default = match setting.default {
        "" => "(an empty list)",
        other => other,
    };
    fill(&mut text, &sentence(&setting.accepts()));
    fill(&mut text, &with_providers(&format!("Default: {default}")));
    fill(&mut text, &format!("Environment: ${}", setting.variable()));
    fill(&mut text, &format!("Applies: {}", setting.applies.words()));
    fill(&mut text, &with_providers(setting.help));
    text
}

/// Returns the text with words of the provider table in the place of `{key_variables}` and its like.
fn with_providers(text: &str) -> String {
    use co_llm::provider_table::{FALLBACK, alternatives, main_key_variables, model_prefixes};
    text.replace("{key_variables}", &alternatives(&main_key_variables()))
        .replace("{model_prefixes}", &alternatives(&model_prefixes()))
        .replace("{fallback}", FALLBACK.name)
}

/// Returns the text about the environment of commands.
pub(super) fn environment() -> String {
    let lists = co_exec::ENVIRONMENT;
    let forced = |caller, terminal| co_exec::forced_environment(caller, terminal).join(", ");
    let parts = [
        (
            "Every command sees, if Neovim has it:",
            lists.passed.join(", "),
        ),
        (
            "and what |co-shell_env_allow| names, by default:",
            co_exec::ExecSettings::new("/".into()).env_allow.join(", "),
        ),
        ("A command of |:Co!| sees also:", lists.personal.join(", ")),
        ("and with `++pty`:", lists.terminal.join(", ")),
        (
            "These are set for the model's commands:",
            forced(Caller::Agent, false),
        ),
        ("with `pty`:", forced(Caller::Agent, true)),
        ("These are set for |:Co!|:", forced(Caller::Person, false)),
        ("with `++pty`:", forced(Caller::Person, true)),
        (
            "These are never passed on, whatever the settings say:",
            lists.never.join(", "),
        ),
    ];
    listed(&parts)
}

/// Returns the variables that a command does not inherit from Neovim, besides those that never pass.
pub(super) fn inherited() -> String {
    listed(&[("terminal:", co_exec::ENVIRONMENT.outer.join(", "))])
}

fn listed(parts: &[(&str, String)]) -> String {
    let mut text = String::new();
    for (title, names) in parts {
        text.push_str(&format!("{title}\n"));
        fill(&mut text, names);
    }
    text
}

/// Returns the names of secret files and directories, and those of files that are none.
pub(super) fn secret_files() -> String {
    let list = |names: &[&str]| names.join(", ");
    let sources = secret_names::SOURCES.map(|extension| format!("*.{extension}"));
    listed(&[
        (
            "Environments of programs, also with an extension of source text:",
            list(&secret_names::ENVIRONMENTS),
        ),
        (
            "SSH keys, also with a suffix after `.`, `-` or `_` (`id_rsa-work`):",
            list(&secret_names::KEYS),
        ),
        ("Others:", list(&secret_names::FILES)),
        (
            "Directories; all files in them are secret too:",
            list(&secret_names::DIRECTORIES),
        ),
        (
            "These marks of editors and backups, before or after a name, change nothing:",
            list(&secret_names::MARKS),
        ),
        (
            "A name is not secret if its last part, or the one before that, is:",
            list(&secret_names::STAND_INS),
        ),
        (
            "Source text is not secret by its name, also not in `secrets`:",
            sources.join(", "),
        ),
    ])
}

/// Returns the names of files that others run or obey, by the reason.
pub(super) fn obeyed_files() -> String {
    let list = |names: &mut dyn Iterator<Item = &str>| names.collect::<Vec<_>>().join(", ");
    let mut parts: Vec<(&str, String)> = obeyed::rows()
        .map(|(reason, names)| (reason, list(&mut names.into_iter())))
        .collect();
    parts.push((
        "Other names that begin with a dot, except:",
        list(&mut obeyed::harmless()),
    ));
    parts.push((
        "Of all these, commands that are confined to the workspace cannot change:",
        list(&mut obeyed::held()),
    ));
    listed(&parts)
}

/// Returns the programs that may run unasked.
pub(super) fn unasked() -> String {
    let mut names: Vec<&str> = programs::that_look().collect();
    names.sort_unstable();
    let (subcommands, plain): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| name.contains(' '));
    let (git, others): (Vec<&str>, Vec<&str>) = subcommands
        .into_iter()
        .partition(|name| name.starts_with("git "));
    let git: Vec<&str> = git.into_iter().map(|name| &name["git ".len()..]).collect();
    format!(
        "Programs:\n{}Subcommands of git:\n{}Other subcommands:\n{}",
        columns(&plain),
        columns(&git),
        columns(&others)
    )
}

/// Returns words in columns of one width, line by line.
fn columns(words: &[&str]) -> String {
    let width = words
        .iter()
        .map(|word| word.len())
        .max()
        .unwrap_or_default()
        + 2;
    let rows = words.chunks(((WIDTH - 4) / width).max(1));
    let row = |row: &[&str]| {
        let cells: String = row.iter().map(|word| format!("{word:width$}")).collect();
        format!("    {}\n", cells.trim_end())
    };
    rows.map(row).collect()
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

/// Adds `words` in indented lines no wider than the help. Long lists break at their commas.
fn fill(text: &mut String, words: &str) {
    const INDENT: &str = "    ";
    let mut width = 0;
    for word in words.split(' ') {
        for part in word.split_inclusive(',') {
            let starts_word = part.as_ptr() == word.as_ptr();
            let space = usize::from(starts_word && width > 0);
            if width == 0 || width + space + part.chars().count() > WIDTH {
                if width > 0 {
                    text.push('\n');
                }
                text.push_str(INDENT);
                width = INDENT.len();
            } else if space == 1 {
                text.push(' ');
                width += 1;
            }
            text.push_str(part);
            width += part.chars().count();
        }
    }
    text.push('\n');
}
