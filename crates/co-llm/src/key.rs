//! Finds the person's key in a variable, in a private file, or in the output of a program.
//!
//! A key is never logged, shown or put into an error. Redaction knows each key that can be sent, see [`sources`].

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::PoisonError;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Mutex;

use crate::choice::Choice;
use crate::fault::Fault;
use crate::provider_table::{PROVIDERS, key_variables};
use crate::settings::ProviderSettings;

/// The time-out of the program that prints the key. It may have to ask for a passphrase.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// A place that may hold a key.
#[derive(Debug, Clone, PartialEq)]
enum KeySource {
    Variable(String),
    File(PathBuf),
    /// A program that prints the key, as argv.
    Command(Vec<String>),
}

/// Returns the places that may hold a key, the first one to use first.
///
/// Both [`Key::find`] and [`known`] read this list, so redaction knows each key that can be used.
fn sources<'a>(
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
    /// Returns the key, if no program must run for it.
    fn read(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<Option<SecretString>, Fault> {
        match self {
            Self::Variable(name) => Ok(from_env(env, name)),
            Self::File(path) => from_file(path).map(Some),
            Self::Command(_) => Ok(None),
        }
    }
}

/// The key of one provider.
#[derive(Debug)]
pub(super) struct Key {
    /// None: there is no key, and the server may need none.
    source: Option<KeySource>,
    /// The variable that a person is told to set if there is no key.
    variable: String,
    /// The key to send. A program's is read late, and again if a server refused it.
    current: Mutex<Option<SecretString>>,
    /// Every key so far, for redaction.
    used: std::sync::Mutex<Vec<SecretString>>,
}

impl Key {
    /// Finds the key, or the program that prints it. A provider's own server cannot be used without one.
    pub(super) fn find(
        choice: &Choice,
        settings: &ProviderSettings,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Fault> {
        // A key in the environment is for its vendor. Only a setting sends it elsewhere.
        let usual = choice.provider.key_variable.filter(|_| choice.own);
        let own = settings.key_env.as_deref();
        let variable = own.or(usual).unwrap_or("api_key_env").to_owned();
        let mut source = sources(settings, usual).into_iter().next();
        let key = match &source {
            Some(source) => source.read(env)?,
            None => None,
        };
        if let (Some(KeySource::Variable(_)), None) = (&source, &key) {
            if own.is_some() || choice.own {
                return Err(Fault::NoKey {
                    provider: choice.title.clone(),
                    variable,
                });
            }
            source = None;
        }
        let found = Self {
            source,
            variable,
            current: Mutex::new(None),
            used: std::sync::Mutex::default(),
        };
        if let (Some(key), Ok(mut current)) = (key, found.current.try_lock()) {
            *current = Some(found.remember(key));
        }
        Ok(found)
    }

    /// Returns the key. Runs the program that prints it, unless it ran already.
    pub(super) async fn get(&self) -> Result<Option<SecretString>, Fault> {
        let mut current = self.current.lock().await;
        if let (Some(KeySource::Command(argv)), None) = (&self.source, &*current) {
            *current = Some(self.remember(from_command(argv).await?));
        }
        Ok(current.clone())
    }

    /// Adds a key to those that redaction knows.
    fn remember(&self, key: SecretString) -> SecretString {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if !used
            .iter()
            .any(|old| old.expose_secret() == key.expose_secret())
        {
            used.push(key.clone());
        }
        key
    }

    /// Drops a key that a server refused, so that the program runs again for the next request.
    pub(super) fn refused(&self) {
        if let Some(KeySource::Command(_)) = &self.source
            // If it is locked, the program runs already.
            && let Ok(mut current) = self.current.try_lock()
        {
            *current = None;
        }
    }

    /// Returns the variable, file or program that has the key, if there is one.
    pub(super) fn source_name(&self) -> Option<String> {
        match self.source.as_ref()? {
            KeySource::Variable(name) => Some(name.clone()),
            KeySource::File(path) => Some(path.display().to_string()),
            KeySource::Command(argv) => argv.first().cloned(),
        }
    }

    /// Returns the place where a person corrects the key; the variable to set if there is no key.
    pub(super) fn place(&self) -> String {
        match &self.source {
            Some(KeySource::Command(argv)) => in_words(argv),
            _ => self.source_name().unwrap_or_else(|| self.variable.clone()),
        }
    }

    /// Returns every key that was used so far, also those that a server refused.
    pub(super) fn used(&self) -> Vec<String> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = used.iter().map(|key| key.expose_secret().to_owned());
        keys.collect()
    }
}

