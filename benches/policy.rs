//! The time of a verdict: `cargo bench --bench policy`. The program exits with 1 if a limit is passed.
//!
//! Two things are measured apart. *Facts given*: policy alone, from text to verdict, with facts that are
//! answered from memory. *Gathering*: the same with this machine's facts, so that files, links, PATH
//! and git's configuration are looked at; the configuration is read once and its files' identity and time
//! are compared after that.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use co::workspace::judge::{Judge, JudgeConfig};
use co_exec::Program;
use co_policy::facts::{Facts, FileKind, PathFact, ProgramFact, WorkspacePath};
use co_policy::{PolicySettings, Rules, Verdict};

const MICRO: fn(u64) -> Duration = Duration::from_micros;

/// A workspace in which every path is a file and every program is trusted.
struct Given;

impl Facts for Given {
    fn program(&self, name: &str, _: &Path) -> ProgramFact {
        ProgramFact::Trusted(Path::new("/usr/bin").join(name))
    }

    fn path(&self, cwd: &Path, path: &str) -> PathFact {
        PathFact {
            inside: Some(WorkspacePath {
                written: PathBuf::from(path),
                real: PathBuf::from(path),
            }),
            kind: FileKind::File,
            readable: false,
            absolute: cwd.join(path),
            secret: false,
            co_file: false,
            holds_co_files: false,
            home: false,
        }
    }
}

fn workspace(dir: &Path) -> PathBuf {
    let work = dir.join("work");
    fs::create_dir_all(work.join("src")).unwrap();
    for name in ["src/main.rs", "src/lib.rs", "Cargo.toml"] {
        fs::write(work.join(name), "x\n").unwrap();
    }
    for args in [&["init", "-q"][..], &["add", "-A"]] {
        let mut git = Command::new("git");
        assert!(
            git.args(args)
                .current_dir(&work)
                .status()
                .unwrap()
                .success()
        );
    }
    work
}

/// The median of 500, and below what 99 of 100 stay.
fn times(mut once: impl FnMut()) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..500)
        .map(|_| {
            let start = Instant::now();
            once();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

fn main() -> ExitCode {
    let dir = tempfile::tempdir().unwrap();
    let work = workspace(dir.path());
    let (judge, _) = Judge::new(JudgeConfig {
        workspace: work.clone(),
        home: dir.path().to_owned(),
        path: std::env::var_os("PATH").unwrap_or_default(),
        settings: PolicySettings::default(),
        saved: Default::default(),
        own: Vec::new(),
    });
    let gathering = |command: &str| -> Verdict {
        let found = judge.assess(&Program::Shell(command.to_owned()), &work, true);
        judge.verdict(&found, &[])
    };
    let rules = Rules::default();
    let given = |command: &str| -> Verdict {
        co_policy::decide(&co_policy::assess(command, &work, &Given), &rules, &[])
    };
    let hundred = "rg -n 'fn (main|new)' --type rust -g '*.rs' -C 2 | sort -u -k 2,2 | head -40 | cut -d: -f 1,2 | uniq -c";
    let refused = "x=$(rg -n 'fn (main|new)' --type rust -g '*.rs' src | head -40); echo \"$x\" | cut -d: -f 1,2 > lines";
    let long = format!("echo {}", "'word' \"more\" ".repeat(710));
    let long_refused = format!("{long} > words");
    let many = vec!["head -n 5 src/main.rs | grep -n x"; 25].join("; ");
    let git = "git status -sb && git diff --stat";
    let listed = vec!["git ls-files | xargs cat"; 25].join("; ");
    let walks = vec!["find src -name '*.rs' | xargs cat"; 25].join("; ");
    type Judging<'a> = &'a dyn Fn(&str) -> Verdict;
    let (policy, machine): (Judging, Judging) = (&given, &gathering);
    let rows: [(&str, Judging, &str, Duration); 10] = [
        ("given, 100 characters", policy, hundred, MICRO(1_000)),
        ("given, 100 that ask", policy, refused, MICRO(1_000)),
        ("given, 10,000 characters", policy, &long, MICRO(10_000)),
        (
            "given, 10,000 that ask",
            policy,
            &long_refused,
            MICRO(10_000),
        ),
        ("given, 50 commands", policy, &many, MICRO(10_000)),
        ("gathering, 100 characters", machine, hundred, MICRO(1_000)),
        ("gathering, git unchanged", machine, git, MICRO(1_000)),
        ("gathering, 50 commands", machine, &many, MICRO(10_000)),
        (
            "gathering, 25 x tracked files",
            machine,
            &listed,
            MICRO(10_000),
        ),
        ("gathering, 25 x walk", machine, &walks, MICRO(10_000)),
    ];
    let mut late = false;
    for (name, judging, command, limit) in rows {
        let verdict = judging(command);
        let allowed = matches!(verdict, Verdict::Allow(_));
        assert_eq!(allowed, !name.ends_with("that ask"), "{name}: {verdict:?}");
        let (median, worst) = times(|| {
            black_box(judging(black_box(command)));
        });
        println!(
            "{name:34} {:5} characters: median {median:?}, 99 of 100 below {worst:?}, limit {limit:?}",
            command.len()
        );
        late |= median > limit;
    }
    ExitCode::from(u8::from(late))
}
