//! The changes of a repository, as they are shown, kept and noted in journals.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::names::{self, Head, ObjectName, RefTarget, Refs};
use super::stash::{STASH, StashChange};
use co_policy::one_line;

/// The changes of a repository: from a state before to one after.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryChange {
    /// Branches and tags, in the order of their names.
    pub refs: Vec<RefChange>,
    /// HEAD before and after, also if both are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<HeadChange>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stash: Option<StashChange>,
    /// The changes of the index, in the order of their paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub index: Vec<PathChange>,
}

/// The change of a ref.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefChange {
    /// The whole name.
    pub name: String,
    pub before: Option<ObjectName>,
    pub after: Option<ObjectName>,
}

/// The change of HEAD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadChange {
    pub before: Head,
    pub after: Head,
}

/// The change of a path in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathChange {
    pub path: String,
    /// More than one after a conflict.
    pub before: Vec<StagedFile>,
    pub after: Vec<StagedFile>,
}

/// A file in the index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StagedFile {
    pub mode: u32,
    pub object: ObjectName,
    /// 0, but 1 to 3 after a conflict.
    pub stage: u8,
}

/// The mode of a submodule, whose commit belongs to another repository.
const SUBMODULE: u32 = 0o160_000;

impl StagedFile {
    pub fn is_submodule(&self) -> bool {
        self.mode == SUBMODULE
    }
}

impl RepositoryChange {
    pub fn is_empty(&self) -> bool {
        let Self {
            refs, stash, index, ..
        } = self;
        refs.is_empty() && self.moved_head().is_none() && stash.is_none() && index.is_empty()
    }

    /// Returns the change of HEAD; none if HEAD stays.
    pub fn moved_head(&self) -> Option<&HeadChange> {
        self.head.as_ref().filter(|it| it.before != it.after)
    }

    /// Returns the parts of this change that `other` lacks. `other` is a part of this change.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let lacks = |it: &&RefChange| !other.refs.contains(it);
        let is_moved = |it: &HeadChange| other.moved_head() != Some(it);
        Self {
            refs: self.refs.iter().filter(lacks).cloned().collect(),
            head: self.head.clone().map(|it| match is_moved(&it) {
                true => it,
                false => HeadChange {
                    before: it.after.clone(),
                    after: it.after,
                },
            }),
            stash: self.stash.clone().filter(|_| other.stash.is_none()),
            index: match other.index.is_empty() {
                true => self.index.clone(),
                false => Vec::new(),
            },
        }
    }

    /// Returns the changed parts, as the paths at which git has them.
    pub fn paths(&self) -> Vec<PathBuf> {
        let refs = self.refs.iter().map(|it| it.name.as_str());
        let head = self.moved_head().map(|_| "HEAD");
        let stash = self.stash.as_ref().map(|_| STASH);
        let index = (!self.index.is_empty()).then_some("index");
        let all = refs.chain(head).chain(stash).chain(index);
        all.map(|it| Path::new(".git").join(it)).collect()
    }

    /// Returns the objects that refs, HEAD and the stash name afterwards.
    pub fn tips(&self) -> BTreeSet<&ObjectName> {
        let stashed = self.stash.iter().flat_map(StashChange::added);
        let stashed = stashed.map(|it| &it.object);
        let head = self.moved_head().into_iter();
        let head = head.filter_map(|it| match &it.after {
            Head::Detached(object) => Some(object),
            Head::Branch(_) => None,
        });
        self.refs
            .iter()
            .filter_map(|it| it.after.as_ref())
            .chain(head)
            .chain(stashed)
            .collect()
    }

    /// Returns the contents that the index names afterwards.
    pub fn staged(&self) -> BTreeSet<&ObjectName> {
        let files = self.index.iter().flat_map(|it| &it.after);
        files
            .filter(|it| !it.is_submodule())
            .map(|it| &it.object)
            .collect()
    }
}

impl RefChange {
    /// Returns the name for a person.
    pub fn shown(&self) -> String {
        names::shown(&self.name).unwrap_or_else(|| one_line(&self.name))
    }

    /// Returns the differences between the refs of two states, apart from the stash.
    ///
    /// # Errors
    /// A ref has changed that is no branch and no tag: a clause.
    pub fn between(before: &Refs, after: &Refs) -> Result<Vec<Self>, String> {
        let names = before.keys().chain(after.keys()).filter(|it| *it != STASH);
        let names: BTreeSet<_> = names.collect();
        let changed = names
            .into_iter()
            .filter(|it| before.get(*it) != after.get(*it));
        let change = |name: &String| {
            if names::shown(name).is_none() {
                return Err(format!("{} has changed", one_line(name)));
            }
            let object = |refs: &Refs| match refs.get(name) {
                None => Ok(None),
                Some(RefTarget::Object(object)) => Ok(Some(object.clone())),
                Some(RefTarget::Ref) => Err(format!("{} stands for another ref", one_line(name))),
            };
            Ok(Self {
                name: name.clone(),
                before: object(before)?,
                after: object(after)?,
            })
        };
        changed.map(change).collect()
    }
}
