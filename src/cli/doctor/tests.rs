use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::*;

/// Looks with `variables`, an own home and a PATH that finds bash.
async fn looked(args: DoctorArguments, variables: &[(&str, &str)]) -> Vec<Check> {
    let home = tempfile::tempdir().unwrap();
    let probe = SandboxReport {
        sandbox: "read-only sandbox".into(),
        held: Ok(()),
        known: true,
        limits: LimitEnforcement::Watched,
        landlock: Some(5),
    };
    let env = |name: &str| {
        let given = variables.iter().find(|(variable, _)| *variable == name);
        given.map(|(_, value)| (*value).to_owned()).or(match name {
            "PATH" => Some("/usr/local/bin:/usr/bin:/bin".into()),
            name if name.starts_with("XDG_") => Some(home.path().join(name).display().to_string()),
            _ => None,
        })
    };
    checks(&args, &probe, &env).await
}

async fn check(variables: &[(&str, &str)], name: &str, expected: &[(CheckLevel, &str)]) {
    let checks = looked(DoctorArguments::default(), variables).await;
    let found: Vec<_> = checks.iter().filter(|check| check.name == name).collect();
    assert_eq!(found.len(), expected.len(), "{name}: {checks:#?}");
    for (check, (level, part)) in found.iter().zip(expected) {
        assert_eq!(check.level, *level, "{check:?}");
        assert!(check.message.contains(part), "{check:?}");
        assert_eq!(
            check.advice.is_some(),
            check.level != CheckLevel::Ok,
            "{check:?}"
        );
    }
}

#[tokio::test]
async fn a_sound_machine_has_no_errors_in_its_own_matters() {
    for name in [
        "version", "config", "state", "data", "settings", "shell", "sandbox",
    ] {
        check(&[], name, &[(CheckLevel::Ok, "")]).await;
    }
    check(
        &[],
        "version",
        &[(CheckLevel::Ok, env!("CARGO_PKG_VERSION"))],
    )
    .await;
    check(&[], "shell", &[(CheckLevel::Ok, "bash, version ")]).await;
    check(&[], "neovim", &[]).await;
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    check(
        &[("PATH", "/nonexistent")],
        "shell",
        &[(CheckLevel::Warn, "no bash")],
    )
    .await;
    check(
        &[("XDG_STATE_HOME", "/proc/nope")],
        "state",
        &[(CheckLevel::Error, "/proc/nope")],
    )
    .await;
    check(
        &[("CO_CLI_MAX_STEPS", "x")],
        "settings",
        &[(CheckLevel::Error, "max_steps")],
    )
    .await;
}

#[tokio::test]
async fn the_provider_is_the_first_with_a_key_and_the_key_is_never_shown() {
    let key = ("ANTHROPIC_API_KEY", "sk-secret");
    let other = ("GEMINI_API_KEY", "g-secret");
    check(&[other, key], "provider", &[(CheckLevel::Ok, "anthropic")]).await;
    check(&[other], "provider", &[(CheckLevel::Ok, "gemini")]).await;
    check(&[other], "key", &[(CheckLevel::Ok, "GEMINI_API_KEY")]).await;
    check(
        &[("ANTHROPIC_API_KEY", " ")],
        "provider",
        &[(CheckLevel::Ok, "ollama")],
    )
    .await;
    check(
        &[("CO_CLI_PROVIDER", "openai")],
        "key",
        &[(CheckLevel::Error, "OPENAI_API_KEY")],
    )
    .await;
    let told = format!(
        "{:?}",
        looked(DoctorArguments::default(), &[key, other]).await
    );
    assert!(!told.contains("secret"), "{told}");
}

#[tokio::test]
async fn a_key_file_must_be_private_and_hold_something() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    let variables = [
        ("CO_CLI_PROVIDER", "openai"),
        ("CO_CLI_API_KEY_FILE", file.to_str().unwrap()),
    ];
    check(&variables, "key", &[(CheckLevel::Error, "cannot be used")]).await;
    for (mode, text, level, part) in [
        (0o644, "k", CheckLevel::Error, "others can read it"),
        (0o600, "", CheckLevel::Error, "it is empty"),
        (0o600, "k", CheckLevel::Ok, "key has it"),
    ] {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        check(&variables, "key", &[(level, part)]).await;
    }
}

