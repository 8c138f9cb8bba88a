//! The directories of co: configuration, state and data of one person.
//!
//! They do not depend on `NVIM_APPNAME`: a chat that was started under one configuration of Neovim can be resumed under
//! another. Each directory is made, readable by its owner alone, when it is first asked for.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use sha2::{Digest, Sha256};

/// The name of co's directory below each of the person's base directories.
const NAME: &str = "co-nvim";

/// The base directories of co's files, and the person's home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The directory of `config.toml`, which the person writes.
    pub config: PathBuf,
    /// The directory of files that may be lost without harm: the log, spill files, answers that co would ask for again.
    pub state: PathBuf,
    /// The directory of files that the person wants kept: transcripts, saved rules.
    pub data: PathBuf,
    /// The person's home directory, from `HOME`, else from the user database.
    pub home: PathBuf,
}

/// A directory could not be found or made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no home directory is known; set HOME to an absolute path")]
    NoHome,
    /// A path is not UTF-8. co sends paths to Neovim as text, so they must be UTF-8.
    #[error("the directory {path} is not UTF-8; set {variable} to one that is")]
    NotText { path: PathBuf, variable: String },
    #[error("cannot make the directory {path}: {source}; check who owns it and its parent")]
    Create { path: PathBuf, source: io::Error },
    #[error(
        "cannot write in {path}: {source}; check who owns it, and that its disk has room and is mounted for writing"
    )]
    Write { path: PathBuf, source: io::Error },
}

impl Error {
    /// Returns the error about a directory in which co cannot write.
    pub fn write(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Write { path, source }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Create { source, .. } | Error::Write { source, .. } => source.kind(),
            Error::NoHome | Error::NotText { .. } => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

impl Paths {
    /// Finds the directories: `XDG_*_HOME` if `env` has an absolute one, else the platform's default.
    ///
    /// # Errors
    /// No directory is known, or its name is not UTF-8.
    pub fn discover(env: &dyn Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let platform = directories::ProjectDirs::from("", "", NAME);
        let place = |variable: &str, of: fn(&directories::ProjectDirs) -> PathBuf| {
            let path = env(variable)
                .map(PathBuf::from)
                .filter(|given| given.is_absolute())
                .map(|given| given.join(NAME))
                .or_else(|| platform.as_ref().map(of).filter(|dir| dir.is_absolute()))
                .ok_or(Error::NoHome)?;
            match path.to_str() {
                Some(_) => Ok(path),
                None => Err(Error::NotText {
                    path,
                    variable: variable.to_owned(),
                }),
            }
        };
        Ok(Self {
            config: place("XDG_CONFIG_HOME", |dirs| dirs.config_dir().into())?,
            state: place("XDG_STATE_HOME", |dirs| {
                dirs.state_dir()
                    .map_or_else(|| dirs.data_local_dir().join("state"), Into::into)
            })?,
            data: place("XDG_DATA_HOME", |dirs| dirs.data_dir().into())?,
            home: env("HOME")
                .map(PathBuf::from)
                .filter(|given| given.is_absolute())
                .or_else(home_of_the_user)
                .ok_or(Error::NoHome)?,
        })
    }

    /// Returns co's own directories, which no command reads unasked.
    pub fn own(&self) -> Vec<PathBuf> {
        vec![self.config.clone(), self.state.clone(), self.data.clone()]
    }

    /// Returns the file of the person's settings, which may not exist.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Returns the log's file, and makes its directory.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn log_file(&self) -> Result<PathBuf, Error> {
        private_dir(&self.state)?;
        Ok(self.state.join("co.log"))
    }

    /// Returns the directory of spill files, and makes it.
    ///
    /// # Errors
    /// The directory cannot be made or written.
    pub fn spill_dir(&self) -> Result<PathBuf, Error> {
        let path = made(self.state.join("output"))?;
        match rustix::fs::access(&path, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => Ok(path),
            Err(error) => Err(Error::write(&path, error.into())),
        }
    }

    /// Returns the directory of checkpoints, which the first checkpoint makes.
    pub fn checkpoints(&self) -> PathBuf {
        self.state.join("checkpoints")
    }

    /// Returns the directory of the layers of trials, which the first trial makes.
    pub fn layers(&self) -> PathBuf {
        self.state.join("trials")
    }

    /// Returns the parent of the directories of all agents, which the first agent makes.
    pub fn agents(&self) -> PathBuf {
        self.data.join("agents")
    }

    /// Returns the parent of the homes of all tool servers, each of which is made by the first start of its server.
    pub fn servers(&self) -> PathBuf {
        self.state.join("servers")
    }

    /// Returns the directory of the sockets of editors, which the first socket makes.
    pub fn editors(&self) -> PathBuf {
        self.state.join("editors")
    }

    /// Returns the directory of transcripts, and makes it.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn chats_dir(&self) -> Result<PathBuf, Error> {
        made(self.data.join("chats"))
    }

