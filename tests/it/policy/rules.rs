//! A person's rules, the chat's, the workspace's, and what none of them may reach.

use std::fs;

use co_policy::{Grant, Pattern, PolicySettings, Verdict};

use super::world::{World, texts, verdict_in, word};

fn patterns(list: &[&str]) -> Vec<Pattern> {
    list.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn an_allow_rule_covers_its_command_and_nothing_beside_it() {
    let world = World::new();
    let (judge, problems) = world.judge(PolicySettings {
        allow: texts(&["cargo test", "git push origin"]),
        ..PolicySettings::default()
    });
    assert!(problems.is_empty());
    let verdict = world.verdict(&judge, "cargo test --lib");
    assert_eq!(
        verdict,
        Verdict::Allow(Grant::Rule {
            rule: "cargo test".to_owned()
        })
    );
    for (command, expected) in [
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
        ("cargo test $X", "ask"),
        ("cargo build", "ask"),
        ("cargo", "auto"),
        ("./cargo test", "ask"),
        ("CARGO=x cargo test", "ask"),
        ("LD_PRELOAD=./x.so cargo test", "ask"),
        ("sudo cargo test", "ask"),
        ("env cargo test", "ask"),
        ("cargo test --config ../other/x", "ask"),
        ("cargo test --manifest-path=/etc/x", "ask"),
        ("cargo test .env", "ask"),
        ("cargo test --x=.env", "ask"),
        ("cargo test out/file", "ask"),
        ("cargo test innocent", "ask"),
        ("cargo test ~/x", "ask"),
        ("cargo test -C/etc", "ask"),
        ("cd ../other && cargo test", "ask"),
    ] {
        assert_eq!(word(&world.verdict(&judge, command)), expected, "{command}");
    }
}

#[test]
fn deny_wins_over_ask_over_chat_over_allow() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings {
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
        let verdict = verdict_in(&judge, command, &world.workspace, &chat_rules);
        assert_eq!(word(&verdict), expected, "{command}: {verdict:?}");
    }
}

#[test]
fn always_on_one_command_reaches_no_other() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings {
        safe_commands: Some(Vec::new()),
        ..PolicySettings::default()
    });
    let Verdict::Ask(ask) = world.verdict(&judge, "git status") else {
        panic!("nothing is safe with an empty list");
    };
    assert_eq!(ask.prefix, Some("git status".parse().unwrap()));
    let chat_rules = [ask.prefix.unwrap()];
    for (command, expected) in [
        ("git status", "auto"),
        ("git status --short", "auto"),
        ("git push --force", "ask"),
        ("git status; rm x", "ask"),
        ("git -c core.pager=x status", "ask"),
        ("ls", "ask"),
    ] {
        let verdict = verdict_in(&judge, command, &world.workspace, &chat_rules);
        assert_eq!(word(&verdict), expected, "{command}");
    }
}

#[test]
fn what_always_offers() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    for (command, expected) in [
        ("git commit -m x", Some("git commit")),
        ("cargo test --lib", Some("cargo test")),
        ("npm run build", Some("npm run build")),
        ("pytest -x tests", Some("pytest")),
        ("bash -c 'x'", None),
        ("env A=b cargo test", None),
        ("sudo make", None),
        ("python3 x.py", None),
        ("rm -rf build", None),
        ("cargo test && cargo build", None),
        ("cargo test | tee x", None),
        ("cargo test > out", None),
        ("cargo test /etc", None),
        ("git -c x=y commit", None),
        ("X=1 cargo test", None),
    ] {
        let Verdict::Ask(ask) = world.verdict(&judge, command) else {
            panic!("{command} should ask");
        };
        assert_eq!(
            ask.prefix.map(|prefix| prefix.to_string()).as_deref(),
            expected,
            "{command}"
        );
    }
}

#[test]
fn the_very_same_command_may_be_allowed_whatever_it_is() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    let command = "cat ~/.ssh/config; X=$(id) make > out";
    let chat_rules = [Pattern::exact(command)];
    let said = |command: &str| word(&verdict_in(&judge, command, &world.workspace, &chat_rules));
    assert_eq!(said(command), "auto");
    assert_eq!(said(&format!("{command}2")), "ask");
    assert_eq!(said("cat ~/.ssh/config"), "ask");
    let chat_rules = [Pattern::exact("rm -rf /")];
    assert_eq!(
        word(&verdict_in(
            &judge,
            "rm -rf /",
            &world.workspace,
            &chat_rules
        )),
        "deny"
    );
}

