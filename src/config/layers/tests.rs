use super::*;

#[test]
fn a_variable_that_is_no_setting_is_said_with_the_nearest() {
    let check = |name: &str, told: &[&str]| {
        let layers = Layers {
            file: None,
            lua: &Value::Null,
            env: &|variable| (variable == name).then(|| "sk-secret".to_owned()),
            variables: &[name.to_owned()],
        };
        let read = layers.read();
        assert_eq!(read.given.config(), Config::default());
        assert_eq!(read.problems, told);
    };
    check("CO_CLI_LOG", &[]);
    check("CO_CLIMB", &[]);
    check("PATH", &[]);
    check(
        "CO_CLI_MOEDL",
        &["CO_CLI_MOEDL is set but is not a setting; did you mean CO_CLI_MODEL?"],
    );
    check(
        "CO_CLI_LOGG",
        &["CO_CLI_LOGG is set but is not a setting; did you mean CO_CLI_LOG?"],
    );
    check(
        "CO_CLI_SANDBOX_MAX_TIMEOUT",
        &["CO_CLI_SANDBOX_MAX_TIMEOUT was renamed; write CO_CLI_SHELL_MAX_TIMEOUT instead"],
    );
    check(
        "CO_CLI_COLOURS",
        &["CO_CLI_COLOURS is set but is not a setting; :help co-settings lists them all"],
    );
}

#[test]
fn a_key_goes_only_to_the_address_of_its_layer() {
    let check = |file: &str, lua: Value, variables: &[(&str, &str)], wrong: Option<&str>| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, file).unwrap();
        let env = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let (config, problems) = load(Some(&path), &lua, &env);
        let told = config.wrong.map(|it| it.what);
        assert_eq!(told.as_deref(), wrong, "{file} {lua} {variables:?}");
        assert_eq!(problems.len(), usize::from(wrong.is_some()), "{problems:?}");
    };
    let address = ("CO_CLI_BASE_URL", "http://127.0.0.1:1");
    let key = "api_key_env = 'WORK'\n";
    let wrong = Some("the pair of base_url and api_key_env");
    check(key, Value::Null, &[], None);
    check("", Value::Null, &[address], None);
    check(key, Value::Null, &[address], wrong);
    check(
        "base_url = 'http://127.0.0.1:2'\napi_key_env = 'WORK'\n",
        Value::Null,
        &[address],
        wrong,
    );
    check(
        "",
        serde_json::json!({ "api_key_cmd": ["pass"] }),
        &[address],
        Some("the pair of base_url and api_key_cmd"),
    );
    check(
        "headers = { Authorization = 'x' }\n",
        Value::Null,
        &[address],
        Some("the pair of base_url and headers"),
    );
    check(
        key,
        Value::Null,
        &[("CO_CLI_PROVIDER", "groq")],
        Some("the pair of provider and api_key_env"),
    );
    check(
        key,
        serde_json::json!({ "base_url": "http://127.0.0.1:2" }),
        &[],
        wrong,
    );
    let both = [address, ("CO_CLI_API_KEY_ENV", "WORK")];
    check(key, Value::Null, &both, None);
    let given_later = serde_json::json!({ "api_key_env": "WORK" });
    check("base_url = 'http://127.0.0.1:2'\n", given_later, &[], None);
}

#[test]
fn a_pipe_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("config.toml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let (config, problems) = load(Some(&pipe), &Value::Null, &|_| None);
    let pipe = pipe.display();
    let told = format!("{pipe} cannot be read (it is a pipe); no prompt is sent until it is right");
    assert_eq!(problems, [told]);
    assert!(config.wrong.unwrap().confines);
}

/// Checks the sentences about a file and settings from Lua, and that no prompt is sent exactly if a sentence says so.
#[track_caller]
fn check_file(file: &str, lua: &Value, told: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, file).unwrap();
    let (config, problems) = load(Some(&path), lua, &|_| None);
    let shown: Vec<_> = problems
        .iter()
        .map(|problem| problem.replace(path.to_str().unwrap(), "FILE"))
        .collect();
    assert_eq!(shown, told, "{file}");
    let blocks = shown.iter().any(|problem| problem.ends_with(NO_PROMPT));
    assert_eq!(config.wrong.is_some(), blocks, "{file}");
}

#[test]
fn a_number_that_is_not_finite_is_wrong_and_not_unset() {
    let nothing = Value::Null;
    let rules = "the setting deny in FILE must be a list of rules, each about one command, not inf or nan; no prompt is sent until it is right";
    check_file("deny = inf", &nothing, &[rules]);
    check_file("deny = nan", &nothing, &[rules]);
    check_file("deny = [nan]", &nothing, &[rules]);
    check_file(
        "model = -inf",
        &nothing,
        &[
            "the setting model in FILE must be a text that is not empty, not inf or nan; no prompt is sent until it is right",
        ],
    );
    check_file(
        "extra_body = { a = [{ b = nan }] }",
        &nothing,
        &["the setting extra_body in FILE must be a table, not inf or nan; that value is left out"],
    );
    for setting in settings() {
        let home = Some(Path::new("/home"));
        for wrong in [Value::Null, serde_json::json!([null])] {
            let took = setting.kind.take(&mut Config::default(), &wrong, home);
            assert!(took.is_err(), "{} takes {wrong}", setting.name);
        }
    }
}

#[test]
fn a_wrong_value_that_a_later_layer_replaces_is_left_out() {
    let right = serde_json::json!({
        "model": "m", "provider": "openai", "base_url": "http://127.0.0.1:1", "deny": [],
    });
    let left_out = |name: &str| {
        let accepts = names::find(name).unwrap().accepts();
        format!("the setting {name} in FILE must be {accepts}; that value is left out")
    };
    for wrong in ["model = 5", "base_url = 7", "deny = 5", "provider = 5"] {
        let name = wrong.split(' ').next().unwrap();
        check_file(wrong, &right, &[&left_out(name)]);
    }
    let told = "the setting model in FILE must be a text that is not empty; no prompt is sent until it is right";
    check_file("model = 5", &Value::Null, &[told]);
    let later = "the setting model in setup{} or vim.g.co must be a text that is not empty; no prompt is sent until it is right";
    let wrong = serde_json::json!({ "model": 5 });
    check_file("model = 5", &wrong, &[&left_out("model"), later]);
}