    /// Returns the directory of saved rules, and makes it.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn rules_dir(&self) -> Result<PathBuf, Error> {
        made(self.data.join("rules"))
    }

    /// Returns the directory of the person's answers about trust in files, and makes it.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn trust_dir(&self) -> Result<PathBuf, Error> {
        made(self.trust())
    }

    /// Returns the directory of the answers about files of workspaces, which may not exist.
    pub fn trust(&self) -> PathBuf {
        self.state.join("trust")
    }
}

fn made(path: PathBuf) -> Result<PathBuf, Error> {
    private_dir(&path)?;
    Ok(path)
}

/// Returns the name of a workspace's file or directory among those of all workspaces: 16 hexadecimal digits.
pub fn workspace_name(workspace: &Path) -> String {
    let digest = Sha256::digest(workspace.as_os_str().as_encoded_bytes());
    let digits = format!("{digest:x}");
    digits.chars().take(16).collect()
}

/// Makes the directory `path` and its missing parents with mode 0700. An existing directory gets that mode too.
///
/// # Errors
/// The directory cannot be made, or belongs to somebody else.
pub fn private_dir(path: &Path) -> Result<(), Error> {
    let make = || {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(path, Permissions::from_mode(0o700))?;
        }
        Ok(())
    };
    make().map_err(|source| Error::Create {
        path: path.to_owned(),
        source,
    })
}

/// Returns the home directory in the user database.
fn home_of_the_user() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid()).ok()??;
    Some(user.dir).filter(|dir| dir.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn below(root: &Path) -> Paths {
        let root = root.to_str().unwrap().to_owned();
        Paths::discover(&|name| {
            let kind = name.strip_prefix("XDG_")?.strip_suffix("_HOME")?;
            Some(format!("{root}/{}", kind.to_lowercase()))
        })
        .unwrap()
    }

    #[test]
    fn the_environment_names_the_places() {
        let paths = below(Path::new("/r"));
        assert_eq!(
            paths.config_file(),
            Path::new("/r/config/co-nvim/config.toml")
        );
        assert_eq!(paths.state, Path::new("/r/state/co-nvim"));
        assert_eq!(paths.data, Path::new("/r/data/co-nvim"));
    }

    #[test]
    fn a_relative_place_is_ignored() {
        let relative = Paths::discover(&|_| Some("here".into())).unwrap();
        assert_eq!(relative, Paths::discover(&|_| None).unwrap());
        assert!(relative.config.is_absolute());
        assert_eq!(Some(relative.home), home_of_the_user());
    }

    #[test]
    fn directories_are_their_owners_alone() {
        let root = tempfile::tempdir().unwrap();
        let paths = below(root.path());
        for made in [
            paths.spill_dir().unwrap(),
            paths.chats_dir().unwrap(),
            paths.rules_dir().unwrap(),
            paths.trust_dir().unwrap(),
            paths.log_file().unwrap().parent().unwrap().to_owned(),
        ] {
            assert_eq!(mode(&made), 0o700, "{}", made.display());
        }
    }

    #[test]
    fn an_open_directory_is_closed() {
        let root = tempfile::tempdir().unwrap();
        let open = root.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        private_dir(&open).unwrap();
        assert_eq!(mode(&open), 0o700);
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let told = private_dir(&file.join("below")).unwrap_err().to_string();
        assert!(told.contains(file.to_str().unwrap()), "{told}");
    }
}
