//! Prints the verdict about a command: `cargo run -p co-policy --example check -- 'ls -l | head'`.
//!
//! The working directory is the workspace. `src/tool/facts.rs` of co-nvim collects the facts more completely.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::path::{Path, PathBuf};

use co_policy::facts::{Facts, FileKind, PathFact, ProgramFact, WorkspacePath};
use co_policy::{Grant, Rules, Verdict, paths};

/// Facts about a workspace. They are read from the disk without a cache.
struct SimpleFacts {
    workspace: PathBuf,
}

impl SimpleFacts {
    fn relative(&self, path: &Path) -> Option<PathBuf> {
        path.strip_prefix(&self.workspace).ok().map(Path::to_owned)
    }
}

impl Facts for SimpleFacts {
    fn program(&self, name: &str, _: &Path) -> ProgramFact {
        let mut paths = ["/usr/bin", "/bin"]
            .map(|dir| Path::new(dir).join(name))
            .into_iter();
        paths
            .find(|path| path.is_file())
            .map_or(ProgramFact::Missing, ProgramFact::Trusted)
    }

    fn path(&self, cwd: &Path, path: &str) -> PathFact {
        let absolute = paths::normalize_lexically(&cwd.join(path));
        // A file that does not exist has no links, but its directory may have some.
        let real = absolute
            .canonicalize()
            .or_else(|error| match absolute.parent() {
                Some(dir) => Ok(dir
                    .canonicalize()?
                    .join(absolute.file_name().unwrap_or_default())),
                None => Err(error),
            });
        let inside = real.ok().and_then(|real| {
            Some(WorkspacePath {
                written: self.relative(&absolute)?,
                real: self.relative(&real)?,
            })
        });
        let kind = match absolute.metadata() {
            Ok(meta) if meta.is_file() => FileKind::File,
            Ok(meta) if meta.is_dir() => FileKind::Directory,
            Ok(_) => FileKind::Special,
            Err(_) => FileKind::Missing,
        };
        let home = std::env::home_dir();
        PathFact {
            inside,
            kind,
            readable: absolute.starts_with("/usr"),
            secret: false,
            co_file: false,
            holds_co_files: false,
            home: home.is_some_and(|home| home.starts_with(&absolute)),
            absolute,
        }
    }
}

fn main() -> std::io::Result<()> {
    let command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    let workspace = std::env::current_dir()?.canonicalize()?;
    let facts = SimpleFacts { workspace };
    let assessment = co_policy::assess(&command, &facts.workspace, &facts);
    match co_policy::decide(&assessment, &Rules::default(), &[]) {
        Verdict::Allow(Grant::ReadOnly) => println!("allow at the read-only level"),
        Verdict::Allow(_) => println!("allow"),
        Verdict::Ask(question) => {
            println!("ask");
            for reason in question.reasons {
                let part = reason.span.map_or(command.as_str(), |span| &command[span]);
                println!("- {} (in `{part}`)", reason.text);
            }
        }
        Verdict::Deny { why, rule } => println!("deny by the rule `{rule}`: {why}"),
    }
    Ok(())
}
