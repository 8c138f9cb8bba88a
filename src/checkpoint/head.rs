//! Reads HEAD of a workspace's repository before and after a command, and makes the git command that moves HEAD back.

mod files;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::files::UnknownHead;
use crate::workspace::judge::Judge;
use co_exec::{Caller, CommandSpec, Confinement, Environment, Executor, Program, repository};
use co_policy::rules::shell_join;
use co_text::one_line;

/// Prints a line with the branch and a line with the commit. A line is empty if HEAD has no branch or no commit.
const SCRIPT: &str = r#"exec 2> /dev/null
"$co_git" symbolic-ref -q HEAD || echo
"$co_git" rev-parse -q --verify 'HEAD^{commit}' || echo"#;

/// The time-out of git. An approved command does not start before git has ended.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The number of digits of a commit id in a text.
const SHORT: usize = 10;

/// The position of a repository's HEAD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The full name of the branch; none if HEAD is detached.
    pub branch: Option<String>,
    /// The id of the commit; none before the first commit.
    pub commit: Option<String>,
}

/// A move of HEAD during a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadMove {
    pub before: Head,
    pub after: Head,
}

impl Head {
    /// Reads HEAD from the files of the repository. If they do not tell, runs git at the read-only level. Returns `None` if the
    /// workspace has no trusted repository, or if git fails.
    pub async fn read(executor: &Executor, judge: &Arc<Judge>) -> Option<Self> {
        let place = Arc::clone(judge);
        let read = move || {
            let dirs = repository::find(place.root()).ok()??;
            match Self::of_files(&dirs) {
                Ok(head) => Some(Ok(head)),
                Err(UnknownHead) => place.git().map(Err),
            }
        };
        let git = match tokio::task::spawn_blocking(read).await.ok()?? {
            Ok(head) => return Some(head),
            Err(git) => git,
        };
        let workspace = judge.root().to_owned();
        let running = executor.start(CommandSpec {
            program: Program::Shell(SCRIPT.to_owned()),
            cwd: workspace.clone(),
            caller: Caller::Agent,
            stdin: None,
            timeout: TIMEOUT,
            confinement: Confinement::ReadOnly { workspace },
            environment: Environment::Executor,
            extra_env: vec![("co_git".to_owned(), git.display().to_string())],
        });
        let outcome = running.await.ok()?.outcome().await;
        Self::parse(outcome.output.get(..outcome.printed)?)
    }

    /// Parses the output of the script.
    fn parse(printed: &str) -> Option<Self> {
        let mut lines = printed.lines().map(|line| {
            let line = one_line(line);
            (!line.is_empty()).then_some(line)
        });
        let head = Self {
            branch: lines.next()?,
            commit: lines.next()?,
        };
        let is_commit =
            |text: &String| text.len() >= 40 && text.bytes().all(|it| it.is_ascii_hexdigit());
        let is_head = head
            .commit
            .as_ref()
            .map_or(head.branch.is_some(), is_commit);
        is_head.then_some(head)
    }
}

impl HeadMove {
    /// Returns the move from `before` to `after`. Returns `None` if they are the same, or if one of them is unknown.
    pub fn between(before: Option<Head>, after: Option<Head>) -> Option<Self> {
        let (before, after) = before.zip(after)?;
        (before != after).then_some(Self { before, after })
    }

    /// Combines several moves into one. Returns `None` if something else moved HEAD between them.
    fn joined<'a>(moves: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut moves = moves.into_iter();
        let mut joined = moves.next()?.clone();
        for next in moves {
            if joined.after != next.before {
                return None;
            }
            joined.after = next.after.clone();
        }
        Some(joined)
    }

    /// Returns the git command that moves HEAD back without changing the files of the workspace.
    fn command_back(&self) -> String {
        let reset = match &self.before.commit {
            Some(commit) => format!("git reset {}", short(commit)),
            None => "git update-ref -d HEAD && git reset".to_owned(),
        };
        match (&self.before.branch, &self.before.commit) {
            (branch, _) if *branch == self.after.branch => reset,
            (Some(branch), Some(_)) => {
                format!("git symbolic-ref HEAD {} && {reset}", shell_join(&[branch]))
            }
            (Some(branch), None) => {
                format!(
                    "git symbolic-ref HEAD {} && git reset",
                    shell_join(&[branch])
                )
            }
            (None, commit) => format!(
                "git update-ref --no-deref HEAD {} && git reset",
                commit.as_deref().map_or("HEAD", short)
            ),
        }
    }

    /// Returns the range of the commits that the move added; none if it added no commit.
    fn added(&self) -> Option<String> {
        let after = short(self.after.commit.as_ref()?);
        Some(match &self.before.commit {
            Some(before) => format!("{}..{after}", short(before)),
            None => after.to_owned(),
        })
    }
}

/// Returns a sentence with the git command that takes these moves of HEAD back. Returns `None` if there are no moves, or if HEAD
/// is again where it was before the moves. `moves` are in the order in which they happened; `now` is the current HEAD.
pub fn way_back(moves: &[&HeadMove], now: Option<&Head>) -> Option<String> {
    let (first, last) = (moves.first()?, moves.last()?);
    if now == Some(&first.before) {
        return None;
    }
    if let Some(joined) = HeadMove::joined(moves.iter().copied())
        && now == Some(&joined.after)
    {
        return Some(format!(
            "git's HEAD stays where it is; to move it back: {}",
            joined.command_back()
        ));
    }
    let whole = HeadMove {
        before: first.before.clone(),
        after: last.after.clone(),
    };
    let range = whole.added()?;
    let since = if now.is_some() {
        ", and HEAD has moved since then"
    } else {
        ""
    };
    Some(format!(
        "git's commits stay{since}; to take them back instead: git revert {range}"
    ))
}

fn short(commit: &str) -> &str {
    commit.get(..SHORT).unwrap_or(commit)
}

#[cfg(test)]
mod tests;
