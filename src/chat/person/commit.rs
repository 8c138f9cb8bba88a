//! `/commit` typed outside of a commit's buffer: asks one question about the files, the message and the commit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::commit_message::{CANCELLED, CommitEvent, CommitWriter, changes};
use crate::chat::chat_context::ChatContext;
use crate::protocol::{Asker, Commit, CommitPlace, NoticeLevel, Question, RunOptions};
use crate::tool::permissions::Reply;
use crate::workspace::own_git::{GitCommand, OwnGit};
use co_policy::rules::shell_join;
use co_text::one_line;

/// The largest number of bytes of the list of changed files.
const LONGEST_STATUS: usize = 256 << 10;

/// The remark about a file that co does not show the model.
const MAY_BE_SECRET: &str = ", it may hold a secret";

/// The changes of a work tree, as `git status` lists them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Status {
    /// The staged files, each with the letter of its change.
    staged: Vec<String>,
    changed: Vec<String>,
    untracked: Vec<String>,
    unmerged: Vec<String>,
}

impl Status {
    /// Reads the output of `git status --porcelain -z`. Leaves out `secrets`: git runs in a confinement that cannot read them, so
    /// it lists them as changed.
    fn read(text: &str, secrets: &[PathBuf]) -> Self {
        let mut status = Self::default();
        let mut entries = text.split('\0');
        while let Some(entry) = entries.next() {
            let Some((letters, path)) = entry.split_at_checked(3) else {
                continue;
            };
            let (Some(index), Some(tree)) = (letters.get(..1), letters.get(1..2)) else {
                continue;
            };
            let is_secret = secrets.iter().any(|it| it == Path::new(path));
            let path = one_line(path);
            if [index, tree].iter().any(|it| ["R", "C"].contains(it)) {
                // Its name before.
                entries.next();
            }
            match (index, tree) {
                ("?", _) => status.untracked.push(path),
                ("U", _) | (_, "U") | ("A", "A") | ("D", "D") => status.unmerged.push(path),
                _ => {
                    if index != " " {
                        let note = if is_secret { MAY_BE_SECRET } else { "" };
                        status.staged.push(format!("{index} {path}{note}"));
                    }
                    if tree != " " && !is_secret {
                        status.changed.push(format!("{tree} {path}"));
                    }
                }
            }
        }
        status
    }

    /// Returns the commit of the staged changes. If nothing is staged, returns the commit of all changes of tracked files.
    fn commit(self) -> Result<Commit, String> {
        if let Some(file) = self.unmerged.first() {
            return Err(format!("{file} has a merge conflict"));
        }
        let staged = !self.staged.is_empty();
        let (files, unstaged) = match staged {
            true => (self.staged, self.changed),
            false => (self.changed, Vec::new()),
        };
        if files.is_empty() {
            return Err(match self.untracked.len() {
                0 => "nothing has changed".to_owned(),
                _ => "git tracks no changed file; git add stages new ones".to_owned(),
            });
        }
        let unstaged = unstaged.iter().map(|it| format!("{it}, not staged"));
        let untracked = self.untracked.iter().map(|it| format!("? {it}"));
        Ok(Commit {
            files,
            staged,
            left_out: unstaged.chain(untracked).collect(),
            message: String::new(),
        })
    }
}

/// The task that carries out a `/commit`.
struct CommitTask {
    chat: u64,
    cwd: PathBuf,
    git: OwnGit,
    options: RunOptions,
}

/// A commit, and the text of the changes from which the model writes the commit message.
struct Planned {
    commit: Commit,
    /// The pathspecs for `git add`. They leave out tracked secret files.
    pathspecs: Vec<String>,
    changes: (String, Vec<String>),
}

/// Asks the model for a commit message in another task, and then the person about the commit.
pub(in crate::chat) fn ask_to_commit(
    context: &ChatContext,
    writer: CommitWriter,
    options: RunOptions,
) {
    let task = CommitTask {
        chat: context.id,
        cwd: context.dirs.cwd.clone(),
        git: writer.git(),
        options,
    };
    let (services, cancel) = (Arc::clone(&writer.services), writer.cancel.clone());
    tokio::spawn(async move {
        let done = cancel.run_until_cancelled(task.run(writer)).await;
        if let Err(why) = done.unwrap_or_else(|| Err(CANCELLED.to_owned())) {
            services.notice(NoticeLevel::Error, format!("no commit: {why}"));
        }
    });
}

