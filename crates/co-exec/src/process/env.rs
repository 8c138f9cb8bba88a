//! Builds the environment of a command: the variables of an allowlist, forced values, and no forbidden variable.

use std::ffi::{OsStr, OsString};

use crate::command::Caller;
use crate::environment::Variables;

/// Variables of the host that every command gets.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TERM",
    "SHELL",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
];

/// Variables that only a command of the person gets. A model must not use the SSH agent.
const PERSONAL: &[&str] = &["SSH_AUTH_SOCK"];

/// Variables that only a person's command in a terminal gets. Without a terminal, an editor would wait for keys forever.
const PERSONAL_TERMINAL: &[&str] = &["EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"];

/// Variables that describe the terminal in which the editor runs. A command in a terminal of its own does not get them.
const OUTER_TERMINAL: &[&str] = &["COLUMNS", "LINES", "TERMCAP", "COLORFGBG"];

/// Variables that no command gets, whatever the settings say. They make a program run other code, change how a shell reads the
/// command, or let a program control the editor.
const NEVER: &[&str] = &[
    "LD_*",
    "DYLD_*",
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "IFS",
    "CDPATH",
    "GLOBIGNORE",
    "PS4",
    "BASH_FUNC_*",
    "NVIM*",
];

/// Forced values for commands without a terminal, in which nobody can use a pager, an editor or a prompt.
const FORCED: &[(&str, &str)] = &[
    ("PYTHONUNBUFFERED", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
];

/// Forced values for a person's command in a terminal: the features of the editor's terminal.
const FORCED_TERMINAL: &[(&str, &str)] = &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")];

/// Forced values for a model's command in a terminal.
const FORCED_AGENT_TERMINAL: &[(&str, &str)] =
    &[("TERM", "xterm-256color"), ("NO_COLOR", "1"), MESSAGES];

/// Forced values for a model's command without a terminal. The model reads plain text.
const FORCED_AGENT: &[(&str, &str)] = &[("NO_COLOR", "1"), MESSAGES];

/// Keeps error messages untranslated, because co searches the output for some of them.
const MESSAGES: (&str, &str) = ("LC_MESSAGES", "C");

const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The inputs for building an environment.
pub(crate) struct Sources<'a> {
    pub(crate) host: &'a Variables,
    /// True if the command gets all variables of `host` that are not forbidden. Values are then forced only in a terminal.
    pub(crate) inherit: bool,
    /// The names of more variables that the command gets, or patterns such as `PREFIX_*`, from the settings.
    pub(crate) allow: &'a [String],
    pub(crate) caller: Caller,
    /// The PATH of the login shell. `None` to keep the PATH of `host`.
    pub(crate) path: Option<&'a str>,
    pub(crate) extra: &'a [(String, String)],
    /// True if the streams of the command are a terminal.
    pub(crate) terminal: bool,
}

/// Returns the environment of a command.
pub(crate) fn build(sources: Sources<'_>) -> Variables {
    let mut built: Variables = sources
        .host
        .iter()
        .filter(|(name, _)| passes(&sources, name))
        .cloned()
        .collect();
    if let Some(path) = sources.path {
        put(&mut built, "PATH", path.into());
    } else if value(&built, "PATH").is_none() {
        put(&mut built, "PATH", DEFAULT_PATH.into());
    }
    if sources.caller == Caller::Agent
        && let Some(all) = value(&built, "LC_ALL").filter(|all| !all.is_empty())
    {
        // LC_ALL would override LC_MESSAGES, and LANG does not.
        built.retain(|(name, _)| name != "LC_ALL");
        put(&mut built, "LANG", all);
    }
    for (name, value) in set_values(&sources) {
        put(&mut built, name, value.into());
    }
    for (name, value) in sources.extra {
        put(&mut built, name, value.into());
    }
    built.retain(|(name, _)| !listed(NEVER, name));
    built
}

/// The lists of variables that co passes or does not pass, for the help.
#[derive(Debug, Clone, Copy)]
pub struct Lists {
    /// The variables that co passes to every command.
    pub passed: &'static [&'static str],
    /// The variables that co passes only to a person's commands.
    pub personal: &'static [&'static str],
    /// The variables that co passes only to a person's commands in a terminal.
    pub terminal: &'static [&'static str],
    /// The variables that co does not pass to a command in a terminal, even if the command gets all other variables of the
    /// editor.
    pub outer: &'static [&'static str],
    /// The variables that co never passes.
    pub never: &'static [&'static str],
}

/// The lists of variables, for the help.
pub const LISTS: Lists = Lists {
    passed: ALLOWED,
    personal: PERSONAL,
    terminal: PERSONAL_TERMINAL,
    outer: OUTER_TERMINAL,
    never: NEVER,
};

