//! Looks through wrappers: which commands does `sudo env bash -c '…'` come to?
//!
//! Only for deny and ask rules and for what the float says: a wrapper itself always asks.

use super::bash;

const MAX_DEPTH: usize = 6;
const MAX_FOUND: usize = 400;

/// A command found, with the targets it redirects to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Look {
    pub words: Vec<String>,
    pub writes: Vec<String>,
}

/// Adds what `words` would run inside.
pub(super) fn inner(words: &[String], depth: usize, found: &mut Vec<Look>) {
    if depth > MAX_DEPTH || found.len() > MAX_FOUND {
        return;
    }
    let Some(name) = words.first() else { return };
    let rest = &words[1..];
    let base = name.rsplit('/').next().unwrap_or(name);
    match base {
        "bash" | "sh" | "dash" | "zsh" | "ksh" | "ash" => {
            let text = rest
                .iter()
                .position(|word| {
                    word.starts_with('-') && !word.starts_with("--") && word.ends_with('c')
                })
                .and_then(|at| rest[at + 1..].iter().find(|word| !word.starts_with('-')));
            if let Some(text) = text {
                script(text, depth, found);
            }
        }
        "eval" => script(&rest.join(" "), depth, found),
        "find" | "fd" | "fdfind" => executed(rest, depth, found),
        "env" => {
            if let Some(at) = rest
                .iter()
                .position(|word| word == "-S" || word == "--split-string")
                && let Some(text) = rest.get(at + 1)
            {
                script(text, depth, found);
            }
            push(skip(rest, &["-u", "-C"], true), depth, found);
        }
        "sudo" | "doas" => push(
            skip(
                rest,
                &["-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-r", "-t"],
                true,
            ),
            depth,
            found,
        ),
        "nice" | "ionice" => push(skip(rest, &["-n", "-c", "-p"], false), depth, found),
        "timeout" => {
            let after = skip(rest, &["-s", "-k"], false);
            push(after.get(1..).unwrap_or_default(), depth, found);
        }
        "nohup" | "time" | "command" | "builtin" | "exec" | "setsid" | "busybox" | "toybox"
        | "coproc" | "!" | "watch" | "strace" | "caffeinate" => {
            push(skip(rest, &["-a", "-n", "-o", "-f"], false), depth, found)
        }
        "stdbuf" => push(skip(rest, &["-i", "-o", "-e"], false), depth, found),
        "xargs" | "parallel" => push(
            skip(
                rest,
                &["-n", "-L", "-I", "-P", "-d", "-s", "-E", "-a", "-j"],
                false,
            ),
            depth,
            found,
        ),
        _ => {}
    }
}

fn push(words: &[String], depth: usize, found: &mut Vec<Look>) {
    if words.is_empty() {
        return;
    }
    found.push(Look {
        words: words.to_vec(),
        writes: Vec::new(),
    });
    inner(words, depth + 1, found);
}

/// Skips a wrapper's own options, and assignments where it takes them.
fn skip<'a>(words: &'a [String], valued: &[&str], assignments: bool) -> &'a [String] {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if word == "--" {
            at += 1;
            break;
        } else if valued.contains(&word.as_str()) {
            at += 2;
        } else if word.starts_with('-') || (assignments && word.contains('=')) {
            at += 1;
        } else {
            break;
        }
    }
    words.get(at..).unwrap_or_default()
}

/// What follows `-exec` and its like, up to `;` or `+`.
fn executed(words: &[String], depth: usize, found: &mut Vec<Look>) {
    const ACTIONS: [&str; 8] = [
        "-exec",
        "-execdir",
        "-ok",
        "-okdir",
        "-x",
        "-X",
        "--exec",
        "--exec-batch",
    ];
    for (at, word) in words.iter().enumerate() {
        if ACTIONS.contains(&word.as_str()) {
            let rest = &words[at + 1..];
            let end = rest
                .iter()
                .position(|word| word == ";" || word == "+")
                .unwrap_or(rest.len());
            push(&rest[..end], depth, found);
        }
    }
}

fn script(text: &str, depth: usize, found: &mut Vec<Look>) {
    if depth >= MAX_DEPTH {
        return;
    }
    let script = bash::parse(text);
    for command in &script.commands {
        for look in looks(command) {
            found.push(look.clone());
            inner(&look.words, depth + 1, found);
        }
    }
}

/// The words of one simple command as they will be, as well as that can be told.
pub(super) fn looks(command: &bash::Simple) -> Vec<Look> {
    let words: Vec<String> = command.words.iter().flat_map(|word| word.shown()).collect();
    let writes = command
        .redirects
        .iter()
        .filter(|redirect| redirect.operator.contains('>'))
        .filter_map(|redirect| redirect.target.as_ref())
        .flat_map(|word| word.shown())
        .collect();
    vec![Look { words, writes }]
}
