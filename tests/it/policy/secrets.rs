//! What may show a secret asks: by its name and by its content.

use std::fs;

use co::policy::Settings;

use super::world::{World, word};

/// Checks what is said of commands in a world.
#[track_caller]
fn check(world: &World, expected: &str, commands: &[&str]) {
    let (judge, _) = world.judge(Settings::default());
    for command in commands {
        let verdict = world.verdict(&judge, command);
        assert_eq!(word(&verdict), expected, "{command}: {verdict:?}");
    }
}

#[test]
fn names_and_contents_of_secrets_ask() {
    let world = World::new();
    let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----\n";
    let account = serde_json::json!({ "type": "service_account", "private_key": key }).to_string();
    let auth = r#"{"http-basic": {"h": {"username": "u", "password": "hunterhunter"}}}"#;
    let words = r#"{"password": "Password", "forgot": "Forgot your password?"}"#;
    fs::create_dir(world.workspace.join("locales")).unwrap();
    for (name, text) in [
        (".env-prod", "x"),
        ("prod.env", "x"),
        ("id_rsa.bak", "x"),
        ("id_ed25519-work", "x"),
        ("id_ed25519-work.pub", "x"),
        ("id_map.py", "ids = {}\n"),
        (".my.cnf", "x"),
        ("a.pfx", "x"),
        ("kubeconfig", "x"),
        ("auth.json", auth),
        ("project-1234.json", &account),
        ("locales/auth.json", words),
        ("example.env", "x"),
    ] {
        fs::write(world.workspace.join(name), text).unwrap();
    }
    check(
        &world,
        "ask",
        &[
            "cat .env-prod",
            "cat prod.env",
            "cat id_rsa.bak",
            "cat id_ed25519-work",
            "cat .my.cnf",
            "strings a.pfx",
            "head kubeconfig",
            "cat auth.json",
            "jq . project-1234.json",
            "wc -l < auth.json",
        ],
    );
    check(
        &world,
        "auto",
        &[
            "cat id_ed25519-work.pub",
            "cat id_map.py",
            "jq . locales/auth.json",
            "cat example.env",
            "cat .env.example",
            "cat package.json",
        ],
    );
}
