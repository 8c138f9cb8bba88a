//! The loopback interface of a network namespace, which is down at first.

use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::AsRawFd;

use nix::libc;

/// Sets the loopback interface of this process's network namespace up. The kernel then gives it 127.0.0.1 and ::1.
///
/// # Errors
/// This process may not change the namespace.
pub(super) fn set_up() -> io::Result<()> {
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

/// Returns a listening socket for each of these ports.
///
/// # Errors
/// The kernel refuses one of them.
pub(super) fn listen(ports: &[u16]) -> io::Result<Vec<TcpListener>> {
    let bind = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port));
    ports.iter().map(bind).collect()
}
