use std::path::Path;

use serde_json::{Value, json};

use super::table::settings;
use super::value::Kind;
use super::*;

fn nothing(_: &str) -> Option<String> {
    None
}

fn from_lua(lua: &Value) -> (Config, Vec<String>) {
    load(None, lua, &nothing)
}

fn from_env(variable: &str, text: &str) -> (Config, Vec<String>) {
    load(None, &json!({}), &|name| match name {
        "HOME" => Some("/home/ann".to_owned()),
        name if name == variable => Some(text.to_owned()),
        _ => None,
    })
}

fn with(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::default();
    change(&mut config);
    config
}

#[track_caller]
fn check(lua: Value, change: impl FnOnce(&mut Config)) {
    assert_eq!(from_lua(&lua), (with(change), Vec::new()), "{lua}");
}

#[track_caller]
fn check_env(variable: &str, text: &str, change: impl FnOnce(&mut Config)) {
    assert_eq!(
        from_env(variable, text),
        (with(change), Vec::new()),
        "{variable}={text}"
    );
}

#[track_caller]
fn check_refused(lua: Value, told: &str) {
    let (config, problems) = from_lua(&lua);
    let expected = Config {
        wrong: config.wrong.clone(),
        ..Config::default()
    };
    assert_eq!(config, expected, "{lua}");
    assert_eq!(problems, [told], "{lua}");
    let is_told = told.ends_with("no prompt is sent until it is right");
    assert_eq!(config.wrong.is_some(), is_told, "{lua}");
}

#[test]
fn typed_values_apply() {
    check(json!({}), |_| {});
    check(json!([]), |_| {});
    check(Value::Null, |_| {});
    check(json!({ "auto_confirm": true }), |c| c.auto_confirm = true);
    check(json!({ "auto_confirm": null }), |_| {});
    check(json!({ "max_steps": 0 }), |c| c.max_steps = 0);
    check(json!({ "max_steps": 7.0 }), |c| c.max_steps = 7);
    check(json!({ "run_timeout": 0 }), |c| c.run_timeout = Some(0));
    check(json!({ "run_environment": "inherit" }), |c| {
        c.run_inherits = true;
    });
    check(json!({ "shell_spill_max": "2GiB" }), |c| {
        c.exec.spill_max = 2 << 30
    });
    check(json!({ "shell_spill_max": "3 MB" }), |c| {
        c.exec.spill_max = 3_000_000
    });
    check(json!({ "shell_spill_max": 4096 }), |c| {
        c.exec.spill_max = 4096
    });
    check(json!({ "sandbox_mem_limit": "512m" }), |c| {
        c.exec.container.memory = 512 << 20
    });
    check(json!({ "sandbox_cpus": 1.5 }), |c| {
        c.exec.container.cpus = 1.5
    });
    check(json!({ "sandbox_backend": "auto" }), |c| {
        c.sandbox_backend = ConfinementSetting::Auto
    });
    check(json!({ "sandbox_network": "host" }), |c| {
        c.sandbox_network = Network::Some;
        c.exec.container.network = "host".into();
    });
    check(json!({ "sandbox_network": "ask" }), |c| {
        c.sandbox_network = Network::Ask;
    });
    check(json!({ "allow_hosts": ["*.example.org:8080"] }), |c| {
        c.hosts.allow = vec!["*.example.org:8080".parse().unwrap()];
    });
    check(json!({ "docker_image": "a/b:1" }), |c| {
        c.exec.container.image = "a/b:1".into()
    });
    check(json!({ "shell_memory": "2g" }), |c| {
        c.exec.memory = Some(2 << 30)
    });
    check(json!({ "shell_memory": "none" }), |c| c.exec.memory = None);
    check(json!({ "shell_safe_commands": [] }), |c| {
        c.policy.safe_commands = Some(vec![])
    });
    check(json!({ "shell_safe_commands": {} }), |c| {
        c.policy.safe_commands = Some(vec![])
    });
    check(json!({ "deny": ["git push"] }), |c| {
        c.policy.deny = vec!["git push".into()]
    });
    check(json!({ "headers": { "x-a": "b" } }), |c| {
        c.llm.headers = vec![("x-a".into(), "b".into())]
    });
    check(json!({ "headers": [] }), |_| {});
    check(json!({ "extra_body": { "seed": 1 } }), |c| {
        c.llm.extra_body = Some(json!({ "seed": 1 }))
    });
    check(json!({ "chat_prune_days": 30 }), |c| {
        c.chat_prune_days = Some(30)
    });
    check(json!({ "base_url": "http://127.0.0.1:1/v1/" }), |c| {
        c.llm.base_url = Some("http://127.0.0.1:1/v1/".into());
    });
}

