//! The git that co starts by itself for a workspace. It runs as a command that only looks, because a repository can name
//! programs for git to start.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::judge::Judge;
use super::sandbox_probe::SandboxProbe;
use crate::blocking::blocking;
use co_exec::sandbox::SandboxRefusal;
use co_exec::{Caller, CommandSpec, Confinement, Environment, ExecSettings, Executor, Program};

/// The longest time that git may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The executor keeps at least the first sixth of an output.
const KEPT_PARTS: usize = 6;
/// The smallest and the largest value of the setting `shell_max_output`.
const SMALLEST_OUTPUT: usize = 1000;
const LARGEST_OUTPUT: usize = 4 << 20;

/// The most bytes of the id of a commit, with its end of line.
const LONGEST_COMMIT_ID: usize = 65;

/// Options of git for plain output.
const PLAIN: [&str; 3] = ["--no-pager", "-c", "color.ui=false"];

/// Options of `git diff` and `git show`, without the programs that the settings of a repository name: they could only fail.
pub const PLAIN_DIFF: [&str; 3] = [
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=dirty",
];

/// The reason why git printed nothing that can be used.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("co runs git only where the kernel can confine it: {0}")]
    NotConfined(#[source] SandboxRefusal),
    #[error("git is not installed")]
    NotInstalled,
    #[error("the path of git is not UTF-8")]
    PathNotUtf8,
    #[error(transparent)]
    NotStarted(#[from] co_exec::Error),
    #[error("git took more than {} s", TIMEOUT.as_secs())]
    TimedOut,
    #[error("a secret appeared while git ran")]
    Withheld,
    /// Git ended with a failure.
    #[error("{said}")]
    Failed {
        /// The exit status; none if a signal ended git.
        status: Option<i32>,
        /// The first line that git printed.
        said: String,
    },
}

/// For callers that only pass the reason on to the person.
impl From<GitError> for String {
    fn from(error: GitError) -> Self {
        error.to_string()
    }
}

/// Runs git at the read-only level.
#[derive(Clone)]
pub struct OwnGit {
    pub executor: Executor,
    pub probe: SandboxProbe,
    /// The judge of the workspace. The confinement of git is for the same workspace.
    pub judge: Arc<Judge>,
}

/// A command of git.
#[derive(Debug, Clone, Default)]
pub struct GitCommand {
    pub cwd: PathBuf,
    pub arguments: Vec<String>,
    /// Variables such as `GIT_INDEX_FILE`.
    pub variables: Vec<(String, String)>,
    /// The number of bytes of the output that the caller needs. The result may have more bytes, and lacks the rest of the output.
    pub needed: usize,
}

impl OwnGit {
    /// Runs git and returns its output.
    ///
    /// # Errors
    /// The kernel cannot confine commands here, or git failed.
    pub async fn run(&self, command: GitCommand) -> Result<String, GitError> {
        if let Err(why) = self.probe.kernel().await.reading() {
            return Err(GitError::NotConfined(why));
        }
        let git = self.judge.git().ok_or(GitError::NotInstalled)?;
        let git = git.to_str().ok_or(GitError::PathNotUtf8)?.to_owned();
        let words = PLAIN.iter().map(|word| (*word).to_owned());
        let settings = ExecSettings {
            max_output: (command.needed * KEPT_PARTS).clamp(SMALLEST_OUTPUT, LARGEST_OUTPUT),
            spill_max: 0,
            ..self.executor.settings().clone()
        };
        let executor = self.executor.with(settings)?;
        let running = executor.start(CommandSpec {
            program: Program::Argv(
                [git]
                    .into_iter()
                    .chain(words)
                    .chain(command.arguments)
                    .collect(),
            ),
            cwd: command.cwd,
            caller: Caller::Agent,
            stdin: None,
            timeout: TIMEOUT,
            confinement: Confinement::ReadOnly {
                workspace: self.judge.root().to_owned(),
            },
            environment: Environment::default(),
            extra_env: command.variables,
        });
        let running = running.await?;
        let output = running.reading();
        let outcome = running.outcome().await;
        let printed = output.beginning();
        let printed = String::from_utf8_lossy(&printed);
        match outcome.exit {
            _ if outcome.timed_out => Err(GitError::TimedOut),
            _ if outcome.withheld => Err(GitError::Withheld),
            Some(0) => Ok(printed.into_owned()),
            _ => {
                let why = printed.lines().next().unwrap_or("git failed");
                let words = ["fatal: ", "warning: "];
                let words = words.iter().find_map(|start| why.strip_prefix(start));
                Err(GitError::Failed {
                    status: outcome.exit,
                    said: words.unwrap_or(why).to_owned(),
                })
            }
        }
    }

    /// Returns whether the repository of a directory has a commit.
    ///
    /// # Errors
    /// Git could not tell.
    pub async fn has_commit(&self, cwd: PathBuf) -> Result<bool, GitError> {
        let words = ["rev-parse", "--quiet", "--verify", "HEAD"];
        let found = self.run(GitCommand {
            cwd,
            arguments: words.map(str::to_owned).into(),
            needed: LONGEST_COMMIT_ID,
            ..GitCommand::default()
        });
        match found.await {
            Ok(_) => Ok(true),
            Err(GitError::Failed {
                status: Some(1), ..
            }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the tracked files that hold secrets, below the workspace, and the pathspecs that leave them out. git cannot read
    /// these files, and would then show no change at all.
    pub async fn without_secrets(&self) -> Result<(Vec<PathBuf>, Vec<String>), String> {
        let judge = Arc::clone(&self.judge);
        let secrets = blocking(move || Ok::<_, String>(judge.tracked_secrets())).await?;
        let mut pathspecs = Vec::new();
        if !secrets.is_empty() {
            pathspecs.extend(["--".to_owned(), ":(top)".to_owned()]);
            let left_out = |path: &Path| format!(":(top,exclude,literal){}", path.display());
            pathspecs.extend(secrets.iter().map(|path| left_out(path)));
        }
        Ok((secrets, pathspecs))
    }
}
