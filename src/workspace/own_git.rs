//! Runs the git commands that co itself needs in a workspace. git runs at the read-only level, because a repository can name
//! programs that git starts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::judge::Judge;
use super::sandbox_probe::SandboxProbe;
use crate::blocking::blocking;
use co_exec::sandbox::SandboxRefusal;
use co_exec::{Caller, CommandSpec, Confinement, Environment, ExecSettings, Executor, Program};

/// The time-out of git.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The factor between the output that the caller needs and the output limit. The executor keeps at least the first sixth of an
/// output.
const KEPT_PARTS: usize = 6;
/// The smallest value of the setting `shell_max_output`.
const SMALLEST_OUTPUT: usize = 1000;
/// The largest value of the setting `shell_max_output`.
const LARGEST_OUTPUT: usize = 4 << 20;

/// The largest number of bytes of a commit id, including its line break.
const LONGEST_COMMIT_ID: usize = 65;

/// The options that make git print plain output.
const PLAIN: [&str; 3] = ["--no-pager", "-c", "color.ui=false"];

/// The options that keep `git diff` and `git show` from starting the programs that the git settings of a repository name. Such
/// programs could only fail.
pub const PLAIN_DIFF: [&str; 3] = [
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=dirty",
];

/// The reason why git returned no usable output.
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
    /// git exited with a failure.
    #[error("{said}")]
    Failed {
        /// The exit status; none if a signal ended git.
        status: Option<i32>,
        /// The first line that git printed, without a prefix such as `fatal: `.
        said: String,
    },
}

/// Converts the error to text, for callers that only show it to the person.
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
    /// The judge of the workspace. git runs confined to this workspace.
    pub judge: Arc<Judge>,
}

/// A command of git.
#[derive(Debug, Clone, Default)]
pub struct GitCommand {
    pub cwd: PathBuf,
    pub arguments: Vec<String>,
    /// The environment variables of the command, such as `GIT_INDEX_FILE`.
    pub variables: Vec<(String, String)>,
    /// The number of bytes that the caller needs from the start of the output. The result has at least this many bytes, if the
    /// output is that long. It may have more, but not the whole of a long output.
    pub needed: usize,
}

impl OwnGit {
    /// Runs git and returns its output.
    ///
    /// # Errors
    /// The kernel cannot confine commands, or git failed.
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

    /// Returns true if the repository that contains a directory has at least one commit.
    ///
    /// # Errors
    /// git failed.
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

    /// Returns the tracked secret files, relative to the workspace, and the pathspecs that exclude them. git cannot read these
    /// files, and would otherwise show no changes at all.
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
