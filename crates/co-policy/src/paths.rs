//! Checks paths: a command may read regular files of the workspace that are not secret.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use crate::args::Arg;
use crate::facts::{FileKind, LocalFacts};
use crate::glob::Glob;
use crate::reason::Reason;
use crate::secret_names::{self as names, secret};

/// The use of a path by a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// A file or a directory.
    Read,
    /// A file; a directory would be walked with links followed.
    ReadFile,
}

/// Returns a reason if reading the path requires approval.
pub fn check(
    local: &LocalFacts,
    path: &str,
    wanted: PathUse,
    span: &Range<usize>,
) -> Option<Reason> {
    if path == "/dev/null" {
        return None;
    }
    let say = |text: String| Some(Reason::at(text, span.clone()));
    if let Some(name) = secret(Path::new(path)) {
        return say(format!("`{name}` looks like a secret"));
    }
    let fact = local.path(path);
    let Some(inside) = fact.inside else {
        return say(format!("`{path}` is outside the workspace"));
    };
    if let Some(name) = secret(&inside.written).or_else(|| secret(&inside.real)) {
        return say(format!(
            "`{path}` leads to `{name}`, which looks like a secret"
        ));
    }
    match (fact.kind, wanted) {
        _ if fact.secret => say(format!("`{path}` may contain a secret")),
        (FileKind::Special, _) => say(format!("`{path}` is not a regular file")),
        (FileKind::Directory, PathUse::ReadFile) => say(format!("`{path}` is a directory")),
        _ => None,
    }
}

/// Checks the path that one word of a command names.
pub(crate) fn check_arg(local: &LocalFacts, arg: &Arg, wanted: PathUse) -> Option<Reason> {
    check(local, &arg.text, wanted, &arg.span)
}

/// Removes `.` and `..` from the text of a path.
pub fn normalize_lexically(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            other => whole.push(other),
        }
    }
    whole
}

/// True if a glob option of a search can add secret files to it: `-g '.env'`, `--include='*.pem'`.
pub(super) fn glob_finds_secret(glob: &str, hidden_too: bool) -> bool {
    let finds = |form: &str| {
        let pattern = Glob::new(form);
        let meets = |patterns: &str| {
            patterns
                .split(' ')
                .any(|name| pattern.meets(&Glob::new(name)))
        };
        let wide =
            pattern.matches("main") || SEARCHED_EXTENSIONS.iter().any(|ext| form.ends_with(ext));
        meets(names::HIDDEN) && !(hidden_too && wide) || meets(names::PLAIN) && !wide
    };
    !glob.starts_with('!')
        && expand_braces(glob).iter().any(|form| {
            let (dirs, last) = form
                .trim_end_matches('/')
                .rsplit_once('/')
                .unwrap_or(("", form));
            finds(last)
                || dirs
                    .split('/')
                    .any(|dir| !dir.starts_with('*') && finds(dir))
        })
}

/// Extensions of files that a search reads even if they are secret.
const SEARCHED_EXTENSIONS: [&str; 5] = [".json", ".yaml", ".yml", ".toml", ".*"];

/// Expands one list of braces. A more complex glob becomes `*`, which matches any name.
fn expand_braces(glob: &str) -> Vec<String> {
    let Some((before, rest)) = glob.split_once('{') else {
        return vec![glob.to_owned()];
    };
    match rest.split_once('}') {
        _ if glob.contains(['[', '\\']) => vec!["*".to_owned()],
        Some((inner, after)) if !inner.contains('{') && !after.contains('{') => inner
            .split(',')
            .map(|choice| format!("{before}{choice}{after}"))
            .collect(),
        _ => vec!["*".to_owned()],
    }
}

/// Checks a word that no table explains. Returns a reason if it may name a secret or a path outside the workspace.
pub(crate) fn check_unknown_word(local: &LocalFacts, arg: &Arg) -> Option<Reason> {
    let word = arg.text.as_str();
    let parts = word.split(['=', ':', ',', '@']);
    let attached = word
        .find(['/', '.'])
        .filter(|_| word.starts_with('-'))
        .map(|at| &word[at..]);
    let url = |part: &str| part.contains("//") && word.contains("://");
    [word]
        .into_iter()
        .chain(parts)
        .chain(attached)
        .filter(|part| !part.is_empty() && !url(part))
        .find_map(|part| path_problem(local, part))
        .map(|text| arg.reason(text))
}

/// Returns the problem with a text, if it is a path.
fn path_problem(local: &LocalFacts, path: &str) -> Option<String> {
    let outside = Some(format!("`{path}` is outside the workspace"));
    if path.starts_with('~') {
        return outside;
    }
    if let Some(name) = secret(Path::new(path)) {
        return Some(format!("`{name}` looks like a secret"));
    }
    if path == "/dev/null" {
        return None;
    }
    let fact = local.path(path);
    let exists = fact.kind != FileKind::Missing;
    let leaves = path.starts_with('/') || path.split('/').any(|part| part == "..");
    match fact.inside {
        _ if fact.secret => Some(format!("`{path}` may contain a secret")),
        None if leaves || exists => outside,
        Some(inside) if exists => secret(&inside.real)
            .map(|name| format!("`{path}` leads to `{name}`, which looks like a secret")),
        _ => None,
    }
}
