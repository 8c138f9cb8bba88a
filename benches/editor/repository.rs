//! The calls of a model in a repository of 40,000 directories, beside the same calls in one of 20 files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::{Value, json};

use super::client::Client;
use super::spawn::ended;
use super::support::BACKEND;
use super::support::http::{Reply, Scripted};
use super::{median, ms, report};

/// Each has 222 directories with five files each, half of them ignored.
const PACKAGES: usize = 180;
const FILES: usize = 5;
const ROUNDS: usize = 15;
/// The number of Neovims that are started for their first calls.
const STARTS: usize = 3;
/// The time until the first answer of the model, in which co reads the workspace.
const THINKING: Duration = Duration::from_secs(10);
/// The time after the last call until the memory is measured: what the backend has freed goes back after each turn.
const REST: Duration = Duration::from_secs(5);
const FILE: &str = "packages/p0/src/d0/file0.rs";
/// A pattern that one file has.
const PATTERN: &str = "node_[m]odules";

/// A call of the model.
struct Row {
    what: &'static str,
    /// The name and the arguments of the call in a round.
    call: fn(usize) -> (&'static str, Value),
    /// The command that does the same.
    plain: &'static [&'static str],
    /// The milliseconds that it may take more than in the small repository.
    wanted: f64,
}

const ROWS: [Row; 9] = [
    Row {
        what: "`ls`",
        call: |_| shell("ls"),
        plain: &["ls"],
        wanted: 10.0,
    },
    Row {
        what: "`git status --short`",
        call: |_| shell("git status --short"),
        plain: &["git", "status", "--short"],
        wanted: f64::INFINITY,
    },
    Row {
        what: "`rg`, one match",
        call: |_| shell("rg --hidden -l 'node_[m]odules'"),
        plain: &["rg", "--hidden", "-l", PATTERN, "."],
        wanted: f64::INFINITY,
    },
    Row {
        what: "`search`, one match",
        call: |_| ("search", json!({ "pattern": PATTERN })),
        plain: &["rg", "--hidden", "-n", "-e", PATTERN, "."],
        wanted: f64::INFINITY,
    },
    Row {
        what: "`read_file`",
        call: |_| ("read_file", json!({ "path": FILE })),
        plain: &["cat", FILE],
        wanted: 10.0,
    },
    Row {
        what: "`list_files`, depth 1",
        call: |_| ("list_files", json!({ "path": ".", "depth": 1 })),
        plain: &["ls"],
        wanted: 10.0,
    },
    Row {
        what: "`edit_file`",
        call: |round| {
            let (old, new) = match round % 2 {
                0 => ("line 7 of", "LINE 7 of"),
                _ => ("LINE 7 of", "line 7 of"),
            };
            (
                "edit_file",
                json!({ "path": FILE, "edits": [{ "old": old, "new": new }] }),
            )
        },
        plain: &["cat", FILE],
        wanted: 10.0,
    },
    Row {
        what: "ten files by an allowed command",
        call: |round| {
            let files: Vec<String> = (0..10).map(|it| new_file(round, it)).collect();
            shell(&format!("touch {}", files.join(" ")))
        },
        plain: &["true"],
        wanted: 60.0,
    },
    Row {
        what: "`ls` after that",
        call: |_| shell("ls"),
        plain: &["ls"],
        wanted: 10.0,
    },
];

/// A repository, with a chat in it.
struct Place {
    root: PathBuf,
    server: Scripted,
    nvim: Client,
    answers: usize,
}

/// Returns the small and the big repository, which are written unless an earlier run has.
fn repositories() -> [PathBuf; 2] {
    // In no other repository: ripgrep would look for its rules, which a confined command may not read.
    let top = std::env::temp_dir().join("co-nvim-repositories");
    let (small, big) = (top.join("small"), top.join("big"));
    write_repository(&small, None);
    write_repository(&big, Some(PACKAGES));
    [small, big]
}

pub(super) fn run_first() {
    let [small, big] = &repositories();
    let (mut prompts, mut firsts, mut plain) = ([vec![], vec![]], [vec![], vec![]], vec![]);
    for _ in 0..STARTS {
        for (which, root) in [small, big].into_iter().enumerate() {
            let mut place = Place::new(root);
            let began = Instant::now();
            let first = place.call(shell("ls"));
            prompts[which].push(ms(first.prompted - began));
            firsts[which].push(first.took);
        }
        plain.push(command_time(big, &["ls"]).0);
    }
    let [small, big] = prompts.map(|mut times| median(&mut times));
    println!("first prompt of a Neovim until its request: {small:.1} ms, big {big:.1} ms");
    let [small, big] = firsts.map(|mut times| median(&mut times));
    println!("first call of a chat, `ls`: {small:.1} ms, big {big:.1} ms");
    let over = big - median(&mut plain);
    report("  over the plain command", over, "ms", 400.0);
}

