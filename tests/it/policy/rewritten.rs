//! Rewritten commands do what the original was judged to do.

use std::path::Path;
use std::process::{Command, Stdio};

use co::tool::judge::Judge;
use co_exec::Program;
use co_policy::{Grant, PolicySettings, Proved, Verdict};

use super::world::{World, texts, verdict_in};

pub(super) fn proved(judge: &Judge, command: &str, cwd: &Path) -> Option<Proved> {
    match verdict_in(judge, command, cwd, &[]) {
        Verdict::Allow(Grant::Proof(proved)) => Some(proved),
        _ => None,
    }
}

fn script(world: &World, command: &str) -> String {
    let (judge, _) = world.judge(PolicySettings::default());
    let proved = proved(&judge, command, &world.workspace);
    let proved = proved.unwrap_or_else(|| panic!("`{command}` only looks"));
    assert_eq!(proved.original(), command);
    // Where a program lies differs between machines.
    let path = |name: &str| {
        let mut shell = Command::new("/bin/sh");
        let found = shell.args(["-c", &format!("command -v {name}")]);
        let found = found.env("PATH", world.path()).output().unwrap().stdout;
        format!("'{}'", String::from_utf8_lossy(&found).trim())
    };
    let mut script = proved.script().to_owned();
    for name in ["ls", "cat", "grep", "find", "xargs", "wc", "sort"] {
        script = script.replace(&path(name), &format!("<{name}>"));
    }
    script
}

#[test]
fn every_word_is_quoted_as_it_was_expanded_and_every_program_has_its_path() {
    let world = World::new();
    for (command, expected) in [
        ("ls -la src", "exec -a 'ls' <ls> '-la' 'src'"),
        ("cat *.txt", "exec -a 'cat' <cat> 'a.txt' 'b.txt'"),
        ("ls no*where", "exec -a 'ls' <ls> 'no*where'"),
        (
            "cat src/{main,lib}.rs",
            "exec -a 'cat' <cat> 'src/main.rs' 'src/lib.rs'",
        ),
        (
            "grep -n \"it's\" a.txt 2>/dev/null | wc -l",
            r"(exec -a 'grep' <grep> '-n' 'it'\''s' 'a.txt' 2>'/dev/null') | (exec -a 'wc' <wc> '-l')",
        ),
        (
            "cd src && ls; pwd || LC_ALL=C sort <b 2>&1 # sorted",
            "'cd' 'src' && (exec -a 'ls' <ls>)\n'pwd' || LC_ALL='C' <sort> <'b' 2>&'1'",
        ),
        ("echo if \"$HOME\"x $? '*' \\\n ~x y=~", ""),
        (
            "find . -name '*.rs' -print0 | xargs -0 wc -l",
            "(exec -a 'find' <find> '.' '-name' '*.rs' '-print0') | (exec -a 'xargs' <xargs> '-0' <wc> '-l')",
        ),
        (
            "echo if \"$HOME\"x $? '*' x=y",
            "'echo' 'if' ''\"${HOME}\"'x' \"${?}\" '*' 'x=y'",
        ),
    ] {
        if expected.is_empty() {
            let (judge, _) = world.judge(PolicySettings::default());
            assert_eq!(proved(&judge, command, &world.workspace), None, "{command}");
        } else {
            assert_eq!(script(&world, command), expected, "{command}");
        }
    }
}

#[test]
fn an_argument_vector_is_written_as_one_command_of_programs() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    let argv = Program::Argv(texts(&["test", "-f", "a;b"]));
    let found = judge.assess(&argv, &world.workspace);
    let Verdict::Allow(Grant::Proof(proved)) = judge.verdict(&found, &[]) else {
        panic!("{found:?}");
    };
    let script = proved.script();
    assert!(
        script.starts_with("exec -a 'test' '/") && script.ends_with("/test' '-f' 'a;b'"),
        "{script}"
    );
}

#[test]
fn what_a_glob_matches_in_one_of_two_directories_is_not_proved() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    let said = |command: &str| verdict_in(&judge, command, &world.workspace, &[]).word();
    assert_eq!(said("cd src; ls *"), "auto");
    assert_eq!(said("cd src || pwd; ls a.txt"), "auto");
    assert_eq!(said("cd src || pwd; ls *.rs"), "ask");
}

/// True for commands whose output changes.
fn moves(command: &str) -> bool {
    let moving = [
        "ps", "date", "uptime", "free", "df", "du", "stat", "who", "w", "id", "vmstat", "lsof",
    ];
    let names: Vec<&str> = command.split([' ', '|', ';', '&', '\n', '(']).collect();
    names.iter().any(|name| moving.contains(name))
        // The time of an unasked command ends these.
        || ["while", "for(;;)", "i=1}", "NF++", "NF+1"].iter().any(|it| command.contains(it))
        // Without a path, they wait for standard input or walk the machine.
        || command.contains("/proc") || command.contains("/sys")
}

/// Returns the text with the names of the programs in the place of their paths: xargs starts its program by the path.
fn by_names(text: &str, script: &str) -> String {
    let quoted = script.split('\'').filter(|word| word.starts_with('/'));
    quoted.fold(text.to_owned(), |text, path| {
        let name = path.rsplit('/').next().unwrap_or(path);
        text.replace(path, name)
    })
}

/// Returns what a text prints, its errors too, and its exit status.
fn prints(world: &World, text: &str, env: &[(String, String)]) -> (String, Option<i32>) {
    let mut bash = Command::new("/bin/bash");
    let output = bash
        .args(["--noprofile", "--norc", "-c"])
        .arg(format!("exec 2>&1; {text}"))
        .current_dir(&world.workspace)
        .env_clear()
        .env("PATH", world.path())
        .env("HOME", &world.home)
        .envs(env.iter().cloned())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    // bash names the line of a program that it does not find.
    let line = |line: &str| match line.split_once(": line ") {
        Some((shell, rest)) => match rest.split_once(": ") {
            Some((_, said)) => format!("{shell}: {said}"),
            None => line.to_owned(),
        },
        None => line.to_owned(),
    };
    let lines: Vec<String> = printed.lines().map(line).collect();
    (lines.join("\n"), output.status.code())
}

#[test]
fn the_rewritten_text_prints_what_the_original_prints() {
    let world = World::new();
    let (judge, _) = world.judge(PolicySettings::default());
    let tables = concat!(
        include_str!("../../fixtures/policy/auto.txt"),
        include_str!("../../fixtures/policy/ask.txt")
    );
    let mut compared = 0;
    for line in tables.lines().filter(|line| !line.starts_with("## ")) {
        let command = line.replace('␤', "\n");
        let Some(proved) = proved(&judge, &command, &world.workspace) else {
            continue;
        };
        if moves(&command) {
            continue;
        }
        compared += 1;
        let original = prints(&world, &command, proved.env());
        let rewritten = prints(&world, proved.script(), proved.env());
        let named = |(text, exit): (String, _)| (by_names(&text, proved.script()), exit);
        assert_eq!(
            named(original),
            named(rewritten),
            "{command}\n{}",
            proved.script()
        );
    }
    assert!(compared > 300, "only {compared} were compared");
}
