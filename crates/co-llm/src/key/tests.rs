use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::*;
use crate::provider_table::PROVIDERS;

fn find(settings: &ProviderSettings, set: &[(&str, &str)]) -> Result<Key, Fault> {
    let env = |name: &str| {
        set.iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| (*value).to_owned())
    };
    let choice = Choice::new(settings, &env)?;
    Key::find(&choice, settings, &env)
}

fn openai() -> ProviderSettings {
    ProviderSettings {
        provider: Some("openai".into()),
        ..ProviderSettings::default()
    }
}

/// Settings with a key that a program prints.
fn printed_by(command: &[&str]) -> ProviderSettings {
    ProviderSettings {
        key_cmd: Some(command.iter().map(ToString::to_string).collect()),
        ..openai()
    }
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
            variable: Some("ANTHROPIC_API_KEY".into())
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
            variable: Some("WORK_KEY".into())
        }
    );
    let found = find(&settings, &[("WORK_KEY", " mine\n")]).unwrap();
    assert_eq!(found.used(), ["mine"]);
}

#[test]
fn a_key_in_the_environment_goes_to_its_vendor_only() {
    let env = |name: &str| name.ends_with("_API_KEY").then(|| name.to_owned());
    let at = |provider: Option<&str>, base_url: &str, key_env: Option<&str>, key: Option<&str>| {
        let settings = ProviderSettings {
            provider: provider.map(str::to_owned),
            base_url: Some(base_url.into()),
            key_env: key_env.map(str::to_owned),
            ..ProviderSettings::default()
        };
        let choice = Choice::new(&settings, &env).unwrap();
        let found = Key::find(&choice, &settings, &env).unwrap().used();
        let key = key.map(|key| format!("{key}_API_KEY"));
        assert_eq!(found, Vec::from_iter(key), "{provider:?} {base_url}");
    };
    for (base_url, key) in [
        ("https://api.openai.com/v1", Some("OPENAI")),
        ("https://eu.api.openai.com", Some("OPENAI")),
        ("https://gateway.example/v1", None),
        ("https://api.openai.com.example/v1", None),
        ("https://api.openai.com@gateway.example/v1", None),
        ("http://api.openai.com/v1", None),
        ("https://api.openai.com:8443/v1", None),
        ("https://evil-api.openai.com/v1", None),
        ("https://api.groq.com", Some("GROQ")),
        ("https://api.deepseek.com/beta", Some("DEEPSEEK")),
        ("https://eu.openrouter.ai/api/v1", Some("OPENROUTER")),
        ("https://eu-west-1.api.x.ai/v1", Some("XAI")),
        ("https://api.together.ai/v1", Some("TOGETHER")),
        ("https://api.together.xyz/v1", Some("TOGETHER")),
    ] {
        at(None, base_url, None, key);
        at(None, base_url, Some("WORK_API_KEY"), Some("WORK"));
        at(Some("mistral"), base_url, None, None);
    }
    for provider in [None, Some("azure")] {
        for (base_url, key) in [
            ("https://name.openai.azure.com", Some("AZURE_OPENAI")),
            (
                "https://name.openai.azure.com/openai/deployments/d?api-version=2024-10-21",
                Some("AZURE_OPENAI"),
            ),
            (
                "https://name.services.ai.azure.com/openai/v1",
                Some("AZURE_OPENAI"),
            ),
            (
                "https://name.cognitiveservices.azure.com",
                Some("AZURE_OPENAI"),
            ),
            ("https://evil-openai.azure.com.example.org/openai/v1", None),
            ("https://name.openai.azure.com.example.org/openai/v1", None),
            ("https://evil-openai.azure.com/openai/v1", None),
            ("https://name.example.org/name.openai.azure.com/", None),
            ("https://name.azurewebsites.net/openai/v1", None),
            ("http://name.openai.azure.com/openai/v1", None),
        ] {
            at(provider, base_url, None, key);
        }
    }
}

#[test]
fn a_server_of_ones_own_needs_no_key() {
    let settings = ProviderSettings {
        base_url: Some("http://127.0.0.1:1".into()),
        ..ProviderSettings::default()
    };
    let found = find(&settings, &[("OPENAI_API_KEY", "for another server")]).unwrap();
    assert_eq!(found.used().len(), 0);
    // If it asks for one, no variable helps until a setting names it.
    assert_eq!((found.place(), found.variable()), (None, None));
}

#[test]
fn a_key_file_others_can_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, "from-file\n").unwrap();
    let settings = ProviderSettings {
        key_file: Some(path.clone()),
        ..openai()
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
    let settings = printed_by(&["sh", "-c", &script]);
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
        ..openai()
    };
    let fails = ["sh", "-c", "echo usage: token; exit 2"];
    for (settings, expected) in [
        (file(dir.path().join("none")), "set api_key_file"),
        (file(empty), "write the key into it"),
        (printed_by(&["/nonexistent/key"]), "set api_key_cmd"),
        (printed_by(&["false"]), "run it in a terminal"),
        (printed_by(&["true"]), "run it in a terminal"),
        (printed_by(&fails), "exit status: 2"),
    ] {
        let fault = match find(&settings, &[]) {
            Ok(key) => key.get().await.unwrap_err(),
            Err(fault) => fault,
        };
        assert!(
            matches!(&fault, Fault::KeyUnusable { cause, .. } if cause.contains(expected)),
            "{fault:?}"
        );
    }
    let failed = find(&printed_by(&["false"]), &[]).unwrap().get().await;
    assert!(
        matches!(&failed, Err(Fault::KeyUnusable { source_name, .. }) if source_name == "`false`"),
        "{failed:?}"
    );
}

/// Collects the settings by which a provider can get a key that no program prints.
fn settings_with_keys(dir: &Path) -> Vec<ProviderSettings> {
    let file = dir.join("key");
    std::fs::write(&file, "from-file\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut all = Vec::new();
    for row in &PROVIDERS {
        for (key_env, key_file) in [
            (None, None),
            (Some("WORK_KEY".to_owned()), None),
            (None, Some(file.clone())),
        ] {
            all.push(ProviderSettings {
                provider: Some(row.name.to_owned()),
                base_url: row.needs_address().then(|| row.base_url.to_owned()),
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
    let key = find(&printed_by(&["echo", "printed"]), &[]).unwrap();
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

#[test]
fn a_debug_print_shows_no_key() {
    let key = find(&openai(), &[("OPENAI_API_KEY", "very-secret")]).unwrap();
    assert!(!format!("{key:?}").contains("very-secret"));
}
