//! The stash: a ref to its newest entry, and the log of this ref, which has them all.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

use super::Repository;
use super::names::ObjectName;

/// The ref of the newest entry.
pub const STASH: &str = "refs/stash";
/// The log, in the git directory.
pub const STASH_LOG: &str = "logs/refs/stash";

/// The change of the stash: its entries, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StashChange {
    pub before: Vec<StashEntry>,
    pub after: Vec<StashEntry>,
}

/// An entry of the stash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StashEntry {
    pub object: ObjectName,
    /// The name and address of the person, and the time, as git writes them.
    who: String,
    pub message: String,
}

impl StashEntry {
    /// Reads the log of the stash; none if it has another form.
    pub fn parse_log(log: &[u8]) -> Option<Vec<Self>> {
        str::from_utf8(log).ok()?.lines().map(Self::parse).collect()
    }

    fn parse(line: &str) -> Option<Self> {
        let (facts, message) = line.split_once('\t')?;
        let mut words = facts.splitn(3, ' ');
        let (before, object, who) = (words.next()?, words.next()?, words.next()?);
        ObjectName::parse(before)?;
        let is_text = !who.chars().chain(message.chars()).any(char::is_control);
        let (name, time) = who.rsplit_once("> ")?;
        let is_time = time
            .bytes()
            .all(|it| matches!(it, b'0'..=b'9' | b' ' | b'+' | b'-'));
        (is_text && is_time && name.contains('<')).then(|| {
            Some(Self {
                object: ObjectName::parse(object)?,
                who: who.to_owned(),
                message: message.to_owned(),
            })
        })?
    }

    fn log(entries: &[Self]) -> String {
        let mut before = entries
            .first()
            .map_or_else(String::new, |it| it.object.zero());
        let mut log = String::new();
        for Self {
            object,
            who,
            message,
        } in entries
        {
            log.push_str(&format!("{before} {object} {who}\t{message}\n"));
            before = object.to_string();
        }
        log
    }
}

impl StashChange {
    /// Returns the objects of the refs before and after.
    pub(super) fn tips(&self) -> (Option<&ObjectName>, Option<&ObjectName>) {
        (
            self.before.last().map(|it| &it.object),
            self.after.last().map(|it| &it.object),
        )
    }

    /// Returns the new entries.
    pub fn added(&self) -> impl Iterator<Item = &StashEntry> {
        self.after.iter().filter(|it| !self.before.contains(it))
    }

    /// Returns whether the stash has the new ref, but not the new log yet: git has only added a line.
    pub(super) fn is_between(&self, now: &[StashEntry]) -> bool {
        let rest = now.strip_prefix(self.before.as_slice());
        let added =
            rest.is_some_and(|it| matches!(it, [one] if Some(&one.object) == self.tips().1));
        added || now.is_empty() && self.before.is_empty()
    }
}

impl Repository {
    /// Returns the entries of the stash, oldest first.
    ///
    /// # Errors
    /// They cannot be read: a clause.
    pub fn stash(&self) -> Result<Vec<StashEntry>, String> {
        match fs::read(self.file(STASH_LOG)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(format!("the stash cannot be read: {error}")),
            Ok(log) => StashEntry::parse_log(&log)
                .ok_or_else(|| "the stash has an unknown form".to_owned()),
        }
    }

    /// Writes the log of the stash, whose ref is that of the last entry.
    pub(super) fn write_stash_log(
        &self,
        entries: &[StashEntry],
        unfinished: &str,
    ) -> Result<(), String> {
        let written = (|| {
            let log = self.file(STASH_LOG);
            fs::create_dir_all(log.parent().unwrap_or(&log))?;
            let new = self.file(&format!("{unfinished}stash"));
            fs::write(&new, StashEntry::log(entries))?;
            fs::rename(new, log)
        })();
        written.map_err(|error: io::Error| format!("the stash cannot be written: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_and_written_as_git_does() {
        let (zero, one, two) = ("0".repeat(40), "1".repeat(40), "2".repeat(40));
        let log = format!(
            "{zero} {one} A B <a@b> 1000 +0100\tWIP on main: 12 x\n{one} {two} A B <a@b> 1001 +0100\tOn main: y\n"
        );
        let entries = StashEntry::parse_log(log.as_bytes()).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(StashEntry::log(&entries), log);
        for line in [
            format!("{zero} {one} A <a@b> 1000 +0100"),
            format!("{zero} 11 A <a@b> 1000 +0100\tm"),
            format!("{zero} {one} A <a@b> x +0100\tm"),
            format!("{zero} {one} A <a@b> 1000 +0100\tm\rm"),
            format!("{zero} {one} A\tm"),
        ] {
            assert_eq!(StashEntry::parse_log(line.as_bytes()), None, "{line}");
        }
    }
}
