//! The settings of containers, with their defaults and checks.

/// The settings of the containers in which commands run.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerSettings {
    /// `auto`, `docker`, `podman`, or the absolute path of a program that takes the same arguments.
    pub engine: String,
    pub image: String,
    /// The name of the container's network in the engine.
    pub network: String,
    /// The most bytes of memory that the container may use.
    pub memory: u64,
    /// The number of processors that the container may use.
    pub cpus: f64,
    /// The user in the container: `auto`, `uid` or `uid:gid`.
    pub user: String,
    /// True if commands may write only in the workspace and `/tmp`.
    pub read_only: bool,
    /// The most bytes in the container's `/tmp`.
    pub tmp_size: u64,
}

/// The user in the container if the caller is root.
const NOT_ROOT: &str = "1000:1000";

impl ContainerSettings {
    /// Returns the user in the container.
    pub(crate) fn user(&self) -> String {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        match self.user.as_str() {
            "auto" if uid.is_root() => NOT_ROOT.to_owned(),
            "auto" => format!("{}:{}", uid.as_raw(), gid.as_raw()),
            user => user.to_owned(),
        }
    }
}

impl Default for ContainerSettings {
    fn default() -> Self {
        Self {
            engine: "auto".to_owned(),
            image: "co-cli-sandbox".to_owned(),
            network: "none".to_owned(),
            memory: 1 << 30,
            cpus: 1.0,
            user: "auto".to_owned(),
            read_only: true,
            tmp_size: 256 << 20,
        }
    }
}

/// Returns whether a text is a valid name of an engine.
pub fn is_engine(text: &str) -> bool {
    matches!(text, "auto" | "docker" | "podman") || text.starts_with('/')
}

/// Returns whether a text can be the name of an image. No option of the engine passes this check.
pub fn is_image(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(plain)
}

/// Returns whether a text can be the name of a network. The network of another container is not allowed.
pub fn is_network(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(plain)
}

/// Returns whether a text is `auto`, `uid` or `uid:gid`.
pub fn is_user(text: &str) -> bool {
    let number = |text: &str| text.parse::<u32>().is_ok();
    let (uid, gid) = text.split_once(':').unwrap_or((text, "0"));
    text == "auto" || number(uid) && number(gid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_be_an_option_of_the_engine() {
        for (text, image, network, user) in [
            ("co-cli-sandbox", true, true, false),
            ("localhost/co:1.2", true, false, false),
            ("registry:5000/a@sha256:00ff", true, false, false),
            ("bridge", true, true, false),
            ("container:x", true, false, false),
            ("--privileged", false, false, false),
            ("a b", false, false, false),
            ("", false, false, false),
            ("auto", true, true, true),
            ("1000", true, true, true),
            ("1000:100", true, false, true),
            ("1000:x", true, false, false),
        ] {
            let found = (is_image(text), is_network(text), is_user(text));
            assert_eq!(found, (image, network, user), "{text:?}");
        }
        for (text, engine) in [("auto", true), ("/opt/podman", true), ("nerdctl", false)] {
            assert_eq!(is_engine(text), engine, "{text}");
        }
    }
}
