//! Commands that may show a secret require approval: by its name, by its content, and by git's history.

use std::fs;

use co_policy::PolicySettings;

use super::world::{World, word};

/// Checks what is said of commands in a world.
#[track_caller]
fn check(world: &World, expected: &str, commands: &[&str]) {
    let (judge, _) = world.judge(PolicySettings::default());
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

#[test]
fn only_paths_that_git_reads_as_paths_limit_what_it_prints() {
    let world = World::new();
    fs::remove_dir_all(world.workspace.join("nested-repo")).unwrap();
    for name in [".env", "server.pem"] {
        fs::remove_file(world.workspace.join(name)).unwrap();
    }
    for dir in ["docs", "deploy"] {
        fs::create_dir(world.workspace.join(dir)).unwrap();
    }
    fs::write(world.workspace.join("docs/a.md"), "x\n").unwrap();
    fs::write(world.workspace.join("deploy/prod.env"), "TOKEN=hush\n").unwrap();
    world.git(&["add", "deploy", "docs"]);
    world.commit("a secret");
    world.git(&["rm", "-rq", "deploy"]);
    world.commit("no secret");
    world.git(&["branch", "docs"]);
    check(
        &world,
        "ask",
        &[
            "git log -p -- src deploy",
            "git log -p -- src 'd*'",
            "git log -p -- src 'deplo?'",
            "git log -p -- src ':!a.txt'",
            "git log -p src 'deplo?'",
            "git grep -h '' HEAD~1 -- docs deploy",
            "git grep -- x docs~1",
            "git grep -h -- '' docs -- src",
            "git log -p docs --",
            "git diff docs --",
            "git diff docs~1",
            "git range-diff main~1 main docs -- src",
            "git stash show -p -- src",
            "git reflog -p -- src",
            "git show 1234567 -- src",
            "git diff x-g1234567 -- src",
            "git diff HEAD:docs HEAD~1:docs -- src",
        ],
    );
    check(
        &world,
        "auto",
        &[
            "git log -p -- src docs",
            "git log -p docs -- src",
            "git log -p 1234567 -- src",
            "git log -p -- gone",
            "git diff HEAD~1 src",
            "git diff HEAD~1 HEAD -- docs",
            "git show HEAD~1 -- docs/a.md",
            "git grep -h x HEAD~1 -- docs",
            "git grep -e x -- docs",
            "git grep x docs",
            "cd docs && git log -p -- a.md",
        ],
    );
    // Git does not look for files of the same name in a repository without a work tree.
    check(&world, "auto", &["git log -p docs"]);
    world.git(&["config", "core.bare", "true"]);
    check(&world, "ask", &["git log -p docs"]);
}

#[test]
fn git_that_prints_a_file_with_a_secret_asks() {
    let world = World::new();
    let auth = r#"{"http-basic": {"h": {"username": "u", "password": "hunterhunter"}}}"#;
    fs::write(world.workspace.join("auth.json"), auth).unwrap();
    check(
        &world,
        "ask",
        &[
            "git show HEAD:auth.json",
            "git show HEAD:./auth.json",
            "git show :0:auth.json",
            "git cat-file -p HEAD:auth.json",
            "git blame auth.json",
            "git diff HEAD:auth.json HEAD~1:auth.json",
            "git grep '' HEAD:auth.json",
            "cd src && git show HEAD:auth.json",
        ],
    );
    check(&world, "auto", &["git log --oneline -- auth.json"]);
}
