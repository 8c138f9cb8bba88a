//! Gives the memory that this process has freed back to the system.

/// Gives back the pages in which nothing is left. Some C libraries keep freed memory for the thread that freed it: hundreds of
/// megabytes after surveys of a big repository.
///
/// It takes some milliseconds.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "no library wraps malloc_trim")]
    // SAFETY: it changes no memory that is in use, and any thread may call it at any time.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}

#[cfg(test)]
#[cfg(target_env = "gnu")]
mod tests {
    use super::*;

    /// The number and the size of the pieces.
    const PIECES: usize = 4096;
    const PIECE: usize = 4096;

    /// Returns the kilobytes in memory of the mapping that an address is in.
    fn kilobytes_around(address: usize) -> usize {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_inside = false;
        for line in maps.lines() {
            let first = line.split(' ').next().unwrap();
            if let Some((from, to)) = first.split_once('-') {
                let number = |text| usize::from_str_radix(text, 16).unwrap();
                is_inside = (number(from)..number(to)).contains(&address);
            } else if is_inside && first == "Rss:" {
                return line.split_whitespace().nth(1).unwrap().parse().unwrap();
            }
        }
        panic!("no mapping has the address");
    }

    /// Returns the kilobytes of a thread's memory before and after it gives back what it has freed.
    fn given_back() -> (usize, usize) {
        // A thread has memory of its own, which does not shrink while something is at its end.
        let thread = std::thread::spawn(|| {
            let pieces: Vec<_> = (0..PIECES).map(|_| vec![1_u8; PIECE]).collect();
            let last = vec![1_u8; PIECE];
            drop(pieces);
            let address = last.as_ptr().addr();
            let before = kilobytes_around(address);
            give_back();
            (before, kilobytes_around(address))
        });
        thread.join().unwrap()
    }

    #[test]
    fn what_a_thread_has_freed_goes_back() {
        let freed = PIECES * PIECE / 1024;
        // The threads of other tests may share the memory, and use what is freed.
        let tries: Vec<_> = (0..5).map(|_| given_back()).collect();
        let is_enough =
            |(before, after): &(usize, usize)| before.saturating_sub(*after) >= freed * 3 / 4;
        assert!(tries.iter().any(is_enough), "{tries:?}");
    }
}
