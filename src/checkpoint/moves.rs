//! Finds the moved files among the files that a call removed and created.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter::Peekable;
use std::path::{Component, Path};

use super::change::{Blob, Change, Entry};

/// The number of pairs of removed and created files up to which co compares all pairs.
const MOST_PAIRS: usize = 400;
/// The largest number of created files with the same name to which a removed file is compared, if there are more than
/// [`MOST_PAIRS`] pairs.
const MOST_OF_NAME: usize = 4;

/// The moved files among the changes of a call. Each is a removal and a creation.
#[derive(Debug, Default, PartialEq)]
pub(super) struct MovedFiles<'a> {
    /// The old paths of the moved files.
    gone: BTreeSet<&'a Path>,
    /// For each new path, the removal of the file at its old path.
    made: BTreeMap<&'a Path, &'a Change>,
}

/// The components of a path in reverse order, so that paths with the same end are next to each other in a sorted map.
type ReversedPath<'a> = Vec<Component<'a>>;

/// The files that a call created, by their reversed paths.
type MadeFiles<'a> = BTreeMap<ReversedPath<'a>, &'a Change>;

impl<'a> MovedFiles<'a> {
    /// Pairs the changes that remove files with the changes that create files. Files with the same bytes are paired first, then
    /// similar files. If several files match, the file whose path has the longest common end is chosen.
    ///
    /// `back` returns the old path of a file that was moved before. If a file was created there now, it is the moved file.
    /// `is_free` returns true if a created file may be a moved one. `is_like` compares the texts of two files. This is slow, so
    /// the number of comparisons is proportional to the number of files, not to the number of pairs.
    pub(super) fn of<'b>(
        changes: &'a [Change],
        back: impl Fn(&Path) -> Option<&'b Path>,
        is_free: impl Fn(&Path) -> bool,
        mut is_like: impl FnMut(&Change, &Change) -> bool,
    ) -> Self {
        let mut made: BTreeMap<&Path, &Change> = (changes.iter())
            .filter(|it| it.before.is_none() && is_file(&it.after) && is_free(&it.path))
            .map(|it| (it.path.as_path(), it))
            .collect();
        let gone = changes.iter();
        let mut gone: Vec<_> = gone
            .filter(|it| is_file(&it.before) && it.after.is_none())
            .collect();
        let mut moves = Self::default();
        gone.retain(|it| {
            let found = back(&it.path).and_then(|name| made.remove(name));
            !moves.add(it, found)
        });
        // A file without a copy is like no other one.
        let mut same: HashMap<&Blob, MadeFiles<'a>> = HashMap::new();
        for it in made.into_values() {
            if let Some(blob) = blob(&it.after) {
                same.entry(blob).or_default().insert(reversed(&it.path), it);
            }
        }
        gone.retain(|it| {
            let same = blob(&it.before).and_then(|it| same.get_mut(it));
            let found = same.and_then(|same| {
                let end = nearest(same, &reversed(&it.path)).next()?.0.clone();
                same.remove(&end)
            });
            !moves.add(it, found)
        });
        let mut made: MadeFiles<'a> = same.into_values().flatten().collect();
        let is_few = gone.len() * made.len() <= MOST_PAIRS;
        for change in gone {
            let end = reversed(&change.path);
            let near = nearest(&made, &end);
            let near = near.take_while(|(other, _)| is_few || other.first() == end.first());
            let most = if is_few { MOST_PAIRS } else { MOST_OF_NAME };
            let found = (near.take(most))
                .find(|(_, it)| is_like(change, it))
                .map(|(end, _)| end.clone());
            moves.add(change, found.and_then(|end| made.remove(&end)));
        }
        moves
    }

    /// Returns true if a change is the removal of a file that was moved.
    pub(super) fn is_old(&self, change: &Change) -> bool {
        self.gone.contains(change.path.as_path())
    }

    /// Returns the removal of the file that was moved to this path.
    pub(super) fn to(&self, path: &Path) -> Option<&'a Change> {
        self.made.get(path).copied()
    }

    fn add(&mut self, gone: &'a Change, made: Option<&'a Change>) -> bool {
        if let Some(made) = made {
            self.gone.insert(&gone.path);
            self.made.insert(&made.path, gone);
        }
        made.is_some()
    }
}

fn reversed(path: &Path) -> ReversedPath<'_> {
    path.components().rev().collect()
}

/// Returns the files, sorted by the number of components at the end of their paths that are the same as in `end`. The file with
/// the most such components comes first.
fn nearest<'m, 'a>(
    files: &'m MadeFiles<'a>,
    end: &'m ReversedPath<'a>,
) -> impl Iterator<Item = (&'m ReversedPath<'a>, &'m &'a Change)> {
    let mut above = files.range(..end.clone()).rev().peekable();
    let mut below = files.range(end.clone()..).peekable();
    std::iter::from_fn(move || {
        if common(&mut above, end) > common(&mut below, end) {
            above.next()
        } else {
            below.next().or_else(|| above.next())
        }
    })
}

