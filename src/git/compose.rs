//! Inverts changes of a repository, and joins several changes into one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::mem::swap;

use super::change::{HeadChange, PathChange, RefChange, RepositoryChange};
use super::names::{Head, ObjectName};
use super::stash::{StashChange, StashEntry};
use super::{StagedFile, one_line};

/// A change of one place from a state to another.
trait Transition<State: PartialEq>: Clone {
    /// Returns the states before and after.
    fn states(&mut self) -> (&mut State, &mut State);

    fn invert(&mut self) {
        let (before, after) = self.states();
        swap(before, after);
    }

    /// Adds a later change of the same place. Returns false if something else changed the place in between.
    fn add(&mut self, mut later: Self) -> bool {
        let (_, middle) = self.states();
        let (before, after) = later.states();
        let fits = middle == before;
        if fits {
            swap(middle, after);
        }
        fits
    }

    fn changes(&mut self) -> bool {
        let (before, after) = self.states();
        before != after
    }
}

impl Transition<Option<ObjectName>> for RefChange {
    fn states(&mut self) -> (&mut Option<ObjectName>, &mut Option<ObjectName>) {
        (&mut self.before, &mut self.after)
    }
}

impl Transition<Head> for HeadChange {
    fn states(&mut self) -> (&mut Head, &mut Head) {
        (&mut self.before, &mut self.after)
    }
}

impl Transition<Vec<StashEntry>> for StashChange {
    fn states(&mut self) -> (&mut Vec<StashEntry>, &mut Vec<StashEntry>) {
        (&mut self.before, &mut self.after)
    }
}

impl Transition<Vec<StagedFile>> for PathChange {
    fn states(&mut self) -> (&mut Vec<StagedFile>, &mut Vec<StagedFile>) {
        (&mut self.before, &mut self.after)
    }
}

impl RepositoryChange {
    /// Returns the change that takes this one back.
    #[must_use]
    pub fn inverse(&self) -> Self {
        let mut inverse = self.clone();
        inverse.refs.iter_mut().for_each(Transition::invert);
        inverse.head.iter_mut().for_each(Transition::invert);
        inverse.stash.iter_mut().for_each(Transition::invert);
        inverse.index.iter_mut().for_each(Transition::invert);
        inverse
    }

    /// Returns this change and a later one as one change.
    ///
    /// # Errors
    /// Something else changed the same place in between: a clause.
    pub fn then(self, later: Self) -> Result<Self, String> {
        let refs = self.refs.into_iter().chain(later.refs);
        let mut refs = joined(refs, |it| &it.name, RefChange::shown)?;
        refs.retain_mut(Transition::changes);
        let index = self.index.into_iter().chain(later.index);
        let mut index = joined(
            index,
            |it| &it.path,
            |it| format!("{} in the index", one_line(&it.path)),
        )?;
        index.retain_mut(Transition::changes);
        let head = self.head.into_iter().chain(later.head);
        let head = joined(head, |_| "", |_| "HEAD".to_owned())?.pop();
        let stash = self.stash.into_iter().chain(later.stash);
        let stash = joined(stash, |_| "", |_| "the stash".to_owned())?.pop();
        Ok(Self {
            refs,
            head,
            stash: stash.filter(|it| it.before != it.after),
            index,
        })
    }
}

/// Joins the changes of each place. `all` is in the order of time, and the result in the order of names.
fn joined<State: PartialEq, T: Transition<State>>(
    all: impl Iterator<Item = T>,
    name: impl Fn(&T) -> &str,
    shown: impl Fn(&T) -> String,
) -> Result<Vec<T>, String> {
    let mut by_name = BTreeMap::new();
    for it in all {
        match by_name.entry(name(&it).to_owned()) {
            Entry::Vacant(place) => drop(place.insert(it)),
            Entry::Occupied(mut place) => {
                if !place.get_mut().add(it) {
                    return Err(format!("{} has changed in between", shown(place.get())));
                }
            }
        }
    }
    Ok(by_name.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(digit: char) -> ObjectName {
        ObjectName::parse(&digit.to_string().repeat(40)).unwrap()
    }

    fn moves(name: &str, before: Option<char>, after: Option<char>) -> RefChange {
        RefChange {
            name: format!("refs/heads/{name}"),
            before: before.map(object),
            after: after.map(object),
        }
    }

    /// Returns a change of refs and HEAD.
    fn change(refs: &[RefChange], (before, after): (&str, &str)) -> RepositoryChange {
        let head = |name: &str| Head::Branch(format!("refs/heads/{name}"));
        RepositoryChange {
            refs: refs.to_vec(),
            head: Some(HeadChange {
                before: head(before),
                after: head(after),
            }),
            ..RepositoryChange::default()
        }
    }

    #[test]
    fn several_changes_become_one_that_can_be_taken_back() {
        let first = change(
            &[
                moves("main", Some('a'), Some('b')),
                moves("new", None, Some('b')),
            ],
            ("main", "main"),
        );
        let second = change(
            &[
                moves("new", Some('b'), None),
                moves("main", Some('b'), Some('c')),
            ],
            ("main", "side"),
        );
        let both = change(&[moves("main", Some('a'), Some('c'))], ("main", "side"));
        let joined = first.clone().then(second.clone()).unwrap();
        assert_eq!(joined, both);
        assert_eq!(
            second.inverse().then(first.inverse()).unwrap(),
            both.inverse()
        );
        let nothing = joined.clone().then(joined.inverse()).unwrap();
        assert!(nothing.is_empty());
        // HEAD is noted too, because it must not change meanwhile.
        assert_eq!(nothing.head.unwrap().before, both.head.unwrap().before);
    }

    #[test]
    fn what_the_person_changed_in_between_is_no_part_of_it() {
        let first = change(&[moves("main", Some('a'), Some('b'))], ("main", "main"));
        for (later, why) in [
            (
                change(&[moves("main", Some('c'), Some('d'))], ("main", "main")),
                "branch main has changed in between",
            ),
            (
                change(&[moves("side", None, Some('d'))], ("side", "side")),
                "HEAD has changed in between",
            ),
        ] {
            assert_eq!(first.clone().then(later).unwrap_err(), why);
        }
    }
}
