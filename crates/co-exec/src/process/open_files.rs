//! Inspects the open files of processes in `/proc`.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::process::procfs::{self, Process};

/// The most watches of epoll that are counted. The kernel takes microseconds to show each watch.
const MAX_COUNTED_WATCHES: u64 = 1 << 16;

/// Counts of the open files of a command's processes.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    /// The number of descriptors of all processes.
    pub(crate) descriptors: u64,
    /// The number of epoll descriptors.
    pub(crate) epolls: u64,
    /// The number of files that the epoll descriptors watch.
    pub(crate) watches: u64,
    /// The most files that a single epoll descriptor watches.
    pub(crate) most_watched: u64,
    /// The number of descriptors in flight: sent over a socket, and not yet received.
    pub(crate) waiting: u64,
    /// The number of sockets. A socket with several descriptors counts once.
    pub(crate) sockets: u64,
    /// The removed regular files, each listed once.
    nameless: Vec<NamelessFile>,
    seen: HashSet<PathBuf>,
}

/// A removed regular file that a process holds open.
#[derive(Debug)]
struct NamelessFile {
    /// The path of the descriptor in `/proc`, which leads to the file.
    path: PathBuf,
    device: u64,
    /// The number of bytes that the file occupies on the disk.
    bytes: u64,
}

impl OpenFiles {
    /// Counts the open files of the processes. If the open files of a process cannot be read, assumes the most that the process
    /// could have.
    pub(crate) fn of(processes: &[Process]) -> Self {
        let mut found = Self::default();
        for process in processes {
            let thread = process.running_thread();
            let read = found.add(thread);
            if read.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
                found.add_hidden(procfs::room_for_descriptors(thread));
            }
        }
        found
    }

    fn add(&mut self, thread: i32) -> io::Result<()> {
        for entry in fs::read_dir(format!("/proc/{thread}/fd"))? {
            let path = entry?.path();
            let link = match fs::read_link(&path) {
                Ok(link) => link,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                // It was closed.
                Err(_) => continue,
            };
            self.descriptors += 1;
            let kind = link.as_os_str().as_bytes();
            if kind == b"anon_inode:[eventpoll]" {
                self.epolls += 1;
                let watches = self.count_watches(&path);
                self.watches += watches;
                self.most_watched = self.most_watched.max(watches);
            } else if kind.starts_with(b"socket:") {
                if self.seen.insert(link) {
                    self.sockets += 1;
                    self.waiting += waiting_in(&path);
                }
            } else if kind.ends_with(b" (deleted)") {
                self.add_nameless(path);
            }
        }
        Ok(())
    }

    /// Adds the counts for a process with hidden descriptors: it may have up to `room` descriptors, each of any kind.
    fn add_hidden(&mut self, room: u64) {
        self.descriptors += room;
        self.epolls += room;
        self.sockets += room;
        // A third of them watch another third, each under as many numbers.
        self.watches += (room / 3).pow(2) * room;
    }

    /// Adds the file at a descriptor if it is a regular file that was removed. Checks the number of hard links, because the
    /// kernel also marks a file as deleted if only the name by which it was opened is gone.
    fn add_nameless(&mut self, path: PathBuf) {
        let Ok(facts) = fs::metadata(&path) else {
            return;
        };
        let key = PathBuf::from(format!("{}:{}", facts.dev(), facts.ino()));
        if facts.is_file() && facts.nlink() == 0 && self.seen.insert(key) {
            self.nameless.push(NamelessFile {
                path,
                device: facts.dev(),
                // In units of 512 bytes, whatever the file system's are.
                bytes: facts.blocks() * 512,
            });
        }
    }

    /// Counts the files that an epoll descriptor watches. The total of all descriptors is bounded.
    fn count_watches(&self, descriptor: &Path) -> u64 {
        let most = MAX_COUNTED_WATCHES.saturating_sub(self.watches);
        let Some(facts) = facts_of(descriptor).filter(|_| most > 0) else {
            return 0;
        };
        let lines = facts.split(b'\n').map_while(Result::ok);
        let watches = lines.filter(|line| line.starts_with(b"tfd:"));
        watches
            .take(usize::try_from(most).unwrap_or(usize::MAX))
            .count() as u64
    }

    /// Returns the bytes of the removed files on the same file system as `dir`.
    pub(crate) fn nameless_beside(&self, dir: &Path) -> u64 {
        let device = dir.metadata().map(|facts| facts.dev());
        let on_device = |file: &&NamelessFile| device.as_ref().is_ok_and(|it| *it == file.device);
        self.nameless
            .iter()
            .filter(on_device)
            .map(|file| file.bytes)
            .sum()
    }

    /// Returns the bytes of the removed files on file systems of the type `magic`.
    pub(crate) fn nameless_on(&self, magic: i64) -> u64 {
        let of_type = |file: &&NamelessFile| {
            rustix::fs::statfs(&file.path).is_ok_and(|facts| facts.f_type == magic)
        };
        self.nameless
            .iter()
            .filter(of_type)
            .map(|file| file.bytes)
            .sum()
    }
}

