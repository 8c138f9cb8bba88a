//! Real bash as the judge of the parser: nothing runs that was not listed.
//!
//! Random commands that the parser accepts run in a throwaway directory, under limits on processes
//! and time. No program they name exists, and bash hands every name it does not find to a function
//! that notes the words.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use co_policy::bash::{self, Script};

use crate::support::cases;

/// Pieces of shell text; names that start with `c` are the commands.
const PIECES: [&str; 96] = [
    "c0",
    "c1",
    "c2",
    "c3",
    "c4",
    "c5",
    "c6",
    "c7",
    "c8",
    "c9",
    " ",
    " ",
    " ",
    " ",
    " ",
    " ",
    " ",
    " ",
    "\n",
    ";",
    " && ",
    " || ",
    " | ",
    "|",
    "&&",
    "||",
    "'a b'",
    "\"x\"",
    "'",
    "\"",
    "\"$(c1)\"",
    "`c2`",
    "$(c3)",
    "${x:-`c4`}",
    "\"${x:=`c5`}\"",
    "\\\n",
    "\\",
    "\\;",
    "{a,b}",
    "{c6,c7}",
    "{",
    "}",
    "(",
    ")",
    "#",
    " # ",
    " #c8\n",
    "<<<",
    "<<E\n",
    "E\n",
    "2>&1",
    ">/dev/null",
    " 2>/dev/null ",
    "$x",
    "$",
    "$'c9'",
    "$\"",
    "!",
    "! ",
    "time ",
    "coproc ",
    "if ",
    "then ",
    "fi",
    "[ ",
    " ]",
    "[[ ",
    " ]]",
    "=",
    "x=",
    "x=1 ",
    "~",
    "*",
    "?",
    "a",
    "-b",
    "&",
    "&>/dev/null",
    "function ",
    "case ",
    "in ",
    "esac",
    "for ",
    "do ",
    "done",
    "\t",
    "@",
    "<(c1)",
    ">(c2)",
    "$((",
    "))",
    "\r",
    "eval ",
    "[a]",
    "|&",
    "ä",
];

/// Pieces of which most rows are accepted, so that bash has something to run.
const PLAIN: [&str; 34] = [
    "c0 ",
    "c1 ",
    "c2 ",
    "c3 ",
    "c4 ",
    "; c5",
    "\nc6 ",
    " && c7 ",
    " || c8 ",
    " | c9 ",
    "'a; c1'",
    "\"b | c2\"",
    "a\\ b",
    "x",
    " -y",
    " 2>/dev/null ",
    " >/dev/null",
    " 2>&1",
    " # c3\n",
    "\\\n",
    " {a,b}",
    " {c1,c2}",
    " '$(c3)'",
    " \"\\$(c4)\"",
    "c\\0 ",
    "c''1 ",
    " *",
    " [x]",
    " \"\"",
    "x=1 c5 ",
    " !",
    " #",
    "=",
    " \\\n c6",
];

/// Accepted commands that bash runs; `make fuzz` runs more. Each takes a process or two.
const ROUNDS: usize = 600;
/// Commands per batch; the time limits apply to one batch.
const AT_ONCE: usize = 600;

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % n
    }

    pub(super) fn command(&mut self) -> String {
        let plain = self.below(3) > 0;
        let mut text = if plain {
            "c0 ".to_owned()
        } else {
            String::new()
        };
        for _ in 0..1 + self.below(12) {
            let wild = !plain || self.below(12) == 0;
            text.push_str(if wild {
                PIECES[self.below(PIECES.len())]
            } else {
                PLAIN[self.below(PLAIN.len())]
            });
        }
        text
    }
}

