//! Commands that look have the same outcome at the read-only level as unconfined, where there is no secret.

use std::fs;
use std::process::{Command, Stdio};

use super::world::World;
use crate::support::BACKEND;

const LOOKS: &str = include_str!("../../fixtures/policy/looks.txt");

/// Commands whose output tells the time, how busy the machine is, or what is mounted. That of `rg --json` tells how long
/// it searched.
const CHANGING: [&str; 4] = ["date", "uptime", "free", "df"];

/// Prints one line for each command: its exit status and the start of its output, quoted.
const SCRIPT: &str = r#"
export GIT_OPTIONAL_LOCKS=0 # An index that git writes anew changes the time of .git, which `ls -la` tells.
exec 2> /dev/null # Warnings about a NUL in an output.
for line; do
    output=$(bash --noprofile --norc -c "$line" 2>&1 < /dev/null)
    printf '%q\n' "exit $?, ${#output} characters"$'\n'"${output:0:4000}"
done
"#;

/// Returns the commands of the table that end by themselves.
fn commands() -> Vec<String> {
    let sections = LOOKS.split("## ").skip(1);
    let ends = sections.filter(|section| !section.starts_with("what may not end"));
    let lines = ends.flat_map(|section| section.lines().skip(1));
    lines
        .filter(|line| !line.is_empty())
        .map(|line| line.replace('␤', "\n"))
        .collect()
}

/// Returns what came of each command, with its lines sorted: some programs search in parallel.
fn outcomes(world: &World, level: &[&str], commands: &[String]) -> Vec<String> {
    let done = Command::new(BACKEND)
        .arg("exec")
        .args(level)
        .args(["--", "bash", "--noprofile", "--norc", "-c", SCRIPT, "bash"])
        .args(commands)
        .current_dir(&world.workspace)
        .env("HOME", &world.home)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    let found: Vec<_> = text.lines().map(sorted).collect();
    let told = String::from_utf8_lossy(&done.stderr);
    assert_eq!(found.len(), commands.len(), "{told}");
    found
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<_> = text.split(r"\n").collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// Returns the part of an outcome that is the same in each run of the command: its exit status, or all of it. Threads of rg print
/// files in any order.
fn lasting(command: &str, outcome: &str) -> String {
    let mut words = command.split(|c: char| !c.is_alphanumeric());
    if words.any(|word| CHANGING.contains(&word)) || command.contains("rg --json") {
        let (_, rest) = outcome.split_once("exit ").unwrap();
        return rest.split(',').next().unwrap().to_owned();
    }
    let mut lines: Vec<_> = outcome.lines().collect();
    if command.split_whitespace().any(|word| word == "rg") {
        // The quotes around the whole stand at its first and last line.
        lines
            .iter_mut()
            .for_each(|line| *line = line.trim_end_matches('\''));
        lines.sort_unstable();
    }
    lines.join("\n")
}

#[test]
fn a_look_ends_confined_as_it_does_unconfined() {
    let world = World::new();
    fs::remove_dir_all(world.workspace.join("nested-repo")).unwrap();
    for secret in [".env", "server.pem", "innocent", "out", "fifo"] {
        fs::remove_file(world.workspace.join(secret)).unwrap();
    }
    fs::write(world.workspace.join("src/main.rs"), "fn main() { x }\n").unwrap();
    fs::write(world.workspace.join("script.sh"), "ls\n").unwrap();
    fs::write(world.workspace.join("a.js"), "let x;\n").unwrap();
    let archives =
        "gzip -k a.txt; mv a.txt.gz a.gz; tar cf a.tar src; tar czf a.tgz src; cp a.tgz a.tar.gz";
    let mut pack = Command::new("bash");
    pack.args(["-c", archives]).current_dir(&world.workspace);
    assert!(pack.status().unwrap().success());
    world.commit("second");

    let commands = commands();
    let free = outcomes(&world, &["--backend", "subprocess"], &commands);
    let confined = outcomes(&world, &["--read-only"], &commands);
    let ok = free.iter().filter(|text| text.contains("exit 0,")).count();
    assert!(ok * 4 > commands.len() * 3, "only {ok} succeed");
    let mut wrong = Vec::new();
    for ((command, free), confined) in commands.iter().zip(&free).zip(&confined) {
        if lasting(command, free) != lasting(command, confined) {
            wrong.push(format!(
                "{command}\nunconfined: {free}\nconfined: {confined}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
