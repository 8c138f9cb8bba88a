//! Prints the verdict about a command: `cargo run -p co-policy --example check -- 'ls -l | head'`.
//!
//! The working directory is the workspace. The facts are simple: globs, git and secret contents are unknown, so that
//! commands with them require approval. `src/tool/facts.rs` of co-nvim has complete facts.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use co_policy::facts::{
    Facts, FileKind, GitFact, PathFact, ProgramFact, RiskyFiles, WorkspacePath,
};
use co_policy::{Grant, Rules, Verdict, glob::Glob, paths};

/// Facts about a workspace, read from the disk without a cache.
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
            enterable: kind == FileKind::Directory,
            secret: false,
            co_file: false,
            holds_co_files: false,
            home: home.is_some_and(|home| home.starts_with(&absolute)),
            absolute,
        }
    }

    fn glob(&self, _: &Path, _: &Glob) -> Option<Vec<String>> {
        None
    }

    fn git(&self, _: &Path) -> GitFact {
        GitFact {
            hazards: vec!["this example does not check repositories".to_owned()],
        }
    }

    fn find_upward(&self, cwd: &Path, names: &[&str]) -> Option<PathBuf> {
        let dirs = cwd
            .ancestors()
            .take_while(|dir| dir.starts_with(&self.workspace));
        let mut paths = dirs.flat_map(|dir| names.iter().map(|name| dir.join(name)));
        paths.find(|path| path.exists())
    }

    fn risky_files(&self, _: &Path) -> RiskyFiles {
        RiskyFiles::default()
    }

    fn risky_tracked_files(&self, _: &Path) -> RiskyFiles {
        RiskyFiles::default()
    }

    fn committed_secrets(&self, _: &Path) -> Option<Arc<[PathBuf]>> {
        None
    }
}

fn main() -> std::io::Result<()> {
    let command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    let workspace = std::env::current_dir()?.canonicalize()?;
    let facts = SimpleFacts { workspace };
    let assessment = co_policy::assess(&command, &facts.workspace, &facts);
    match co_policy::decide(&assessment, &Rules::default(), &[]) {
        Verdict::Allow(Grant::Proof(proved)) => println!("allow: proved\n{}", proved.script()),
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
