//! A person's rules, the chat's, the workspace's, and what none of them may reach.

use std::fs;

use co_policy::{Grant, Pattern, PolicySettings, Verdict};

use super::world::{Judged, texts};

fn patterns(list: &[&str]) -> Vec<Pattern> {
    list.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn an_allow_rule_covers_its_command_and_nothing_beside_it() {
    let judged = Judged::with(PolicySettings {
        allow: texts(&["cargo test", "git push origin"]),
        ..PolicySettings::default()
    });
    assert_eq!(judged.problems, [""; 0]);
    let rule = "cargo test".to_owned();
    assert_eq!(
        judged.verdict("cargo test --lib"),
        Verdict::Allow(Grant::Rule { rule })
    );
    judged.check(&[
        ("cargo test", "auto"),
        ("cargo test 2>&1", "auto"),
        ("cargo test 2>&1 | tail -20", "ask"),
        ("cd src && cargo test", "auto"),
        ("git push origin main", "auto"),
        ("cargo test; rm x", "ask"),
        ("cargo test && rm x", "ask"),
        ("cargo test & rm x", "ask"),
        ("cargo test | sh", "ask"),
        ("cargo test > out", "ask"),
        ("cargo test $(rm x)", "ask"),
        ("cargo build", "ask"),
        ("cargo", "auto"),
        ("./cargo test", "ask"),
        ("CARGO=x cargo test", "ask"),
        ("LD_PRELOAD=./x.so cargo test", "ask"),
        ("sudo cargo test", "ask"),
        ("env cargo test", "ask"),
        ("cd ../other && cargo test", "ask"),
    ]);
}

#[test]
fn deny_wins_over_ask_over_chat_over_allow() {
    let judged = Judged::with(PolicySettings {
        allow: texts(&["curl", "make", "ls"]),
        ask: texts(&["ls", "git log"]),
        deny: texts(&["curl", "git push"]),
        ..PolicySettings::default()
    });
    let chat_rules = patterns(&["curl", "ls", "git push", "= git push; ls", "npm test"]);
    for (command, expected) in [
        ("curl x", "deny"),
        ("ls | curl x", "deny"),
        ("git push origin", "deny"),
        ("git push; ls", "deny"),
        ("sudo curl x", "deny"),
        ("/usr/bin/curl x", "deny"),
        ("env A=b bash -c 'cd x; curl y'", "deny"),
        ("(curl x)", "deny"),
        ("echo $(curl x)", "deny"),
        ("find . -exec curl {} +", "deny"),
        ("cur\\l x", "deny"),
        ("ls", "ask"),
        ("pwd; ls", "ask"),
        ("git log -1", "ask"),
        ("make all", "auto"),
        ("npm test", "auto"),
        ("npm test --x", "auto"),
        ("npm install", "ask"),
    ] {
        let said = judged.said_with(command, &chat_rules);
        assert_eq!(said, expected, "{command}");
    }
}

#[test]
fn what_always_offers() {
    let judged = Judged::new();
    for (command, expected) in [
        ("cargo test --lib", Some("cargo test")),
        ("cargo test && cargo build", None),
        ("cargo test | tee x", None),
        ("cargo test > out", None),
        ("cargo test /etc", None),
        ("X=1 cargo test", None),
    ] {
        let prefix = judged.question(command).prefix.map(|it| it.to_string());
        assert_eq!(prefix.as_deref(), expected, "{command}");
    }
}

#[test]
fn the_very_same_command_may_be_allowed_whatever_it_is() {
    let judged = Judged::new();
    let command = "cat ~/.ssh/config; X=$(id) make > out";
    let said = |rule, command: &str| judged.said_with(command, &[Pattern::exact(rule)]);
    assert_eq!(said(command, command), "auto");
    assert_eq!(said(command, &format!("{command}2")), "ask");
    assert_eq!(said(command, "cat ~/.ssh/config"), "ask");
    assert_eq!(said("rm -rf /", "rm -rf /"), "deny");
}

#[test]
fn a_rule_that_names_a_rename_says_that_it_matches_nothing() {
    let judged = Judged::with(PolicySettings {
        allow: texts(&["rename_symbol src/**"]),
        ..PolicySettings::default()
    });
    let [problem] = &judged.problems[..] else {
        panic!("{:?}", judged.problems);
    };
    assert!(problem.contains("name edit_file"), "{problem}");
}

#[test]
fn a_list_of_safe_commands_narrows_the_built_in_one() {
    let judged = Judged::with(PolicySettings {
        safe_commands: Some(texts(&["ls", "git status", "mytool"])),
        ..PolicySettings::default()
    });
    let [problem] = &judged.problems[..] else {
        panic!("{:?}", judged.problems);
    };
    assert!(problem.contains("`mytool`"), "{problem}");
    let never = Judged::with(PolicySettings {
        safe_commands: Some(texts(&["ls", "make test", "rm", "git log"])),
        ..PolicySettings::default()
    });
    let named = |command: &str| {
        never
            .problems
            .iter()
            .any(|it| it.contains(&format!("`{command}`")))
    };
    assert!(named("make test") && named("rm"), "{:?}", never.problems);
    assert_eq!(never.problems.len(), 2, "{:?}", never.problems);
    judged.check(&[
        ("ls -la", "auto"),
        ("cd src && ls", "auto"),
        ("git status -sb", "auto"),
        ("git --no-pager status", "auto"),
        ("ls --nonsense", "auto"),
        ("ls ..", "ask"),
        ("git log", "ask"),
        ("cat a.txt", "ask"),
        ("ls | cat", "ask"),
        ("cargo build", "ask"),
    ]);
}

#[test]
fn an_empty_list_makes_everything_ask() {
    let judged = Judged::with(PolicySettings {
        safe_commands: Some(Vec::new()),
        ..PolicySettings::default()
    });
    let table = include_str!("../../fixtures/policy/looks.txt").lines();
    let commands = table.filter(|line| !line.contains('␤') && !line.starts_with('#'));
    judged.check_all(&commands.collect::<Vec<_>>(), "ask");
}

#[test]
fn a_workspace_may_tighten_and_no_more() {
    let judged = Judged::with(PolicySettings {
        allow: texts(&["make"]),
        ..PolicySettings::default()
    });
    let file = judged.world.workspace.join(".co/policy.toml");
    let free = [("make x", "auto"), ("ls", "auto")];
    judged.check(&free);
    fs::write(&file, "deny = ['make install']\nask = ['ls']\n").unwrap();
    judged.check(&[
        ("make x", "auto"),
        ("make install", "deny"),
        ("ls", "ask"),
        ("pwd", "auto"),
    ]);
    fs::write(&file, "allow = ['rm']\n").unwrap();
    let why = &judged.question("pwd").reasons[0].text;
    assert!(why.contains(".co/policy.toml"), "{why}");
    judged.check(&[("rm x", "ask"), ("rm -rf /", "deny")]);
    let (_, problems) = judged.world.judge(PolicySettings::default());
    assert_eq!(problems.len(), 1, "{problems:?}");
    fs::remove_file(&file).unwrap();
    judged.check(&free);
}

#[test]
fn built_in_deny_rules_are_lifted_by_name() {
    let judged = Judged::with(PolicySettings {
        deny_lifted: texts(&["root-deletion", "raw-disk", "fork-bomb", "own-files"]),
        ..PolicySettings::default()
    });
    assert_eq!(judged.problems, [""; 0]);
    let table = include_str!("../../fixtures/policy/deny.txt").lines();
    let commands = table.filter(|line| !line.starts_with("## "));
    judged.check_all(&commands.collect::<Vec<_>>(), "ask");
}

#[test]
fn a_prefix_covers_no_secret_and_nothing_outside_however_it_is_named() {
    let judged = Judged::with(PolicySettings {
        allow: texts(&["make"]),
        ..PolicySettings::default()
    });
    judged.check(&[
        ("make -j4 all", "auto"),
        ("make etc", "auto"),
        ("make X=/dev/null", "auto"),
        ("make https://example.org/x", "auto"),
    ]);
    judged.check_all(
        &[
            "make .env",
            "make KEY=.env",
            "make --key=.env",
            "make a:.env",
            "make a,.env",
            "make user@.env",
            "make KEY=/etc/passwd",
            "make ../other/file",
            "make ../nothing",
            "make /nothing",
            "make ~/x",
            "make -I/etc",
            "make -I../other",
            "make -f.env",
            "make out/file",
            "make innocent",
            "make $X",
        ],
        "ask",
    );
}
