//! The system paths that confined commands may read, and those that they must never read.
//!
//! **Add a readable path to `READABLE`.** This file contains only names.

/// Returns the paths that confined commands may read on every system, if they exist.
pub(crate) fn readable() -> impl Iterator<Item = &'static str> {
    READABLE.split_whitespace()
}

const READABLE: &str = "
/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /nix/store /gnu/store /snap /run/current-system
/run/opengl-driver /run/systemd/resolve /var/cache/man /var/lib/dpkg /var/lib/pacman /var/lib/rpm /proc /sys
/dev/random /dev/urandom
";

/// Harmless devices, and the terminal of the process itself.
pub(crate) const DEVICES: &[&str] = &["/dev/null", "/dev/full", "/dev/tty"];

/// A device whose shared mappings use memory that co cannot count. Read-only programs do without it.
pub(crate) const ZERO: &str = "/dev/zero";

/// The directory of named shared memory. A trial has a private directory there.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// Directories for temporary files of all users. A trial has private directories there, because some programs ignore TMPDIR.
pub(crate) const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// The names in `/etc` that commands may read if they run as root, because file modes do not protect the other names from root. A
/// trailing star matches any rest of a name. Each name costs some microseconds at every start of a command.
pub(crate) const ETC: &str = "
alternatives bash* crypto-policies debian_version environment fonts gai.conf gitattributes gitconfig groff
group host.conf hostname hosts inputrc java* ld.so.* ld-musl* locale* localtime lsb-release magic* man_db.conf
manpath.config maven mime.types networks nsswitch.conf os-release passwd perl php* pki profile* protocols
python* redhat-release resolv.conf ruby* services ssl terminfo timezone vim* xdg zsh*
";

/// Paths below `/etc` that a command must not read if it runs as root.
pub(crate) const SECRETS: &[&str] = &["/etc/ssl/private", "/etc/pki/tls/private"];
