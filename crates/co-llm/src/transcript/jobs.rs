//! Finds the jobs that a chat started, and the jobs that have no recorded end.

use super::item::Item;

/// Returns an end item for each job without an end. Such a job was killed together with the backend.
pub fn lost_jobs(items: &[Item]) -> Vec<Item> {
    let ended = |wanted: u64| {
        let mut ends = items.iter();
        ends.any(|item| matches!(item, Item::JobEnded { job, .. } if *job == wanted))
    };
    items
        .iter()
        .filter_map(|item| match item {
            Item::JobStarted { job, command, .. } if !ended(*job) => Some(Item::JobEnded {
                job: *job,
                text: format!("job {job} ({command}) ended: interrupted, co ended before it did"),
                told: false,
            }),
            _ => None,
        })
        .collect()
}

/// Returns the highest job number, or 0 if there is no job.
pub fn last_job(items: &[Item]) -> u64 {
    let numbers = items.iter().filter_map(|item| match item {
        Item::JobStarted { job, .. } => Some(*job),
        _ => None,
    });
    numbers.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_without_an_end_is_lost() {
        let started = |job| Item::JobStarted {
            job,
            call: job.to_string(),
            command: "make".into(),
        };
        let ended = Item::JobEnded {
            job: 1,
            text: "job 1 (make) ended: exit 0".into(),
            told: true,
        };
        let mut items = vec![started(1), started(2), ended];
        let lost = lost_jobs(&items);
        let [
            Item::JobEnded {
                job: 2,
                text,
                told: false,
            },
        ] = lost.as_slice()
        else {
            panic!("{lost:?}");
        };
        assert!(text.contains("interrupted"), "{text}");
        items.extend(lost);
        assert_eq!(lost_jobs(&items), []);
        assert_eq!((last_job(&items), last_job(&[])), (2, 0));
    }
}