pub(super) fn run() {
    let [small, big] = &repositories();
    let mut places = [Place::new(small), Place::new(big)];
    for place in &mut places {
        // An earlier run may have been ended between two edits.
        let file = place.root.join(FILE);
        fs::write(&file, text(&file)).unwrap();
        place.settle();
    }
    let mut times: Vec<[Times; 3]> = ROWS.iter().map(|_| Default::default()).collect();
    let mut trials: [Times; 3] = Default::default();
    for round in 0..=ROUNDS {
        for (row, times) in ROWS.iter().zip(&mut times) {
            for (place, times) in places.iter_mut().zip(&mut *times) {
                let before = place.work();
                let took = place.call((row.call)(round)).took;
                // The first one makes what the others use again.
                if round > 0 {
                    times.push((took, place.work() - before));
                }
            }
            times[2].push(command_time(big, row.plain));
        }
        for (place, times) in places.iter().zip(&mut trials) {
            let before = place.work();
            let took = ended(&place.nvim, "bench.co(...)", "++try true".into());
            if round > 0 {
                times.push((took, place.work() - before));
            }
        }
        trials[2].push(command_time(big, &["true"]));
        for file in (0..10).map(|it| new_file(round, it)) {
            for place in &places {
                let _missing = fs::remove_file(place.root.join(&file));
            }
        }
    }
    for (row, times) in ROWS.iter().zip(times) {
        print_row(row.what, times, row.wanted);
    }
    print_row("`:Co! ++try true` beside a chat", trials, 60.0);
    std::thread::sleep(REST);
    let [small, big] = places.each_ref().map(|it| it.nvim.backend_memory());
    println!("memory (PSS) of the backend in the small repository: {small:.1} MB");
    report("  in the big one", big, "MB", 60.0);
}

pub(super) fn run_trials() {
    let [small, big] = &repositories();
    let mut times: [Times; 3] = Default::default();
    for _ in 0..ROUNDS {
        for (root, times) in [small, big].into_iter().zip(&mut times) {
            let trial = [BACKEND, "exec", "--try", "--drop", "touch trial"];
            times.push(command_time(root, &trial));
        }
        times[2].push(command_time(big, &["true"]));
    }
    print_row("`co-nvim exec --try --drop`", times, f64::INFINITY);
}

/// Prints the times in both repositories, and those of the plain command in the big one.
fn print_row(what: &str, times: [Times; 3], wanted: f64) {
    let [small, big, plain] = times.map(Times::sums);
    let text = |it: &Sums| format!("{:.1} ms ({:.1}, {:.1})", it.median, it.least, it.work);
    println!(
        "{what}: {}, big {}, plain {}, {:.2} x",
        text(&small),
        text(&big),
        text(&plain),
        big.median / plain.median
    );
    if wanted.is_finite() {
        let more = big.median - small.median;
        report("  more than in the small one", more, "ms", wanted);
    }
}

/// The times of a call.
struct Called {
    /// The request with the prompt came.
    prompted: Instant,
    /// Milliseconds from the end of the model's answer to the next request.
    took: f64,
}

/// The times of many calls, in milliseconds.
#[derive(Default)]
struct Times {
    wall: Vec<f64>,
    /// Processor time.
    work: Vec<f64>,
}

impl Times {
    fn push(&mut self, (wall, work): (f64, f64)) {
        self.wall.push(wall);
        self.work.push(work);
    }

    fn sums(mut self) -> Sums {
        Sums {
            least: self.wall.iter().copied().fold(f64::INFINITY, f64::min),
            median: median(&mut self.wall),
            work: self.work.iter().sum::<f64>() / self.work.len() as f64,
        }
    }
}

struct Sums {
    median: f64,
    least: f64,
    /// The mean of the processor time, because the kernel counts it in steps of 10 ms.
    work: f64,
}

impl Place {
    fn new(root: &Path) -> Self {
        let server = Scripted::start();
        let nvim = Client::start(&json!({
            "provider": "openai", "model": "scripted", "base_url": server.url(),
            "allow": ["touch", "edit_file"],
        }));
        nvim.lua("vim.cmd.cd(...)", json!([root]));
        Self {
            root: root.to_owned(),
            server,
            nvim,
            answers: 0,
        }
    }

