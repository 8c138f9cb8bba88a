//! The option tables against the installed programs: which options take the next word for their value.
//!
//! `P OPT --zzunknown` fails for an unknown option unless OPT takes that word. With a `--` before it,
//! it fails only if OPT takes the `--`. Programs that are not installed, and options that one does
//! not know or that end it at once, tell nothing.

use std::fmt::Write;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use co_policy::programs::{self, Operands, OptionRule, OptionValue};

use super::world::World;

/// An option that no program has.
const UNKNOWN: &str = "--zzunknown";
/// A letter that no program has for an option.
const LETTER: char = '~';
/// Parts of the errors about an option that lacks its value.
const MISSING: [&str; 2] = ["requires a value", "value is required"];
const THREADS: usize = 4;
/// A run that takes longer tells nothing.
const LIMIT: Duration = Duration::from_secs(5);

/// The text that an option takes for its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    No,
    /// Text in the same word: `-n5`.
    SameWord,
    NextWord,
}

/// The errors that a program printed, and its exit status.
type Ran = (String, Option<i32>);

/// One program, or one sub-command of git.
struct Prober<'a> {
    words: Vec<&'a str>,
    dir: &'a Path,
    /// The line that it prints about an unknown option.
    complaint: String,
    /// Its message about a letter that is no option.
    about_letter: Option<Ran>,
    /// True if it reads what follows `--` as operands.
    ends_options: bool,
}

impl<'a> Prober<'a> {
    /// Returns none for a program that is not installed, or does not name the option that it does not know.
    fn new(name: &'a str, dir: &'a Path) -> Option<Self> {
        let mut prober = Self {
            words: name.split(' ').collect(),
            dir,
            complaint: String::new(),
            about_letter: None,
            ends_options: true,
        };
        let (errors, _) = prober.run(&[UNKNOWN])?;
        let name = UNKNOWN.trim_start_matches('-');
        errors
            .lines()
            .find(|line| line.contains(name))?
            .clone_into(&mut prober.complaint);
        prober.about_letter = prober.run(&[&format!("-{LETTER}")]);
        let (errors, _) = prober.run(&["--", UNKNOWN])?;
        prober.ends_options = !prober.complains(&errors);
        Some(prober)
    }

    /// Runs it in an empty directory without input; returns none if it does not end in time.
    fn run(&self, args: &[&str]) -> Option<Ran> {
        let mut errors = tempfile::tempfile().unwrap();
        let mut child = Command::new(self.words[0])
            .args(&self.words[1..])
            .args(args)
            .current_dir(self.dir)
            .env("LC_ALL", "C")
            .env("HOME", self.dir)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors.try_clone().unwrap())
            .process_group(0)
            .spawn()
            .ok()?;
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return Some((text_of(&mut errors), status.code()));
            }
            if Instant::now() > deadline {
                child.kill().unwrap();
                child.wait().unwrap();
                return None;
            }
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    /// True for errors that name [`UNKNOWN`] as an option.
    fn complains(&self, errors: &str) -> bool {
        errors.lines().any(|line| line == self.complaint)
    }

    /// Returns what an option takes, or none if that cannot be told.
    fn value_of(&self, option: &str) -> Option<Value> {
        let (direct, _) = self.run(&[option, UNKNOWN])?;
        if self.complains(&direct) {
            return match self.complaint.contains("expected") {
                true => self.plain_value(option),
                false => self.letters(option),
            };
        }
        let (behind, _) = self.run(&[option, "--", UNKNOWN])?;
        let taken = direct.contains(UNKNOWN) || self.ends_options && self.complains(&behind);
        taken.then_some(Value::NextWord)
    }

    /// The same for programs that take no word that begins with `-`; they say that the value is missing.
    fn plain_value(&self, option: &str) -> Option<Value> {
        let (last, _) = self.run(&["x", option])?;
        if MISSING.iter().any(|text| last.contains(text)) {
            return Some(Value::NextWord);
        }
        // One that lacks its operand both times may have taken the word.
        let (alone, _) = self.run(&[option])?;
        let (before, _) = self.run(&[option, "x"])?;
        (alone.is_empty() || alone != before).then_some(Value::No)
    }

    /// Tells whether an option that takes no other word takes what stands behind its letter.
    fn letters(&self, option: &str) -> Option<Value> {
        if option.len() != 2 {
            return Some(Value::No);
        }
        let (about, about_code) = self.about_letter.as_ref()?;
        let word = format!("{option}{LETTER}");
        let (errors, code) = self.run(&[&word])?;
        if errors.contains(&word) || (errors == *about && !about.is_empty()) {
            return Some(Value::No);
        }
        let (_, alone) = self.run(&[option])?;
        (code == alone && code != *about_code).then_some(Value::SameWord)
    }
}

