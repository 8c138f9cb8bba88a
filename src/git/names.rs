//! The names of objects and of refs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use co_policy::one_line;

/// The numbers of hexadecimal digits that names of objects have.
const LENGTHS: [usize; 2] = [40, 64];

/// The start of the names of branches.
const BRANCHES: &str = "refs/heads/";
/// The start of the names of tags.
const TAGS: &str = "refs/tags/";

/// The whole name of an object, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObjectName(String);

/// The target of a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefTarget {
    Object(ObjectName),
    /// It stands for another ref.
    Ref,
}

/// The refs of a repository, by their whole names.
pub type Refs = BTreeMap<String, RefTarget>;

/// The target of HEAD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Head {
    /// The whole name of a branch, which may not exist yet.
    Branch(String),
    Detached(ObjectName),
}

impl ObjectName {
    /// Returns the name that a text is; none for another text.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (LENGTHS.contains(&text.len()) && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// Returns the name with these bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns the name that git writes for no object, of the same length.
    pub(super) fn zero(&self) -> String {
        "0".repeat(self.0.len())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first digits, for a person.
    pub(super) fn short(&self) -> &str {
        &self.0[..7]
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Head {
    /// Reads the text of a file `HEAD`; none if it has another form.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = str::from_utf8(text).ok()?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        match text.strip_prefix("ref: ") {
            Some(name) if name.starts_with(BRANCHES) && is_ref_name(name) => {
                Some(Self::Branch(name.to_owned()))
            }
            Some(_) => None,
            None => ObjectName::parse(text).map(Self::Detached),
        }
    }

    /// Returns the words that follow `HEAD is`, for a person.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Branch(name) => format!("on branch {}", one_line(short(name))),
            Self::Detached(object) => format!("detached at {}", object.short()),
        }
    }
}

/// Reads what `git for-each-ref` with [`super::REF_FORMAT`] prints.
///
/// # Errors
/// It has another form, or a name that git would refuse: a clause.
pub fn parse_refs(text: &[u8]) -> Result<Refs, String> {
    let odd = || "git lists refs in an unknown form".to_owned();
    let text = str::from_utf8(text).map_err(|_| "the name of a ref is not UTF-8".to_owned())?;
    let mut refs = Refs::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let (Some(object), Some(name), Some(symbolic), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(odd());
        };
        let object = ObjectName::parse(object).ok_or_else(odd)?;
        if !is_ref_name(name) {
            return Err(format!("{} is no name of a ref", one_line(name)));
        }
        let target = match symbolic {
            "" => RefTarget::Object(object),
            _ => RefTarget::Ref,
        };
        refs.insert(name.to_owned(), target);
    }
    Ok(refs)
}

/// Returns the objects that refs name.
pub fn objects(refs: &Refs) -> BTreeSet<&ObjectName> {
    let mut found = BTreeSet::new();
    for target in refs.values() {
        if let RefTarget::Object(object) = target {
            found.insert(object);
        }
    }
    found
}

/// Returns names of objects as git reads them from its input, a line each.
pub fn object_lines<'a>(objects: impl IntoIterator<Item = &'a ObjectName>) -> Vec<u8> {
    let lines = objects.into_iter().map(|it| format!("{it}\n"));
    lines.collect::<String>().into_bytes()
}

/// Returns a branch or tag as a person names it; none for other refs.
pub(super) fn shown(name: &str) -> Option<String> {
    let kinds = [(BRANCHES, "branch"), (TAGS, "tag")];
    kinds.iter().find_map(|(start, kind)| {
        let name = name.strip_prefix(start)?;
        Some(format!("{kind} {}", one_line(name)))
    })
}

/// Returns a branch without the start of its name.
pub(super) fn short(branch: &str) -> &str {
    branch.strip_prefix(BRANCHES).unwrap_or(branch)
}

/// Returns whether git accepts this as the whole name of a ref: the rules of `git check-ref-format`, and no start with a dash.
fn is_ref_name(name: &str) -> bool {
    let special = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let fits =
        |part: &str| !part.is_empty() && !part.starts_with(['.', '-']) && !part.ends_with(".lock");
    name.starts_with("refs/")
        && !name.contains(special)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
        && name.split('/').all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_git_accepts_are_names_of_refs() {
        for name in [
            "refs/heads/main",
            "refs/heads/a/b.c",
            "refs/stash",
            "refs/heads/é@",
        ] {
            assert!(is_ref_name(name), "{name}");
        }
        for name in [
            "HEAD",
            "refs",
            "refs/",
            "refs/heads/",
            "refs/heads//a",
            "refs/../../x",
            "refs/heads/../../../x",
            "refs/heads/.a",
            "refs/heads/a.lock",
            "refs/heads/a.lock/b",
            "refs/heads/a.",
            "refs/heads/a b",
            "refs/heads/a\u{1}",
            "refs/heads/a~1",
            "refs/heads/a@{1}",
            "refs/heads/-a",
            "refs/heads/a\\b",
        ] {
            assert!(!is_ref_name(name), "{name}");
        }
    }

    #[test]
    fn heads_and_lists_of_other_forms_are_refused() {
        let name = "1".repeat(40);
        assert_eq!(
            Head::parse(b"ref: refs/heads/a\n"),
            Some(Head::Branch("refs/heads/a".to_owned()))
        );
        assert!(matches!(
            Head::parse(name.as_bytes()),
            Some(Head::Detached(_))
        ));
        for text in [
            "",
            "ref: refs/tags/a\n",
            "ref: ../x\n",
            "ref: refs/heads/a\nb\n",
            "abc\n",
        ] {
            assert_eq!(Head::parse(text.as_bytes()), None, "{text}");
        }
        let list = |text: String| parse_refs(text.as_bytes());
        assert_eq!(list(format!("{name} refs/heads/a \n")).unwrap().len(), 1);
        let symbolic = list(format!("{name} refs/heads/a refs/heads/b\n")).unwrap();
        assert_eq!(symbolic["refs/heads/a"], RefTarget::Ref);
        for line in [
            format!("{name} refs/heads/../x \n"),
            format!("{name} refs/heads/a\n"),
            format!("{name} refs/heads/a b c\n"),
            "12 refs/heads/a \n".to_owned(),
        ] {
            assert!(list(line.clone()).is_err(), "{line}");
        }
    }
}
