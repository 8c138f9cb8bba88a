//! Returns freed memory of this process to the system.

/// The largest number of freed bytes that glibc keeps at the end of each heap.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: nix::libc::c_int = 256 << 10;

/// Makes the C library return freed memory at the end of each heap at once. Call it at the start of the program.
///
/// By default, glibc keeps up to 64 MiB at the end of the heap of each thread, depending on the largest block that was freed.
/// [`give_back`] does not free this memory: without `keep_little`, the backend kept 70 MB after surveys of a large repository.
pub fn keep_little() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "no library wraps mallopt")]
    // SAFETY: it changes no memory, and no other thread runs at the start of a program.
    unsafe {
        nix::libc::mallopt(nix::libc::M_TRIM_THRESHOLD, KEPT_BYTES);
    }
}

/// Returns unused pages to the system. Some C libraries keep freed memory for the thread that freed it: hundreds of megabytes
/// after surveys of a large repository.
///
/// This takes a few milliseconds.
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

    #[test]
    fn the_end_of_the_memory_of_a_thread_goes_back_at_once() {
        keep_little();
        let thread = std::thread::spawn(|| {
            // From then on, glibc would keep twice as much.
            drop(vec![1_u8; PIECES * PIECE]);
            let first = vec![1_u8; PIECE];
            let pieces: Vec<_> = (0..PIECES).map(|_| vec![1_u8; PIECE]).collect();
            drop(pieces);
            kilobytes_around(first.as_ptr().addr())
        });
        let (kept, freed) = (thread.join().unwrap(), PIECES * PIECE / 1024);
        assert!(kept < freed / 4, "{kept} kB");
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
