//! Asks git how a trial changed HEAD. git runs inside a trial over the same layer, because it reads the configuration that the
//! command left. co only shows the output of git.

use std::time::Duration;

use super::place::TrialPlace;
use crate::checkpoint::Head;
use co_exec::{
    Caller, CommandSpec, Confinement, Environment, Executor, GIT_ENVIRONMENT, GrantedPlaces,
    Program,
};
use co_text::{counted, one_line};

/// Prints six lines: the branch, the commit, the numbers of new commits, of lost commits and of changed files, and the subject of
/// the commit.
const SCRIPT: &str = r#"exec 2> /dev/null
git() { "$co_git" "$@"; }
git symbolic-ref -q --short HEAD || echo
git rev-parse -q --verify 'HEAD^{commit}' || exit
git rev-list --count HEAD ${co_before:+"^$co_before"}
if test "$co_before"; then
    git rev-list --count "$co_before" ^HEAD
    git diff-tree -r --name-only "$co_before" HEAD | wc -l
else
    echo 0
    git ls-tree -r --name-only HEAD | wc -l
fi
git log -1 --format=%s"#;

/// The time-out of git. The question about the trial waits for git.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The largest number of characters of a commit's subject, and of a branch's name.
const MOST_CHARS: usize = 72;

impl TrialPlace {
    /// Returns a text about the change of HEAD by the trial. Returns `None` if HEAD is the same as in the workspace, or if git
    /// fails. Call it only if the output of the command is not withheld, because the command can determine the output of git.
    pub(super) async fn head(&self, executor: &Executor) -> Option<String> {
        let before = Head::read(executor, &self.judge).await?;
        let commit = before.commit.clone().unwrap_or_default();
        let git = self.judge.git()?.display().to_string();
        let own = [("co_git", git), ("co_before", commit)];
        let all = GIT_ENVIRONMENT.map(|(name, value)| (name, value.to_owned()));
        let extra_env = own.into_iter().chain(all);
        let workspace = self.judge.root().to_owned();
        let running = executor.start(CommandSpec {
            program: Program::Shell(SCRIPT.to_owned()),
            cwd: workspace.clone(),
            caller: Caller::Agent,
            stdin: None,
            timeout: TIMEOUT,
            confinement: Confinement::Trial {
                workspace,
                layer: self.layer.path(),
                ignored: None,
                caches: None,
                places: GrantedPlaces::default(),
            },
            environment: Environment::Executor,
            extra_env: extra_env
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        });
        let outcome = running.await.ok()?.outcome().await;
        words(
            &before,
            outcome
                .output
                .get(..outcome.printed)
                .filter(|_| outcome.ok())?,
        )
    }
}

/// Returns a text about the move of HEAD away from `before`. `printed` is the output of the script.
fn words(before: &Head, printed: &str) -> Option<String> {
    let mut lines = printed.lines();
    let mut line = || {
        let line = one_line(lines.next().unwrap_or_default());
        line.chars().take(MOST_CHARS).collect::<String>()
    };
    let (branch, _commit) = (line(), line());
    let (new, gone, changed, subject) = (line(), line(), line(), line());
    let number = |text: &str| text.trim().parse::<usize>().ok();
    let (new, gone, changed) = (number(&new)?, number(&gone)?, number(&changed)?);
    let place = match branch.as_str() {
        "" => "a detached HEAD".to_owned(),
        branch => branch.to_owned(),
    };
    let was = before.branch.as_deref().unwrap_or_default();
    let is_switched = was.strip_prefix("refs/heads/").unwrap_or(was) != branch;
    let commits = match new {
        0 => None,
        1 => Some(format!(
            "a commit on {place}: {subject}, {}",
            counted(changed, "file")
        )),
        new => Some(format!(
            "{new} commits on {place}, the last one: {subject}, {}",
            counted(changed, "file")
        )),
    };
    let switched = (is_switched && new == 0).then(|| format!("HEAD is on {place}"));
    let lost = match gone {
        0 => None,
        1 => Some(format!("{place} has 1 commit fewer")),
        gone => Some(format!("{place} has {gone} commits fewer")),
    };
    let all: Vec<_> = commits.into_iter().chain(switched).chain(lost).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_of_head_is_told_in_words() {
        let check = |printed: &str, expected: Option<&str>| {
            let before = Head {
                branch: Some("refs/heads/main".to_owned()),
                commit: None,
            };
            assert_eq!(words(&before, printed).as_deref(), expected, "{printed}");
        };
        check(
            "main\nabc\n1\n0\n2\nfix the parser\n",
            Some("a commit on main: fix the parser, 2 files"),
        );
        check(
            "main\nabc\n3\n0\n1\nlast\n",
            Some("3 commits on main, the last one: last, 1 file"),
        );
        check(
            "main\nabc\n1\n1\n1\nagain\n",
            Some("a commit on main: again, 1 file; main has 1 commit fewer"),
        );
        check(
            "main\nabc\n0\n2\n1\nold\n",
            Some("main has 2 commits fewer"),
        );
        check("new\nabc\n0\n0\n0\nold\n", Some("HEAD is on new"));
        check("\nabc\n0\n0\n0\nold\n", Some("HEAD is on a detached HEAD"));
        check(
            "main\nabc\n1\n0\n1\n\u{1b}[2J\u{202e}x\n",
            Some("a commit on main: \\u{1b}[2J\\u{202e}x, 1 file"),
        );
        check("main\nabc\n0\n0\n0\nold\n", None);
        check("main\n", None);
        check("", None);
    }
}
