//! The changes of the workspace since the merge base of HEAD and a branch, for `/review base`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::blocking::blocking;
use crate::checkpoint::{BaseFile, ChatRecord, Round};
use crate::services::Services;
use crate::workspace::own_git::{GitCommand, PLAIN_DIFF};
use co_edit::{Hunk, apply_hunks};
use co_exec::beneath::Dir;

/// The largest number of bytes of the diff that git prints.
const LONGEST_DIFF: usize = 600 << 10;
/// The largest number of bytes of a file that is compared.
const LONGEST_FILE: u64 = 16 << 20;

/// The changes since a merge base.
pub(super) struct Base {
    pub(super) commit: String,
    pub(super) round: Round,
    /// The changed files that cannot be compared line by line.
    pub(super) left_out: Vec<PathBuf>,
}

/// The change of a file in git's diff.
#[derive(Debug, Default, PartialEq)]
struct GitChange {
    path: PathBuf,
    is_new: bool,
    is_deleted: bool,
    /// The mode of the file before the change, if the mode has changed or the file was deleted.
    old_mode: Option<u32>,
    /// The hunks that turn the current lines into the old lines.
    hunks: Vec<Hunk>,
    /// True if the file is not text, or if its name cannot be parsed.
    is_unclear: bool,
}

/// Returns the changes since the merge base of HEAD and `name`. `records` are the records of the chat.
///
/// # Errors
/// git failed, or the diff is too long.
pub(super) async fn since_base(
    services: &Arc<Services>,
    root: &Path,
    name: &str,
    records: Vec<ChatRecord>,
) -> Result<Base, String> {
    if name.is_empty() || name.starts_with('-') {
        return Err("say /review base and the name of a branch or a commit".to_owned());
    }
    let judge = services.judge(root);
    let git = services.own_git(&judge);
    let command = |words: &[&str]| GitCommand {
        cwd: root.to_owned(),
        arguments: words.iter().map(|word| (*word).to_owned()).collect(),
        needed: LONGEST_DIFF,
        ..GitCommand::default()
    };
    let commit = git.run(command(&["merge-base", "HEAD", name])).await?;
    let commit = commit.trim().to_owned();
    let (_, pathspecs) = git.without_secrets().await?;
    let mut diff = command(&["-c", "core.quotePath=false", "diff", "-U0", "--no-renames"]);
    diff.arguments.extend(PLAIN_DIFF.map(str::to_owned));
    let relative = ["--relative".to_owned(), commit.clone()];
    diff.arguments.extend(relative.into_iter().chain(pathspecs));
    let diff = git.run(diff).await?;
    let untracked = command(&["ls-files", "--others", "--exclude-standard", "-z"]);
    let untracked = git.run(untracked).await?;
    if diff.len().max(untracked.len()) > LONGEST_DIFF {
        return Err(format!("the difference to {name} is too long for a review"));
    }
    let (checkpoints, root) = (Arc::clone(&services.checkpoints), root.to_owned());
    let make = move || {
        let (dir, store) = (Dir::open(&root)?, checkpoints.store()?);
        let new = untracked.split('\0').filter(|it| !it.is_empty());
        let new = new.map(|path| GitChange {
            path: path.into(),
            is_new: true,
            ..GitChange::default()
        });
        let (mut files, mut left_out) = (Vec::new(), Vec::new());
        let tracked = changes_in(&diff);
        // A file that the index no longer has is in both lists.
        let is_known = |it: &GitChange| tracked.iter().any(|known| known.path == it.path);
        let new: Vec<_> = new.filter(|it| !is_known(it)).collect();
        for change in tracked.into_iter().chain(new) {
            if !judge.shows(&root.join(&change.path)) {
                continue;
            }
            let path = change.path.clone();
            match change.before(&dir) {
                Some(file) => files.push(file),
                None => left_out.push(path),
            }
        }
        let known = Round::of(&records, &root, &store)?;
        let round = Round::since_base(files, known, &dir, &store)?;
        Ok::<_, io::Error>(Base {
            commit,
            round,
            left_out,
        })
    };
    blocking(make).await
}

impl GitChange {
    /// Returns the content of the file before the change. Returns `None` if the file is not text.
    fn before(self, root: &Dir) -> Option<BaseFile> {
        let text = match (self.is_new, self.is_deleted) {
            _ if self.is_unclear => return None,
            (true, _) => None,
            (_, true) => Some(apply_hunks("", &self.hunks)),
            _ => {
                let now = root.read(&self.path, LONGEST_FILE).ok()?;
                let now = String::from_utf8(now).ok()?;
                let count = now.split_inclusive('\n').count();
                let fit = self.hunks.last().is_none_or(|it| it.at.end <= count);
                Some(fit.then(|| apply_hunks(&now, &self.hunks))?)
            }
        };
        Some(BaseFile {
            path: self.path,
            text,
            mode: self.old_mode,
        })
    }

