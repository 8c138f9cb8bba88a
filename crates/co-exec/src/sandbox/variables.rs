//! The environment variables of a confined command.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::environment::GIT_ENVIRONMENT;

/// The prefixes of variables that lead a command to programs outside the sandbox: the editor, SSH agents, D-Bus.
const LEADS_OUT: [&str; 3] = ["NVIM", "SSH_AUTH_SOCK", "DBUS_"];

/// Removes the variables that lead outside the sandbox, and sets the variable for the private temporary directory.
pub(super) fn clean(env: &mut Vec<(OsString, OsString)>, tmp: &Path) {
    let leads_out = |name: &OsStr| {
        LEADS_OUT
            .iter()
            .any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
    };
    env.retain(|(name, _)| {
        !leads_out(name) && !["TMPDIR", "TMP", "TEMP"].iter().any(|t| name == t)
    });
    env.push(("TMPDIR".into(), tmp.into()));
}

/// Sets the variables that keep git from starting programs, because these programs would only fail in the sandbox.
pub(super) fn harden_git(env: &mut Vec<(OsString, OsString)>) {
    env.retain(|(name, _)| !GIT_ENVIRONMENT.iter().any(|(set, _)| name == set));
    env.extend(GIT_ENVIRONMENT.map(|(name, value)| (name.into(), value.into())));
}

/// The variables that name the caches of programs, and the subdirectory for each cache in the directory of all caches. Programs
/// that have no variable of their own use `XDG_CACHE_HOME`.
const CACHES: [(&str, &str); 11] = [
    ("XDG_CACHE_HOME", ""),
    ("GOCACHE", "go-build"),
    ("npm_config_cache", "npm"),
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
    ("PYTHONPYCACHEPREFIX", "python"),
    ("MYPY_CACHE_DIR", "mypy"),
    ("RUFF_CACHE_DIR", "ruff"),
    ("NUGET_HTTP_CACHE_PATH", "nuget-http"),
    ("NUGET_PLUGINS_CACHE_PATH", "nuget-plugins"),
    // The tool of .NET writes there before it does anything.
    ("DOTNET_CLI_HOME", "dotnet"),
];

/// Sets the variables that make programs keep their caches in `dir`. Does not move downloaded sources, such as Go's module cache
/// and cargo's registry.
pub(super) fn set_caches(env: &mut Vec<(OsString, OsString)>, dir: &Path) {
    env.retain(|(name, _)| !CACHES.iter().any(|(set, _)| name == set));
    let place = |below: &str| match below {
        "" => dir.to_owned(),
        _ => dir.join(below),
    };
    env.extend(CACHES.map(|(name, below)| (name.into(), place(below).into())));
}
