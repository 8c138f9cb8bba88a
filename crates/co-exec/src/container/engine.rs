//! Finds a container engine and calls its command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::environment::Variables;
use crate::error::engine::{EngineFault, FaultKind};
use crate::process::{children, env};
use crate::program_search;
use crate::settings::container::ContainerSettings;

/// The engines to search for on PATH, in order of preference.
const ENGINES: [&str; 2] = ["docker", "podman"];

/// The longest wait for a call of the engine.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Finds the engine of the settings on the PATH of `env`. Checks that the engine answers and has the image.
///
/// # Errors
/// The engine does not exist, does not answer, or does not have the image.
pub async fn check_engine(
    settings: &ContainerSettings,
    env: &[(OsString, OsString)],
) -> Result<Engine, EngineFault> {
    let engine = Engine::choose(&settings.engine, env).await?;
    engine.check(&settings.image).await?;
    Ok(engine)
}

/// The command line of a container engine.
#[derive(Debug, Clone)]
pub struct Engine {
    pub(crate) program: PathBuf,
    /// The environment of the engine's client. It contains all variables, because the client finds its service and its
    /// configuration by them.
    pub(crate) env: Variables,
}

impl Engine {
    /// Finds the engine that the setting `wanted` names on the PATH of `env`. Does not call the engine.
    ///
    /// # Errors
    /// There is no such engine.
    pub fn find(wanted: &str, env: &[(OsString, OsString)]) -> Result<Self, EngineFault> {
        let path = env::value(&env.to_vec(), "PATH").unwrap_or_default();
        let named = match wanted {
            "auto" => ENGINES
                .iter()
                .find_map(|name| program_search::search(name, &path)),
            wanted if wanted.starts_with('/') => {
                Some(PathBuf::from(wanted)).filter(|file| file.is_file())
            }
            wanted => program_search::search(wanted, &path),
        };
        let program = named.ok_or_else(|| EngineFault {
            kind: FaultKind::Missing,
            engine: wanted.to_owned(),
            image: String::new(),
            words: match wanted {
                "auto" => "there is no container engine on PATH".to_owned(),
                wanted if wanted.starts_with('/') => format!("there is no program {wanted}"),
                wanted => format!("there is no {wanted} on PATH"),
            },
        })?;
        Ok(Self {
            program,
            env: env.to_vec(),
        })
    }

    /// Finds an engine as [`find`](Self::find) does. If `wanted` is `auto` and several engines exist, prefers the first engine
    /// that answers.
    ///
    /// # Errors
    /// There is no such engine.
    pub async fn choose(wanted: &str, env: &[(OsString, OsString)]) -> Result<Self, EngineFault> {
        let found = ENGINES.iter().filter_map(|name| Self::find(name, env).ok());
        let engines: Vec<_> = found.collect();
        if wanted == "auto" && engines.len() > 1 {
            for engine in engines {
                if engine.answers().await.is_ok() {
                    return Ok(engine);
                }
            }
        }
        Self::find(wanted, env)
    }

    /// Returns the engine's name.
    pub fn name(&self) -> String {
        let name = self.program.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Returns the path of the engine's program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Checks that the engine answers.
    ///
    /// # Errors
    /// The engine does not answer.
    pub async fn answers(&self) -> Result<(), EngineFault> {
        // Its client answers by itself without a format that asks for the service.
        let args = ["version", "--format", "{{.Server.Version}}"];
        let args = match self.name().contains("podman") {
            true => &args[..1],
            false => &args[..],
        };
        self.call(args, "").await.map(drop)
    }

    /// Checks that the engine answers and has an image.
    ///
    /// # Errors
    /// The engine does not answer, or has no such image.
    pub async fn check(&self, image: &str) -> Result<(), EngineFault> {
        let args = ["image", "inspect", "--format", "{{.Id}}", image];
        self.call(&args, image).await.map(drop)
    }

    /// Calls the engine, and returns its output. `image` is for the error message.
    ///
    /// # Errors
    /// The engine does not start, fails, or does not answer.
    pub(crate) async fn call<A: AsRef<std::ffi::OsStr>>(
        &self,
        args: &[A],
        image: &str,
    ) -> Result<String, EngineFault> {
        let fault = |printed: &str| EngineFault::of(&self.name(), image, printed);
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(args)
            .env_clear()
            .envs(self.env.iter().cloned())
            .current_dir(Path::new("/"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let started = children::unmarked(|| command.spawn());
        let child = started.map_err(|error| fault(&error.to_string()))?;
        let Ok(done) = tokio::time::timeout(CALL_TIMEOUT, child.wait_with_output()).await else {
            return Err(EngineFault {
                kind: FaultKind::Slow,
                words: format!("in {} s", CALL_TIMEOUT.as_secs()),
                ..fault("")
            });
        };
        let done = done.map_err(|error| fault(&error.to_string()))?;
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
            false => Err(fault(&String::from_utf8_lossy(&done.stderr))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn environment(dir: &Path) -> Vec<(OsString, OsString)> {
        vec![("PATH".into(), dir.into())]
    }

    fn write(dir: &Path, name: &str, script: &str) {
        let file = dir.join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn it_is_found_on_path_or_by_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let env = environment(dir.path());
        let find = |wanted: &str| Engine::find(wanted, &env).map(|engine| engine.name());
        let missing = find("auto").unwrap_err();
        assert_eq!(missing.kind, FaultKind::Missing);
        assert!(missing.to_string().contains("install docker or podman"));
        write(dir.path(), "podman", "");
        assert_eq!(find("auto").unwrap(), "podman");
        assert!(find("docker").unwrap_err().words.contains("no docker"));
        write(dir.path(), "docker", "");
        assert_eq!(find("auto").unwrap(), "docker");
        assert_eq!(find("podman").unwrap(), "podman");
        let path = dir.path().join("podman");
        assert_eq!(find(path.to_str().unwrap()).unwrap(), "podman");
        assert!(find("/nonexistent/docker").is_err());
    }

    #[tokio::test]
    async fn of_several_the_first_one_that_answers_is_chosen() {
        let dir = tempfile::tempdir().unwrap();
        let env = environment(dir.path());
        let chosen = async |wanted| Engine::choose(wanted, &env).await.map(|it| it.name());
        write(dir.path(), "docker", "exit 1");
        assert_eq!(chosen("auto").await.unwrap(), "docker");
        write(dir.path(), "podman", "exit 0");
        assert_eq!(chosen("auto").await.unwrap(), "podman");
        assert_eq!(chosen("docker").await.unwrap(), "docker");
        write(dir.path(), "docker", "exit 0");
        assert_eq!(chosen("auto").await.unwrap(), "docker");
    }

    #[tokio::test]
    async fn a_failure_has_the_engines_words() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "docker", "echo id; exit 0");
        write(
            dir.path(),
            "podman",
            "echo 'x: image not known' >&2; exit 125",
        );
        let env = environment(dir.path());
        let docker = Engine::find("docker", &env).unwrap();
        assert_eq!(docker.check("co").await, Ok(()));
        let podman = Engine::find("podman", &env).unwrap();
        let fault = podman.check("co").await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::NoImage);
        assert_eq!(fault.words, "x: image not known");
    }
}