    /// Parses a header line of a file in the diff. Such lines come before the hunks of the file.
    fn take_header(&mut self, line: &str) {
        let mode = |text: &str| u32::from_str_radix(text, 8).ok();
        let words = ["old mode ", "deleted file mode "];
        if let Some(text) = words.iter().find_map(|it| line.strip_prefix(it)) {
            self.is_deleted |= line.starts_with("deleted");
            self.old_mode = mode(text).map(|it| it & 0o777);
            self.is_unclear |= mode(text).is_none_or(|it| it >> 12 != 0o10);
        } else if let Some(text) = line.strip_prefix("new file mode ") {
            self.is_new = true;
            self.is_unclear |= mode(text).is_none_or(|it| it >> 12 != 0o10);
        } else if line.starts_with("Binary files ") || line.ends_with(" 120000") {
            self.is_unclear = true;
        }
    }
}

/// Parses a diff that git prints without context lines.
fn changes_in(diff: &str) -> Vec<GitChange> {
    let mut changes: Vec<GitChange> = Vec::new();
    // The lines of the hunk that are still to come: removed, added.
    let mut left = (0, 0);
    for line in diff.split_inclusive('\n') {
        let plain = line.strip_suffix('\n').unwrap_or(line);
        if left == (0, 0)
            && let Some(names) = plain.strip_prefix("diff --git ")
        {
            // Both names are the same: `a/NAME b/NAME`.
            let name = names.get(2..names.len() / 2);
            changes.push(GitChange {
                path: name.unwrap_or_default().into(),
                is_unclear: name.is_none() || names.starts_with('"'),
                ..GitChange::default()
            });
            continue;
        }
        let Some(change) = changes.last_mut() else {
            continue;
        };
        let hunk = change.hunks.last_mut();
        match (line.as_bytes().first(), hunk) {
            (Some(b'-'), Some(hunk)) if left.0 > 0 => {
                left.0 -= 1;
                hunk.text.push_str(&line[1..]);
                change.is_unclear |= line.contains('\u{fffd}');
            }
            (Some(b'+'), _) if left.1 > 0 => left.1 -= 1,
            // The lines above it are all removed ones.
            (Some(b'\\'), Some(hunk)) if left.1 == hunk.removed() => drop(hunk.text.pop()),
            (Some(b'@'), _) => match ranges(plain) {
                Some((removed, at)) => {
                    left = (removed, at.len());
                    let text = String::new();
                    change.hunks.push(Hunk { at, text });
                }
                None => change.is_unclear = true,
            },
            _ => change.take_header(plain),
        }
    }
    changes
}

/// Parses `@@ -1,2 +3,4 @@`. Returns the number of removed lines, and the range of the added lines.
fn ranges(line: &str) -> Option<(usize, std::ops::Range<usize>)> {
    let mut words = line.split(' ').skip(1);
    let range = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
    };
    let (_, removed) = range(words.next()?.strip_prefix('-')?)?;
    let (start, added) = range(words.next()?.strip_prefix('+')?)?;
    // Without added lines, the number is that of the line above.
    let start = start.saturating_sub(usize::from(added > 0));
    Some((removed, start..start + added))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_text_is_made_of_a_difference() {
        for (diff, now, expected) in [
            ("@@ -2 +2 @@\n-two\n+2\n", "1\n2\n3\n", "1\ntwo\n3\n"),
            ("@@ -2,2 +1,0 @@ x\n-a\n-b\n", "1\n2\n", "1\na\nb\n2\n"),
            ("@@ -1,0 +2 @@\n+new\n", "1\nnew\n2\n", "1\n2\n"),
            (
                "@@ -1 +1 @@\n-1\n\\ No newline at end of file\n+one\n+two\n",
                "one\ntwo\n",
                "1",
            ),
            (
                "@@ -1,2 +1 @@\n-1\n-2\n+1\n\\ No newline at end of file\n",
                "1",
                "1\n2\n",
            ),
            ("@@ -1 +1 @@\n--- a\n+++ b\n", "++ b\n", "-- a\n"),
        ] {
            let diff = diff.replace("@@ -1 +1 @@\n-1\n\\", "@@ -1 +1,2 @@\n-1\n\\");
            let text =
                format!("diff --git a/x y b/x y\nindex 1..2 100644\n--- a/x y\n+++ b/x y\n{diff}");
            let [change] = &changes_in(&text)[..] else {
                panic!("{diff}");
            };
            assert_eq!(change.path, Path::new("x y"));
            assert!(!change.is_unclear);
            assert_eq!(apply_hunks(now, &change.hunks), expected, "{diff}");
        }
    }

    #[test]
    fn what_is_no_text_is_unclear() {
        let diff = "diff --git a/b b/b\nold mode 100644\nnew mode 100755\n\
            diff --git a/gone b/gone\ndeleted file mode 100755\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
            diff --git a/bin b/bin\nBinary files a/bin and b/bin differ\n\
            diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+b\n\\ No newline at end of file\n";
        let found = changes_in(diff);
        let facts: Vec<_> = (found.iter())
            .map(|it| (it.path.to_str().unwrap(), it.old_mode, it.is_unclear))
            .collect();
        let expected = [
            ("b", Some(0o644), false),
            ("gone", Some(0o755), false),
            ("bin", None, true),
            ("link", None, true),
        ];
        assert_eq!(facts, expected);
        assert!(found[1].is_deleted);
    }
}