#[test]
fn the_environment_is_read_as_text() {
    check_env("CO_CLI_AUTO_CONFIRM", "1", |c| c.auto_confirm = true);
    check_env("CO_CLI_AUTO_CONFIRM", "False", |_| {});
    check_env("CO_CLI_SHELL_MAX_TIMEOUT", " 5 ", |c| {
        c.exec.max_timeout = Duration::from_secs(5)
    });
    check_env("CO_CLI_SHELL_SAFE_COMMANDS", "ls, git status,,", |c| {
        c.policy.safe_commands = Some(vec!["ls".into(), "git status".into()]);
    });
    check_env("CO_CLI_SHELL_SAFE_COMMANDS", "", |c| {
        c.policy.safe_commands = Some(vec![])
    });
    check_env("CO_CLI_DENY", r#"["a, b"]"#, |c| {
        c.policy.deny = vec!["a, b".into()]
    });
    check_env("CO_CLI_API_KEY_CMD", "pass show x", |c| {
        c.llm.key_cmd = Some(vec!["pass".into(), "show".into(), "x".into()]);
    });
    check_env("CO_CLI_API_KEY_FILE", "~/key", |c| {
        c.llm.key_file = Some("/home/ann/key".into())
    });
    check_env("CO_CLI_SANDBOX_CPUS", "0.5", |c| {
        c.exec.container.cpus = 0.5
    });
    check_env("CO_CLI_SHELL_CPU_SECONDS", "none", |_| {});
    check_env("CO_CLI_SHELL_CPU_SECONDS", "9", |c| {
        c.exec.cpu_seconds = Some(9)
    });
    check_env("CO_CLI_EXTRA_BODY", r#"{"a":1}"#, |c| {
        c.llm.extra_body = Some(json!({ "a": 1 }))
    });
    check_env("CO_CLI_MODEL", "m", |c| c.llm.model = Some("m".into()));
}

#[test]
fn sizes_and_flags_are_read_in_every_spelling() {
    for (text, bytes) in [
        ("5000000", 5_000_000),
        ("5000000B", 5_000_000),
        ("5000k", 5_120_000),
        ("5000 KiB", 5_120_000),
        ("5000kb", 5_000_000),
        ("5m", 5 << 20),
        ("5MiB", 5 << 20),
        ("5MB", 5_000_000),
        ("1g", 1 << 30),
        ("1GB", 1_000_000_000),
    ] {
        let (config, problems) = from_lua(&json!({ "shell_spill_max": text }));
        assert_eq!(problems, [""; 0], "{text}");
        assert_eq!(config.exec.spill_max, bytes, "{text}");
    }
    for (text, on) in [
        ("true", true),
        ("1", true),
        ("YES", true),
        (" on ", true),
        ("false", false),
        ("0", false),
        ("no", false),
        ("Off", false),
    ] {
        let (config, problems) = from_env("CO_CLI_AUTO_CONFIRM", text);
        assert_eq!((config.auto_confirm, problems), (on, Vec::new()), "{text}");
    }
}

