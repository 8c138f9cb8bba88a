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
