//! Tests of remote providers.

use tokio::net::TcpSocket;

use super::*;

/// A provider whose server is nobody: the socket has its port, and does not listen.
fn remote(guessed: bool) -> (Remote, TcpSocket) {
    let deaf = TcpSocket::new_v4().unwrap();
    deaf.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let settings = ProviderSettings {
        provider: Some("ollama".into()),
        base_url: Some(format!("http://{}", deaf.local_addr().unwrap())),
        ..ProviderSettings::default()
    };
    let mut choice = Choice::new(&settings, &|_| None).unwrap();
    choice.guessed = guessed;
    (connected(choice, &settings), deaf)
}

#[tokio::test]
async fn a_guess_that_does_not_answer_is_no_provider() {
    let (guessed, _deaf) = remote(true);
    assert_eq!(guessed.models().await, Err(Fault::NoProvider));
    let (set, _deaf) = remote(false);
    let set = set.models().await;
    assert!(matches!(set, Err(Fault::Unreachable { .. })), "{set:?}");
}

#[test]
fn a_refused_key_is_named_by_where_it_comes_from() {
    use std::os::unix::fs::PermissionsExt;

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    std::fs::write(&file, "from-file").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let check = |settings: ProviderSettings, expected: &str| {
        let settings = ProviderSettings {
            provider: Some("openai".into()),
            ..settings
        };
        let info = of(settings).info("m".into());
        let fault = info.event(&serde_json::json!({"code": 401}));
        let Fault::Unauthorized { source_name, .. } = fault else {
            panic!("{fault:?}");
        };
        assert_eq!(source_name, expected);
    };
    check(ProviderSettings::default(), "OPENAI_API_KEY");
    let settings = ProviderSettings {
        key_env: Some("WORK_KEY".into()),
        key_file: Some(file.clone()),
        ..ProviderSettings::default()
    };
    check(settings, "WORK_KEY");
    let settings = ProviderSettings {
        key_file: Some(file.clone()),
        ..ProviderSettings::default()
    };
    check(settings, &file.display().to_string());
    let settings = ProviderSettings {
        key_cmd: Some(vec!["pass".into(), "show".into(), "key".into()]),
        ..ProviderSettings::default()
    };
    check(settings, "`pass show key`");
}

fn key(_: &str) -> Option<String> {
    Some("key-of-mine".to_owned())
}

fn connected(choice: Choice, settings: &ProviderSettings) -> Remote {
    let key = Key::find(&choice, settings, &key).unwrap();
    let stall = Duration::from_secs(30);
    Remote::new(choice, key, settings, stall, ServerMemory::default())
}

fn of(settings: ProviderSettings) -> Remote {
    connected(Choice::new(&settings, &key).unwrap(), &settings)
}

#[tokio::test]
async fn what_is_set_of_a_model_goes_before_what_is_known_of_it() {
    // Nobody answers there, so the name is all that is known.
    let (_, deaf) = remote(false);
    let url = format!("http://{}", deaf.local_addr().unwrap());
    let set = |context_window| ProviderSettings {
        provider: Some("anthropic".into()),
        base_url: Some(url.clone()),
        model: Some("claude-sonnet-4-5".into()),
        key_env: Some("WORK_KEY".into()),
        context_window,
        ..ProviderSettings::default()
    };
    assert_eq!(of(set(Some(5_000))).window().await, 5_000);
    assert_eq!(of(set(None)).window().await, 200_000);
    assert_eq!(of(set(None)).secrets(), ["key-of-mine"]);
}

#[test]
fn thoughts_are_asked_for_where_a_model_has_them() {
    let set = |provider: &str, kind: &str| ProviderSettings {
        provider: Some(provider.into()),
        extra_body: Some(serde_json::json!({"thinking": {"type": kind}})),
        ..ProviderSettings::default()
    };
    let thinks = |provider, kind| of(set(provider, kind)).info("m".into()).thinking;
    assert!(thinks("anthropic", "enabled"));
    assert!(!thinks("anthropic", "disabled"));
    assert!(!thinks("openai", "enabled"));
}

#[test]
fn the_client_is_built_late() {
    assert!(remote(false).0.client.get().is_none());
}

#[test]
fn a_list_price_is_that_of_the_vendors_own_server() {
    let price = |model: &str, base_url: Option<&str>| {
        let settings = ProviderSettings {
            provider: Some("anthropic".into()),
            model: Some(model.into()),
            base_url: base_url.map(str::to_owned),
            ..ProviderSettings::default()
        };
        let env = |_: &str| Some("key".to_owned());
        let provider = crate::make_provider(&settings, &env).unwrap();
        provider.list_price().map(|price| price.output)
    };
    assert_eq!(price("claude-sonnet-5-20260901", None), Some(10.0));
    assert_eq!(price("claude-sonnet-5-mini", None), None);
    assert_eq!(price("claude-sonnet-4-5", None), None);
    assert_eq!(price("claude-sonnet-5", Some("https://gateway/v1")), None);
}
