//! The few commands that run unasked even if the kernel cannot confine them.

use crate::facts::{FileKind, LocalFacts, ProgramFact};
use crate::plain;
use crate::secret_names::secret;

/// A program, its options that take no file, and whether its operands are files.
struct AllowedProgram {
    name: &'static str,
    /// Letters that may stand behind one dash. A digit stands for any number.
    letters: &'static str,
    long: &'static [&'static str],
    operands: Operands,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// Files or directories that the command lists.
    Names,
    /// Regular files, which it reads.
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

/// True if a command may run unasked and unconfined: one literal simple command of a known program, whose files are in the
/// workspace and no secrets.
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

/// True for a file of the workspace that is no secret.
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
