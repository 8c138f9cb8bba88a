//! Sets up the network of a command, in the launcher.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sched::CloneFlags;

use crate::confinement::level::Network;

/// Returns the namespaces that a network needs. A command with its own network also gets its own message queues and shared
/// memory.
pub(super) fn namespaces(network: Network) -> CloneFlags {
    match network {
        Network::None | Network::Machine => CloneFlags::empty(),
        Network::Own => CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC,
    }
}

/// Sets up the network after its namespaces are entered. Must run before the filter of system calls is installed.
///
/// # Errors
/// The system refuses. The error is a sentence for a person.
pub(super) fn set_up(network: Network) -> Result<(), String> {
    match network {
        Network::None | Network::Machine => Ok(()),
        Network::Own => {
            set_loopback_up().map_err(|error| format!("no network of its own: {error}"))
        }
    }
}

/// Brings up the loopback interface of this process's network namespace. The kernel then assigns 127.0.0.1 and ::1.
///
/// # Errors
/// This process has no permission to change the namespace.
fn set_loopback_up() -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut name = [0; libc::IFNAMSIZ];
    name[0] = b'l' as libc::c_char;
    name[1] = b'o' as libc::c_char;
    let request = libc::ifreq {
        ifr_name: name,
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_flags: (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short,
        },
    };
    #[expect(
        unsafe_code,
        reason = "no library wraps this request; the alternative is netlink"
    )]
    // SAFETY: the descriptor is open, and the kernel reads one whole `ifreq`.
    let done = unsafe {
        // glibc and musl have other types for a request.
        let set_flags = libc::SIOCSIFFLAGS as libc::Ioctl;
        libc::ioctl(socket.as_raw_fd(), set_flags, &raw const request)
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Creates a listening socket at each of these addresses.
///
/// # Errors
/// The kernel refuses one of them.
pub(super) fn listen(addresses: &[SocketAddr]) -> io::Result<Vec<TcpListener>> {
    addresses.iter().map(TcpListener::bind).collect()
}
