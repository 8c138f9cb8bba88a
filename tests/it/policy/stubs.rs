//! Nothing runs that was not judged, and it runs with the words that were judged.
//!
//! Many lines are judged, and what is proved of them runs, with a PATH that holds nothing but stubs. A stub notes its
//! path and its words, and does nothing else.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use co::tool::judge::{Judge, JudgeConfig};
use co_exec::Program;
use co_policy::programs::{self, OptionRule};
use co_policy::{Grant, PolicySettings, Verdict};

use super::differential::Random;
use super::world::World;
use crate::support::cases;

/// Generated lines, besides the tables; `make fuzz` makes more.
const LINES: usize = 20_000;
/// Each thread judges and runs its share.
const THREADS: usize = 2;

const FIXTURES: &str = concat!(
    include_str!("../../fixtures/policy/auto.txt"),
    include_str!("../../fixtures/policy/ask.txt"),
    include_str!("../../fixtures/policy/deny.txt")
);

const EVERYDAY: [&str; 24] = [
    "ls", "cat", "grep", "head", "tail", "wc", "sort", "find", "rg", "sed", "awk", "git", "cut",
    "tr", "uniq", "diff", "stat", "file", "du", "basename", "echo", "printf", "test", "cd",
];

const OPERANDS: [&str; 52] = [
    "a.txt",
    "b.txt",
    "src",
    "src/main.rs",
    "src/*.rs",
    "*.txt",
    "{a,b}.txt",
    "src/{main,lib}.rs",
    "'a b'",
    "\"x y\"",
    "a\\ b",
    "f",
    "-",
    "./f",
    "no*pe",
    "[ab].txt",
    "?.txt",
    "'*'",
    "\"$HOME\"",
    "$HOME",
    "$?",
    "~",
    "{x},B}",
    "{a,b",
    "x{1,2}y",
    "{'a b',c}{1,2}",
    "''",
    "-n",
    "--",
    "2>/dev/null",
    ">/dev/null",
    "2>&1",
    "&>/dev/null",
    "<a.txt",
    "'é'",
    "é",
    "# c",
    "!",
    "x=1",
    "if",
    "\\\n",
    "'it'\\''s'",
    "\"a\\\"b\\$c\"",
    "--color=always",
    "HEAD@{1}",
    ".env",
    "../x",
    "/etc/passwd",
    "'$(touch x)'",
    "';'",
    "$'a'",
    "`ls`",
];

const JOINS: [&str; 9] = [" && ", " || ", "; ", " | ", "\n", "|", ";", "&&", " & "];

/// Makes lines up: of the tables' commands, and of programs with their own options.
struct Lines {
    random: Random,
    names: Vec<&'static str>,
    known: Vec<String>,
}

impl Lines {
    fn new(seed: u64) -> Self {
        let mut names: Vec<_> = programs::names().filter(|it| !it.contains(' ')).collect();
        names.sort_unstable();
        Self {
            random: Random(seed),
            names,
            known: fixtures(),
        }
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.random.below(of.len())].clone()
    }

    fn line(&mut self) -> String {
        let mut line = self.command();
        for _ in 0..self.random.below(3) {
            line += self.pick(&JOINS);
            line += &self.command();
        }
        line
    }

    fn command(&mut self) -> String {
        if self.random.below(2) == 0 {
            let known = self.known.clone();
            let command = self.pick(&known);
            return match self.random.below(3) {
                0 => format!("{command} {}", self.pick(&OPERANDS)),
                _ => command,
            };
        }
        let name = match self.random.below(3) {
            0 => {
                let names = self.names.clone();
                self.pick(&names)
            }
            _ => self.pick(&EVERYDAY),
        };
        let mut options: Vec<&String> = programs::lookup(name)
            .into_iter()
            .flat_map(|program| &program.options)
            .filter(|(_, known)| matches!(known, OptionRule::Safe(_)))
            .map(|(option, _)| option)
            .collect();
        options.sort_unstable();
        let mut command = name.to_owned();
        for _ in 0..self.random.below(4) {
            let word = match self.random.below(3) == 0 && !options.is_empty() {
                true => self.pick(&options).clone(),
                false => self.pick(&OPERANDS).to_owned(),
            };
            command = format!("{command} {word}");
        }
        command
    }
}

fn fixtures() -> Vec<String> {
    let lines = FIXTURES.lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("## "));
    lines.map(|line| line.replace('␤', "\n")).collect()
}

/// A workspace whose programs are all stubs.
struct Stubs {
    world: World,
    judge: Judge,
}

impl Stubs {
    fn new() -> Self {
        let world = World::new();
        let git = Command::new("/bin/sh")
            .args(["-c", "command -v git"])
            .output();
        let git = String::from_utf8(git.unwrap().stdout).unwrap();
        for name in programs::names().filter(|name| !name.contains(' ')) {
            // The judge itself asks git about the repository.
            let first = match name {
                "git" => format!("[ -n \"$LINE\" ] || exec {} \"$@\"\n", git.trim()),
                _ => String::new(),
            };
            let note =
                "IFS=\x1f\nprintf '%s\\036' \"$LINE\x1f$0\x1f$*\" >> \"$LOG\"\nexit $(($# % 2))\n";
            world.program(name, &format!("#!/bin/sh\n{first}{note}"));
        }
        let (judge, _) = Judge::new(JudgeConfig {
            workspace: world.workspace.clone(),
            home: world.home.clone(),
            path: OsString::from(&world.bin),
            settings: PolicySettings::default(),
            saved: Vec::new(),
            own: Vec::new(),
        });
        Self { world, judge }
    }

