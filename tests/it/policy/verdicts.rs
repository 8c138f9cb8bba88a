//! The properties that every verdict has, whatever the rules are.

use std::fs;

use co::workspace::judge::{Judge, JudgeConfig};
use co_exec::{Launcher, Program};
use co_policy::{Pattern, PolicySettings, PossibleTrial, Sort, Verdict};

use super::world::{Judged, World, texts, verdict_in};
use crate::support::{BACKEND, cases};

#[test]
fn an_empty_command_is_refused() {
    Judged::new().check_all(&["", " ", "\n", "\t \n"], "deny");
}

#[test]
fn what_reaches_out_to_more_than_packages_cannot_be_tried() {
    let judged = Judged::with(PolicySettings {
        ask: texts(&["make install"]),
        ..PolicySettings::default()
    });
    for (command, sort) in [
        ("npm ci && sed -i s/a/b/ notes.txt", Some(Sort::RunsCode)),
        ("npm ci && unknown-tool", Some(Sort::Unknown)),
        ("npm ci && npm publish", None),
        ("sed -i s/a/b/ notes.txt", Some(Sort::Changes)),
        ("cargo test", Some(Sort::RunsCode)),
        ("mkdir made && cargo build", Some(Sort::RunsCode)),
        ("curl example.com && cargo build", None),
        ("rm *.txt", Some(Sort::Changes)),
        ("make install", None),
    ] {
        let trial = sort.map(|sort| PossibleTrial {
            sort,
            fetches: command.starts_with("npm"),
        });
        assert_eq!(judged.question(command).trial, trial, "{command}");
    }
}

#[test]
fn hidden_characters_and_long_text_ask() {
    let judged = Judged::new();
    let hidden = "\0\r\u{b}\u{c}\u{1b}\u{7f}\u{85}\u{a0}\u{ad}\u{200b}\u{200d}\u{202e}\u{2028}\u{2066}\u{feff}\u{e0041}";
    for c in hidden.chars() {
        for command in [
            format!("ls {c}"),
            format!("ls 'a{c}b'"),
            format!("ls # {c}"),
        ] {
            judged.check(&[(&command, "ask")]);
        }
    }
    judged.check(&[("echo 'grüße ✓'", "auto")]);
    let long = format!("echo {}", "x".repeat(10_000));
    let forbidding = Judged::with(PolicySettings {
        deny: texts(&["git push"]),
        ..PolicySettings::default()
    });
    let number = format!("{} git push", ":; ".repeat(401));
    let depth = format!("{} git push", "env ".repeat(7));
    let inner = format!("{}git push{}", "$(".repeat(250), ")".repeat(250));
    for unread in [&long, &number, &depth, &inner] {
        // What is in it cannot be told.
        assert_eq!(forbidding.said(unread), "deny");
        assert_eq!(judged.said(unread), "ask");
    }
    let inside = format!("{}git push", " ".repeat(10_001));
    let found = forbidding.assess(&["bash", "-c", &inside]);
    assert_eq!(forbidding.judge.verdict(&found, &[]).word(), "deny");
    forbidding.check(&[("cat <<X && git push\nx\nX", "deny")]);
    let [many, some] = [401, 300].map(|count| vec!["ls"; count].join("; "));
    judged.check(&[(&many, "ask"), (&some, "auto")]);
}

#[test]
fn a_command_that_reaches_a_secret_or_leaves_the_workspace_says_so() {
    let judged = Judged::new();
    let reach = |command: &str| {
        let program = Program::Shell(command.to_owned());
        let workspace = &judged.world.workspace;
        judged.judge.assess(&program, workspace, true).reach
    };
    for command in [
        "cp .env copy",
        "cat .e* > copy",
        "echo x > .env",
        "touch /tmp/x",
        "cd .. && touch x",
        "sh -c 'touch /tmp/x'",
        "if true; then touch /tmp/x; fi",
        "touch \"$OUT\"",
        "echo x > ../y",
        "touch ~/x",
        "sudo -u a touch ../x",
    ] {
        assert!(reach(command).is_some(), "{command}");
    }
    for command in [
        "touch x",
        "touch ./a/b",
        "rm -rf src",
        "echo x > y 2>/dev/null",
        "git commit -m 'see https://a/b'",
        "sed -i s/a/b/ f",
    ] {
        assert_eq!(reach(command), None, "{command}");
    }
}