#[test]
fn what_is_wrong_is_named_with_what_is_accepted() {
    let lua = "setup{} or vim.g.co";
    let table = r#"
{ "max_steps": -1 } | a whole number from 0 to 100000
{ "max_steps": 1.5 } | a whole number from 0 to 100000
{ "auto_confirm": "yes" } | true or false
{ "shell_max_timeout": 0 } | a whole number from 1 to 604800
{ "sandbox_backend": "podman" } | one of subprocess, landlock, docker, auto
{ "container_engine": "nerdctl" } | one of auto, docker, podman, or an absolute path
{ "docker_image": "--privileged" } | the name of an image
{ "sandbox_network": "container:x" } | one of none, ask, host, bridge, or the name of a network of the container engine
{ "deny": "git push" } | a list of rules, each about one command
{ "deny_hosts": ["https://example.org"] } | a list of hosts, as example.org, *.example.org or example.org:8080
{ "deny": [1] } | a list of rules, each about one command
{ "allow": "ls" } | a list of texts
{ "shell_memory": "1" } | a size from 16MiB up, in bytes or such as "64MiB", or "none"
{ "sandbox_mem_limit": "99999999999g" } | a size from 16MiB to 1TiB, in bytes or such as "64MiB"
{ "api_key_file": "key" } | an absolute path, or one that starts with ~/
{ "base_url": "localhost:80" } | an address that starts with http:// or https://
"#;
    for line in table.trim().lines() {
        let (given, be) = line.split_once(" | ").unwrap();
        let given: Value = serde_json::from_str(given).unwrap();
        let name = given.as_object().unwrap().keys().next().unwrap();
        let then = match names::find(name).unwrap().strict {
            true => "no prompt is sent until it is right",
            false => "that value is left out",
        };
        let told = format!("the setting {name} in {lua} must be {be}; {then}");
        check_refused(given.clone(), &told);
    }
    check_refused(
        json!({ "sandbox_backend": "landlok" }),
        &format!(
            "the setting sandbox_backend in {lua}: did you mean landlock? It must be {}; \
             no prompt is sent until it is right",
            names::find("sandbox_backend").unwrap().kind.accepts()
        ),
    );
    check_refused(
        json!({ "shell_max_timout": 5 }),
        &format!(
            "{lua} sets shell_max_timout, but co has no such setting; did you mean shell_max_timeout?"
        ),
    );
    check_refused(
        json!({ "colour\u{1b}": 5 }),
        &format!(
            "{lua} sets colour\\u{{1b}}, but co has no such setting; :help co-settings lists them all"
        ),
    );
    check_refused(
        json!([1]),
        &format!("{lua} must be a table of settings; no prompt is sent until it is right"),
    );
}

#[test]
fn a_rule_that_cannot_be_read_refuses_prompts() {
    for name in ["deny", "ask"] {
        let (config, problems) = from_lua(&json!({ name: ["ls", "git push; ls"] }));
        let wrong = config.wrong.expect("no prompt is sent");
        assert_eq!(wrong.what, format!("the setting {name}"));
        assert_eq!(problems.len(), 1, "{problems:?}");
        let rules = [config.policy.deny, config.policy.ask].concat();
        assert_eq!(rules, ["ls", "git push; ls"]);
    }
}

#[test]
fn prices_are_checked_whole() {
    let given = json!({ "prices": { "openai/m": { "input": 3, "output": 15 } } });
    let (config, problems) = from_lua(&given);
    assert_eq!(problems, Vec::<String>::new());
    let price = config.prices.find("openai/m").unwrap();
    assert_eq!((price.input, price.cached, price.output), (3.0, 3.0, 15.0));
    let (config, problems) = from_env("CO_CLI_PRICES", r#"{"m": {"input": 1, "output": 2}}"#);
    assert_eq!(problems, Vec::<String>::new());
    assert!(config.prices.find("ollama/m").is_some());
    for wrong in [json!({ "m": 3 }), json!({ "m": { "input": 3 } }), json!(3)] {
        let (config, problems) = from_lua(&json!({ "prices": wrong }));
        assert_eq!(config, Config::default());
        assert!(
            problems[0].contains("US dollars per million tokens"),
            "{problems:?}"
        );
    }
}

#[test]
fn a_key_is_no_setting() {
    let (config, problems) = from_lua(&json!({ "api_key": "sk-secret" }));
    assert_eq!(config, Config::default());
    assert!(
        problems[0].contains("api_key_env") && !problems[0].contains("sk-secret"),
        "{problems:?}"
    );
    let (_, problems) = from_env("CO_CLI_API_KEY", "sk-secret");
    assert!(
        problems[0].contains("api_key_cmd") && !problems[0].contains("sk-secret"),
        "{problems:?}"
    );
}

#[test]
fn later_layers_win_and_wrong_values_leave_the_earlier_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    std::fs::write(
        &file,
        "model = 'file'\nmax_steps = 1\nredact = false\nprovider = 'openai'\n[headers]\na = 'b'\n",
    )
    .unwrap();
    let lua = json!({ "model": "lua", "max_steps": 2, "redact": "no" });
    let env = |name: &str| (name == "CO_CLI_MODEL").then(|| "env".to_owned());
    let (config, problems) = load(Some(&file), &lua, &env);
    let expected = with(|c| {
        c.llm.model = Some("env".into());
        c.llm.provider = Some("openai".into());
        c.llm.headers = vec![("a".into(), "b".into())];
        c.max_steps = 2;
        c.redact = false;
    });
    assert_eq!(config, expected);
    assert_eq!(problems.len(), 1, "{problems:?}");
    // A wrong value of a strict setting counts only if no later layer replaces it.
    let wrong = json!({ "model": 5 });
    assert!(load(Some(&file), &wrong, &nothing).0.wrong.is_some());
    let (config, problems) = load(Some(&file), &wrong, &env);
    assert_eq!((config.wrong, problems.len()), (None, 1));
}

