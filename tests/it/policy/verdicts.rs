//! What every verdict holds to, whatever the rules are.

use std::fs;

use co::tool::judge::{Judge, JudgeConfig};
use co_exec::Program;
use co_policy::{Pattern, PolicySettings, Verdict};

use super::world::{World, texts, verdict_in, word};
use crate::support::cases;

#[test]
fn an_empty_command_is_refused() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    for command in ["", " ", "\n", "\t \n"] {
        assert_eq!(word(&world.verdict(&judge, command)), "deny", "{command:?}");
    }
}

#[test]
fn hidden_characters_and_long_text_ask() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    for c in [
        '\0',
        '\r',
        '\u{b}',
        '\u{c}',
        '\u{1b}',
        '\u{7f}',
        '\u{85}',
        '\u{a0}',
        '\u{ad}',
        '\u{200b}',
        '\u{200d}',
        '\u{202e}',
        '\u{2028}',
        '\u{2066}',
        '\u{feff}',
        '\u{e0041}',
    ] {
        for command in [
            format!("ls {c}"),
            format!("ls 'a{c}b'"),
            format!("ls # {c}"),
        ] {
            assert_eq!(word(&world.verdict(&judge, &command)), "ask", "{command:?}");
        }
    }
    assert_eq!(word(&world.verdict(&judge, "echo 'grüße ✓'")), "auto");
    let long = format!("echo {}", "x".repeat(10_000));
    let (forbidding, _) = world.judge(PolicySettings {
        deny: texts(&["git push"]),
        ..PolicySettings::default()
    });
    let number = format!("{} git push", ":; ".repeat(401));
    let depth = format!("{} git push", "env ".repeat(7));
    let inner = format!("{}git push{}", "$(".repeat(250), ")".repeat(250));
    for unread in [&long, &number, &depth, &inner] {
        // What is in it cannot be told.
        assert_eq!(word(&world.verdict(&forbidding, unread)), "deny");
        assert_eq!(word(&world.verdict(&judge, unread)), "ask");
    }
    let argv = ["bash", "-c", &format!("{}git push", " ".repeat(10_001))].map(str::to_owned);
    let found = forbidding.assess(&Program::Argv(argv.into()), &world.workspace);
    assert_eq!(word(&forbidding.verdict(&found, &[])), "deny");
    let behind = "cat <<X && git push\nx\nX";
    assert_eq!(word(&world.verdict(&forbidding, behind)), "deny");
    let many = vec!["ls"; 51].join("; ");
    assert_eq!(word(&world.verdict(&judge, &many)), "ask");
    let fifty = vec!["ls"; 50].join("; ");
    assert_eq!(word(&world.verdict(&judge, &fifty)), "auto");
}

#[test]
fn an_argument_vector_is_one_command() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings {
        allow: texts(&["make"]),
        ..PolicySettings::default()
    });
    let said = |argv: &[&str]| {
        let found = judge.assess(&Program::Argv(texts(argv)), &world.workspace);
        word(&judge.verdict(&found, &[]))
    };
    for (argv, expected) in [
        (&["ls", "-la"][..], "auto"),
        (&["grep", "-n", "a; rm $(x) | > y", "a.txt"], "auto"),
        (&["find", ".", "-name", "*.rs"], "auto"),
        (&["make", "x"], "auto"),
        (&["cat", "*"], "auto"),
        (&["find", ".", "-delete"], "ask"),
        (&["cat", ".env"], "ask"),
        (&["cat", "/etc/passwd"], "ask"),
        (&["cat", "a\u{202e}"], "ask"),
        (&["bash", "-c", "ls"], "ask"),
        (&["ls", ">", "a.txt"], "auto"),
        (&["rm", "-rf", "/"], "deny"),
        (&["bash", "-c", "rm -rf /"], "deny"),
        (&[], "deny"),
        (&[""], "deny"),
    ] {
        assert_eq!(said(argv), expected, "{argv:?}");
    }
}

