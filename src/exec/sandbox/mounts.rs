//! A mount namespace in which only some directories can be written, and some names in them cannot.

use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::libc;
use nix::sched::CloneFlags;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MountPropagationFlags, mount_bind_recursive, mount_change};

use super::plan::Mounts;

/// Enters a new mount namespace and makes it read-only but for what `mounts` says.
///
/// # Errors
/// Where the kernel or its settings refuse a step.
pub(super) fn enter(mounts: &Mounts) -> io::Result<()> {
    unshare()?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    for path in &mounts.writable {
        mount_bind_recursive(&path.0, &path.0)?;
    }
    set_read_only(Path::new("/"), true, true)?;
    for path in &mounts.writable {
        set_read_only(&path.0, false, false)?;
    }
    for path in &mounts.pinned {
        bind(&path.0)?;
    }
    for path in &mounts.held {
        if bind(&path.0)? {
            set_read_only(&path.0, true, false)?;
        }
    }
    Ok(())
}

/// A mount namespace: by right where we have it, else inside a user namespace.
fn unshare() -> io::Result<()> {
    if rustix::process::geteuid().is_root() && nix::sched::unshare(CloneFlags::CLONE_NEWNS).is_ok()
    {
        return Ok(());
    }
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    nix::sched::unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
    let (user, group) = (user.as_raw(), group.as_raw());
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Mounts a directory, file or symbolic link in the workspace on itself, so that a command cannot rename, remove or
/// replace it. Does nothing if it no longer exists. Mounts below it stay.
fn bind(path: &Path) -> io::Result<bool> {
    // A link in place of the name would lead the mount elsewhere, so it is not followed.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(false),
        place => place?,
    };
    let here = format!("/proc/self/fd/{}", place.as_raw_fd());
    mount_bind_recursive(&here, &here)?;
    Ok(true)
}

/// Sets or clears the read-only flag of the mount at `path`, and of those below it.
fn set_read_only(path: &Path, read_only: bool, below: bool) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attributes = libc::mount_attr {
        attr_set: 0,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    if read_only {
        attributes.attr_set = libc::MOUNT_ATTR_RDONLY;
    } else {
        attributes.attr_clr = libc::MOUNT_ATTR_RDONLY;
    }
    let flags = libc::AT_SYMLINK_NOFOLLOW | if below { libc::AT_RECURSIVE } else { 0 };
    #[expect(
        unsafe_code,
        reason = "no library wraps mount_setattr, and nothing else is recursive"
    )]
    // SAFETY: the path ends in NUL, the structure is whole and its size is passed with it.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw mut attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
