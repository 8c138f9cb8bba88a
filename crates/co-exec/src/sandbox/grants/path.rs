//! Finds the readable paths of the tools on PATH: the directories of PATH, the targets of the symbolic links in them, and the
//! roots of the tools.
//!
//! The root of a tool is the parent of its `bin`. A root that may contain more than the tool is not granted.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::place_pattern::expand;
use super::real_paths::RealPaths;
use crate::places::home::toolchains;
use crate::places::system;

/// The names of directories in a tool's root that contain programs.
const PROGRAMS: [&str; 3] = ["bin", "sbin", "shims"];

/// The name of the directory in which programs keep files for one person.
const LOCAL: &str = ".local";

/// The parent of most home directories, including those that `/etc/passwd` does not list.
const HOMES: &str = "/home";

/// The directories that co must know to decide which paths it may grant for a tool.
pub(super) struct KnownPlaces<'a> {
    pub home: &'a Path,
    pub workspace: &'a Path,
    /// The homes of the known toolchains. Only certain paths in them are readable.
    pub tools: &'a [PathBuf],
}

/// Returns the readable paths for the tools in these directories of PATH. Adds the directories that were listed during the search
/// to `listed`.
pub(super) fn places<'a>(
    dirs: impl Iterator<Item = &'a Path>,
    surroundings: &KnownPlaces<'_>,
    (real_paths, listed): (&mut RealPaths, &mut Vec<PathBuf>),
) -> Vec<PathBuf> {
    // Several names may lead to one directory, such as `/bin` and `/usr/bin`.
    let mut dirs: Vec<_> = dirs.filter_map(|dir| real_paths.find(dir)).collect();
    let mut seen = HashSet::new();
    dirs.retain(|dir| seen.insert(dir.clone()));
    let mut found = FoundTools {
        surroundings,
        homes: homes(),
        places: Vec::new(),
        real_paths,
        listed,
    };
    for dir in dirs {
        if !surroundings.workspace.starts_with(&dir) && !dir.starts_with(surroundings.workspace) {
            found.directory(&dir);
        }
    }
    found.places
}

/// Returns true if a directory seems to contain only a tool, judging by its path. It must not be a directory that other programs
/// use too, a hidden directory in the home directory, or the home of a known toolchain. Known toolchains have their own list of
/// readable paths. Both arguments must be canonical paths.
pub fn is_tool_directory(dir: &Path, home: &Path) -> bool {
    let mut real_paths = RealPaths::default();
    let tools = toolchains().flat_map(|it| it.homes());
    let tools: Vec<_> = tools
        .filter_map(|name| real_paths.find(&home.join(name)))
        .collect();
    let surroundings = KnownPlaces {
        home,
        workspace: home,
        tools: &tools,
    };
    let hidden = dir.parent() == Some(home) && is_hidden(dir);
    !hidden && surroundings.is_tool(dir, &homes())
}

impl KnownPlaces<'_> {
    /// Returns true if a directory seems to contain only a tool, judging by its path. `homes` are the home directories on the
    /// machine.
    fn is_tool(&self, dir: &Path, homes: &[PathBuf]) -> bool {
        let holds = |paths: &[PathBuf]| paths.iter().any(|path| path.starts_with(dir));
        let top = dir.components().count() <= 2;
        let home = dir.parent() == Some(Path::new(HOMES)) || dir.ends_with(LOCAL);
        !top && !home && !holds(homes) && !holds(self.tools) && !self.workspace.starts_with(dir)
    }
}

struct FoundTools<'a> {
    surroundings: &'a KnownPlaces<'a>,
    /// The home directories on the machine.
    homes: Vec<PathBuf>,
    places: Vec<PathBuf>,
    real_paths: &'a mut RealPaths,
    listed: &'a mut Vec<PathBuf>,
}

impl FoundTools<'_> {
    /// Adds a directory of PATH, and the targets of its symbolic links.
    fn directory(&mut self, dir: &Path) {
        let home = self.surroundings.home;
        if home.starts_with(dir) {
            return;
        }
        self.listed.push(dir.to_owned());
        let hidden = dir.parent() == Some(home) && is_hidden(dir);
        if self.is_tool(dir) && !hidden {
            self.places.push(dir.to_owned());
            self.root(dir);
        } else if !is_system(dir) {
            self.places.extend(programs(dir));
        }
        for entry in dir.read_dir().into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                self.link(&entry.path(), dir);
            }
        }
    }

    /// Adds the program to which a symbolic link in `dir` leads, and the tool of the program.
    fn link(&mut self, link: &Path, dir: &Path) {
        let target = link.read_link().unwrap_or_default();
        // Most links name a neighbour.
        if target.components().count() == 1 {
            return;
        }
        let Some(real) = self.real_paths.find(link) else {
            return;
        };
        let Some(place) = real.parent().filter(|place| *place != dir) else {
            return;
        };
        if is_system(&real) || real.starts_with(self.surroundings.workspace) {
            return;
        }
        self.places.push(real.clone());
        if self.is_tool(place) && !place.starts_with(self.surroundings.home) {
            self.places.push(place.to_owned());
        }
        self.root(place);
    }

    /// Adds the root above a directory of programs. If the root belongs to a known toolchain, adds only the toolchain's readable
    /// paths.
    fn root(&mut self, dir: &Path) {
        let named = |name: &std::ffi::OsStr| PROGRAMS.iter().any(|it| name == *it);
        let Some(root) = dir.parent().filter(|_| dir.file_name().is_some_and(named)) else {
            return;
        };
        let home = self.surroundings.home;
        let hidden = |root: &Path| {
            let below = root.strip_prefix(home).ok();
            below.is_some_and(|below| below.iter().any(|part| is_hidden(Path::new(part))))
        };
        let known = toolchains().find(|tool| {
            let mut homes = tool.homes();
            homes.any(|home| home != "." && home.starts_with('.') && root.ends_with(home))
        });
        match known {
            Some(tool) => {
                for place in tool.places() {
                    expand(root, place, &mut self.places, self.listed);
                }
            }
            None if self.is_tool(root) && !hidden(root) => self.places.push(root.to_owned()),
            None => {}
        }
    }

    fn is_tool(&self, dir: &Path) -> bool {
        self.surroundings.is_tool(dir, &self.homes)
    }
}

/// Returns true if a path is in a system directory that every command may read.
fn is_system(path: &Path) -> bool {
    system::readable().any(|place| path.starts_with(place))
}

fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Returns the home directories of root and of all persons in `/etc/passwd`.
fn homes() -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let home = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, user, _, _, home, ..] = fields[..] else {
            return None;
        };
        let user: u32 = user.parse().ok()?;
        (user == 0 || user >= 1000).then(|| PathBuf::from(home))
    };
    text.lines().filter_map(home).collect()
}

/// Returns the programs in a directory that also contains other files, such as `~/.dotnet`.
fn programs(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = dir.read_dir().into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        let meta = path.metadata();
        meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    })
}