#[test]
fn every_question_says_why_and_where() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    let table = include_str!("../../fixtures/policy/ask.txt");
    for command in table.lines().filter(|line| !line.starts_with("## ")) {
        let Verdict::Ask(ask) = world.verdict(&judge, command) else {
            continue;
        };
        assert!(!ask.reasons.is_empty(), "{command}");
        for reason in &ask.reasons {
            assert!(
                !reason.text.is_empty() && !reason.text.ends_with('.'),
                "{command}: {reason:?}"
            );
            if let Some(span) = &reason.span {
                assert!(command.get(span.clone()).is_some(), "{command}: {reason:?}");
            }
        }
    }
    let Verdict::Ask(ask) = world.verdict(&judge, "ls && find . -delete") else {
        panic!("find -delete asks");
    };
    let span = ask.reasons[0].span.clone().unwrap();
    assert_eq!(&"ls && find . -delete"[span], "-delete");
    assert!(ask.destructive);
}

#[test]
fn a_question_says_what_it_did_not_understand() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    let long = format!("echo {}", "x".repeat(10_000));
    for (command, expected) in [
        ("ls $(id)", "it runs a command inside a word"),
        ("cat <(id)", "it runs a command in place of a file"),
        ("echo ${HOME}", "it computes a word that nobody has seen"),
        ("echo $((1+1))", "it computes a word that nobody has seen"),
        ("cat <<X\nx\nX", "it holds a here-document"),
        ("cat <<< x", "it holds a here-string"),
        ("X=1", "it sets a shell variable"),
        ("X=1 Y=2", "it sets a shell variable"),
        ("export X=1", "it changes shell variables"),
        ("unset X", "it changes shell variables"),
        ("(ls)", "it holds a subshell"),
        ("{ ls; }", "it holds a group of commands"),
        ("f() { ls; }", "it defines a function"),
        ("if true; then ls; fi", "it holds a condition"),
        ("case x in x) ls;; esac", "it holds a condition"),
        ("for x in a; do ls; done", "it holds a loop"),
        ("while true; do ls; done", "it holds a loop"),
        ("for ((;;)); do ls; done", "it holds a loop"),
        ("[[ -f a.txt ]]", "it holds a `[[ ]]` test"),
        ("! ls", "it holds a `!`"),
        ("ls &", "it starts something in the background"),
        ("ls |& cat", "it pipes with `|&`"),
        ("echo $'a'", "it holds a `$'…'` or `$\"…\"` string"),
        ("ls \"unclosed", "it is not plain, complete bash"),
        (&long, "it is longer than 10000 characters"),
        ("find . -delete", "`find -delete` removes what it finds"),
        ("find . -exec ls {} +", "`find -exec` runs another program"),
        (
            "find . -execdir ls {} +",
            "`find -execdir` runs another program",
        ),
        ("find . -ok ls {} +", "`find -ok` runs another program"),
        (
            "find . -okdir ls {} +",
            "`find -okdir` runs another program",
        ),
        ("find . -fprint x", "`find -fprint` writes a file"),
        ("find . -fprint0 x", "`find -fprint0` writes a file"),
        ("find . -fls x", "`find -fls` writes a file"),
        ("find . -fprintf x y", "`find -fprintf` writes a file"),
        (
            "find . -follow",
            "`find -follow` follows links, which may leave the workspace",
        ),
        (
            "find -L .",
            "`find -L` follows links, which may leave the workspace",
        ),
    ] {
        let Verdict::Ask(ask) = world.verdict(&judge, command) else {
            panic!("{command} asks");
        };
        let said: Vec<&str> = ask.reasons.iter().map(|it| it.text.as_str()).collect();
        assert!(said.contains(&expected), "{command}: {said:?}");
    }
}

#[test]
fn a_question_about_an_argument_vector_marks_its_word() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    let argv = texts(&["cat", "a b", "/etc/passwd"]);
    let found = judge.assess(&Program::Argv(argv), &world.workspace);
    let Verdict::Ask(ask) = judge.verdict(&found, &[]) else {
        panic!("it asks");
    };
    let span = ask.reasons[0].span.clone().unwrap();
    assert_eq!(&found.command[span], "/etc/passwd");
}

