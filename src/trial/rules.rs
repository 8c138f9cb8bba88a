//! Git's rules about ignored files, in a workspace and above it.

use std::io;
use std::path::Path;

use crate::tool::files::ignore_rules::{self, IgnoreRules};
use co_exec::beneath::{Dir, Kind, Node};

/// The rules of ignored files that hold in a directory.
#[derive(Clone)]
pub(super) struct Rules {
    /// For what the workspace has: those of the workspace.
    pub(super) old: IgnoreRules,
    /// For other files: those that a trial sees or left.
    new: IgnoreRules,
}

impl Rules {
    /// Returns those that hold above a workspace.
    pub(super) fn above(root: &Path) -> Self {
        let above = IgnoreRules::above(root);
        Self {
            old: above.clone(),
            new: above,
        }
    }

    /// Returns those in the directory `dir`, a whole path. `was_dir` is true if the workspace has it. `layers` are the same
    /// directory in layers, the uppermost first, which may hide that of the workspace.
    pub(super) fn below(&self, dir: &Path, was_dir: bool, layers: &[&Dir], merged: bool) -> Self {
        let old = |name: &Path| ignore_rules::text(&dir.join(name)).filter(|_| was_dir);
        let new = |name: &Path| {
            // Changes of `.git` are dropped.
            if name.components().count() > 1 {
                return old(name);
            }
            match first_of(layers, name) {
                Ok(None) if merged => old(name),
                Ok(Some((layer, node))) if node.kind == Kind::File => {
                    layer.read(name, ignore_rules::MOST_BYTES).ok()
                }
                _ => None,
            }
        };
        Self {
            old: self.old.below(dir, old),
            new: self.new.below(dir, new),
        }
    }

    /// Returns whether they name the file `whole`, which is `old` in the workspace and `new` in the layer.
    pub(super) fn ignore(&self, whole: &Path, old: Option<Node>, new: Node) -> bool {
        match old {
            Some(old) => self.old.ignore(whole, old.kind == Kind::Dir),
            None => self.new.ignore(whole, new.kind == Kind::Dir),
        }
    }
}

/// Returns whether a new directory ignores all in it, as the caches of many tools do. Git then shows no change. `layers` are as for
/// [`Rules::below`].
pub(super) fn ignores_all(layers: &[&Dir]) -> bool {
    let name = Path::new(".gitignore");
    let text = match first_of(layers, name) {
        Ok(Some((layer, node))) if node.kind == Kind::File => layer
            .read(name, ignore_rules::MOST_BYTES)
            .unwrap_or_default(),
        _ => return false,
    };
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut rules = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    rules.next() == Some(b"*") && rules.next().is_none()
}

/// Returns the first of these directories that has a file, with the facts about it.
fn first_of<'a>(layers: &[&'a Dir], name: &Path) -> io::Result<Option<(&'a Dir, Node)>> {
    for layer in layers {
        if let Some(node) = layer.node(name)? {
            return Ok(Some((layer, node)));
        }
    }
    Ok(None)
}