/// Returns the variables that a command gets even if the host does not have them, as `NAME=value`.
pub fn forced(caller: Caller, terminal: bool) -> Vec<String> {
    let built = build(Sources {
        host: &Vec::new(),
        inherit: false,
        allow: &[],
        caller,
        path: None,
        extra: &[],
        terminal,
    });
    let own = built.iter().filter(|(name, _)| name != "PATH");
    own.map(|(name, value)| format!("{}={}", name.display(), value.display()))
        .collect()
}

/// Returns whether a variable of the host is passed to the command. Does not check forbidden variables, which are removed later.
fn passes(sources: &Sources<'_>, name: &OsStr) -> bool {
    let person = sources.caller == Caller::Person;
    if sources.inherit {
        return !(sources.terminal && listed(OUTER_TERMINAL, name));
    }
    let mut set = sources.allow.iter().map(String::as_str);
    listed(ALLOWED, name)
        || person && listed(PERSONAL, name)
        || person && sources.terminal && listed(PERSONAL_TERMINAL, name)
        || set.any(|pattern| covers(pattern, name))
}

/// Returns the forced values of the command.
fn set_values(
    sources: &Sources<'_>,
) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let agent = match sources.caller {
        Caller::Agent if sources.terminal => FORCED_AGENT_TERMINAL,
        Caller::Agent => FORCED_AGENT,
        Caller::Person => &[],
    };
    let all = match sources.caller {
        Caller::Person if sources.terminal => FORCED_TERMINAL,
        Caller::Person if sources.inherit => &[],
        _ => FORCED,
    };
    all.iter().chain(agent)
}

/// Returns the value of the variable `name`.
pub(crate) fn value(variables: &Variables, name: &str) -> Option<OsString> {
    let found = variables.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.clone())
}

fn put(variables: &mut Variables, name: &str, value: OsString) {
    variables.retain(|(key, _)| key != name);
    variables.push((name.into(), value));
}

fn listed(patterns: &[&str], name: &OsStr) -> bool {
    patterns.iter().any(|pattern| covers(pattern, name))
}

fn covers(pattern: &str, name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix.as_bytes()),
        None => name == pattern.as_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_for(caller: Caller, allow: &[&str], host: &[(&str, &str)]) -> Vec<String> {
        let host: Variables = host.iter().map(|(k, v)| (k.into(), v.into())).collect();
        let allow: Vec<String> = allow.iter().map(|&name| name.to_owned()).collect();
        let built = build(Sources {
            host: &host,
            inherit: false,
            allow: &allow,
            caller,
            path: None,
            extra: &[
                ("GIT_DIR".into(), "x".into()),
                ("LD_AUDIT".into(), "x".into()),
            ],
            terminal: false,
        });
        let show = |(k, v): (OsString, OsString)| format!("{}={}", k.display(), v.display());
        built.into_iter().map(show).collect()
    }

    fn has(built: &[String], entry: &str) -> bool {
        built.iter().any(|it| it == entry)
    }

    #[test]
    fn messages_of_a_models_command_are_not_translated() {
        let host = [
            ("LANG", "C"),
            ("LC_ALL", "de_DE.UTF-8"),
            ("LC_MESSAGES", "de_DE.UTF-8"),
        ];
        let built = build_for(Caller::Agent, &["LC_*"], &host);
        assert!(has(&built, "LC_MESSAGES=C") && has(&built, "LANG=de_DE.UTF-8"));
        assert!(has(&built, "PATH=/usr/local/bin:/usr/bin:/bin"));
        assert!(
            !built.iter().any(|it| it.starts_with("LC_ALL=")),
            "{built:?}"
        );
        let built = build_for(Caller::Person, &["LC_*"], &host);
        assert!(has(&built, "LC_ALL=de_DE.UTF-8") && has(&built, "LC_MESSAGES=de_DE.UTF-8"));
    }

    #[test]
    fn never_passes_what_runs_other_code_or_reaches_the_editor() {
        let names = [
            "LD_PRELOAD",
            "DYLD_INSERT_LIBRARIES",
            "BASH_ENV",
            "ENV",
            "SHELLOPTS",
            "BASHOPTS",
            "IFS",
            "CDPATH",
            "GLOBIGNORE",
            "PS4",
            "BASH_FUNC_ls%%",
            "NVIM",
            "NVIM_LISTEN_ADDRESS",
        ];
        let host: Vec<_> = names.iter().map(|&name| (name, "x")).collect();
        for caller in [Caller::Agent, Caller::Person] {
            let built = build_for(caller, &names, &host);
            assert!(!built.iter().any(|it| it.starts_with("LD_AUDIT")));
            for name in names {
                assert!(!has(&built, &format!("{name}=x")), "{name}");
            }
        }
    }
}