fn text_of(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Says what is wrong with one row of a table; `tried` counts the rows that could be compared.
fn probe(prober: &Prober, option: &str, takes: OptionValue, tried: &mut usize) -> Option<String> {
    let program = programs::lookup(&prober.words.join(" ")).unwrap();
    let found = prober.value_of(option)?;
    *tried += 1;
    let right = match takes {
        OptionValue::Nothing => found == Value::No,
        // A value that may be missing can only stand in the same word.
        OptionValue::Attached => found == Value::SameWord || found == Value::No && option.len() > 2,
        // What one program reads as a file is an operand to the other, and checked alike.
        OptionValue::File if program.operands == Operands::Files => true,
        _ => found == Value::NextWord,
    };
    (!right).then(|| {
        let name = prober.words.join(" ");
        format!("{name} {option}: the table says {takes:?}, the program takes {found:?}")
    })
}

/// Compares one program's table, and says what is wrong with it.
fn compare(name: &str, world: &World) -> (usize, String) {
    let (mut tried, mut wrong) = (0, String::new());
    let empty = world.home.join("empty");
    let dir = match name.starts_with("git ") {
        true => &world.workspace,
        false => &empty,
    };
    let (Some(program), Some(prober)) = (programs::lookup(name), Prober::new(name, dir)) else {
        return (tried, wrong);
    };
    for (option, known) in &program.options {
        if let OptionRule::Safe(takes) = known
            && let Some(text) = probe(&prober, option, *takes, &mut tried)
        {
            let _infallible = writeln!(wrong, "{text}");
        }
    }
    (tried, wrong)
}

#[test]
fn the_tables_agree_with_the_installed_programs() {
    let world = World::new();
    std::fs::create_dir(world.home.join("empty")).unwrap();
    let names = Mutex::new(programs::names());
    let found = Mutex::new((0, String::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(name) = { names.lock().unwrap().next() } {
                    let (tried, wrong) = compare(name, &world);
                    let mut found = found.lock().unwrap();
                    found.0 += tried;
                    found.1.push_str(&wrong);
                }
            });
        }
    });
    let (tried, wrong) = found.into_inner().unwrap();
    assert!(wrong.is_empty(), "{tried} rows were compared:\n{wrong}");
    assert!(tried > 500, "only {tried} rows were compared");
}

#[test]
fn a_wrong_row_is_found() {
    let world = World::new();
    let dir = world.home.join("empty");
    std::fs::create_dir(&dir).unwrap();
    let wrong = |name: &str, option: &str, takes: OptionValue| {
        let prober = Prober::new(name, &dir).unwrap();
        let mut tried = 0;
        let found = probe(&prober, option, takes, &mut tried).is_some();
        assert_eq!(tried, 1, "{name} {option}");
        found
    };
    for (name, option, right) in [
        ("sort", "-k", OptionValue::Text),
        ("sort", "-r", OptionValue::Nothing),
        ("grep", "--color", OptionValue::Attached),
        ("grep", "-e", OptionValue::Text),
    ] {
        for takes in [OptionValue::Text, OptionValue::Nothing] {
            let fits =
                takes == right || right == OptionValue::Attached && takes == OptionValue::Nothing;
            assert_eq!(
                wrong(name, option, takes),
                !fits,
                "{name} {option} {takes:?}"
            );
        }
    }
}
