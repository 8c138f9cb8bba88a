//! How long a verdict takes: `cargo bench --bench policy`. Ends with 1 where a limit is passed.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use co::exec::Program;
use co::policy::{Settings, Verdict};
use co::tool::judge::{Bench, Judge};

fn main() -> ExitCode {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    fs::create_dir_all(work.join("src")).unwrap();
    for name in ["src/main.rs", "src/lib.rs", "Cargo.toml"] {
        fs::write(work.join(name), "x\n").unwrap();
    }
    Command::new("git")
        .args(["init", "-q"])
        .current_dir(&work)
        .status()
        .unwrap();
    let (judge, _) = Judge::new(Bench {
        workspace: work.clone(),
        home: dir.path().to_owned(),
        path: std::env::var_os("PATH").unwrap_or_default(),
        settings: Settings::default(),
        saved: Vec::new(),
        own: Vec::new(),
    });
    let verdict = |command: &str| -> Verdict {
        let found = judge.assess(&Program::Shell(command.to_owned()), &work);
        judge.verdict(&found, &[])
    };
    let hundred = "rg -n 'fn (main|new)' --type rust -g '*.rs' -C 2 | sort -u -k 2,2 | head -40 | cut -d: -f 1,2 | uniq -c";
    let long = format!("echo {}", "'word' \"more\" ".repeat(710));
    let many = vec!["head -n 5 src/main.rs | grep -n x"; 25].join("; ");
    let rows = [
        (
            "100 characters",
            hundred.to_owned(),
            Duration::from_micros(100),
        ),
        ("10,000 characters", long, Duration::from_millis(10)),
        ("50 commands", many, Duration::from_millis(10)),
        (
            "git, configuration unchanged",
            "git status -sb && git diff --stat".to_owned(),
            Duration::from_millis(1),
        ),
    ];
    let mut late = false;
    for (name, command, limit) in rows {
        assert!(
            matches!(verdict(&command), Verdict::Allow(_)),
            "{name}: {:?}",
            verdict(&command)
        );
        let mut times: Vec<Duration> = (0..500)
            .map(|_| {
                let start = Instant::now();
                black_box(verdict(black_box(&command)));
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        let (median, worst) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        println!(
            "{name:30} {} characters: median {median:?}, 99 of 100 below {worst:?}, limit {limit:?}",
            command.len()
        );
        late |= median > limit;
    }
    ExitCode::from(u8::from(late))
}