/// Opens the kernel's information (`fdinfo`) about a descriptor, given as a path below `/proc/*/fd`.
fn facts_of(descriptor: &Path) -> Option<BufReader<File>> {
    let process = descriptor.parent()?.parent()?;
    let facts = process.join("fdinfo").join(descriptor.file_name()?);
    let file = File::open(facts).ok()?;
    Some(BufReader::with_capacity(1 << 16, file))
}

/// Returns the number of descriptors in flight in a socket. Linux before 5.6 does not tell the number.
fn waiting_in(socket: &Path) -> u64 {
    let lines = facts_of(socket).into_iter().flat_map(BufRead::lines);
    let mut lines = lines.map_while(Result::ok);
    let count = lines.find_map(|line| line.strip_prefix("scm_fds:")?.trim().parse().ok());
    count.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use rustix::event::{EventfdFlags, epoll, eventfd};

    use super::*;
    use crate::process::procfs::own_pid;

    fn own() -> OpenFiles {
        OpenFiles::of(&[Process::read(own_pid()).unwrap()])
    }

    #[test]
    fn files_without_a_name_count_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = tempfile::tempfile_in(dir.path()).unwrap();
        io::Write::write_all(&mut file, &vec![1; 1 << 20]).unwrap();
        file.sync_all().unwrap();
        let bytes = own().nameless_beside(dir.path());
        assert!(bytes >= 1 << 20);
        let _copy = file.try_clone().unwrap();
        assert!(own().nameless_beside(dir.path()) < bytes + (1 << 20));
    }

    #[test]
    fn a_socket_counts_once() {
        let pairs: Vec<_> = (0..100).map(|_| UnixStream::pair().unwrap()).collect();
        let copies: Vec<_> = pairs.iter().map(|it| it.0.try_clone().unwrap()).collect();
        let found = own().sockets;
        assert!((200..300).contains(&found), "{found} with {copies:?}");
    }

    #[test]
    fn each_file_that_epoll_watches_counts() {
        let before = own();
        let watching = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let watched: Vec<_> = (0..100)
            .map(|_| eventfd(0, EventfdFlags::CLOEXEC).unwrap())
            .collect();
        for file in &watched {
            let data = epoll::EventData::new_u64(0);
            epoll::add(&watching, file, data, epoll::EventFlags::IN).unwrap();
        }
        let now = own();
        // Other tests run beside this one.
        assert!(now.watches >= before.watches.max(100), "{before:?} {now:?}");
        assert!(now.epolls >= 1 && now.descriptors > 100);
    }

    #[test]
    fn what_cannot_be_read_counts_as_the_most_that_it_can_be() {
        let mut found = OpenFiles::default();
        found.add_hidden(64);
        assert_eq!((found.epolls, found.watches), (64, 28_224));
    }
}