#[test]
fn an_argument_vector_is_one_command() {
    let judged = Judged::with(PolicySettings {
        allow: texts(&["make"]),
        ..PolicySettings::default()
    });
    for (argv, expected) in [
        (&["ls", "-la"][..], "auto"),
        (&["grep", "-n", "a; rm $(x) | > y", "a.txt"], "auto"),
        (&["find", ".", "-name", "*.rs"], "auto"),
        (&["make", "x"], "auto"),
        (&["cat", "*"], "auto"),
        (&["find", ".", "-delete"], "ask"),
        (&["cat", ".env"], "ask"),
        (&["cat", "/etc/passwd"], "auto"),
        (&["cat", "../other/file"], "ask"),
        (&["cat", "a\u{202e}"], "ask"),
        (&["bash", "-c", "ls"], "auto"),
        (&["bash", "-c", "rm x"], "ask"),
        (&["ls", ">", "a.txt"], "auto"),
        (&["rm", "-rf", "/"], "deny"),
        (&["bash", "-c", "rm -rf /"], "deny"),
        (&[], "deny"),
        (&[""], "deny"),
    ] {
        let verdict = judged.judge.verdict(&judged.assess(argv), &[]);
        assert_eq!(verdict.word(), expected, "{argv:?}");
    }
}

#[test]
fn a_question_about_an_argument_vector_marks_its_word() {
    let judged = Judged::new();
    let found = judged.assess(&["cat", "a b", "../other/file"]);
    let Verdict::Ask(ask) = judged.judge.verdict(&found, &[]) else {
        panic!("it asks");
    };
    let span = ask.reasons[0].span.clone().unwrap();
    assert_eq!(&found.command[span], "../other/file");
}

#[test]
fn every_reason_has_its_place() {
    let judged = Judged::new();
    for command in [
        "find . -delete",
        "ls && rm x",
        "cat .env",
        "ls $(rm x)",
        "cat ..",
    ] {
        for reason in judged.question(command).reasons {
            let said = reason.span.clone().and_then(|span| command.get(span));
            assert!(
                said.is_some_and(|it| !it.is_empty()),
                "{command}: {reason:?}"
            );
        }
    }
}

