//! The places that may hold a key: a variable, a private file, a program that prints it.

use std::path::{Path, PathBuf};

use secrecy::SecretString;

use crate::fault::Fault;
use crate::printed_secret::printed_secret;
use crate::settings::ProviderSettings;

/// A place that may hold a key.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum KeySource {
    Variable(String),
    File(PathBuf),
    /// The command line (argv) of a program that prints the key.
    Command(Vec<String>),
}

/// Returns the places that may hold a key, sorted by preference.
///
/// Both [`Key::find`](super::Key::find) and [`known`](super::known::known) use this list, so redaction knows each key that can be
/// used.
pub(super) fn sources<'a>(
    settings: &ProviderSettings,
    variables: impl IntoIterator<Item = &'a str>,
) -> Vec<KeySource> {
    let usual = variables.into_iter().map(|name| name.to_owned());
    let own = settings.key_env.clone().map(KeySource::Variable);
    let file = settings.key_file.clone().map(KeySource::File);
    let command = settings.key_cmd.clone().map(KeySource::Command);
    let set = [own, file, command].into_iter().flatten();
    set.chain(usual.map(KeySource::Variable)).collect()
}

impl KeySource {
    /// Returns the key of a variable or a file. Returns `None` if a program must run to print the key.
    pub(super) fn read(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<SecretString>, Fault> {
        match self {
            Self::Variable(name) => Ok(from_env(env, name)),
            Self::File(path) => from_file(path).map(Some),
            Self::Command(_) => Ok(None),
        }
    }
}

fn from_env(env: &dyn Fn(&str) -> Option<String>, variable: &str) -> Option<SecretString> {
    let value = env(variable)?;
    let value = value.trim();
    (!value.is_empty()).then(|| SecretString::from(value))
}

fn from_file(path: &Path) -> Result<SecretString, Fault> {
    use std::os::unix::fs::PermissionsExt;

    let path = home(path);
    let unusable = |cause: String| Fault::KeyUnusable {
        source_name: path.display().to_string(),
        cause,
    };
    let unread = |error| unusable(format!("{error}: set api_key_file to a file you can read"));
    let mode = std::fs::metadata(&path)
        .map_err(unread)?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        return Err(unusable(format!(
            "others can read it (mode {:04o}); run chmod 600 on it",
            mode & 0o7777
        )));
    }
    let text = std::fs::read_to_string(&path).map_err(unread)?;
    match text.trim() {
        "" => Err(unusable("it is empty: write the key into it".to_owned())),
        key => Ok(SecretString::from(key)),
    }
}

fn home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), directories::BaseDirs::new()) {
        (Ok(rest), Some(dirs)) => dirs.home_dir().join(rest),
        _ => path.to_owned(),
    }
}

pub(super) fn in_words(argv: &[String]) -> String {
    format!("`{}`", argv.join(" "))
}

/// Runs a program and returns the first line of its output.
pub(super) async fn from_command(argv: &[String]) -> Result<SecretString, Fault> {
    let printed = printed_secret(argv, "api_key_cmd").await;
    printed
        .map(SecretString::from)
        .map_err(|cause| Fault::KeyUnusable {
            source_name: in_words(argv),
            cause,
        })
}
