//! Reads the usage of resources that all programs of the machine share.
//!
//! For memory that no process maps, and for the buffers of an unaccepted connection, the kernel does not tell the owner. So co
//! attributes a large growth after the start of a command to that command.

use std::fs;

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::Errno;

use crate::process::procfs::kibibytes;

/// The usage of the machine's shared resources at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SharedCounters {
    /// The total memory of the machine in bytes.
    memory: u64,
    /// The bytes of memory that processes can share, such as files in memory.
    shared_memory: u64,
    /// The number of memory pages in the buffers of TCP and UDP.
    network_pages: u64,
}

impl SharedCounters {
    pub(crate) fn read() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let memory = text("/proc/meminfo");
        Self {
            memory: kibibytes(&memory, "MemTotal:"),
            shared_memory: kibibytes(&memory, "Shmem:"),
            network_pages: network_pages(&text("/proc/net/sockstat")),
        }
    }

    /// Returns the growth of shared memory since an earlier reading, in bytes.
    pub(crate) fn shared_memory_since(self, before: Self) -> u64 {
        self.shared_memory.saturating_sub(before.shared_memory)
    }

    /// Returns the growth of the buffers of TCP and UDP since an earlier reading, in bytes.
    pub(crate) fn network_since(self, before: Self) -> u64 {
        let pages = self.network_pages.saturating_sub(before.network_pages);
        pages * rustix::param::page_size() as u64
    }

    /// Returns a quarter of the memory that the buffers of TCP may use by default, in bytes.
    pub(crate) fn network_share(self) -> u64 {
        self.memory / 40
    }
}

/// Returns true if the user can still watch another file by epoll.
pub(crate) fn can_watch() -> bool {
    let watch = || {
        let watching = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let file = eventfd(0, EventfdFlags::CLOEXEC)?;
        epoll::add(
            &watching,
            &file,
            epoll::EventData::new_u64(0),
            epoll::EventFlags::IN,
        )
    };
    watch() != Err(Errno::NOSPC)
}

/// Returns the number of pages in the buffers of TCP and UDP, from the text of `/proc/net/sockstat`.
fn network_pages(text: &str) -> u64 {
    let protocols = text.lines().filter(|line| {
        let protocol = line.split(':').next();
        matches!(protocol, Some("TCP" | "UDP"))
    });
    let pages = |line: &str| {
        let mut words = line
            .split_ascii_whitespace()
            .skip_while(|word| *word != "mem");
        words.nth(1)?.parse::<u64>().ok()
    };
    protocols.filter_map(pages).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_are_read_of_the_kernels_texts() {
        let text = "MemTotal: 9 kB\nShmem:    8 kB\nShmemHugePages: 7 kB\n";
        assert_eq!(kibibytes(text, "Shmem:"), 8192);
        let text = "sockets: used 47\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 160\nUDP: inuse 0 mem 2\n\
                    FRAG: inuse 0 memory 5\n";
        assert_eq!(network_pages(text), 162);
        assert_eq!((kibibytes("", "Shmem:"), network_pages("")), (0, 0));
        assert!(SharedCounters::read().network_share() > 1 << 20);
        assert!(can_watch());
    }
}
