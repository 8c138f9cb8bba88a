//! The command `co-nvim edit`: changes a file in the same way as the model's edit tools after approval.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::{Arg::*, Parser};
use serde_json::json;

use super::common;
use super::setup::Setup;
use crate::buffers::OpenBuffers;
use crate::tool::edit;
use crate::workspace::edits::{Proposal, SeenTexts, propose};

const USAGE: &str = r#"usage: co-nvim edit [--cwd DIR] [--dry-run] [--json]
Reads one call of a tool from standard input, in JSON, changes the file as co would after your yes,
and prints the unified diff. The call is one of these:
  {"name": "edit_file", "arguments": {"path": PATH, "edits": [{"old": TEXT, "new": TEXT, "all": false}]}}
  {"name": "write_file", "arguments": {"path": PATH, "text": TEXT}}
  {"name": "delete_file", "arguments": {"path": PATH}}
  {"name": "move_file", "arguments": {"from": PATH, "to": PATH}}
The arguments alone suffice for every tool but delete_file. Each `old` must stand exactly once in the
file, unless `all` is true.
  --cwd DIR   the directory of the files, instead of here; files outside of it are refused
  --dry-run   changes nothing
  --json      prints an object: path, diff, added, removed, hash of the new text, notes
Where it refuses, it writes nothing, says why on standard error and exits with 1.
"#;

#[derive(Default)]
struct EditArguments {
    cwd: Option<PathBuf>,
    dry_run: bool,
    json: bool,
}

/// Runs `edit` with its arguments.
pub(super) fn run(args: Vec<OsString>, setup: Setup) -> ExitCode {
    let arguments = match parse(args) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return common::print(USAGE),
        Err(why) => {
            crate::logging::fatal(&format!("{why}\n{USAGE}"));
            return ExitCode::from(2);
        }
    };
    match change(&arguments, setup) {
        Ok(proposal) => print(&proposal, arguments.json),
        Err(why) => common::failed(&why),
    }
}

fn parse(args: Vec<OsString>) -> Result<Option<EditArguments>, String> {
    let mut arguments = EditArguments::default();
    let mut parser = Parser::from_args(args);
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        match arg {
            Short('h') | Long("help") => return Ok(None),
            Long("dry-run") => arguments.dry_run = true,
            Long("json") => arguments.json = true,
            Long("cwd") => {
                let dir = parser.value().map_err(|_| "--cwd lacks its directory")?;
                arguments.cwd = Some(dir.into());
            }
            Short(letter) => return Err(format!("edit has no option -{letter}")),
            Long(name) => return Err(format!("edit has no option --{name}")),
            Value(_) => return Err("edit reads its request from standard input".to_owned()),
        }
    }
    Ok(Some(arguments))
}

/// Reads the request and changes the file.
fn change(arguments: &EditArguments, setup: Setup) -> Result<Proposal, String> {
    let cwd = common::real_directory(arguments.cwd.as_deref().unwrap_or(Path::new(".")))?;
    let mut text = String::new();
    let read = io::stdin().lock().read_to_string(&mut text);
    read.map_err(|error| format!("standard input cannot be read: {error}"))?;
    let request = edit::from_json(&text).map_err(|error| error.to_string())?;
    let judge = setup.judge(cwd.clone());
    let places = judge.edit_places(&request, &cwd);
    let places = places.map_err(|error| error.to_string())?;
    let proposal = propose(
        &request,
        &places,
        &OpenBuffers::new(),
        &SeenTexts::default(),
    )
    .map_err(|error| error.to_string())?;
    if !arguments.dry_run {
        proposal
            .apply_to_disk()
            .map_err(|error| error.to_string())?;
    }
    Ok(proposal)
}

fn print(proposal: &Proposal, as_json: bool) -> ExitCode {
    if as_json {
        let object = json!({
            "path": proposal.path,
            "diff": proposal.diff,
            "added": proposal.added(),
            "removed": proposal.removed(),
            "hash": proposal.hash(),
            "notes": proposal.notes,
        });
        return common::print(&format!("{object}\n"));
    }
    for note in &proposal.notes {
        let _shown = writeln!(io::stderr(), "{note}");
    }
    common::print(&proposal.diff)
}