#[test]
fn a_program_must_be_found_where_only_the_person_can_write() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings {
        allow: texts(&["mytool"]),
        ..PolicySettings::default()
    });
    world.program("rg", "#!/bin/sh\n");
    world.program("mytool", "#!/bin/sh\n");
    assert_eq!(word(&world.verdict(&judge, "rg x")), "auto");
    assert_eq!(word(&world.verdict(&judge, "mytool x")), "auto");
    fs::set_permissions(world.bin.join("rg"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(world.bin.join("mytool"), fs::Permissions::from_mode(0o777)).unwrap();
    let (judge, _) = world.judge(PolicySettings {
        allow: texts(&["mytool"]),
        ..PolicySettings::default()
    });
    assert_eq!(word(&world.verdict(&judge, "rg x")), "ask");
    assert_eq!(word(&world.verdict(&judge, "mytool x")), "ask");
    fs::remove_file(world.bin.join("rg")).unwrap();
    std::os::unix::fs::symlink(world.workspace.join("rg"), world.bin.join("rg")).unwrap();
    fs::write(world.workspace.join("rg"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(
        world.workspace.join("rg"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    assert_eq!(
        word(&world.verdict(&judge, "rg x")),
        "ask",
        "a link into the workspace"
    );
}

#[test]
fn a_directory_of_programs_must_be_the_persons_own() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let said = |first: &str| {
        let mut path = std::ffi::OsString::from(first);
        path.push(":");
        path.push(world.path());
        let (judge, _) = Judge::new(JudgeConfig {
            workspace: world.workspace.clone(),
            home: world.home.clone(),
            path,
            settings: PolicySettings::default(),
            saved: Vec::new(),
            own: Vec::new(),
        });
        word(&world.verdict(&judge, "wc -l a.txt"))
    };
    let put = |dir: &str, mode| {
        let dir = world.workspace.join(dir);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("wc"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(dir.join("wc"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
        dir.canonicalize().unwrap().to_str().unwrap().to_owned()
    };
    let (within, own) = (put("venv/bin", 0o755), put("../tools", 0o755));
    assert_eq!(said("/nonexistent"), "auto");
    assert_eq!(said(&within), "ask", "in the workspace");
    assert_eq!(said("venv/bin"), "ask", "relative");
    assert_eq!(said("../tools"), "ask", "relative, and outside");
    assert_eq!(said(&own), "auto");
    assert_eq!(said(&put("../tools", 0o775)), "ask", "the group may write");
    assert_eq!(said(&put("../tools", 0o777)), "ask", "all may write");
    // What is no program is passed over.
    let wc = world.workspace.join("venv/bin/wc");
    fs::set_permissions(&wc, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(said(&within), "auto");
}

#[test]
fn globs_are_judged_by_what_they_match() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    fs::create_dir(world.workspace.join("g")).unwrap();
    let said = |command: &str| {
        word(&verdict_in(
            &judge,
            command,
            &world.workspace.join("g"),
            &[],
        ))
    };
    fs::write(world.workspace.join("g/a.c"), "").unwrap();
    assert_eq!(
        (said("cat *"), said("cat ./*"), said("wc -l *.c")),
        ("auto", "auto", "auto")
    );
    fs::write(world.workspace.join("g/-n"), "").unwrap();
    assert_eq!(
        (said("cat *"), said("cat ./*"), said("cat *.c")),
        ("ask", "auto", "auto")
    );
    std::os::unix::fs::symlink("/etc/passwd", world.workspace.join("g/b.c")).unwrap();
    assert_eq!(
        (said("cat *.c"), said("cat a*"), said("ls ./*")),
        ("ask", "auto", "ask")
    );
}

#[test]
fn what_holds_co_in_check_is_not_taken_away() {
    let world = World::new();
    fs::write(world.workspace.join(".co/policy.toml"), "ask = ['make']\n").unwrap();
    let (judge, _) = world.judge(PolicySettings::default());
    for command in [
        "rm -rf .co",
        "mv .co x",
        "rm -rf .",
        "chmod -R 000 .co",
        "chown -R x .co",
        "rm .co/policy.toml",
        "sudo rm -r ./.co",
    ] {
        assert_eq!(word(&world.verdict(&judge, command)), "deny", "{command}");
    }
    for command in ["rm -rf build", "git checkout -- .co/policy.toml"] {
        assert_eq!(word(&world.verdict(&judge, command)), "ask", "{command}");
    }
    assert_eq!(word(&world.verdict(&judge, "cat .co/policy.toml")), "auto");
}

#[test]
fn the_home_directory_is_kept_wherever_it_is() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    for path in [world.home.clone(), world.home.parent().unwrap().to_owned()] {
        let command = format!("rm -rf {}", path.display());
        assert_eq!(word(&world.verdict(&judge, &command)), "deny", "{command}");
    }
}

#[test]
fn a_command_outside_the_workspace_asks() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    let other = world.workspace.join("../other");
    assert_eq!(word(&verdict_in(&judge, "ls", &other, &[])), "ask");
    assert_eq!(
        word(&verdict_in(&judge, "ls", &world.workspace.join("src"), &[])),
        "auto"
    );
    let found = judge.assess(&Program::Argv(texts(&["ls"])), &other);
    assert_eq!(word(&judge.verdict(&found, &[])), "ask");
}

/// No text panics, and no text that holds a command of a dangerous program runs unasked.
#[test]
fn no_text_breaks_the_judge() {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    let mut runner = TestRunner::deterministic();
    let soup = "(ls|cat|git|find|sed|rg|xargs|jq|awk|test|\\[|cd|rm)?( ?[a-z./*?~'\"\\\\$(){}<>|&;`!#=0-9@:,-]{0,6}){0,8}";
    for strategy in [
        proptest::string::string_regex(soup).unwrap(),
        proptest::string::string_regex("\\PC{0,60}").unwrap(),
    ] {
        for _ in 0..cases(300) {
            let command = strategy.new_tree(&mut runner).unwrap().current();
            let _verdict = world.verdict(&judge, &command);
            // A backslash at its end joins one line.
            let piped = format!("{command}\n\nrm -rf x");
            let verdict = world.verdict(&judge, &piped);
            assert!(word(&verdict) != "auto", "{piped:?}");
        }
    }
}

#[test]
fn an_argument_vector_is_asked_about_and_allowed_as_it_is_shown() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    let argv = ["rm", "*", "it's"].map(str::to_owned).to_vec();
    let found = judge.assess(&Program::Argv(argv), &world.workspace);
    assert_eq!(found.command, r"rm '*' 'it'\''s'");
    let allowed = |text: &str| word(&judge.verdict(&found, &[Pattern::exact(text)]));
    assert_eq!(allowed(&found.command), "auto");
    assert_eq!(allowed(r"rm * 'it'\''s'"), "ask");
}

#[test]
fn an_assessment_names_the_words_as_bash_expands_them() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    let check = |command: &str, expected: &[&[&str]]| {
        let program = Program::Shell(command.to_owned());
        let found = judge.assess(&program, &world.workspace);
        assert_eq!(found.expanded, expected, "{command}");
    };
    check("rm *.txt", &[&["rm", "a.txt", "b.txt"]]);
    check("rm \"$X\" ?.txt", &[&["rm", "\"$X\"", "a.txt", "b.txt"]]);
    check(
        "cd src && rm *.rs",
        &[&["cd", "src"], &["rm", "lib.rs", "main.rs"]],
    );
    check("echo x > a*.txt", &[&["echo", "x", "a.txt"]]);
    check("rm *.none", &[&["rm", "*.none"]]);
    check(
        "for f in *.txt; do rm $f; done",
        &[&["rm", "$f"], &["a.txt", "b.txt"]],
    );
}
