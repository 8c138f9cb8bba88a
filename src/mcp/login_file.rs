//! The files that keep the logins at servers over HTTP.
//!
//! A login is for the name and the address of a server. Its file is in co's own directory, which no command reads unasked.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::environment::ServerSecrets;
use crate::blocking::blocking;
use crate::config::McpServerSettings;
use crate::paths::workspace_name;
use crate::shared_file;
use co_mcp::{KeptLogin, LoginStore};

/// The name of the file.
const FILE: &str = "login.json";

/// The longest wait for another Neovim that renews the login: its request has a time-out.
const LOCK_TIMEOUT: Duration = Duration::from_secs(40);

/// The file of the login at one server.
pub struct LoginFile {
    directory: PathBuf,
    url: String,
    /// Gets all secrets that are read or written.
    secrets: ServerSecrets,
}

impl LoginFile {
    /// Returns the file of a server over HTTP, below the directory of all logins; none for another server. A server that a file of a
    /// workspace names does not use the login at one of the person.
    pub fn new(
        logins: &Path,
        settings: &McpServerSettings,
        workspace: &Path,
        secrets: ServerSecrets,
    ) -> Option<Self> {
        let url = settings.http()?.url.clone();
        let name = match settings.of_workspace {
            true => format!("{}@{}", settings.name, workspace_name(workspace)),
            false => settings.name.clone(),
        };
        // The same digits as of a path: those of a digest.
        let digits = workspace_name(Path::new(&url));
        Some(Self {
            directory: logins.join(format!("{name}-{digits}")),
            url,
            secrets,
        })
    }

    fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// Reads the login. It blocks.
    ///
    /// # Errors
    /// The file cannot be read, or is none of co.
    pub fn read(&self) -> io::Result<Option<KeptLogin>> {
        let kept = read(&self.path(), &self.url)?;
        self.secrets.add(kept.iter().flat_map(KeptLogin::secrets));
        Ok(kept)
    }

    /// Removes the login. Returns true if there was one. Waits for a renewal and for a login that ends now: they would write it again.
    ///
    /// # Errors
    /// The file cannot be removed, or another Neovim holds its lock.
    pub async fn remove(&self) -> io::Result<bool> {
        let _lock = self.lock().await?;
        match fs::remove_file(self.path()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Replaces the login, when no renewal writes it, unless it was cancelled meanwhile. Returns true if it was replaced.
    ///
    /// # Errors
    /// The file cannot be written, or another Neovim holds its lock.
    pub async fn replace(&self, login: &KeptLogin, cancel: &CancellationToken) -> io::Result<bool> {
        let _lock = self.lock().await?;
        if cancel.is_cancelled() {
            return Ok(false);
        }
        self.save(login).await?;
        Ok(true)
    }
}

fn read(path: &Path, url: &str) -> io::Result<Option<KeptLogin>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // The error of the parser may have a part of the text.
    let kept: KeptLogin = serde_json::from_str(&text).map_err(|_| {
        let path = path.display();
        io::Error::new(
            ErrorKind::InvalidData,
            format!("{path} is no login of co: remove it"),
        )
    })?;
    Ok(Some(kept).filter(|it| it.server() == url))
}

#[async_trait]
impl LoginStore for LoginFile {
    async fn load(&self) -> io::Result<Option<KeptLogin>> {
        let (path, url) = (self.path(), self.url.clone());
        let kept = blocking(move || read(&path, &url)).await;
        let kept = kept.map_err(io::Error::other)?;
        self.secrets.add(kept.iter().flat_map(KeptLogin::secrets));
        Ok(kept)
    }

    async fn save(&self, login: &KeptLogin) -> io::Result<()> {
        // Before any server can say it.
        self.secrets.add(login.secrets());
        let text = serde_json::to_string(login).map_err(io::Error::other)?;
        let path = self.path();
        let write = move || {
            let directory = path.parent().unwrap_or(Path::new("."));
            crate::paths::private_dir(directory).map_err(io::Error::from)?;
            shared_file::replace(&path, &text)
        };
        blocking(write).await.map_err(io::Error::other)
    }

    async fn lock(&self) -> io::Result<Box<dyn Send>> {
        let end = Instant::now() + LOCK_TIMEOUT;
        loop {
            let directory = self.directory.clone();
            // It waits a short time itself.
            let locked = tokio::task::spawn_blocking(move || shared_file::lock(&directory));
            match locked.await.map_err(io::Error::other)? {
                Ok(lock) => return Ok(Box::new(lock)),
                Err(why) if why.kind() != ErrorKind::WouldBlock || Instant::now() >= end => {
                    return Err(why);
                }
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{HttpServer, ServerKind};

    fn settings(name: &str, url: &str, of_workspace: bool) -> McpServerSettings {
        McpServerSettings {
            name: name.to_owned(),
            kind: ServerKind::Http(HttpServer {
                url: url.to_owned(),
                ..HttpServer::default()
            }),
            of_workspace,
            ..McpServerSettings::default()
        }
    }

    fn kept(url: &str) -> KeptLogin {
        let text = json!({
            "server": url,
            "resource": url,
            "metadata": { "authorization_endpoint": "https://a/", "token_endpoint": "https://a/", "issuer": "https://a" },
            "client_id": "c",
            "client_secret": null,
            "credentials": {
                "client_id": "c",
                "token_response": { "access_token": "hunter2-the-token", "token_type": "Bearer" },
            },
        });
        serde_json::from_value(text).unwrap()
    }

    #[tokio::test]
    async fn a_login_is_for_the_name_and_the_address_of_a_server() {
        let dir = tempfile::tempdir().unwrap();
        let secrets = ServerSecrets::default();
        let file = |name: &str, url: &str, of_workspace: bool| {
            let settings = settings(name, url, of_workspace);
            LoginFile::new(dir.path(), &settings, Path::new("/w"), secrets.clone()).unwrap()
        };
        let own = file("hub", "https://hub.example/mcp", false);
        assert!(own.read().unwrap().is_none());
        let lock = own.lock().await.unwrap();
        own.save(&kept("https://hub.example/mcp")).await.unwrap();
        drop(lock);
        assert!(own.read().unwrap().unwrap().has_token());
        assert_eq!(secrets.hide("a hunter2-the-token").hidden, 1);
        for other in [
            file("hub", "https://hub.example/other", false),
            file("bub", "https://hub.example/mcp", false),
            file("hub", "https://hub.example/mcp", true),
        ] {
            assert!(other.read().unwrap().is_none());
            assert!(!other.remove().await.unwrap());
        }
        // A file that somebody moved.
        fs::write(
            own.path(),
            serde_json::to_string(&kept("https://evil.example/")).unwrap(),
        )
        .unwrap();
        assert!(own.read().unwrap().is_none());
        fs::write(own.path(), r#"{ "server": "hunter2-the-token" "#).unwrap();
        let error = own.load().await.err().unwrap().to_string();
        assert!(error.ends_with("is no login of co: remove it"), "{error}");
        assert!(own.remove().await.unwrap());
        assert!(
            LoginFile::new(
                dir.path(),
                &McpServerSettings::default(),
                Path::new("/w"),
                secrets.clone()
            )
            .is_none()
        );
    }
}