#[tokio::test]
async fn a_server_on_this_machine_is_tried_and_no_other() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap());
    let at = |url| [("CO_CLI_PROVIDER", "openai"), ("CO_CLI_BASE_URL", url)];
    check(&at(&url), "server", &[(CheckLevel::Ok, "127.0.0.1")]).await;
    check(&at(&url), "key", &[(CheckLevel::Ok, "none is needed")]).await;
    // A port that it has, so that nobody else does, and does not listen on.
    let deaf = tokio::net::TcpSocket::new_v4().unwrap();
    deaf.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/v1/", deaf.local_addr().unwrap());
    check(
        &at(&url),
        "server",
        &[(CheckLevel::Error, "nothing answers")],
    )
    .await;
    check(&at("https://models.example/v1/"), "server", &[]).await;
}

#[tokio::test]
async fn neovim_is_judged_by_its_version() {
    for (version, level) in [
        ("0.10.0", CheckLevel::Ok),
        ("v0.12.0-dev+1", CheckLevel::Ok),
        ("1.0", CheckLevel::Ok),
        ("0.9.5", CheckLevel::Error),
        ("nightly", CheckLevel::Warn),
    ] {
        assert_eq!(system::nvim(version).level, level, "{version}");
    }
}

#[tokio::test]
async fn the_settings_of_lua_count() {
    let args = DoctorArguments {
        lua: json!({ "provider": "openai", "colour": 1 }),
        ..DoctorArguments::default()
    };
    let checks = looked(args, &[]).await;
    let has = |name, part: &str| {
        let mut named = checks.iter().filter(|check| check.name == name);
        named.any(|check| check.message.contains(part))
    };
    assert!(
        has("provider", "openai") && has("settings", "colour"),
        "{checks:#?}"
    );
}

#[test]
fn a_probe_that_failed_is_not_taken_for_a_kernel_without_a_sandbox() {
    let why = "the sandbox could not be tried (too many open files): mend that, then start again";
    let probe = SandboxReport {
        sandbox: "no sandbox".into(),
        held: Err(Refused::Unable(why.into())),
        known: false,
        limits: LimitEnforcement::Watched,
        landlock: Some(5),
    };
    let check = sandbox(&probe);
    assert!(
        check
            .message
            .ends_with("until then nearly every command asks"),
        "{}",
        check.message
    );
}

#[test]
fn without_a_sandbox_it_says_what_to_use() {
    let probe = SandboxReport {
        sandbox: "this kernel has no Landlock".into(),
        held: Err(Refused::Unable("this kernel has no Landlock".into())),
        known: true,
        limits: LimitEnforcement::Watched,
        landlock: Some(5),
    };
    let check = sandbox(&probe);
    assert!(
        check.message.contains("nearly every command asks"),
        "{}",
        check.message
    );
    assert!(check.advice.unwrap().contains("5.13"));
    let mut config = Config::default();
    assert_eq!(backend(&probe, &config, Ok(())).level, CheckLevel::Ok);
    config.sandbox_backend = config::SandboxBackend::Landlock;
    assert_eq!(backend(&probe, &config, Ok(())).level, CheckLevel::Error);
}

#[tokio::test]
async fn it_says_what_approved_commands_may_do_and_offers_landlock() {
    let offer =
        "with all your permissions; sandbox_backend = \"landlock\", or :Co /sandbox landlock";
    check(&[], "backend", &[(CheckLevel::Ok, offer)]).await;
    let held = [("CO_CLI_SANDBOX_BACKEND", "landlock")];
    check(
        &held,
        "backend",
        &[(CheckLevel::Ok, "only, without network")],
    )
    .await;
    let auto = [("CO_CLI_SANDBOX_BACKEND", "auto")];
    let why =
        "auto takes landlock, because no container can run: there is no container engine on PATH";
    check(&auto, "backend", &[(CheckLevel::Ok, why)]).await;
    check(&[], "landlock", &[(CheckLevel::Warn, "version 5 lacks")]).await;
}

