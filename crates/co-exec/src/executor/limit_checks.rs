//! Checks what a command and its descendants use.

use std::path::Path;
use std::time::Duration;

use crate::limits::{CONFINED_OPEN_FILES, CommandLimits, ExceededLimit, Quota};
use crate::process::memory;
use crate::process::open_files::OpenFiles;
use crate::process::procfs::Process;
use crate::process::shared_counters::{self, SharedCounters};
use crate::sandbox::ConfinedCommand;

/// The pause before the first check. Each later pause is twice as long.
const FIRST_INTERVAL: Duration = Duration::from_millis(50);
/// The longest pause between two checks.
const MAX_INTERVAL: Duration = Duration::from_millis(500);
/// The longest pause if the last check found descriptors of epoll.
const MAX_EPOLL_INTERVAL: Duration = Duration::from_millis(100);

/// The most epoll descriptors of a command, the most files that they watch, and the most that one of them watches.
///
/// Linux limits the files that all programs of a user watch together, to some 220 for each megabyte of memory. Neovim aborts
/// if it gets no watch. A descriptor can watch one file under many numbers, and be out of sight while it waits in a socket.
const MAX_EPOLLS: u64 = 1000;
const MAX_WATCHES: u64 = 50_000;
const MAX_WATCHES_OF_ONE: u64 = CONFINED_OPEN_FILES;
/// The most descriptors of a command. To look at one takes a microsecond.
const MAX_DESCRIPTORS: u64 = 1 << 15;
/// The most descriptors that wait in sockets. The limit of the kernel is for all programs of the user together: the number
/// of open files, often 1024.
const MAX_WAITING: u64 = 500;

/// The type of overlay file systems (`linux/magic.h`).
const OVERLAY: i64 = 0x794c_7630;

/// The checks of one command.
#[derive(Debug)]
pub(crate) struct LimitChecks {
    limits: CommandLimits,
    at_start: SharedCounters,
    pause: Duration,
    has_epolls: bool,
}

impl LimitChecks {
    pub(crate) fn new(limits: CommandLimits) -> Self {
        Self {
            limits,
            at_start: if limits.shared {
                SharedCounters::read()
            } else {
                SharedCounters::default()
            },
            pause: FIRST_INTERVAL,
            has_epolls: false,
        }
    }

    /// Waits for the time of the next check. Waits forever if there is no limit to check.
    pub(crate) async fn next(&mut self) {
        if self.limits.is_empty() {
            return std::future::pending().await;
        }
        tokio::time::sleep(self.pause).await;
        let most = if self.has_epolls {
            MAX_EPOLL_INTERVAL
        } else {
            MAX_INTERVAL
        };
        self.pause = (self.pause * 2).min(most);
    }

    /// Returns the limit that the processes `members` exceed. `by_kernel` is true if the kernel enforces the limits of memory
    /// and processes.
    pub(crate) fn exceeded(
        &mut self,
        members: &[Process],
        confined: Option<&ConfinedCommand>,
        by_kernel: bool,
    ) -> Option<ExceededLimit> {
        let limits = self.limits;
        let threads: u64 = members.iter().map(|process| process.threads).sum();
        if let Some(most) = limits
            .processes
            .filter(|most| threads > *most && !by_kernel)
        {
            return Some(ExceededLimit::Processes(most));
        }
        let open = OpenFiles::of(members);
        self.has_epolls = open.epolls > 0;
        let files = self.of_nameless_files(&open, confined);
        let shared = || limits.shared.then(|| self.quota(&open)).flatten();
        let quota = files.or_else(|| shared().map(ExceededLimit::Quota));
        // To measure the memory of many processes takes long, if each of them gets as much processor time as this one.
        let memory = limits.memory.filter(|_| !by_kernel);
        quota.or_else(|| self.of_memory(memory?, members, &open, confined))
    }

    fn of_nameless_files(
        &self,
        open: &OpenFiles,
        confined: Option<&ConfinedCommand>,
    ) -> Option<ExceededLimit> {
        let confined = confined?;
        let over = |most: Option<u64>, used: u64| most.filter(|most| used > *most);
        let beside = |dir: Option<&Path>| dir.map_or(0, |dir| open.nameless_beside(dir));
        let CommandLimits { disk, changes, .. } = self.limits;
        let disk = over(disk, beside(confined.tmp_on_disk())).map(ExceededLimit::Disk);
        // Those in caches count too.
        let changes = || over(changes, open.nameless_on(OVERLAY)).map(ExceededLimit::Changes);
        disk.or_else(changes)
    }

    /// Returns the resource of all programs of which the command takes too much.
    fn quota(&self, open: &OpenFiles) -> Option<Quota> {
        let network = || {
            let now = SharedCounters::read();
            let most = now.network_share();
            (now.network_since(self.at_start) > most).then_some(Quota::NetworkBuffers(most))
        };
        if open.epolls > MAX_EPOLLS {
            Some(Quota::Epolls(MAX_EPOLLS))
        } else if open.watches > MAX_WATCHES {
            Some(Quota::Watches(MAX_WATCHES))
        } else if open.most_watched > MAX_WATCHES_OF_ONE {
            Some(Quota::WatchesOfOne(MAX_WATCHES_OF_ONE))
        } else if open.descriptors > MAX_DESCRIPTORS {
            Some(Quota::Descriptors(MAX_DESCRIPTORS))
        } else if open.waiting > MAX_WAITING {
            Some(Quota::WaitingDescriptors(MAX_WAITING))
        } else if !shared_counters::can_watch() {
            Some(Quota::LastWatch)
        } else {
            network()
        }
    }

    /// Returns the limit of memory if the command exceeds it. Files in memory count too.
    fn of_memory(
        &self,
        most: u64,
        members: &[Process],
        open: &OpenFiles,
        confined: Option<&ConfinedCommand>,
    ) -> Option<ExceededLimit> {
        let threads: Vec<i32> = members.iter().map(Process::running_thread).collect();
        let directory = confined.and_then(ConfinedCommand::memory);
        let files = directory.and_then(|dir| memory::of_directory(dir, &threads));
        let left = most.checked_sub(files.unwrap_or(0));
        let over = left.is_none_or(|left| memory::exceeds(&threads, open.sockets, left));
        // Where nothing else is refused, it may have shared memory that none of its processes maps.
        let hides = confined.is_some_and(|it| it.may_share_memory);
        let shared = || SharedCounters::read().shared_memory_since(self.at_start);
        let over = over || hides && shared() > most;
        over.then_some(ExceededLimit::Memory(most))
    }
}
