//! HEAD of a workspace's repository before and after a command, and the command of git that moves it back.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::workspace::judge::Judge;
use co_exec::{Caller, CommandSpec, Confinement, Environment, Executor, Program, repository};
use co_text::one_line;

/// Prints the branch, and the commit; an empty line for a missing one.
const SCRIPT: &str = r#"exec 2> /dev/null
"$co_git" symbolic-ref -q HEAD || echo
"$co_git" rev-parse -q --verify 'HEAD^{commit}' || echo"#;

/// The time-out of git. The approved command waits for git.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The digits of a commit's name in a text.
const SHORT: usize = 10;

/// HEAD of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The whole name of the branch; none if HEAD is detached.
    pub branch: Option<String>,
    /// The name of the commit; none before the first one.
    pub commit: Option<String>,
}

/// A move of HEAD during a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadMove {
    pub before: Head,
    pub after: Head,
}

impl Head {
    /// Asks git at the read-only level. Returns none if the workspace of the judge has no repository that is trusted, or git
    /// cannot tell.
    pub async fn read(executor: &Executor, judge: &Arc<Judge>) -> Option<Self> {
        let place = Arc::clone(judge);
        let git = move || {
            repository::find(place.root())
                .ok()?
                .and_then(|_| place.git())
        };
        let git = tokio::task::spawn_blocking(git).await.ok()??;
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

    /// Reads what the script prints.
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
    /// Returns the move between two states; none if they are the same, or a state is not known.
    pub fn between(before: Option<Head>, after: Option<Head>) -> Option<Self> {
        let (before, after) = before.zip(after)?;
        (before != after).then_some(Self { before, after })
    }

    /// Returns several moves as one; none if something else moved HEAD in between.
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

    /// Returns the command that moves HEAD back and leaves the files of the workspace alone.
    fn command_back(&self) -> String {
        let reset = match &self.before.commit {
            Some(commit) => format!("git reset {}", short(commit)),
            None => "git update-ref -d HEAD && git reset".to_owned(),
        };
        match (&self.before.branch, &self.before.commit) {
            (branch, _) if *branch == self.after.branch => reset,
            (Some(branch), Some(_)) => {
                format!("git symbolic-ref HEAD {} && {reset}", quoted(branch))
            }
            (Some(branch), None) => {
                format!("git symbolic-ref HEAD {} && git reset", quoted(branch))
            }
            (None, commit) => format!(
                "git update-ref --no-deref HEAD {} && git reset",
                commit.as_deref().map_or("HEAD", short)
            ),
        }
    }

    /// Returns the range of the commits that it added.
    fn added(&self) -> Option<String> {
        let after = short(self.after.commit.as_ref()?);
        Some(match &self.before.commit {
            Some(before) => format!("{}..{after}", short(before)),
            None => after.to_owned(),
        })
    }
}

/// Returns a sentence with the command of git that takes back some moves of HEAD. Returns none if there are no moves, or HEAD is
/// as before them. `moves` are in the order in which they happened; `now` is the current HEAD.
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

/// Returns a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
    match word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests;