#[tokio::test]
async fn it_names_the_engine_and_says_what_a_container_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let docker = dir.path().join("docker");
    let script = "#!/bin/sh\n[ \"$5\" = there ] || { echo 'Error: No such image' >&2; exit 1; }\n";
    std::fs::write(&docker, script).unwrap();
    std::fs::set_permissions(&docker, std::fs::Permissions::from_mode(0o755)).unwrap();
    let container = async |variables: &[(&str, &str)], path: &str| {
        let args = DoctorArguments {
            environment: vec![("PATH".into(), path.into())],
            ..DoctorArguments::default()
        };
        let mut checks = looked(args, variables).await;
        checks.retain(|check| check.name == "container");
        checks.remove(0)
    };
    let path = dir.path().to_str().unwrap();
    let there = container(&[("CO_CLI_DOCKER_IMAGE", "there")], path).await;
    assert_eq!(there.level, CheckLevel::Ok);
    let told = format!("{} answers and has the image there", docker.display());
    assert_eq!(there.message, told);
    let wanted = ("CO_CLI_SANDBOX_BACKEND", "docker");
    for (variables, path, level, told) in [
        (&[][..], path, CheckLevel::Ok, "No such image"),
        (&[wanted], path, CheckLevel::Error, "set docker_image"),
        (
            &[],
            "/nonexistent",
            CheckLevel::Ok,
            "install docker or podman",
        ),
        (
            &[wanted, ("CO_CLI_CONTAINER_ENGINE", "podman")],
            path,
            CheckLevel::Error,
            "there is no podman on PATH",
        ),
    ] {
        let check = container(variables, path).await;
        assert_eq!(check.level, level, "{check:?}");
        assert!(check.message.contains(told), "{check:?}");
    }
}

#[test]
fn json_has_the_words_the_help_names() {
    let check = Check::bad("shell", CheckLevel::Warn, "no bash", "install bash");
    assert_eq!(
        serde_json::to_value([&check, &Check::ok("version", "1")]).unwrap(),
        json!([
            { "name": "shell", "level": "warn", "message": "no bash", "advice": "install bash" },
            { "name": "version", "level": "ok", "message": "1" },
        ])
    );
    assert_eq!(lines(&check), "warn  shell: no bash\n      install bash\n");
}

#[test]
fn it_says_how_limits_hold_and_warns_root() {
    let group = LimitEnforcement::Group("/sys/fs/cgroup/a".into());
    let kernel = LimitEnforcement::Kernel("/sys/fs/cgroup/a".into());
    for (hold, root, level) in [
        (&kernel, true, CheckLevel::Ok),
        (&kernel, false, CheckLevel::Ok),
        (&group, true, CheckLevel::Warn),
        (&group, false, CheckLevel::Ok),
        (&LimitEnforcement::Watched, true, CheckLevel::Warn),
        (&LimitEnforcement::Watched, false, CheckLevel::Ok),
    ] {
        let check = limits(hold, root);
        assert_eq!(check.level, level, "{check:?}");
        assert_eq!(
            check.advice.is_some(),
            level == CheckLevel::Warn,
            "{check:?}"
        );
    }
}

/// Answers each request with a list of models.
fn models_server() -> String {
    use std::io::{Read, Write};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..read]).to_lowercase();
            let (status, body) = match request.contains("authorization: bearer work-secret") {
                true => (
                    200,
                    r#"{"data": [{"id": "a", "context_length": 4321}, {"id": "b"}]}"#,
                ),
                false => (401, r#"{"error": {"message": "no such key"}}"#),
            };
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
            let answer = format!("{head}connection: close\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    url
}

#[tokio::test]
async fn each_profile_is_named_with_its_key_models_and_window() {
    let url = models_server();
    let profiles = json!({
        "work": { "base_url": url, "api_key_env": "WORK" },
        "wrong": { "base_url": url, "api_key_env": "OTHER" },
        "empty": { "base_url": url, "api_key_env": "UNSET" },
    });
    let profiles = profiles.to_string();
    let variables = [
        ("CO_CLI_PROVIDERS", profiles.as_str()),
        ("WORK", "work-secret"),
        ("OTHER", "other-secret"),
    ];
    let usual = (CheckLevel::Ok, "ollama");
    let work = "work: the key is in WORK, 2 models, work/a has a window of 4321 tokens";
    let expected = [
        usual,
        (CheckLevel::Ok, work),
        (CheckLevel::Error, "wrong: "),
        (CheckLevel::Error, "UNSET"),
    ];
    check(&variables, "provider", &expected).await;
    let told = looked(DoctorArguments::default(), &variables).await;
    assert!(!format!("{told:?}").contains("-secret"), "{told:?}");
}
