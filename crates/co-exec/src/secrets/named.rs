//! Finds the secrets that a command names.

use std::path::{Path, PathBuf};

use super::Survey;

/// Returns the secret files and directories of a survey that the words of a command name, by their canonical paths.
///
/// The path may be the whole word, the part after the first `=`, or either of them after an `@`. Relative paths are resolved
/// against `cwd`, and against each directory that a `cd` names. For a file in a secret directory, returns the directory.
///
/// Blocks on files.
pub fn named(words: &[Vec<String>], cwd: &Path, survey: &Survey) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![cwd.to_owned()];
    for command in words {
        for word in command {
            for dir in &dirs {
                found.extend(paths(word).filter_map(|path| hidden(&dir.join(path), survey)));
            }
        }
        if let [program, dir] = command.as_slice()
            && program == "cd"
        {
            dirs.push(cwd.join(dir));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Returns the parts of a word that may be paths.
fn paths(word: &str) -> impl Iterator<Item = &str> {
    let value = word.split_once('=').map(|(_, value)| value);
    let parts = std::iter::once(word).chain(value);
    let all = parts.flat_map(|part| [part, part.strip_prefix('@').unwrap_or("")]);
    all.filter(|path| !path.is_empty())
}

/// Returns the secret file or directory of the survey that contains a path. Returns `None` if the path is not secret.
fn hidden(path: &Path, survey: &Survey) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let dir = survey.dirs.iter().find(|dir| real.starts_with(dir));
    dir.cloned()
        .or_else(|| survey.files.contains(&real).then_some(real))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::secrets::survey;
    use crate::test_files;

    #[test]
    fn words_name_secrets() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in [".env", "app/.env", "secrets/db.yml", "plain", "a b/x.pem"] {
            test_files::write(&root, name, "x");
        }
        symlink(".env", root.join("link")).unwrap();
        let survey = survey(&root);
        let absolute = root.join("app/.env").display().to_string();
        let cases: &[(&[&[&str]], &[&str])] = &[
            (&[&["cat", ".env"]], &[".env"]),
            (&[&["cat", "./app/../.env", ".env"]], &[".env"]),
            (&[&["cat", &absolute]], &["app/.env"]),
            (&[&["node", "--env-file=.env", "x.js"]], &[".env"]),
            (&[&["curl", "-d", "@.env"]], &[".env"]),
            (&[&["curl", "--data=@.env"]], &[".env"]),
            (&[&["cat", "link"]], &[".env"]),
            (&[&["cat", "secrets/db.yml"]], &["secrets"]),
            (&[&["ls", "secrets/"]], &["secrets"]),
            (&[&["cat", "a b/x.pem"]], &["a b/x.pem"]),
            (&[&[":", ".env"], &["cargo", "test"]], &[".env"]),
            (&[&["cd", "app"], &["cat", ".env"]], &[".env", "app/.env"]),
            (&[&["cat", "plain", "gone/.env", "/etc/passwd"]], &[]),
            (&[&["grep", "-r", "x", "."]], &[]),
            (&[&["echo", "read .env", ""]], &[]),
            (&[], &[]),
        ];
        for (words, expected) in cases {
            let words: Vec<Vec<String>> = words
                .iter()
                .map(|command| command.iter().map(|&word| word.to_owned()).collect())
                .collect();
            let expected: Vec<PathBuf> = expected.iter().map(|name| root.join(name)).collect();
            assert_eq!(named(&words, &root, &survey), expected, "{words:?}");
        }
    }
}