#[test]
fn a_program_must_be_found_where_only_the_person_can_write() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let said = || {
        let (judge, _) = world.judge(PolicySettings {
            allow: texts(&["mytool"]),
            ..PolicySettings::default()
        });
        verdict_in(&judge, "mytool x", &world.workspace, &[]).word()
    };
    world.program("mytool", "#!/bin/sh\n");
    assert_eq!(said(), "auto");
    let tool = world.bin.join("mytool");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(said(), "ask");
    fs::remove_file(&tool).unwrap();
    let inside = world.workspace.join("mytool");
    std::os::unix::fs::symlink(&inside, &tool).unwrap();
    fs::write(&inside, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&inside, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(said(), "ask", "a link into the workspace");
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
            settings: PolicySettings {
                allow: texts(&["mytool"]),
                ..PolicySettings::default()
            },
            saved: Default::default(),
            own: Vec::new(),
        });
        verdict_in(&judge, "mytool x", &world.workspace, &[]).word()
    };
    let put = |dir: &str, mode| {
        let dir = world.workspace.join(dir);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("mytool"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(dir.join("mytool"), fs::Permissions::from_mode(0o755)).unwrap();
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
    let tool = world.workspace.join("venv/bin/mytool");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(said(&within), "auto");
}

#[test]
fn what_holds_co_in_check_is_not_taken_away() {
    let world = World::new();
    fs::write(world.workspace.join(".co/policy.toml"), "ask = ['make']\n").unwrap();
    let judged = Judged::of(world, PolicySettings::default());
    judged.check_all(
        &[
            "rm -rf .co",
            "mv .co x",
            "rm -rf .",
            "chmod -R 000 .co",
            "chown -R x .co",
            "rm .co/policy.toml",
            "sudo rm -r ./.co",
        ],
        "deny",
    );
    judged.check(&[
        ("rm -rf build", "ask"),
        ("git checkout -- .co/policy.toml", "ask"),
        ("cat .co/policy.toml", "auto"),
    ]);
}

#[test]
fn the_home_directory_is_kept_wherever_it_is() {
    let judged = Judged::new();
    let home = &judged.world.home;
    for path in [home, home.parent().unwrap()] {
        let command = format!("rm -rf {}", path.display());
        judged.check(&[(&command, "deny")]);
    }
}

#[test]
fn a_command_outside_the_workspace_asks() {
    let Judged { world, judge, .. } = Judged::new();
    let said = |cwd: &str| verdict_in(&judge, "ls", &world.workspace.join(cwd), &[]).word();
    assert_eq!((said("../other"), said("src")), ("ask", "auto"));
    let argv = Program::Argv(texts(&["ls"]));
    let found = judge.assess(&argv, &world.workspace.join("../other"), true);
    assert_eq!(judge.verdict(&found, &[]).word(), "ask");
}

/// No text panics, and no text with `rm` as its last line runs unasked.
#[test]
fn no_text_breaks_the_judge() {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;
    let judged = Judged::new();
    let mut runner = TestRunner::deterministic();
    let soup = "(ls|cat|git|find|sed|rg|xargs|jq|awk|test|\\[|cd|rm)?( ?[a-z./*?~'\"\\\\$(){}<>|&;`!#=0-9@:,-]{0,6}){0,8}";
    for strategy in [
        proptest::string::string_regex(soup).unwrap(),
        proptest::string::string_regex("\\PC{0,60}").unwrap(),
    ] {
        for _ in 0..cases(300) {
            let command = strategy.new_tree(&mut runner).unwrap().current();
            let _verdict = judged.verdict(&command);
            // A backslash at its end joins one line.
            let piped = format!("{command}\n\nrm -rf x");
            assert_ne!(judged.said(&piped), "auto", "{piped:?}");
        }
    }
}

#[test]
fn an_argument_vector_is_asked_about_and_allowed_as_it_is_shown() {
    let judged = Judged::new();
    let found = judged.assess(&["rm", "*", "it's"]);
    assert_eq!(found.command, r"rm '*' 'it'\''s'");
    let allowed = |text: &str| judged.judge.verdict(&found, &[Pattern::exact(text)]).word();
    assert_eq!(allowed(&found.command), "auto");
    assert_eq!(allowed(r"rm * 'it'\''s'"), "ask");
}

/// Reading outside the workspace runs unasked exactly if the sandbox lets a command read there.
#[test]
fn a_place_that_the_sandbox_can_read_is_no_reason_to_ask() {
    let world = World::new();
    let base = world.home.parent().unwrap();
    let tool = base.join("tools/one/bin");
    for dir in [&tool, &base.join("tools/one/lib"), &base.join("sources")] {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("text"), "x\n").unwrap();
    }
    let (judge, _) = world.judge(PolicySettings::default());
    let mut path = tool.clone().into_os_string();
    path.push(":");
    path.push(world.path());
    let launcher = Launcher::new(BACKEND.into(), world.home.clone(), Vec::new())
        .read_roots(vec![base.join("sources")]);
    let judge = judge.with_launcher(launcher, vec![("PATH".into(), path)]);
    for (read, said) in [
        ("tools/one/lib/text", "auto"),
        ("sources/text", "auto"),
        ("other/file", "ask"),
        ("home/.bashrc", "ask"),
    ] {
        let command = format!("cat {}", base.join(read).display());
        let verdict = verdict_in(&judge, &command, &world.workspace, &[]);
        assert_eq!(verdict.word(), said, "{command}");
    }
}

#[test]
fn where_nothing_can_be_confined_everything_asks() {
    let world = World::new();
    let (judge, _) = Judge::new(JudgeConfig {
        workspace: world.home.clone(),
        home: world.home.clone(),
        path: world.path(),
        settings: PolicySettings::default(),
        saved: Default::default(),
        own: Vec::new(),
    });
    let launcher = Launcher::new(BACKEND.into(), world.home.clone(), Vec::new());
    let judge = judge.with_launcher(launcher, Vec::new());
    let verdict = verdict_in(&judge, "cat .bashrc", &world.home, &[]);
    let Verdict::Ask(question) = verdict else {
        panic!("{verdict:?}");
    };
    let why = &question.reasons[0].text;
    assert!(why.contains("is your home directory"), "{why}");
}
