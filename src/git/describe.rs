//! The changes of a repository in words.

use std::path::Path;
use std::time::Instant;

use super::change::{HeadChange, RefChange, RepositoryChange};
use super::names::{Head, ObjectName, RefTarget};
use super::{Repository, TIMEOUT};
use co_policy::one_line;

/// The most commits of a branch that are named.
const MOST_COMMITS: usize = 5;

/// The most characters of a commit's first line.
const MAX_SUBJECT_CHARS: usize = 100;

/// The options for `git log` that keep it from starting programs.
const PLAIN_LOG: [&str; 8] = [
    "log",
    "-1",
    "--no-color",
    "--no-show-signature",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--diff-merges=first-parent",
];

impl Repository {
    /// Returns a line for each change, for a person. The new objects must be there. An index is made at `scratch`.
    ///
    /// # Errors
    /// Git fails, or refuses a path of the index: a clause.
    pub fn describe(
        &self,
        change: &RepositoryChange,
        scratch: &Path,
    ) -> Result<Vec<String>, String> {
        let mut lines = Vec::new();
        let mut described = Vec::new();
        let end = Instant::now() + TIMEOUT;
        for it in &change.refs {
            if Instant::now() > end {
                return Err("too many refs have changed".to_owned());
            }
            self.describe_ref(it, &mut described, &mut lines)?;
        }
        if let Some(HeadChange { after, .. }) = change.moved_head() {
            lines.push(format!("HEAD: {}", after.shown()));
            if let Head::Detached(object) = after {
                self.describe_commits("HEAD", object, &mut described, &mut lines)?;
            }
        }
        if let Some(stash) = &change.stash {
            let added: Vec<_> = stash.added().collect();
            for it in added.iter().take(MOST_COMMITS) {
                let message: String = it.message.chars().take(MAX_SUBJECT_CHARS).collect();
                lines.push(format!("stash: 1 more: {message}"));
            }
            if let Some(more @ 1..) = added.len().checked_sub(MOST_COMMITS) {
                lines.push(format!("stash: {more} more"));
            }
            let left = stash.before.iter().filter(|it| !stash.after.contains(it));
            if let fewer @ 1.. = left.count() {
                lines.push(format!("stash: {fewer} fewer"));
            }
        }
        if !change.index.is_empty() {
            let staged = self.count_staged(change, scratch)?;
            if staged > 0 || lines.is_empty() {
                lines.push(format!("index: {} staged", counted(staged, "file")));
            }
        }
        Ok(lines.iter().map(|line| one_line(line)).collect())
    }

    /// Adds the lines of a ref. `described` are the objects whose commits have lines already.
    fn describe_ref<'a>(
        &self,
        change: &'a RefChange,
        described: &mut Vec<&'a ObjectName>,
        lines: &mut Vec<String>,
    ) -> Result<(), String> {
        let name = change.shown();
        let is_branch = name.starts_with("branch ");
        match (&change.before, &change.after) {
            (Some(before), None) => lines.push(format!("{name}: removed, was {}", before.short())),
            (None, Some(after)) => lines.push(format!("{name}: new, at {}", after.short())),
            (Some(before), Some(after)) if is_branch => {
                let left = self.commits(&[before.as_str(), "--not", after.as_str()])?;
                if !left.is_empty() {
                    let left = counted(left.len(), "commit");
                    lines.push(format!("{name}: {left} fewer, at {}", after.short()));
                }
            }
            (Some(before), Some(after)) => {
                let (before, after) = (before.short(), after.short());
                lines.push(format!("{name}: {after} instead of {before}"));
            }
            (None, None) => {}
        }
        let Some(after) = &change.after else {
            return Ok(());
        };
        let new = self.describe_commits(&name, after, described, lines)?;
        if let Some(before) = change.before.as_ref().filter(|_| is_branch) {
            let more = self.commits(&[after.as_str(), "--not", before.as_str()])?;
            // Other refs had these commits before, or have lines about them.
            if let Some(known @ 1..) = more.len().checked_sub(new) {
                let known = counted(known, "commit");
                lines.push(format!(
                    "{name}: {known} of other refs more, at {}",
                    after.short()
                ));
            }
        }
        Ok(())
    }

    /// Adds the commits that no ref had before and that are not described yet. Returns their number.
    fn describe_commits<'a>(
        &self,
        place: &str,
        tip: &'a ObjectName,
        described: &mut Vec<&'a ObjectName>,
        lines: &mut Vec<String>,
    ) -> Result<usize, String> {
        let mut range = vec![tip.as_str(), "--not", "--all"];
        range.extend(described.iter().map(|it| it.as_str()));
        let commits = self.commits(&range)?;
        for commit in commits.iter().take(MOST_COMMITS) {
            let log = |more: &[&str]| {
                self.run(PLAIN_LOG.iter().chain(more).chain([&commit.as_str()]), b"")
            };
            let subject = log(&["-s", "--encoding=UTF-8", "--format=%s"])?;
            let subject = String::from_utf8_lossy(&subject);
            let subject: String = subject.trim().chars().take(MAX_SUBJECT_CHARS).collect();
            let files = log(&["--format=", "--name-only", "-z"])?;
            let files = counted(count_names(&files), "file");
            lines.push(format!(
                "commit {}: {subject}, {files}, on {place}",
                commit.short()
            ));
        }
        if let Some(more @ 1..) = commits.len().checked_sub(MOST_COMMITS) {
            lines.push(format!("{} more on {place}", counted(more, "commit")));
        }
        if !commits.is_empty() {
            described.push(tip);
        }
        Ok(commits.len())
    }

    fn commits(&self, range: &[&str]) -> Result<Vec<ObjectName>, String> {
        let list = self.run(["rev-list"].iter().chain(range), b"")?;
        let list = String::from_utf8_lossy(&list);
        Ok(list.lines().filter_map(ObjectName::parse).collect())
    }

    /// Returns the number of files in which the index differs from the commit of HEAD afterwards.
    fn count_staged(&self, change: &RepositoryChange, scratch: &Path) -> Result<usize, String> {
        self.write_index(
            &self.index_bytes()?,
            &change.index,
            scratch,
            self.hash_size()?,
        )?;
        let own = self.with_index(scratch.to_owned());
        let files = match self.tip_after(change)? {
            Some(tip) => own.run(
                ["diff-index", "--cached", "--name-only", "-z", tip.as_str()],
                b"",
            )?,
            None => own.run(["ls-files", "-z"], b"")?,
        };
        Ok(count_names(&files))
    }

    /// Returns the commit of HEAD afterwards; none if its branch has none yet.
    fn tip_after(&self, change: &RepositoryChange) -> Result<Option<ObjectName>, String> {
        let head = match &change.head {
            Some(head) => head.after.clone(),
            None => self.head()?,
        };
        let branch = match head {
            Head::Detached(object) => return Ok(Some(object)),
            Head::Branch(branch) => branch,
        };
        if let Some(it) = change.refs.iter().find(|it| it.name == branch) {
            return Ok(it.after.clone());
        }
        Ok(match self.refs()?.remove(&branch) {
            Some(RefTarget::Object(object)) => Some(object),
            Some(RefTarget::Ref) | None => None,
        })
    }
}

/// Returns the number of names in a list of git, with a NUL after each.
fn count_names(list: &[u8]) -> usize {
    list.split(|it| *it == 0)
        .filter(|it| !it.is_empty())
        .count()
}

/// Returns `1 file` or `2 files`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