#[test]
fn a_list_of_safe_commands_narrows_the_built_in_one() {
    let world = World::new();
    let (judge, problems) = world.judge(PolicySettings {
        safe_commands: Some(texts(&["ls", "git status", "mytool"])),
        ..PolicySettings::default()
    });
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("`mytool`"));
    for (command, expected) in [
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
    ] {
        assert_eq!(word(&world.verdict(&judge, command)), expected, "{command}");
    }
}

#[test]
fn an_empty_list_makes_everything_ask() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings {
        safe_commands: Some(Vec::new()),
        ..PolicySettings::default()
    });
    let table = include_str!("../../fixtures/policy/looks.txt");
    for command in table
        .lines()
        .filter(|line| !line.starts_with("## ") && !line.contains('␤') && !line.starts_with('#'))
    {
        assert_eq!(word(&world.verdict(&judge, command)), "ask", "{command}");
    }
}

#[test]
fn a_workspace_may_tighten_and_no_more() {
    let world = World::new();
    let file = world.workspace.join(".co/policy.toml");
    let (judge, _) = world.judge(PolicySettings {
        allow: texts(&["make"]),
        ..PolicySettings::default()
    });
    let said = |command: &str| word(&world.verdict(&judge, command));
    assert_eq!((said("make x"), said("ls")), ("auto", "auto"));
    fs::write(&file, "deny = ['make install']\nask = ['ls']\n").unwrap();
    assert_eq!(
        (
            said("make x"),
            said("make install"),
            said("ls"),
            said("pwd")
        ),
        ("auto", "deny", "ask", "auto")
    );
    for broken in [
        "allow = ['rm']\n",
        "safe_commands = ['rm']\n",
        "[[[",
        "deny = 'x'",
        "providers = 1",
    ] {
        fs::write(&file, broken).unwrap();
        let Verdict::Ask(ask) = world.verdict(&judge, "pwd") else {
            panic!("a broken file makes everything ask: {broken}");
        };
        assert!(
            ask.reasons[0].text.contains(".co/policy.toml"),
            "{:?}",
            ask.reasons
        );
        assert_eq!(said("rm x"), "ask", "{broken}");
        assert_eq!(said("rm -rf /"), "deny", "{broken}");
    }
    let (_, problems) = world.judge(PolicySettings::default());
    assert_eq!(problems.len(), 1, "{problems:?}");
    fs::remove_file(&file).unwrap();
    assert_eq!((said("make x"), said("pwd")), ("auto", "auto"));
}

#[test]
fn built_in_deny_rules_are_lifted_by_name() {
    let world = World::new();
    let (judge, problems) = world.judge(PolicySettings {
        deny_lifted: texts(&["root-deletion", "raw-disk", "fork-bomb", "own-files"]),
        ..PolicySettings::default()
    });
    assert!(problems.is_empty());
    for command in include_str!("../../fixtures/policy/deny.txt")
        .lines()
        .filter(|line| !line.starts_with("## "))
    {
        assert_eq!(word(&world.verdict(&judge, command)), "ask", "{command}");
    }
    let (_, problems) = world.judge(PolicySettings {
        deny_lifted: texts(&["everything"]),
        allow: texts(&["ls; rm"]),
        ..PolicySettings::default()
    });
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn a_prefix_covers_no_secret_and_nothing_outside_however_it_is_named() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings {
        allow: texts(&["make"]),
        ..PolicySettings::default()
    });
    for (command, expected) in [
        ("make -j4 all", "auto"),
        ("make etc", "auto"),
        ("make X=/dev/null", "auto"),
        ("make https://example.org/x", "auto"),
        ("make KEY=.env", "ask"),
        ("make a:.env", "ask"),
        ("make a,.env", "ask"),
        ("make user@.env", "ask"),
        ("make KEY=/etc/passwd", "ask"),
        ("make ../other/file", "ask"),
        ("make ../nothing", "ask"),
        ("make /nothing", "ask"),
        ("make -I/etc", "ask"),
        ("make -I../other", "ask"),
        ("make -f.env", "ask"),
        ("make out/file", "ask"),
        ("make innocent", "ask"),
        ("make $X", "ask"),
    ] {
        assert_eq!(word(&world.verdict(&judge, command)), expected, "{command}");
    }
}
