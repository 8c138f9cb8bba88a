//! The few commands that run without approval even if the kernel cannot confine them.

use crate::facts::{FileKind, LocalFacts, ProgramFact};
use crate::plain;
use crate::secret_names::secret;

/// A program that may run unconfined: its name, its allowed options, and the kind of its operands. None of the options takes a
/// file.
struct AllowedProgram {
    name: &'static str,
    /// The allowed one-letter options. `0` stands for any digit.
    letters: &'static str,
    long: &'static [&'static str],
    operands: Operands,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// Files or directories. The command reads only their names and properties.
    Names,
    /// Regular files. The command reads their contents.
    Files,
    Text,
    Nothing,
}

const fn allowed(
    name: &'static str,
    letters: &'static str,
    long: &'static [&'static str],
    operands: Operands,
) -> AllowedProgram {
    AllowedProgram {
        name,
        letters,
        long,
        operands,
    }
}

const ALLOWED: [AllowedProgram; 18] = [
    allowed(
        "ls",
        "aAdFhlrRsSt1",
        &["--all", "--recursive"],
        Operands::Names,
    ),
    allowed("stat", "", &[], Operands::Names),
    allowed("du", "ahsc", &[], Operands::Names),
    allowed("df", "hTi", &[], Operands::Names),
    allowed("realpath", "e", &[], Operands::Names),
    allowed("cat", "nbsAETv", &["--number"], Operands::Files),
    allowed("head", "nc0", &[], Operands::Files),
    allowed("wc", "lwcm", &["--lines", "--words"], Operands::Files),
    allowed("cut", "dfc0", &[], Operands::Files),
    allowed("basename", "", &[], Operands::Text),
    allowed("dirname", "", &[], Operands::Text),
    allowed("echo", "ne", &[], Operands::Text),
    allowed("printf", "", &[], Operands::Text),
    allowed("tr", "dsc", &[], Operands::Text),
    allowed("pwd", "LP", &[], Operands::Nothing),
    allowed("uname", "asrmno", &["--all"], Operands::Nothing),
    allowed("id", "ugn", &[], Operands::Nothing),
    allowed("whoami", "", &[], Operands::Nothing),
];

/// Returns true if a command may run without approval and unconfined. It must be a single simple command of literal words. Its
/// program must be in the list, and its files must be in the workspace and must not be secret.
pub(crate) fn may_run(command: &str, local: &LocalFacts) -> bool {
    let bare = !command.contains(['>', '|', '&', ';', '\n']);
    match plain::commands(command).as_deref() {
        Some([words]) if bare => words_may_run(words, local),
        _ => false,
    }
}

fn words_may_run(words: &[String], local: &LocalFacts) -> bool {
    let Some((name, rest)) = words.split_first() else {
        return false;
    };
    let Some(allowed) = ALLOWED.iter().find(|it| it.name == name) else {
        return false;
    };
    let here = local.path(".").inside.is_some();
    let trusted = matches!(local.program(name), ProgramFact::Trusted(_));
    here && trusted && rest.iter().all(|word| allowed.takes(word, local))
}

impl AllowedProgram {
    fn takes(&self, word: &str, local: &LocalFacts) -> bool {
        if let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            let known = |c: char| {
                self.letters
                    .contains(if c.is_ascii_digit() { '0' } else { c })
            };
            return self.long.contains(&word) || letters.chars().all(known);
        }
        let number = word.bytes().all(|b| b.is_ascii_digit());
        match self.operands {
            Operands::Text => true,
            Operands::Nothing => false,
            Operands::Files if number && self.letters.contains('0') => true,
            Operands::Names => is_open(local, word, true),
            Operands::Files => is_open(local, word, false),
        }
    }
}

/// Returns true if a path is a file in the workspace that is not secret. If `directories` is true, it may be a directory.
fn is_open(local: &LocalFacts, path: &str, directories: bool) -> bool {
    let fact = local.path(path);
    let Some(inside) = fact.inside else {
        return false;
    };
    let kind = match fact.kind {
        // A missing file is an error message.
        FileKind::File | FileKind::Missing => true,
        FileKind::Directory => directories,
        FileKind::Special => false,
    };
    kind && !fact.secret && secret(&inside.written).is_none() && secret(&inside.real).is_none()
}
