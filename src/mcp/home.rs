//! The home directory of a confined server, which is the only place that it can always write.

use std::path::{Path, PathBuf};

use crate::config::McpServerSettings;
use crate::paths::{self, private_dir, workspace_name};

/// The environment variables that name directories for programs. Each comes with the path of the directory, relative to the home
/// directory.
const DIRECTORIES: [(&str, &str); 4] = [
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// Returns the home directory of a server. `servers` is the directory with the homes of all servers.
///
/// A server has a different home in each workspace, so that it cannot pass data from one workspace to another. A server that a
/// file of the workspace names has a different home from a server of the person with the same name.
pub(super) fn place(servers: &Path, settings: &McpServerSettings, workspace: &Path) -> PathBuf {
    let name = &settings.name;
    let below = match settings.of_workspace {
        true => servers.join(format!("{name}@workspace")),
        false => servers.join(name),
    };
    below.join(workspace_name(workspace))
}

/// Returns the value of a variable. If it begins with `~/`, the home directory replaces the `~`.
pub(super) fn in_home(home: &Path, value: &str) -> String {
    match value.strip_prefix("~/") {
        Some(below) => home.join(below).display().to_string(),
        None => value.to_owned(),
    }
}

/// Makes a home directory, and returns the environment variables that point the server to it. npm, pip and uv then keep their
/// caches in it.
///
/// # Errors
/// The directory cannot be made.
pub(super) fn prepare(home: &Path) -> Result<Vec<(String, String)>, paths::Error> {
    private_dir(home)?;
    let text = |path: &Path| path.display().to_string();
    let variable = |(name, below): (&str, &str)| (name.to_owned(), text(&home.join(below)));
    let mut variables = vec![("HOME".to_owned(), text(home))];
    variables.extend(DIRECTORIES.map(variable));
    Ok(variables)
}
