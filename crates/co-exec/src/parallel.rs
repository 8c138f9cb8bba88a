//! Divides work among threads.

use std::panic::resume_unwind;
use std::thread;

/// Calls `work` with each part, and returns the results in the order of the parts. The calling thread does the first part, and
/// also each part whose thread cannot start. A panic in a thread continues in the calling thread.
pub fn map<P: Copy + Send, T: Send>(
    parts: impl IntoIterator<Item = P>,
    work: impl Fn(P) -> T + Sync,
) -> Vec<T> {
    let (mut parts, work) = (parts.into_iter(), &work);
    let Some(first) = parts.next() else {
        return Vec::new();
    };
    thread::scope(|scope| {
        let start = |part| {
            let thread = thread::Builder::new().spawn_scoped(scope, move || work(part));
            (part, thread)
        };
        let others: Vec<_> = parts.map(start).collect();
        let mut results = vec![work(first)];
        results.extend(others.into_iter().map(|(part, thread)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|it| resume_unwind(it)),
            Err(_) => work(part),
        }));
        results
    })
}

#[cfg(test)]
mod tests {
    use super::map;

    #[test]
    fn results_have_the_order_of_the_parts() {
        assert_eq!(map(1..5, |number| number * 2), [2, 4, 6, 8]);
        assert!(map([0; 0], |number| number).is_empty());
    }
}
