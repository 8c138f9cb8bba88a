use std::time::Duration;

use serde_json::json;

use super::*;

/// Reads layers of which each may name settings, and returns the problems.
fn all_layers(file: &str, lua: Value, variables: &[(&str, &str)]) -> (Config, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, file).unwrap();
    let env = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let names: Vec<String> = variables
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let layers = Layers {
        file: Some(&path),
        lua: &lua,
        env: &env,
        variables: &names,
    };
    let read = layers.read();
    let shown = path.display().to_string();
    let problems = read.problems.iter().map(|it| it.replace(&shown, "FILE"));
    (read.given.config(), problems.collect())
}

#[test]
fn a_former_name_is_understood_in_every_layer_and_said() {
    let lua = "setup{} or vim.g.co";
    let check = |file: &str, given: Value, variables: &[(&str, &str)], seconds, told: &[&str]| {
        let (config, problems) = all_layers(file, given, variables);
        assert_eq!(config.max_timeout(), Duration::from_secs(seconds));
        assert_eq!(problems, told);
    };
    let new = "write shell_max_timeout instead";
    let renamed = format!("the setting sandbox_max_timeout in FILE was renamed; {new}");
    check("sandbox_max_timeout = 7", json!({}), &[], 7, &[&renamed]);
    let renamed = format!("the setting sandbox_max_timeout in {lua} was renamed; {new}");
    check("", json!({ "sandbox_max_timeout": 8 }), &[], 8, &[&renamed]);
    let old = ("CO_CLI_SANDBOX_MAX_TIMEOUT", "9");
    let renamed = "CO_CLI_SANDBOX_MAX_TIMEOUT was renamed; write CO_CLI_SHELL_MAX_TIMEOUT instead";
    check("", json!({}), &[old], 9, &[renamed]);
    // A later layer wins, by whatever name.
    check("shell_max_timeout = 7", json!({}), &[old], 9, &[renamed]);
}

#[test]
fn beside_a_former_name_the_new_one_holds() {
    let both = json!({ "sandbox_max_timeout": 1, "shell_max_timeout": 2 });
    let (config, problems) = all_layers("", both, &[]);
    assert_eq!(config.max_timeout(), Duration::from_secs(2));
    assert_eq!(
        problems,
        [
            "the setting sandbox_max_timeout in setup{} or vim.g.co was renamed and is left out, \
          since shell_max_timeout is there too; remove it"
        ]
    );
    let both = [
        ("CO_CLI_SANDBOX_MAX_TIMEOUT", "1"),
        ("CO_CLI_SHELL_MAX_TIMEOUT", "2"),
    ];
    let (config, problems) = all_layers("", json!({}), &both);
    assert_eq!(config.max_timeout(), Duration::from_secs(2));
    assert_eq!(
        problems,
        [
            "CO_CLI_SANDBOX_MAX_TIMEOUT was renamed and is left out, since CO_CLI_SHELL_MAX_TIMEOUT \
          is there too; remove it"
        ]
    );
}

#[test]
fn a_variable_that_is_no_setting_is_said_with_the_nearest() {
    let check = |name: &str, told: &[&str]| {
        let (config, problems) = all_layers("", json!({}), &[(name, "sk-secret")]);
        assert_eq!(config, Config::default());
        assert_eq!(problems, told);
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
        "CO_CLI_COLOURS",
        &["CO_CLI_COLOURS is set but is not a setting; :help co-settings lists them all"],
    );
}
