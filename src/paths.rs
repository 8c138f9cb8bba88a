//! The directories of co: the configuration, the state and the data of one person.
//!
//! They do not depend on `NVIM_APPNAME`, so a chat that was started under one configuration of Neovim can be resumed under
//! another. Each directory is made at its first use, and only its owner can read it.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use sha2::{Digest, Sha256};

/// The name of co's directory in each of the person's base directories.
const NAME: &str = "co-nvim";

/// The base directories for co's files, and the person's home directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The directory of `config.toml`, which the person writes.
    pub config: PathBuf,
    /// The directory for files that can be lost without harm: the log, spill files, and answers that co would ask for again.
    pub state: PathBuf,
    /// The directory for files that the person wants to keep, such as transcripts and saved rules.
    pub data: PathBuf,
    /// The person's home directory, from `HOME` or else from the user database.
    pub home: PathBuf,
}

/// The reason why a directory cannot be found or made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no home directory is known; set HOME to an absolute path")]
    NoHome,
    /// A path is not UTF-8. co cannot use it, because it sends paths to Neovim as text.
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
    /// Returns the error for a directory in which co cannot write.
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
    /// Finds the directories. Uses `XDG_*_HOME` if it is an absolute path, and otherwise the default of the platform.
    ///
    /// # Errors
    /// A directory is unknown, or its path is not UTF-8.
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

    /// Returns co's own directories. Commands that run without approval cannot read them.
    pub fn own(&self) -> Vec<PathBuf> {
        vec![self.config.clone(), self.state.clone(), self.data.clone()]
    }

    /// Returns the path of the person's settings file. The file may not exist.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Returns the path of the log file, and makes its directory.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn log_file(&self) -> Result<PathBuf, Error> {
        private_dir(&self.state)?;
        Ok(self.state.join("co.log"))
    }

    /// Returns the directory for spill files, and makes it.
    ///
    /// # Errors
    /// The directory cannot be made, or is not writable.
    pub fn spill_dir(&self) -> Result<PathBuf, Error> {
        let path = made(self.state.join("output"))?;
        match rustix::fs::access(&path, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => Ok(path),
            Err(error) => Err(Error::write(&path, error.into())),
        }
    }

    /// Returns the directory for checkpoints. The first checkpoint makes it.
    pub fn checkpoints(&self) -> PathBuf {
        self.state.join("checkpoints")
    }

    /// Returns the directory for the layers of trials. The first trial makes it.
    pub fn layers(&self) -> PathBuf {
        self.state.join("trials")
    }

    /// Returns the directory that contains the private directories of all agents. The first agent makes it.
    pub fn agents(&self) -> PathBuf {
        self.data.join("agents")
    }

    /// Returns the directory that contains the home directories of all tool servers. A server's first start makes its home
    /// directory.
    pub fn servers(&self) -> PathBuf {
        self.state.join("servers")
    }

    /// Returns the directory of the logins at tool servers, which the first login makes.
    pub fn logins(&self) -> PathBuf {
        self.state.join("logins")
    }

    /// Returns the directory for the sockets through which commands open files in Neovim. The first socket makes it.
    pub fn editors(&self) -> PathBuf {
        self.state.join("editors")
    }

    /// Returns the directory for transcripts, and makes it.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn chats_dir(&self) -> Result<PathBuf, Error> {
        made(self.data.join("chats"))
    }

    /// Returns the directory for saved rules, and makes it.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn rules_dir(&self) -> Result<PathBuf, Error> {
        made(self.data.join("rules"))
    }

    /// Returns the directory for the person's answers about trust in files, and makes it.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn trust_dir(&self) -> Result<PathBuf, Error> {
        made(self.trust())
    }

    /// Returns the directory for the person's answers about trust in files. The directory may not exist.
    pub fn trust(&self) -> PathBuf {
        self.state.join("trust")
    }
}

fn made(path: PathBuf) -> Result<PathBuf, Error> {
    private_dir(&path)?;
    Ok(path)
}

/// Returns the name for a workspace's files and directories in co's directories: 16 hexadecimal digits that identify the
/// workspace.
pub fn workspace_name(workspace: &Path) -> String {
    let digest = Sha256::digest(workspace.as_os_str().as_encoded_bytes());
    let digits = format!("{digest:x}");
    digits.chars().take(16).collect()
}

/// Makes the directory `path` and its missing parents with mode 0700. If `path` exists, it gets this mode too.
///
/// # Errors
/// The directory cannot be made, or belongs to another user.
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