/// Returns the keys for all providers that can be read without running a program.
pub(super) fn known(
    settings: &ProviderSettings,
    env: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    let found = sources(settings, key_variables());
    let mut keys: Vec<String> = found
        .iter()
        .filter_map(|source| source.read(env).ok().flatten())
        .map(|key| key.expose_secret().to_owned())
        .collect();
    for (name, value) in &settings.headers {
        if is_secret_header(name) {
            keys.push(value.clone());
            // The key alone, as in `Bearer abc`.
            keys.extend(value.split_once(' ').map(|(_, key)| key.to_owned()));
        }
    }
    let url = settings.base_url.as_deref().map(reqwest::Url::parse);
    if let Some(Ok(url)) = url {
        keys.extend(url.password().map(str::to_owned));
    }
    keys.retain(|key| !key.trim().is_empty());
    keys.sort();
    keys.dedup();
    keys
}

fn is_secret_header(name: &str) -> bool {
    const PARTS: [&str; 6] = ["auth", "key", "token", "secret", "password", "cookie"];
    let name = name.to_ascii_lowercase();
    let mut own = PROVIDERS.iter().map(|row| row.key_header);
    own.any(|own| own.eq_ignore_ascii_case(&name)) || PARTS.iter().any(|part| name.contains(part))
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

/// The hint for a program that prints no key.
const TRY_IT: &str = "run it in a terminal to see why";

/// Returns the first line that a program prints. A password store may print notes after the key.
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

    fn find(settings: &ProviderSettings, set: &[(&str, &str)]) -> Result<Key, Fault> {
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
        let settings = ProviderSettings {
            provider: Some("anthropic".into()),
            ..ProviderSettings::default()
        };
        assert_eq!(
            find(&settings, &[]).unwrap_err(),
            Fault::NoKey {
                provider: "Anthropic".into(),
                variable: "ANTHROPIC_API_KEY".into()
            }
        );
        let settings = ProviderSettings {
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
        assert_eq!(found.used(), ["mine"]);
    }

    #[test]
    fn a_key_in_the_environment_goes_to_its_vendor_only() {
        let at = |base_url: &str, key_env: Option<&str>| {
            let settings = ProviderSettings {
                base_url: Some(base_url.into()),
                key_env: key_env.map(str::to_owned),
                ..ProviderSettings::default()
            };
            find(&settings, &[("OPENAI_API_KEY", "sk")]).unwrap().used()
        };
        assert_eq!(at("https://api.openai.com/v1", None), ["sk"]);
        assert_eq!(at("https://gateway.example/v1", None), [""; 0]);
        assert_eq!(at("https://api.openai.com.example/v1", None), [""; 0]);
        let named = Some("OPENAI_API_KEY");
        assert_eq!(at("https://gateway.example/v1", named), ["sk"]);
    }

    #[test]
    fn a_server_of_ones_own_needs_no_key() {
        let settings = ProviderSettings {
            base_url: Some("http://127.0.0.1:1".into()),
            ..ProviderSettings::default()
        };
        assert_eq!(find(&settings, &[]).unwrap().used().len(), 0);
    }

    #[test]
    fn a_key_file_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, "from-file\n").unwrap();
        let settings = ProviderSettings {
            provider: Some("openai".into()),
            key_file: Some(path.clone()),
            ..ProviderSettings::default()
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
        assert_eq!(find(&settings, &[]).unwrap().used(), ["from-file"]);
        assert_eq!(known(&settings, &|_| None), ["from-file"]);
    }

    #[tokio::test]
    async fn a_key_command_runs_once_and_late() {
        let dir = tempfile::tempdir().unwrap();
        let count = dir.path().join("count");
        let script = format!("echo x >> {}; echo secret; echo note", count.display());
        let settings = ProviderSettings {
            provider: Some("openai".into()),
            key_cmd: Some(vec!["sh".into(), "-c".into(), script]),
            ..ProviderSettings::default()
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
        let file = |path: PathBuf| ProviderSettings {
            key_file: Some(path),
            ..ProviderSettings::default()
        };
        let command = |program: &str| ProviderSettings {
            key_cmd: Some(vec![program.into()]),
            ..ProviderSettings::default()
        };
        for (settings, expected) in [
            (file(dir.path().join("none")), "set api_key_file"),
            (file(empty), "write the key into it"),
            (command("/nonexistent/key"), "set api_key_cmd"),
            (command("false"), "run it in a terminal"),
            (command("true"), "run it in a terminal"),
        ] {
            let settings = ProviderSettings {
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

    /// Collects the settings by which a provider can get a key that no program prints.
    fn settings_with_keys(dir: &Path) -> Vec<ProviderSettings> {
        let file = dir.join("key");
        std::fs::write(&file, "from-file\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let mut all = Vec::new();
        for provider in PROVIDERS.iter().map(|row| Some(row.name.to_owned())) {
            for (key_env, key_file) in [
                (None, None),
                (Some("WORK_KEY".to_owned()), None),
                (None, Some(file.clone())),
            ] {
                all.push(ProviderSettings {
                    provider: provider.clone(),
                    key_env,
                    key_file,
                    ..ProviderSettings::default()
                });
            }
        }
        all
    }

    #[test]
    fn redaction_knows_each_key_that_a_provider_can_use() {
        let dir = tempfile::tempdir().unwrap();
        // A blank around the key is not sent, so the key must be known without it.
        let env = |name: &str| Some(format!(" key-of-{name}\n"));
        for settings in settings_with_keys(dir.path()) {
            let redacted = known(&settings, &env);
            let choice = Choice::new(&settings, &env).unwrap();
            let key = Key::find(&choice, &settings, &env).unwrap();
            let needs_key = choice.provider.key_variable.is_some();
            assert_eq!(key.used().is_empty(), !needs_key && key.source.is_none());
            for used in key.used() {
                assert!(redacted.contains(&used), "{used}: {settings:?}");
            }
            for variable in PROVIDERS.iter().filter_map(|row| row.key_variable) {
                let other = format!("key-of-{variable}");
                assert!(redacted.contains(&other), "{other}: {settings:?}");
            }
        }
    }

    #[tokio::test]
    async fn redaction_knows_a_programs_key_after_a_server_refused_it() {
        let settings = ProviderSettings {
            provider: Some("openai".into()),
            key_cmd: Some(vec!["echo".into(), "printed".into()]),
            ..ProviderSettings::default()
        };
        let key = find(&settings, &[]).unwrap();
        assert!(key.used().is_empty());
        key.get().await.unwrap();
        key.refused();
        assert_eq!(key.used(), ["printed"]);
    }

    #[test]
    fn redaction_knows_the_password_of_an_address() {
        let settings = ProviderSettings {
            base_url: Some("https://me:pass-word@h/v1".into()),
            ..ProviderSettings::default()
        };
        assert_eq!(known(&settings, &|_| None), ["pass-word"]);
    }

    #[test]
    fn headers_that_hold_keys_are_known() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let settings = ProviderSettings {
            headers: vec![
                header("Authorization", "Bearer abc"),
                header("X-Api-Key", "def"),
                header("X-Team", "seven"),
                header("Ocp-Apim-Subscription-Key", "ghi"),
                header("X-Token", " "),
            ],
            ..ProviderSettings::default()
        };
        assert_eq!(
            known(&settings, &|_| None),
            ["Bearer abc", "abc", "def", "ghi"]
        );
    }

    #[tokio::test]
    async fn what_a_key_command_that_fails_printed_is_no_key() {
        let script = "echo usage: token; exit 2";
        let settings = ProviderSettings {
            provider: Some("openai".into()),
            key_cmd: Some(vec!["sh".into(), "-c".into(), script.into()]),
            ..ProviderSettings::default()
        };
        let fault = find(&settings, &[]).unwrap().get().await.unwrap_err();
        assert!(
            matches!(&fault, Fault::KeyUnusable { cause, .. } if cause.contains("exit status: 2")),
            "{fault:?}"
        );
    }

    #[tokio::test]
    async fn a_key_command_that_fails_is_named() {
        let settings = ProviderSettings {
            provider: Some("openai".into()),
            key_cmd: Some(vec!["false".into()]),
            ..ProviderSettings::default()
        };
        let fault = find(&settings, &[]).unwrap().get().await.unwrap_err();
        assert!(
            matches!(&fault, Fault::KeyUnusable { source_name, .. } if source_name == "`false`"),
            "{fault:?}"
        );
    }

    #[test]
    fn a_debug_print_shows_no_key() {
        let settings = ProviderSettings {
            provider: Some("openai".into()),
            ..ProviderSettings::default()
        };
        let key = find(&settings, &[("OPENAI_API_KEY", "very-secret")]).unwrap();
        assert!(!format!("{key:?}").contains("very-secret"));
    }
}
