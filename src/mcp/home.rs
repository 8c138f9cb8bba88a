//! The own directory of a server: its home, the only place that it may always write.

use std::path::{Path, PathBuf};

use crate::config::McpServerSettings;
use crate::paths::{self, private_dir, workspace_name};

/// The variables that lead programs to directories below a home, and the names of the directories.
const DIRECTORIES: [(&str, &str); 4] = [
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// Returns the home of a server, below that of all servers. Each workspace has one: what a server learns in one workspace, it
/// does not tell in another. A server that a file of the workspace names does not read the home of a server of the person.
pub(super) fn place(servers: &Path, settings: &McpServerSettings, workspace: &Path) -> PathBuf {
    let name = &settings.name;
    let below = match settings.of_workspace {
        true => servers.join(format!("{name}@workspace")),
        false => servers.join(name),
    };
    below.join(workspace_name(workspace))
}

/// Returns a value of a variable, in which `~/` at the start stands for a home.
pub(super) fn in_home(home: &Path, value: &str) -> String {
    match value.strip_prefix("~/") {
        Some(below) => home.join(below).display().to_string(),
        None => value.to_owned(),
    }
}

/// Makes a home, and returns the variables that lead the server to it. npm, pip and uv keep their caches below it.
///
/// # Errors
/// The home cannot be made.
pub(super) fn prepare(home: &Path) -> Result<Vec<(String, String)>, paths::Error> {
    private_dir(home)?;
    let text = |path: &Path| path.display().to_string();
    let variable = |(name, below): (&str, &str)| (name.to_owned(), text(&home.join(below)));
    let mut variables = vec![("HOME".to_owned(), text(home))];
    variables.extend(DIRECTORIES.map(variable));
    Ok(variables)
}
