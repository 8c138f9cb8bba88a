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
