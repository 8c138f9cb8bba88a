//! The inputs for the start of a tool server, and the reasons why it does not start.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::environment::ServerSecrets;
use super::login_file::LoginFile;
use crate::config::McpServerSettings;
use crate::editor::Editor;
use crate::network::{HostAsker, StartError};
use crate::paths;
use crate::workspace::judge::Judge;
use co_exec::Executor;
use co_exec::sandbox::SandboxRefusal;
use co_mcp::{Challenge, OpenError};

/// The time-out for a server to start and to list its tools.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(120);

/// The inputs for the start of a server.
#[derive(Clone)]
pub struct ServerStart {
    pub settings: McpServerSettings,
    pub workspace: PathBuf,
    /// The judge of the workspace, which knows its secret files.
    pub judge: Arc<Judge>,
    pub executor: Executor,
    /// Decides about the hosts that the server may connect to.
    pub hosts: Arc<dyn HostAsker>,
    /// The memory limit in bytes, and the limit on the number of processes of the server. `None` means no limit.
    pub limits: [Option<u64>; 2],
    /// The person's home directory.
    pub person_home: PathBuf,
    /// The directory with the home directories of all servers.
    pub servers: PathBuf,
    /// The directory of the logins at tool servers.
    pub logins: PathBuf,
    /// Sends a notice to the person if a running server ends.
    pub editor: Editor,
}

impl ServerStart {
    /// Returns the file of the login, or `None` if co starts a program. The file adds the secrets that it reads to `secrets`.
    pub fn login_file(&self, secrets: &ServerSecrets) -> Option<LoginFile> {
        let (settings, workspace) = (&self.settings, &self.workspace);
        LoginFile::new(&self.logins, settings, workspace, secrets.clone())
    }
}

/// The reason why a server did not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartFault {
    #[error("its program {0} is not installed: install it, or change its command")]
    NotInstalled(String),
    #[error(transparent)]
    Home(#[from] paths::Error),
    #[error(transparent)]
    Command(#[from] co_exec::Error),
    #[error(transparent)]
    Network(#[from] StartError),
    #[error("{0}: here a tool server runs only without hosts, or with confinement = 'none'")]
    NoNetwork(SandboxRefusal),
    #[error("{0}; it is left out until that is right in mcp_servers")]
    Settings(String),
    #[error("{0}")]
    Failed(String),
    /// The server asks for a login, by this challenge.
    #[error("it wants a login")]
    Login(Option<Challenge>),
    #[error("{error}{}", after(.words))]
    Open { error: OpenError, words: String },
    #[error("its tools cannot be read: {0}")]
    Tools(String),
    #[error("it did not answer within {} s{}", START_TIMEOUT.as_secs(), after(.advice))]
    Late { advice: String },
}

/// Returns `: ` and the words, to append to a sentence. Returns an empty text if there are no words.
fn after(words: &str) -> String {
    match words {
        "" => String::new(),
        words => format!(": {words}"),
    }
}
