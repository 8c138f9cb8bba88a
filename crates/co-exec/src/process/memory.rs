//! Measures the memory of a command's processes, if no cgroup limits the command's memory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::process::procfs::kibibytes;

/// The bytes that a socket can buffer, if the system does not tell its default.
const SOCKET_BUFFER: u64 = 212_992;

/// The memory usage of one process.
#[derive(Debug, PartialEq, Eq)]
struct Usage {
    /// The id of a running thread of the process.
    thread: i32,
    /// The bytes of all anonymous pages, private or shared, including those in swap.
    pages: u64,
    /// The bytes of the process's page tables.
    tables: u64,
}

/// Returns true if processes use more than `most` bytes of memory together. Each number in `threads` is a running thread of one
/// process. The buffers of `sockets` sockets count too.
pub(crate) fn exceeds(threads: &[i32], sockets: u64, most: u64) -> bool {
    let usages: Vec<Usage> = threads.iter().filter_map(|it| Usage::read(*it)).collect();
    let buffers = sockets * socket_buffer();
    // This is cheap. It counts shared pages for each process.
    let bounds = usages.iter().map(|it| it.pages + it.tables);
    if bounds.sum::<u64>() + buffers <= most {
        return false;
    }
    let memory: u64 = usages.iter().map(|it| it.share() + it.tables).sum();
    memory + buffers > most
}

/// Returns the used bytes of the file system that is mounted at `dir` for one of `threads`. Returns `None` if they see the same
/// file system there as this process.
pub(crate) fn of_directory(dir: &Path, threads: &[i32]) -> Option<u64> {
    let outside = dir.metadata().ok()?.dev();
    let below = dir.strip_prefix("/").ok()?;
    threads.iter().find_map(|thread| {
        let inside = Path::new("/proc").join(thread.to_string()).join("root");
        let inside = inside.join(below);
        let mounted = inside.metadata().ok()?.dev() != outside;
        let facts = rustix::fs::statvfs(&inside).ok().filter(|_| mounted)?;
        Some((facts.f_blocks - facts.f_bfree) * facts.f_frsize)
    })
}

impl Usage {
    /// Reads the memory usage of the process that `thread` belongs to. Returns `None` if the thread has ended.
    fn read(thread: i32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
        Some(Self::parse(thread, &status))
    }

    fn parse(thread: i32, status: &str) -> Self {
        let pages = ["RssAnon:", "RssShmem:", "VmSwap:"];
        Self {
            thread,
            pages: pages.iter().map(|name| kibibytes(status, name)).sum(),
            tables: kibibytes(status, "VmPTE:"),
        }
    }

    /// Returns the bytes of the process's private pages, and of its proportional share of shared pages. If the share cannot be
    /// read, counts all shared pages.
    fn share(&self) -> u64 {
        let sizes = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.thread));
        let shares = ["Pss_Anon:", "Pss_Shmem:", "SwapPss:"];
        sizes.map_or(self.pages, |sizes| {
            shares.iter().map(|name| kibibytes(&sizes, name)).sum()
        })
    }
}

/// Returns the number of bytes that a socket can buffer.
fn socket_buffer() -> u64 {
    let size = fs::read_to_string("/proc/sys/net/core/wmem_default").ok();
    size.and_then(|size| size.trim().parse().ok())
        .unwrap_or(SOCKET_BUFFER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::procfs::own_pid;

    #[test]
    fn all_pages_but_those_of_files_count() {
        let status = "Name:\tx\nVmRSS:\t    9999 kB\nRssAnon:\t     100 kB\n\
                      RssFile:\t    9000 kB\nRssShmem:\t       20 kB\nVmPTE:\t       4 kB\nVmSwap:\t       3 kB\n";
        let usage = Usage {
            thread: 7,
            pages: 123 << 10,
            tables: 4 << 10,
        };
        assert_eq!(Usage::parse(7, status), usage);
        assert_eq!(Usage::parse(7, "Name:\tx\n").pages, 0);
    }

    #[test]
    fn this_process_uses_some_memory() {
        assert!(exceeds(&[own_pid()], 0, 1 << 10));
        assert!(!exceeds(&[own_pid()], 0, 1 << 40));
        assert!(exceeds(&[own_pid()], 1 << 30, 1 << 40));
    }
}