impl CommitTask {
    async fn run(self, writer: CommitWriter) -> Result<(), String> {
        let (services, events) = (Arc::clone(&writer.services), writer.events.clone());
        let cancel = writer.cancel.clone();
        let mut planned = self.plan().await?;
        let (text, notes) = planned.changes.clone();
        // What the question shows is what git gets.
        let mut message = co_text::printable(&writer.write(&text, notes).await?);
        loop {
            let question = Question {
                id: services.id(),
                asker: Asker::Chat(self.chat),
                command: co_text::printable(&planned.command(&message)),
                cwd: one_line(&self.cwd.display().to_string()),
                confinement: services.probe.name().to_owned(),
                commit: Some(Commit {
                    message: message.clone(),
                    ..planned.commit.clone()
                }),
                ..Question::default()
            };
            let (reply, answer) = oneshot::channel();
            let asked = CommitEvent::Ask {
                cancel: cancel.clone(),
                question: Box::new(question),
                reply,
            };
            // It fails if the chat has ended.
            let _ended = events.send(asked).await;
            match answer.await {
                Ok(Reply::Once) => {}
                Ok(Reply::Edited(edited)) => match String::from_utf8(edited) {
                    Ok(edited) => message = edited.trim().to_owned(),
                    Err(_) => return Err("the message is not all UTF-8".to_owned()),
                },
                Ok(_) => return Ok(()),
                Err(_) => {
                    return Err("its question was withdrawn; /commit asks again".to_owned());
                }
            }
            let now = self.plan().await?;
            if now.commits_the_same(&planned) {
                break;
            }
            planned = now;
            services.notice(
                NoticeLevel::Warn,
                "no commit yet: the files have changed since the question, so co asks again",
            );
        }
        let run = CommitEvent::Run {
            cancel,
            command: planned.command(&message),
            options: self.options,
        };
        let _ended = events.send(run).await;
        Ok(())
    }

    async fn plan(&self) -> Result<Planned, String> {
        let place = CommitPlace {
            directory: self.cwd.display().to_string(),
            variables: Vec::new(),
        };
        let (secrets, pathspecs) = self.git.without_secrets().await?;
        let words = ["status", "--porcelain", "-z", "--untracked-files=normal"];
        let status = self.git.run(GitCommand {
            cwd: self.cwd.clone(),
            arguments: words.map(str::to_owned).into(),
            variables: Vec::new(),
            needed: LONGEST_STATUS,
        });
        let mut commit = Status::read(&status.await?, &secrets).commit()?;
        let may_be_secret = |path: &PathBuf| format!("{}{MAY_BE_SECRET}", path.display());
        if !commit.staged {
            let secrets = secrets.iter().map(may_be_secret);
            commit.left_out.extend(secrets.map(|it| one_line(&it)));
        }
        let changes = changes(&self.git, &place, commit.staged).await?;
        Ok(Planned {
            commit,
            pathspecs,
            changes,
        })
    }
}

impl Planned {
    /// Returns true if both commits contain the same changes. Files outside of both commits may differ.
    fn commits_the_same(&self, other: &Self) -> bool {
        (&self.commit.files, self.commit.staged) == (&other.commit.files, other.commit.staged)
            && self.pathspecs == other.pathspecs
            && self.changes.0 == other.changes.0
    }

    /// Returns the command line that makes the commit with this message.
    fn command(&self, message: &str) -> String {
        // If a hook refuses the commit, git leaves what is staged as it was.
        let (all, pathspecs) = match (self.commit.staged, self.pathspecs.as_slice()) {
            (true, _) => (None, &[][..]),
            (false, []) => (Some("-a"), &[][..]),
            (false, pathspecs) => (None, pathspecs),
        };
        let words = ["git", "commit"].into_iter().chain(all);
        let words = words.chain(["-m", message]);
        let words: Vec<_> = (words.chain(pathspecs.iter().map(String::as_str))).collect();
        shell_join(&words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: &str, expected: Result<(&[&str], bool, &[&str]), &str>) {
        let commit = Status::read(&status.replace('|', "\0"), &[PathBuf::from(".env")]).commit();
        let commit = commit.map(|it| (it.files, it.staged, it.left_out));
        let owned = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let expected =
            expected.map(|(files, staged, left_out)| (owned(files), staged, owned(left_out)));
        assert_eq!(commit, expected.map_err(str::to_owned), "{status}");
    }

    #[test]
    fn a_commit_has_what_is_staged_or_else_all_tracked_changes() {
        check(
            " M a b|?? new/| D c|",
            Ok((&["M a b", "D c"], false, &["? new/"])),
        );
        check(
            "R  new|old|MM a| M b|",
            Ok((
                &["R new", "M a"],
                true,
                &["M a, not staged", "M b, not staged"],
            )),
        );
        check(" R new|é.txt|", Ok((&["R new"], false, &[])));
        check(" M .env|", Err("nothing has changed"));
        check(
            "MM .env|",
            Ok((&["M .env, it may hold a secret"], true, &[])),
        );
        check("", Err("nothing has changed"));
        check(
            "?? a|",
            Err("git tracks no changed file; git add stages new ones"),
        );
        for letters in ["UU", "AA", "DD", "DU"] {
            check(&format!("M  b|{letters} a|"), Err("a has a merge conflict"));
        }
    }
}
