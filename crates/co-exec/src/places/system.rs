//! The places of the system that confined commands may read, and those that they never read.
//!
//! **Add a readable place to `READABLE`.** This file contains only names.

/// Paths that are readable on every system, if they exist.
pub(crate) fn readable() -> impl Iterator<Item = &'static str> {
    READABLE.split_whitespace()
}

const READABLE: &str = "
/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /nix/store /gnu/store /snap /run/current-system
/run/opengl-driver /run/systemd/resolve /var/cache/man /var/lib/dpkg /var/lib/pacman /var/lib/rpm /proc /sys
/dev/random /dev/urandom
";

/// Harmless devices, and the own terminal.
pub(crate) const DEVICES: &[&str] = &["/dev/null", "/dev/full", "/dev/tty"];

/// A device whose shared mappings are memory that nobody can count. Read-only programs do without it.
pub(crate) const ZERO: &str = "/dev/zero";

/// The place of shared memory with names. A trial has one of its own there.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// Directories for the temporary files of all users. A trial has a private one there, because some programs ignore TMPDIR.
pub(crate) const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// Names in `/etc` that root may read. File modes do not protect the other names from root. A trailing star matches any end. Each
/// name costs some microseconds at every start.
pub(crate) const ETC: &str = "
alternatives bash* crypto-policies debian_version environment fonts gai.conf gitattributes gitconfig groff
group host.conf hostname hosts inputrc java* ld.so.* ld-musl* locale* localtime lsb-release magic* man_db.conf
manpath.config maven mime.types networks nsswitch.conf os-release passwd perl php* pki profile* protocols
python* redhat-release resolv.conf ruby* services ssl terminfo timezone vim* xdg zsh*
";

/// Paths deeper in `/etc` that root may not read.
pub(crate) const SECRETS: &[&str] = &["/etc/ssl/private", "/etc/pki/tls/private"];
