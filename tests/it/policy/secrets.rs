//! What may show a secret asks: by its name, by its content, and by what git has of it.

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

/// Commands that print contents of the whole history or work tree.
const PRINTS: [&str; 16] = [
    "git show",
    "git show HEAD",
    "git show --stat -p HEAD",
    "git log -p",
    "git log -U5 --oneline",
    "git log -p -- .",
    "git log -p --follow -- a.txt",
    "git diff",
    "git diff HEAD~1",
    "git diff HEAD~1 -- conf",
    "git diff --cached --word-diff",
    "git stash show -p",
    "git grep main",
    "git grep main HEAD",
    "git cat-file -p 1234567",
    "git reflog -p",
];

/// Commands that print names only, or files that are no secrets.
const ORDINARY: [&str; 14] = [
    "git status --short",
    "git log --oneline -20",
    "git log --stat",
    "git show --stat HEAD",
    "git show HEAD:src/main.rs",
    "git cat-file -p HEAD:src/main.rs",
    "git cat-file -t HEAD",
    "git diff --name-only",
    "git diff a.txt",
    "git diff HEAD -- src/main.rs",
    "git log -p -1 -- src",
    "git grep -n main -- src",
    "git grep -l main",
    "git blame a.txt",
];

#[test]
fn git_prints_contents_unasked_as_long_as_no_secret_was_tracked() {
    let world = World::new();
    check(&world, "auto", &PRINTS);
    check(&world, "auto", &ORDINARY);
}

#[test]
fn git_that_prints_contents_asks_where_a_secret_is_tracked() {
    let world = World::new();
    fs::create_dir(world.workspace.join("conf")).unwrap();
    fs::write(world.workspace.join("conf/prod.env"), "TOKEN=hush\n").unwrap();
    world.git(&["add", "conf"]);
    check(&world, "ask", &PRINTS);
    check(&world, "auto", &ORDINARY);
}

#[test]
fn git_that_prints_contents_asks_where_a_secret_was_tracked() {
    let world = World::new();
    fs::remove_dir_all(world.workspace.join("nested-repo")).unwrap();
    for name in [".env", "server.pem"] {
        fs::remove_file(world.workspace.join(name)).unwrap();
    }
    check(&world, "auto", &PRINTS);
    fs::create_dir(world.workspace.join("conf")).unwrap();
    fs::write(world.workspace.join("conf/prod.env"), "TOKEN=hush\n").unwrap();
    world.git(&["checkout", "-q", "-b", "other"]);
    world.git(&["add", "conf"]);
    world.commit("a secret");
    world.git(&["rm", "-rq", "conf"]);
    world.commit("no secret");
    world.git(&["checkout", "-q", "main"]);
    check(
        &world,
        "ask",
        &[
            "git show other",
            "git log -p --all",
            "git diff main other~1",
        ],
    );
    check(&world, "auto", &ORDINARY);
    // The log of the refs still leads there.
    world.git(&["branch", "-q", "-D", "other"]);
    check(&world, "ask", &["git show HEAD@{1}"]);
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