#[test]
fn a_file_that_is_not_there_is_no_problem_and_a_broken_one_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    let read = || load(Some(&file), &json!({ "max_steps": 3 }), &nothing);
    let expected = with(|c| c.max_steps = 3);
    assert_eq!(read(), (expected.clone(), Vec::new()));
    for broken in [
        &b"max_steps = 1\nmodel = \n"[..],
        b"model = '\xff'",
        b"model = 1979-05-27",
    ] {
        std::fs::write(&file, broken).unwrap();
        let (mut config, problems) = read();
        assert!(config.wrong.take().is_some());
        assert_eq!(config, expected);
        let [told] = &problems[..] else {
            panic!("{problems:?}");
        };
        assert!(told.contains(file.to_str().unwrap()), "{told}");
        assert!(!told.contains('\n'), "{told}");
    }
    std::fs::write(&file, "max_steps = 1\nmodel = \n").unwrap();
    assert!(read().1[0].contains("line 2"), "{:?}", read().1);
}

#[test]
fn the_table_tells_the_true_defaults() {
    for setting in settings().filter(|setting| !setting.default.starts_with('(')) {
        // What only the setting itself changed would show.
        let mut config = Config::default();
        let value = setting.kind.read(setting.default);
        let took = value.and_then(|value| setting.kind.take(&mut config, &value, None));
        assert_eq!(
            (took, config),
            (Ok(()), Config::default()),
            "{}",
            setting.name
        );
    }
}

#[test]
fn the_executor_gets_its_settings_and_the_place_to_spill() {
    let (config, _) = from_lua(&json!({ "shell_max_output": "64KiB" }));
    let settings = config.exec_settings("/spill".into());
    assert_eq!(settings.max_output, 65536);
    assert_eq!(settings.spill_dir, Path::new("/spill"));
    assert_eq!(settings.max_timeout, Duration::from_secs(600));
}

#[test]
fn the_executor_takes_both_ends_of_every_range() {
    for setting in settings() {
        let ends = match &setting.kind {
            Kind::Number(range, _) | Kind::Limit(range, _) | Kind::Size(range, _) => {
                [*range.start(), *range.end()]
            }
            Kind::SizeLimit(least, _) => [*least, u64::MAX],
            _ => continue,
        };
        for end in ends {
            let (config, problems) = from_lua(&json!({ (setting.name): end }));
            assert_eq!(problems, [""; 0]);
            let refused = config.exec.check().err().map(|error| error.to_string());
            assert_eq!(refused, None);
        }
    }
}

#[test]
fn what_is_no_variable_is_refused_with_its_layer() {
    let told = "the setting shell_env_allow in setup{} or vim.g.co must be a list of \
                variables, as NAME or PREFIX_*; that value is left out";
    for name in ["*", "A-B", "A=b", "1A"] {
        check_refused(json!({ "shell_env_allow": [name] }), told);
    }
    check(json!({ "shell_env_allow": ["A", "B_*"] }), |c| {
        c.exec.env_allow = vec!["A".to_owned(), "B_*".to_owned()];
    });
}
