use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::*;
use co_exec::sandbox::SandboxSupport;

/// Returns the report about a kernel.
fn report(support: SandboxSupport) -> SandboxReport {
    SandboxReport::new("/nonexistent".into(), "/home/x".into()).with_support(support)
}

/// Returns the features of a kernel that can confine commands.
fn able() -> SandboxSupport {
    SandboxSupport {
        abi: Some(5),
        seccomp: true,
        namespaces: true,
        pid_namespaces: true,
        own_proc: true,
        ..SandboxSupport::default()
    }
}

/// Looks with `variables`, an own home and a PATH that finds bash.
async fn looked(args: DoctorArguments, variables: &[(&str, &str)]) -> Vec<Check> {
    let home = tempfile::tempdir().unwrap();
    let env = |name: &str| {
        let given = variables.iter().find(|(variable, _)| *variable == name);
        given.map(|(_, value)| (*value).to_owned()).or(match name {
            "PATH" => Some("/usr/local/bin:/usr/bin:/bin".into()),
            name if name.starts_with("XDG_") => Some(home.path().join(name).display().to_string()),
            _ => None,
        })
    };
    let found = Findings {
        sandbox: report(able()),
        hosts: Ok("a command reaches an allowed host"),
    };
    checks(&args, &found, &env).await
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

#[test]
fn a_workspace_that_cannot_be_watched_is_named() {
    let check = super::system::watcher(Path::new("/proc/self/task"));
    let why = "co cannot watch /proc/self/task for changes: its file system does not tell of every change";
    assert_eq!((check.level, &*check.message), (CheckLevel::Warn, why));
}

#[tokio::test]
async fn a_sound_machine_has_no_errors_in_its_own_matters() {
    for (name, part) in [
        ("version", env!("CARGO_PKG_VERSION")),
        ("config", ""),
        ("state", ""),
        ("data", ""),
        ("settings", "vim.g.co"),
        ("shell", "bash, version "),
        ("sandbox", ""),
        ("hosts", "an allowed host"),
    ] {
        check(&[], name, &[(CheckLevel::Ok, part)]).await;
    }
    let none = [(CheckLevel::Ok, "your settings need none")];
    check(&[("PATH", "/nonexistent")], "container", &none).await;
    let editor = DoctorArguments {
        lua: json!({}),
        ..Default::default()
    };
    let checks = looked(editor, &[]).await;
    let settings = checks.iter().find(|check| check.name == "settings");
    assert_eq!(
        settings.unwrap().message,
        "every setting given is understood"
    );
    check(&[], "neovim", &[]).await;
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    for (variable, name, level, part) in [
        (
            ("PATH", "/nonexistent"),
            "shell",
            CheckLevel::Warn,
            "no bash",
        ),
        (
            ("XDG_STATE_HOME", "/proc/nope"),
            "state",
            CheckLevel::Error,
            "/proc/nope",
        ),
        (
            ("CO_CLI_MAX_STEPS", "x"),
            "settings",
            CheckLevel::Error,
            "max_steps",
        ),
    ] {
        check(&[variable], name, &[(level, part)]).await;
    }
}

#[tokio::test]
async fn a_provider_that_cannot_be_used_says_why() {
    let error = |part| [(CheckLevel::Error, part)];
    check(
        &[("CO_CLI_PROVIDER", "openai")],
        "provider",
        &error("openai: the key for OpenAI is missing"),
    )
    .await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    let variables = [
        ("CO_CLI_PROVIDER", "openai"),
        ("CO_CLI_API_KEY_FILE", file.to_str().unwrap()),
    ];
    check(&variables, "provider", &error("cannot be used")).await;
    // A port that it has, so that nobody else does, and does not listen on.
    let deaf = tokio::net::TcpSocket::new_v4().unwrap();
    deaf.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = deaf.local_addr().unwrap();
    let url = format!("http://me:secret@{address}/v1/");
    let at = [("CO_CLI_BASE_URL", url.as_str())];
    check(&at, "provider", &error(&format!("http://{address}/"))).await;
    let told = looked(DoctorArguments::default(), &at).await;
    assert!(!format!("{told:?}").contains("secret"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_key_command_that_hangs_is_named() {
    let variables = [
        ("CO_CLI_BASE_URL", "http://127.0.0.1:1/v1/"),
        ("CO_CLI_API_KEY_CMD", r#"["sleep", "1000"]"#),
    ];
    let named = "the key from `sleep 1000` cannot be used";
    check(&variables, "provider", &[(CheckLevel::Error, named)]).await;
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
    let probe = SandboxReport::new("/nonexistent".into(), "/home/x".into());
    let told = sandbox(&probe).message;
    let start = "the sandbox could not be tried (/nonexistent did not start";
    let end = "mend that, then start again; until then nearly every command asks";
    assert!(told.starts_with(start) && told.ends_with(end), "{told}");
}

#[test]
fn without_a_sandbox_it_says_what_to_use() {
    let probe = report(SandboxSupport::none("this kernel has no Landlock"));
    let Check {
        message, advice, ..
    } = sandbox(&probe);
    assert!(message.contains("nearly every command asks"), "{message}");
    assert!(advice.unwrap().contains("5.13"));
    let mut config = Config::default();
    let level = |config: &Config| approved_commands(&probe, config, Ok(())).level;
    assert_eq!(level(&config), CheckLevel::Ok);
    config.sandbox_backend = config::ConfinementSetting::Landlock;
    assert_eq!(level(&config), CheckLevel::Error);
}

#[tokio::test]
async fn it_says_what_approved_commands_may_do_and_offers_landlock() {
    let offer =
        "with all your permissions; sandbox_backend = \"landlock\", or :Co /sandbox landlock";
    check(&[], "approved commands", &[(CheckLevel::Ok, offer)]).await;
    let held = [("CO_CLI_SANDBOX_BACKEND", "landlock")];
    check(
        &held,
        "approved commands",
        &[(CheckLevel::Ok, "only, without network")],
    )
    .await;
    let auto = [("CO_CLI_SANDBOX_BACKEND", "auto")];
    let why =
        "auto takes landlock, because no container can run: there is no container engine on PATH";
    check(&auto, "approved commands", &[(CheckLevel::Ok, why)]).await;
    check(&[], "landlock", &[(CheckLevel::Warn, "version 5 lacks")]).await;
}

#[tokio::test]
async fn it_names_the_engine_and_says_what_a_container_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let docker = dir.path().join("docker");
    // It limits all but the memory.
    let script = "#!/bin/sh\n\
        [ $1 = run ] && { printf 'processes 256\nprocessors 100000\ncapabilities 0\nprivileges 1\n'; exit; }\n\
        [ \"$5\" = there ] || { echo 'Error: No such image' >&2; exit 1; }\n";
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
    assert_eq!(there.level, CheckLevel::Warn);
    let told = format!(
        "{} answers and has the image there; tried in one: docker does not enforce the limits of memory",
        docker.display()
    );
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
            let known = request.contains("authorization: bearer work-secret");
            let (status, body) = match known {
                _ if request.contains("/nowhere/") => (404, "{}"),
                _ if request.contains("/none/") => (200, r#"{"data": []}"#),
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
async fn each_provider_is_named_with_its_key_models_and_window() {
    let url = models_server();
    let profiles = json!({
        "work": { "base_url": url, "api_key_env": "WORK" },
        "printed": { "base_url": url, "api_key_cmd": ["echo", "work-secret"], "model": "b", "context_window": 9999 },
        "wrong": { "base_url": url, "api_key_env": "OTHER" },
        "empty": { "base_url": url, "api_key_env": "UNSET" },
        "lost": { "base_url": format!("{url}nowhere"), "api_key_env": "WORK" },
        "none": { "base_url": format!("{url}none"), "api_key_env": "WORK" },
    });
    let profiles = profiles.to_string();
    let variables = [
        ("CO_CLI_BASE_URL", url.as_str()),
        ("CO_CLI_API_KEY_ENV", "WORK"),
        ("CO_CLI_PROVIDERS", profiles.as_str()),
        ("WORK", "work-secret"),
        ("OTHER", "other-secret"),
    ];
    let host = url.trim_start_matches("http://").trim_end_matches("/v1/");
    let has = |name: &str, key: &str, end: &str| {
        format!("{name} at {host}: the key is in {key}, 2 models, {end} tokens")
    };
    let expected = [
        (
            CheckLevel::Ok,
            has("openai", "WORK", "openai/a has a window of 4321"),
        ),
        (
            CheckLevel::Ok,
            has("work", "WORK", "work/a has a window of 4321"),
        ),
        (
            CheckLevel::Ok,
            has("printed", "echo", "printed/b has a window of 9999"),
        ),
        (CheckLevel::Error, "wrong: ".to_owned()),
        (CheckLevel::Error, "empty: the key for".to_owned()),
        (CheckLevel::Warn, "lost: the server lists no".to_owned()),
        (CheckLevel::Warn, "none: the server lists no".to_owned()),
    ];
    let expected = expected
        .each_ref()
        .map(|(level, text)| (*level, text.as_str()));
    check(&variables, "provider", &expected).await;
    let told = looked(DoctorArguments::default(), &variables).await;
    assert!(!format!("{told:?}").contains("-secret"), "{told:?}");
}

#[test]
fn it_says_why_there_are_no_trials() {
    let why = "user.max_user_namespaces is 0: set it to 10000 with sysctl";
    let support = SandboxSupport {
        why_no_trials: Some(why.to_owned()),
        ..able()
    };
    let check = trials(&report(support), Path::new("/w")).unwrap();
    let told = format!("commands cannot run as trials here: {why}");
    assert_eq!((check.level, check.message), (CheckLevel::Warn, told));
    // The reason is the same as that of the row above.
    let none = report(SandboxSupport::none(why));
    assert!(trials(&none, Path::new("/w")).is_none());
}
