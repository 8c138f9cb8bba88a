//! The person's key: from a variable, a file only they can read, or a program that prints it.
//!
//! A key is never logged, shown or put into an error.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Mutex;

use super::choice::{Choice, Protocol};
use super::{Fault, Settings};

/// A program that asks for a passphrase takes a while; one that hangs must not hang a turn.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// Where the key comes from.
#[derive(Debug)]
pub(super) struct Key {
    source: Source,
    /// The variable that has it, or would.
    variable: String,
}

#[derive(Debug)]
enum Source {
    None,
    Variable(SecretString),
    File(PathBuf, SecretString),
    Command {
        argv: Vec<String>,
        /// What it printed, until a server refuses that: such keys run out.
        printed: Mutex<Option<SecretString>>,
    },
}

impl Key {
    /// Finds the key, or the program that has it; a provider's own API cannot be used without one.
    pub(super) fn find(
        choice: &Choice,
        settings: &Settings,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Fault> {
        let usual = choice.protocol.variable();
        let variable = settings
            .key_env
            .clone()
            .or_else(|| usual.map(str::to_owned))
            .unwrap_or_else(|| "api_key_env".to_owned());
        let missing = || Fault::NoKey {
            provider: choice.title.clone(),
            variable: variable.clone(),
        };
        let source = if settings.key_env.is_some() {
            Source::Variable(from_env(env, &variable).ok_or_else(missing)?)
        } else if let Some(path) = &settings.key_file {
            Source::File(path.clone(), from_file(path)?)
        } else if let Some(argv) = &settings.key_cmd {
            Source::Command {
                argv: argv.clone(),
                printed: Mutex::new(None),
            }
        } else if let Some(key) = usual.and_then(|usual| from_env(env, usual)) {
            Source::Variable(key)
        } else if choice.own && choice.protocol != Protocol::Ollama {
            return Err(missing());
        } else {
            Source::None
        };
        Ok(Self { source, variable })
    }

    /// Returns the key, running the program that prints it if it was not run yet.
    pub(super) async fn get(&self) -> Result<Option<SecretString>, Fault> {
        match &self.source {
            Source::None => Ok(None),
            Source::Variable(key) | Source::File(_, key) => Ok(Some(key.clone())),
            Source::Command { argv, printed } => {
                let mut printed = printed.lock().await;
                if printed.is_none() {
                    *printed = Some(from_command(argv).await?);
                }
                Ok(printed.clone())
            }
        }
    }

    /// Has the program asked again for the next request: what it printed was refused.
    pub(super) fn refused(&self) {
        if let Source::Command { printed, .. } = &self.source
            // Where it is held, the program is being asked already.
            && let Ok(mut printed) = printed.try_lock()
        {
            *printed = None;
        }
    }

    /// Returns the variable, file or program that has the key, if there is one to have.
    pub(super) fn source_name(&self) -> Option<String> {
        match &self.source {
            Source::None => None,
            Source::Variable(_) => Some(self.variable.clone()),
            Source::File(path, _) => Some(path.display().to_string()),
            Source::Command { argv, .. } => argv.first().cloned(),
        }
    }

    /// Returns where a person looks who has to mend it; where there is no key, the variable that would have it.
    pub(super) fn place(&self) -> String {
        match &self.source {
            Source::Command { argv, .. } => in_words(argv),
            _ => self.source_name().unwrap_or_else(|| self.variable.clone()),
        }
    }

    /// Returns the key if it is known by now.
    pub(super) fn known(&self) -> Option<String> {
        match &self.source {
            Source::None => None,
            Source::Variable(key) | Source::File(_, key) => Some(key.expose_secret().to_owned()),
            Source::Command { printed, .. } => {
                let printed = printed.try_lock().ok()?;
                printed.as_ref().map(|key| key.expose_secret().to_owned())
            }
        }
    }
}

/// Returns every key that can be had without running anything.
pub(super) fn known(settings: &Settings, env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let variables = [
        settings.key_env.as_deref(),
        Protocol::Anthropic.variable(),
        Protocol::OpenAi.variable(),
        Protocol::Gemini.variable(),
    ];
    let mut keys: Vec<String> = variables.into_iter().flatten().filter_map(env).collect();
    if let Some(Ok(key)) = settings.key_file.as_deref().map(from_file) {
        keys.push(key.expose_secret().to_owned());
    }
    for (name, value) in &settings.headers {
        if is_secret_header(name) {
            keys.push(value.clone());
            keys.extend(value.strip_prefix("Bearer ").map(str::to_owned));
        }
    }
    keys.retain(|key| !key.trim().is_empty());
    keys.sort();
    keys.dedup();
    keys
}

fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["authorization", "api-key", "apikey", "token", "secret"]
        .iter()
        .any(|part| name.contains(part))
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

fn in_words(argv: &[String]) -> String {
    format!("`{}`", argv.join(" "))
}

/// What to do about a program that gives no key.
const TRY_IT: &str = "run it in a terminal to see why";

/// What it prints may hold other things than the key (a password store's notes): the first line counts.
async fn from_command(argv: &[String]) -> Result<SecretString, Fault> {
    let unusable = |cause: String| Fault::KeyUnusable {
        source_name: in_words(argv),
        cause,
    };
    let [program, arguments @ ..] = argv else {
        return Err(unusable("api_key_cmd is empty".to_owned()));
    };
    let output = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(COMMAND_LIMIT, output)
        .await
        .map_err(|_| {
            unusable(format!(
                "it took more than {} s: {TRY_IT}",
                COMMAND_LIMIT.as_secs()
            ))
        })?
        .map_err(|error| unusable(format!("{error}: set api_key_cmd to a program that runs")))?;
    if !output.status.success() {
        return Err(unusable(format!(
            "it ended with {}: {TRY_IT}",
            output.status
        )));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    match printed.lines().next().map(str::trim) {
        None | Some("") => Err(unusable(format!("it printed nothing: {TRY_IT}"))),
        Some(key) => Ok(SecretString::from(key)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn find(settings: &Settings, set: &[(&str, &str)]) -> Result<Key, Fault> {
        let env = |name: &str| {
            set.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        let choice = Choice::new(settings, &env)?;
        Key::find(&choice, settings, &env)
    }

    #[test]
    fn a_missing_key_names_the_variable() {
        let settings = Settings {
            provider: Some("anthropic".into()),
            ..Settings::default()
        };
        assert_eq!(
            find(&settings, &[]).unwrap_err(),
            Fault::NoKey {
                provider: "Anthropic".into(),
                variable: "ANTHROPIC_API_KEY".into()
            }
        );
        let settings = Settings {
            key_env: Some("WORK_KEY".into()),
            ..settings
        };
        assert_eq!(
            find(&settings, &[("ANTHROPIC_API_KEY", "other")]).unwrap_err(),
            Fault::NoKey {
                provider: "Anthropic".into(),
                variable: "WORK_KEY".into()
            }
        );
        let found = find(&settings, &[("WORK_KEY", " mine\n")]).unwrap();
        assert_eq!(found.known().as_deref(), Some("mine"));
    }

    #[test]
    fn a_server_of_ones_own_needs_no_key() {
        let settings = Settings {
            base_url: Some("http://127.0.0.1:1".into()),
            ..Settings::default()
        };
        assert_eq!(find(&settings, &[]).unwrap().known(), None);
    }

    #[test]
    fn a_key_file_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, "from-file\n").unwrap();
        let settings = Settings {
            provider: Some("openai".into()),
            key_file: Some(path.clone()),
            ..Settings::default()
        };
        let chmod = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        chmod(0o644);
        let refused = find(&settings, &[]).unwrap_err();
        assert!(
            matches!(&refused, Fault::KeyUnusable { cause, .. } if cause.contains("chmod 600")),
            "{refused:?}"
        );
        chmod(0o600);
        assert_eq!(
            find(&settings, &[]).unwrap().known().as_deref(),
            Some("from-file")
        );
        assert_eq!(known(&settings, &|_| None), ["from-file"]);
    }

    #[tokio::test]
    async fn a_key_command_runs_once_and_late() {
        let dir = tempfile::tempdir().unwrap();
        let count = dir.path().join("count");
        let script = format!("echo x >> {}; echo secret; echo note", count.display());
        let settings = Settings {
            provider: Some("openai".into()),
            key_cmd: Some(vec!["sh".into(), "-c".into(), script]),
            ..Settings::default()
        };
        let key = find(&settings, &[]).unwrap();
        assert_eq!(key.source_name().as_deref(), Some("sh"));
        assert!(!count.exists());
        for _ in 0..2 {
            let got = key.get().await.unwrap().unwrap();
            assert_eq!(got.expose_secret(), "secret");
        }
        assert_eq!(std::fs::read_to_string(count).unwrap(), "x\n");
    }

    #[tokio::test]
    async fn a_key_that_cannot_be_had_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let empty = dir.path().join("empty");
        std::fs::write(&empty, "\n").unwrap();
        std::fs::set_permissions(&empty, std::fs::Permissions::from_mode(0o600)).unwrap();
        let file = |path: PathBuf| Settings {
            key_file: Some(path),
            ..Settings::default()
        };
        let command = |program: &str| Settings {
            key_cmd: Some(vec![program.into()]),
            ..Settings::default()
        };
        for (settings, expected) in [
            (file(dir.path().join("none")), "set api_key_file"),
            (file(empty), "write the key into it"),
            (command("/nonexistent/key"), "set api_key_cmd"),
            (command("false"), "run it in a terminal"),
            (command("true"), "run it in a terminal"),
        ] {
            let settings = Settings {
                provider: Some("openai".into()),
                ..settings
            };
            let fault = match find(&settings, &[]) {
                Ok(key) => key.get().await.unwrap_err(),
                Err(fault) => fault,
            };
            assert!(
                matches!(&fault, Fault::KeyUnusable { cause, .. } if cause.contains(expected)),
                "{fault:?}"
            );
        }
    }

    #[test]
    fn headers_that_hold_keys_are_known() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let settings = Settings {
            headers: vec![
                header("Authorization", "Bearer abc"),
                header("X-Api-Key", "def"),
                header("X-Team", "seven"),
                header("X-Token", " "),
            ],
            ..Settings::default()
        };
        assert_eq!(known(&settings, &|_| None), ["Bearer abc", "abc", "def"]);
    }

    #[tokio::test]
    async fn what_a_key_command_that_fails_printed_is_no_key() {
        let script = "echo usage: token; exit 2";
        let settings = Settings {
            provider: Some("openai".into()),
            key_cmd: Some(vec!["sh".into(), "-c".into(), script.into()]),
            ..Settings::default()
        };
        let fault = find(&settings, &[]).unwrap().get().await.unwrap_err();
        assert!(
            matches!(&fault, Fault::KeyUnusable { cause, .. } if cause.contains("exit status: 2")),
            "{fault:?}"
        );
    }

    #[tokio::test]
    async fn a_key_command_that_fails_is_named() {
        let settings = Settings {
            provider: Some("openai".into()),
            key_cmd: Some(vec!["false".into()]),
            ..Settings::default()
        };
        let fault = find(&settings, &[]).unwrap().get().await.unwrap_err();
        assert!(
            matches!(&fault, Fault::KeyUnusable { source_name, .. } if source_name == "`false`"),
            "{fault:?}"
        );
    }

    #[test]
    fn a_debug_print_shows_no_key() {
        let settings = Settings {
            provider: Some("openai".into()),
            ..Settings::default()
        };
        let key = find(&settings, &[("OPENAI_API_KEY", "very-secret")]).unwrap();
        assert!(!format!("{key:?}").contains("very-secret"));
    }
}