    /// Returns what runs of a line, with the words of each of its commands; none if the line is not proved.
    fn proved(&self, line: &str) -> Option<(String, Vec<String>)> {
        let program = Program::Shell(line.to_owned());
        let found = self.judge.assess(&program, &self.world.workspace);
        let Verdict::Allow(Grant::Proof(proved)) = self.judge.verdict(&found, &[]) else {
            return None;
        };
        let words = found.segments.iter().filter_map(|it| it.words.as_ref());
        let words = words.map(|words| words.join("\x1f")).collect();
        Some((proved.script().to_owned(), words))
    }

    /// Runs the scripts in one bash and returns what each of them started.
    fn run(&self, scripts: &[&str]) -> Vec<Vec<String>> {
        let log = self.world.home.join("log");
        fs::write(&log, "").unwrap();
        let outer = r#"
            ulimit -t 60 -f 200000 || exit 3
            export LINE=0
            while IFS= read -r -d '' script; do
                (eval "$script") </dev/null >/dev/null 2>&1
                LINE=$((LINE + 1))
            done
        "#;
        let mut bash = Command::new("/bin/bash");
        let mut child = bash
            .args(["--noprofile", "--norc", "-c", outer])
            .current_dir(&self.world.workspace)
            .env_clear()
            .env("PATH", &self.world.bin)
            .env("HOME", &self.world.home)
            .env("LOG", &log)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let text: Vec<u8> = scripts
            .iter()
            .flat_map(|it| [it, "\0"].concat().into_bytes())
            .collect();
        let feeder = std::thread::spawn(move || input.write_all(&text));
        let began = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if began.elapsed()
                > Duration::from_secs(120) * u32::try_from(cases(LINES) / LINES).unwrap()
            {
                child.kill().unwrap();
                panic!("the scripts do not end");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        feeder.join().unwrap().unwrap();
        let mut started = vec![Vec::new(); scripts.len()];
        let log = fs::read_to_string(&log).unwrap();
        for note in log.split_terminator('\x1e') {
            let (line, words) = note.split_once('\x1f').unwrap();
            started[line.parse::<usize>().unwrap()].push(by_names(words, &self.world.bin));
        }
        started
    }
}

/// Returns the words with the names of the stubs in the place of their paths; other paths stay.
fn by_names(words: &str, bin: &Path) -> String {
    let bin = bin.to_str().unwrap();
    let name = |word: &str| match word.strip_prefix(bin) {
        Some(name) => name.trim_start_matches('/').to_owned(),
        None => word.to_owned(),
    };
    let words: Vec<String> = words.split('\x1f').map(name).collect();
    // A stub with no words notes one that is empty.
    words.join("\x1f").trim_end_matches('\x1f').to_owned()
}

/// Judges lines, runs what is proved and returns how many were proved and how many programs ran.
fn check(lines: impl Iterator<Item = String>) -> (usize, usize) {
    let stubs = Stubs::new();
    let judged = lines.filter_map(|line| Some((stubs.proved(&line)?, line)));
    let proved: Vec<_> = judged.collect();
    let scripts: Vec<&str> = proved
        .iter()
        .map(|((script, _), _)| script.as_str())
        .collect();
    let mut count = 0;
    for (((script, words), line), started) in proved.iter().zip(stubs.run(&scripts)) {
        for one in &started {
            count += 1;
            let judged = words.iter().any(|it| it.trim_end_matches('\x1f') == one);
            assert!(
                judged,
                "{line:?} ran {one:?}; judged were {words:?}\n{script}"
            );
        }
        // The first command runs in any case.
        if script.starts_with(['e', '(']) {
            let first = words[0].trim_end_matches('\x1f');
            let ran = started.iter().any(|one| one == first);
            assert!(
                ran,
                "{line:?} did not run {first:?} but {started:?}\n{script}"
            );
        }
    }
    (proved.len(), count)
}

#[test]
fn nothing_runs_but_what_was_judged() {
    let shares: Vec<_> = (0..THREADS)
        .map(|share| {
            std::thread::spawn(move || {
                let mut lines = Lines::new(0x9e37_79b9_7f4a_7c15 + share as u64);
                let tables = fixtures().into_iter().skip(share).step_by(THREADS);
                let made =
                    std::iter::repeat_with(move || lines.line()).take(cases(LINES) / THREADS);
                check(tables.chain(made))
            })
        })
        .collect();
    let (mut proved, mut ran) = (0, 0);
    for share in shares {
        let (lines, programs) = share.join().unwrap();
        (proved, ran) = (proved + lines, ran + programs);
    }
    assert!(proved > 4_000, "only {proved} lines were proved");
    assert!(ran > proved, "only {ran} programs ran");
}