/// The words a listed command may be run with; none where bash decides some of them.
fn listed(script: &Script) -> Option<Vec<(String, Option<Vec<String>>)>> {
    let mut all = Vec::new();
    for command in &script.commands {
        let words: Option<Vec<String>> = command
            .words
            .iter()
            .map(|word| {
                let spread = word.forms.len() > 1 && !word.raw.contains('$');
                (spread || word.literal().is_some()).then(|| word.expansions())
            })
            .collect::<Option<Vec<_>>>()
            .map(|words| words.concat());
        let Some(first) = command.words.first() else {
            continue;
        };
        let name = match first.forms.as_slice() {
            [_] => first.literal()?,
            _ => first.expansions().first()?.clone(),
        };
        // `eval` runs its expanded words; a name with `[` may start an array.
        if name == "eval" || name.contains('[') {
            return None;
        }
        all.push((name, words));
    }
    Some(all)
}

#[test]
fn bash_runs_nothing_that_was_not_listed() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..cases(ROUNDS).div_ceil(AT_ONCE) {
        compare(&mut random);
    }
}

/// Generates commands until enough of them are accepted, and compares what bash runs of those.
fn compare(random: &mut Random) {
    let mut accepted = Vec::new();
    let mut tried = 0;
    while accepted.len() < AT_ONCE && tried < 40 * AT_ONCE {
        tried += 1;
        let command = random.command();
        let script = bash::parse(&command);
        if !script.refusals.is_empty() || script.commands.is_empty() {
            continue;
        }
        if let Some(listed) = listed(&script) {
            accepted.push((command, listed));
        }
    }
    assert!(
        accepted.len() == AT_ONCE,
        "only {} of {tried} are accepted",
        accepted.len()
    );

    let logs = run(accepted.iter().map(|(command, _)| command.as_str()));
    let mut seen = 0;
    for (index, (command, listed)) in accepted.iter().enumerate() {
        for ran in logs
            .get(index)
            .map(String::as_str)
            .unwrap_or_default()
            .split('\u{1e}')
            .filter(|ran| !ran.is_empty())
        {
            seen += 1;
            let words: Vec<&str> = ran.split('\u{1f}').collect();
            let words = &words[..words.len() - 1];
            let fits = listed.iter().any(|(name, all)| match all {
                Some(all) => all == words,
                None => name == words[0],
            });
            assert!(
                fits,
                "{command:?} ran {words:?}, and only {listed:?} was listed"
            );
        }
    }
    assert!(seen > AT_ONCE, "bash ran only {seen} commands");
}

/// Runs each command in a bash of its own; returns what each one ran.
fn run<'a>(commands: impl Iterator<Item = &'a str>) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    fs::create_dir(&work).unwrap();
    for path in [dir.path(), &work] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    // Limits that a child inherits: processes, seconds of CPU, size of files.
    let outer = r#"
        ulimit -u 2000 -t 30 -f 20000 || exit 3
        i=0
        while IFS= read -r -d '' command; do
            LOG="../log.$i" bash --noprofile --norc -c "$command" </dev/null >/dev/null 2>&1
            i=$((i + 1))
        done
    "#;
    let mut spawn = Command::new("bash");
    spawn
        .args(["--noprofile", "--norc", "-c", outer])
        .current_dir(&work)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", &work)
        .env(
            "BASH_FUNC_command_not_found_handle%%",
            // One write for each command: those of a pipeline run at once.
            "() { local IFS=$'\\037'; printf '%s\\037\\036' \"$*\" >> \"$LOG\"; }",
        )
        .stdin(Stdio::piped())
        .process_group(0);
    if nix::unistd::geteuid().is_root() {
        // The limit on processes does not hold for root.
        spawn.uid(65_534).gid(65_534);
    }
    let mut child = spawn.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut text = Vec::new();
    let mut count = 0;
    for command in commands {
        text.extend_from_slice(command.as_bytes());
        text.push(0);
        count += 1;
    }
    let feeder = std::thread::spawn(move || input.write_all(&text));
    let deadline = Instant::now() + Duration::from_secs(90);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            let group = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
            nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL).unwrap();
            child.wait().unwrap();
            panic!("the commands did not end in time");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{status}");
    feeder.join().unwrap().unwrap();
    (0..count)
        .map(|index| {
            fs::read_to_string(dir.path().join(format!("log.{index}"))).unwrap_or_default()
        })
        .collect()
}