    /// Lets the model make a call.
    fn call(&mut self, (name, arguments): (&str, Value)) -> Called {
        self.answers += 1;
        let stamps: [Arc<Mutex<Option<Instant>>>; 3] = Default::default();
        let call = Reply::new().note_time(&stamps[0]);
        let call = match self.answers {
            1 => call.pause(THINKING),
            _ => call,
        };
        let call = call.call(&format!("call{}", self.answers), name, &arguments);
        self.server.reply(call.note_time(&stamps[1]));
        let answer = format!("answer{}.", self.answers);
        let reply = Reply::new().note_time(&stamps[2]).say(&answer);
        self.server.reply(reply);
        self.nvim.watch(&answer);
        self.nvim.command("Co go");
        self.nvim.wait_shown();
        let [prompted, sent, came] = stamps.map(|it| it.lock().unwrap().expect("it came"));
        Called {
            prompted,
            took: ms(came - sent),
        }
    }

    /// Makes calls until what is read in the background is there.
    fn settle(&mut self) {
        for _ in 0..20 {
            self.call(shell("ls"));
        }
    }

    /// Returns the processor time of the backend and the commands that it ended, in milliseconds.
    fn work(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.nvim.backend())).unwrap();
        let fields = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace();
        let ticks = fields.skip(11).take(4).map(|it| it.parse::<f64>().unwrap());
        ticks.sum::<f64>() * 10.0
    }
}

fn shell(command: &str) -> (&'static str, Value) {
    ("run_shell_command", json!({ "cmd": command }))
}

fn new_file(round: usize, number: usize) -> String {
    format!("packages/p0/src/d0/new{round}-{number}")
}

/// Runs a command. Returns its time and its processor time, in milliseconds.
fn command_time(root: &Path, argv: &[&str]) -> (f64, f64) {
    let children = || {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
        let times = [usage.user_time(), usage.system_time()];
        times
            .map(|it| it.num_microseconds() as f64 / 1e3)
            .iter()
            .sum::<f64>()
    };
    let before = children();
    let began = Instant::now();
    let mut command = Command::new(argv[0]);
    let command = command.args(&argv[1..]).current_dir(root);
    let ended = command.stdin(Stdio::null()).output();
    assert!(ended.is_ok(), "{argv:?}: {ended:?}");
    (ms(began.elapsed()), children() - before)
}

/// Writes a repository, unless an earlier run has. Without a number of packages, it has 20 files.
fn write_repository(root: &Path, packages: Option<usize>) {
    if root.join(".git/finished").exists() {
        return;
    }
    let _missing = fs::remove_dir_all(root);
    let part = |packages, directories| {
        for package in 0..packages {
            for kind in ["src", "node_modules"] {
                write_package(
                    &root.join(format!("packages/p{package}/{kind}")),
                    directories,
                );
            }
        }
    };
    match packages {
        Some(packages) => part(packages, 10),
        None => part(1, 1),
    }
    fs::write(root.join(".gitignore"), "node_modules\n").unwrap();
    for args in [
        "init -q",
        "add -A",
        "-c user.name=a -c user.email=a@b commit -qm 1",
    ] {
        let mut git = Command::new("git");
        let git = git.args(args.split(' ')).current_dir(root);
        assert!(git.status().unwrap().success(), "{args}");
    }
    fs::write(root.join(".git/finished"), "").unwrap();
    // Times that are as new as a look at them tell nothing.
    std::thread::sleep(Duration::from_secs(2));
}

/// Writes directories with directories in them, each with files.
fn write_package(dir: &Path, directories: usize) {
    write_files(dir);
    for outer in (0..directories).map(|it| dir.join(format!("d{it}"))) {
        write_files(&outer);
        for inner in 0..if directories > 1 { directories } else { 0 } {
            write_files(&outer.join(format!("e{inner}")));
        }
    }
}

fn write_files(dir: &Path) {
    fs::create_dir_all(dir).unwrap();
    for file in (0..FILES).map(|it| dir.join(format!("file{it}.rs"))) {
        fs::write(&file, text(&file)).unwrap();
    }
}

/// Returns the text of a file, which no other has.
fn text(file: &Path) -> String {
    let lines = (0..12).map(|line| format!("line {line} of it\n"));
    format!("{}\n{}", file.display(), lines.collect::<String>())
}
