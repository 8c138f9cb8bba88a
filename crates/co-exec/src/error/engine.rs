//! The failures of a container engine, each with the engine's own message and the next step for the person.

use std::fmt;

/// A failed call of an engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct EngineFault {
    pub kind: FaultKind,
    /// The engine's name.
    pub engine: String,
    /// The image for which co called the engine.
    pub image: String,
    /// The last line that the engine printed, or the reason why the engine did not start.
    pub words: String,
}

/// The kinds of engine failures. Each kind has its own advice for the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// There is no engine on PATH, or the engine that the settings name does not exist.
    Missing,
    /// The engine's service does not answer.
    NotRunning,
    /// The user may not use the socket of the engine's service.
    NoPermission,
    NoImage,
    /// The workspace cannot be mounted.
    Mount,
    NoSpace,
    /// The engine did not answer in time.
    Slow,
    /// The container does not exist, or does not run.
    Gone,
    Other,
}

/// Texts that an engine's message may contain, in lower case, and the kind of failure that each text means. The first text in the
/// list that the message contains decides.
const MEANINGS: &[(&str, FaultKind)] = &[
    ("no space left", FaultKind::NoSpace),
    ("disk quota exceeded", FaultKind::NoSpace),
    ("no such image", FaultKind::NoImage),
    ("unable to find image", FaultKind::NoImage),
    ("image not known", FaultKind::NoImage),
    ("no such container", FaultKind::Gone),
    ("no container with name", FaultKind::Gone),
    ("is not running", FaultKind::Gone),
    ("can only create exec sessions on running", FaultKind::Gone),
    ("container state improper", FaultKind::Gone),
    (
        "permission denied while trying to connect",
        FaultKind::NoPermission,
    ),
    ("connect: permission denied", FaultKind::NoPermission),
    ("cannot connect", FaultKind::NotRunning),
    ("is the docker daemon running", FaultKind::NotRunning),
    ("connection refused", FaultKind::NotRunning),
    ("unable to connect", FaultKind::NotRunning),
    ("bind source path does not exist", FaultKind::Mount),
    ("mounts denied", FaultKind::Mount),
    ("invalid mount", FaultKind::Mount),
    ("error mounting", FaultKind::Mount),
    ("statfs ", FaultKind::Mount),
];

impl EngineFault {
    /// Makes an error from the output of an engine.
    pub(crate) fn of(engine: &str, image: &str, printed: &str) -> Self {
        let lines = printed.lines().map(str::trim);
        // The docker client adds a line about its help, and podman one about the exit status of a helper.
        let reason = |line: &&str| {
            line.starts_with(|first: char| first.is_alphanumeric()) && !line.contains("--help")
        };
        let mut told = lines.filter(reason);
        let words = told
            .next_back()
            .unwrap_or("it printed no reason")
            .to_owned();
        let lower = printed.to_lowercase();
        let known = MEANINGS.iter().find(|(part, _)| lower.contains(part));
        Self {
            kind: known.map_or(FaultKind::Other, |(_, kind)| *kind),
            engine: engine.to_owned(),
            image: image.to_owned(),
            words,
        }
    }
}

impl fmt::Display for EngineFault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            engine,
            image,
            words,
        } = self;
        match kind {
            FaultKind::Missing => write!(
                to,
                "{words}; install docker or podman, or set container_engine to its path"
            ),
            FaultKind::NotRunning => {
                write!(to, "{engine} does not answer ({words}); start its service")
            }
            FaultKind::NoPermission if engine.contains("docker") => write!(
                to,
                "{engine} refused you ({words}); join the group docker and log in again, or set container_engine to podman"
            ),
            FaultKind::NoPermission => write!(
                to,
                "{engine} refused you ({words}); get the permission to use its socket"
            ),
            FaultKind::NoImage => write!(
                to,
                "{engine} has no image {image} ({words}); build it with /sandbox build, or set docker_image to one that it has"
            ),
            FaultKind::Mount => write!(
                to,
                "{engine} cannot mount the workspace ({words}); use an engine on this machine that can read it"
            ),
            FaultKind::NoSpace => write!(
                to,
                "{engine} has no room ({words}); free some, for example with `{engine} system prune`"
            ),
            FaultKind::Slow => write!(to, "{engine} did not answer {words}; restart its service"),
            FaultKind::Gone | FaultKind::Other => write!(
                to,
                "{engine} could not run the container ({words}); correct that, or choose another confinement with /sandbox"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(printed: &str, kind: FaultKind, told: &str) {
        let fault = EngineFault::of("docker", "co-cli-sandbox", printed);
        assert_eq!(fault.kind, kind, "{printed}");
        let sentence = fault.to_string();
        assert!(sentence.contains(told), "{sentence}");
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
    }

    #[test]
    fn an_engines_words_tell_the_next_step() {
        check(
            "Cannot connect to the Docker daemon at unix:///x.sock. Is the docker daemon running?\n",
            FaultKind::NotRunning,
            "start its service",
        );
        check(
            "permission denied while trying to connect to the Docker daemon socket at unix:///x",
            FaultKind::NoPermission,
            "the group docker",
        );
        check(
            "docker: Error response from daemon: No such image: co-cli-sandbox:latest.\nSee 'docker run --help'.\n",
            FaultKind::NoImage,
            "no image co-cli-sandbox (docker: Error response",
        );
        check(
            "Error: co-cli-sandbox: image not known",
            FaultKind::NoImage,
            "set docker_image",
        );
        check(
            "write /var/lib/docker/x: no space left on device",
            FaultKind::NoSpace,
            "system prune",
        );
        check(
            "Error: statfs /w: no such file or directory",
            FaultKind::Mount,
            "mount the workspace",
        );
        check(
            "Error response from daemon: Container 00ff is not running",
            FaultKind::Gone,
            "is not running",
        );
        check(
            "Error: mounting storage: mount_data=x\nfuse-overlayfs: cannot mount: Permission denied\n: exit status 1\n",
            FaultKind::Other,
            "(fuse-overlayfs: cannot mount: Permission denied)",
        );
        check("", FaultKind::Other, "it printed no reason");
    }
}