/// Returns the number of trailing components that the next path of `files` has in common with `end`. Returns 0 if there is no
/// next path.
fn common<'m, 'a: 'm, V>(
    files: &mut Peekable<impl Iterator<Item = (&'m ReversedPath<'a>, V)>>,
    end: &ReversedPath<'_>,
) -> Option<usize> {
    let (next, _) = files.peek()?;
    let both = next.iter().zip(end);
    Some(both.take_while(|(one, other)| one == other).count())
}

fn is_file(entry: &Option<Entry>) -> bool {
    matches!(entry, Some(Entry::File { .. }))
}

/// Returns the copy of a file's content.
pub(super) fn blob(entry: &Option<Entry>) -> Option<&Blob> {
    match entry {
        Some(Entry::File { blob, .. }) => blob.as_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Option<Entry> {
        let blob = (!text.is_empty()).then(|| Blob::of(text.as_bytes()));
        Some(Entry::File { mode: 0o644, blob })
    }

    /// The files that changes remove and make: their paths and texts. A file without a text has no copy.
    fn changes(gone: &[(&str, &str)], made: &[(&str, &str)]) -> Vec<Change> {
        let change = |path: &str, before, after| Change {
            path: path.into(),
            before,
            after,
        };
        let gone = gone
            .iter()
            .map(|(path, text)| change(path, file(text), None));
        let made = made
            .iter()
            .map(|(path, text)| change(path, None, file(text)));
        gone.chain(made).collect()
    }

    /// Checks the moves, as the old and the new paths. No two texts are alike.
    fn check(gone: &[(&str, &str)], made: &[(&str, &str)], expected: &[(&str, &str)]) {
        let changes = changes(gone, made);
        let moves = MovedFiles::of(&changes, |_| None, |_| true, |_, _| false);
        let found = moves.made.iter();
        let found: Vec<_> = found
            .map(|(to, from)| (from.path.to_str().unwrap(), to.to_str().unwrap()))
            .collect();
        assert_eq!(found, expected);
        assert!(expected.iter().all(|(from, to)| {
            moves.gone.contains(Path::new(from)) && moves.to(Path::new(to)).is_some()
        }));
    }

    #[test]
    fn files_of_the_same_bytes_are_moved() {
        check(&[("a", "1")], &[("b", "1")], &[("a", "b")]);
        check(&[("a", "1")], &[("b", "2")], &[]);
        // co does not know whether files without a copy are the same.
        check(&[("a", "")], &[("b", "")], &[]);
        check(&[("a", "1"), ("b", "1")], &[("c", "1")], &[("a", "c")]);
    }

    #[test]
    fn of_equal_files_the_longest_common_end_of_the_path_decides() {
        check(
            &[("old/a/mod", "1"), ("old/b/mod", "1"), ("old/b/x", "1")],
            &[("new/b/mod", "1"), ("new/c/x", "1"), ("z/a/mod", "1")],
            &[
                ("old/b/mod", "new/b/mod"),
                ("old/b/x", "new/c/x"),
                ("old/a/mod", "z/a/mod"),
            ],
        );
    }

    #[test]
    fn a_file_goes_back_to_its_name_with_any_text() {
        let changes = changes(&[("b", "1")], &[("a", "2"), ("c", "1")]);
        let back = |path: &Path| (path == Path::new("b")).then_some(Path::new("a"));
        let moves = MovedFiles::of(&changes, back, |_| true, |_, _| false);
        assert!(moves.to(Path::new("a")).is_some() && moves.to(Path::new("c")).is_none());
        let moves = MovedFiles::of(&changes, back, |it| it != Path::new("a"), |_, _| false);
        assert!(moves.to(Path::new("a")).is_none() && moves.to(Path::new("c")).is_some());
    }

    #[test]
    fn the_comparisons_grow_with_the_number_of_the_files() {
        // 1,000 files of one name that were moved and changed at once, and as many that are alike to none.
        for like in [true, false] {
            let paths = |dir: &str| -> Vec<_> {
                (0..1000).map(|it| format!("{dir}/d{it}/mod.rs")).collect()
            };
            let (old, new) = (paths("old"), paths("new"));
            let old: Vec<_> = old.iter().map(|it| (it.as_str(), it.as_str())).collect();
            let new: Vec<_> = new.iter().map(|it| (it.as_str(), it.as_str())).collect();
            let changes = changes(&old, &new);
            let mut compared = 0;
            let moves = MovedFiles::of(
                &changes,
                |_| None,
                |_| true,
                |from, to| {
                    compared += 1;
                    like && from.path.parent().unwrap().file_name()
                        == to.path.parent().unwrap().file_name()
                },
            );
            // The first one that is compared is the right one.
            let expected = if like { (1000, 1000) } else { (0, 4000) };
            assert_eq!((moves.made.len(), compared), expected);
        }
    }
}
