//! The sentences of the command line about wrong settings.

use std::process::Command;

use crate::support::BACKEND;

/// All that `co-nvim` says with these arguments and variables, in a home of its own.
fn said(args: &[&str], variables: &[(&str, &str)]) -> String {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(BACKEND)
        .args(args)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home.path())
        .envs(variables.iter().copied())
        .current_dir(home.path())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8(text).unwrap()
}

#[test]
fn every_command_says_the_same_of_wrong_settings() {
    let variables = [("CO_CLI_MOEDL", "m"), ("CO_CLI_MAX_STEPS", "many")];
    for args in [
        &["exec", "true"][..],
        &["check", "ls"],
        &["doctor"],
        &["doctor", "--json"],
    ] {
        let text = said(args, &variables);
        for problem in [
            "CO_CLI_MOEDL is set but is not a setting; did you mean CO_CLI_MODEL?",
            "the setting max_steps in CO_CLI_MAX_STEPS must be a whole number",
        ] {
            assert_eq!(text.matches(problem).count(), 1, "{args:?}: {text}");
        }
    }
}

#[test]
fn exec_refuses_a_command_while_it_is_unknown_how_to_confine_it() {
    let refused = "no command runs, because";
    let wrong = [("CO_CLI_SANDBOX_BACKEND", "landlok")];
    let check = |args: &[&str], variables: &[(&str, &str)], runs: bool| {
        let text = said(args, variables);
        assert_eq!(text.contains("r0n"), runs, "{args:?}: {text}");
        assert_eq!(text.contains(refused), !runs, "{args:?}: {text}");
    };
    let command = "echo r$((0))n";
    check(&["exec", command], &wrong, false);
    check(&["exec", "--backend", "subprocess", command], &wrong, true);
    check(
        &["exec", command],
        &[("CO_CLI_SANDBOX_NETWORK", "--x")],
        false,
    );
    check(&["exec", command], &[("CO_CLI_MODEL", "")], true);
    check(&["exec", command], &[("CO_CLI_MAX_STEPS", "many")], true);
}

#[test]
fn exec_refuses_a_command_while_the_settings_cannot_be_read() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("co-nvim");
    std::fs::create_dir(&config).unwrap();
    std::fs::write(config.join("config.toml"), "sandbox_backend = landlock").unwrap();
    let variables = [("XDG_CONFIG_HOME", home.path().to_str().unwrap())];
    let text = said(&["exec", "echo r$((0))n"], &variables);
    assert!(
        text.contains("no command runs, because") && !text.contains("r0n"),
        "{text}"
    );
    assert!(text.contains("config.toml"), "{text}");
}
