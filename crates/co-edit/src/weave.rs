//! A text that several authors change. Its owner may accept these changes or undo them.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use crate::diff::{Hunk, hunks};
use crate::lines;
use crate::slide::{PreferredLines, slide};

/// A text, and the lines that authors removed from it.
///
/// A change of an author is open until the owner accepts it. Each author has a base: the text without the open changes of this
/// author. The base includes the changes of all other authors.
#[derive(Debug, Clone)]
pub struct Weave {
    lines: Vec<WovenLine>,
    /// True if the text ends with a line break or is empty.
    ends: bool,
    /// True if the base of [`Weave::FIRST`] ends with a line break or is empty.
    base_ends: bool,
}

/// The mark of a change on a line: the author and the number of the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    pub author: usize,
    /// The number of the change.
    pub change: usize,
}

/// The one who makes an edit: an author or the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditBy {
    /// The owner changes the text. Each base gets this change at once.
    Owner,
    Author(Mark),
    /// The owner undoes changes of this author.
    TakingBack(usize),
}

#[derive(Debug, Clone)]
struct WovenLine {
    /// The text of the line, with its line break.
    text: String,
    /// The change that added the line; none if the owner added it.
    by: Option<Mark>,
    is_accepted: bool,
    /// The change of an author that removed the line; none if the text has the line.
    gone: Option<Mark>,
}

/// A line in the part of a text that an edit replaces.
struct Candidate {
    line: WovenLine,
    /// True if the line was removed earlier. Then the edit may bring it back.
    was_gone: bool,
    /// True if the line stands below all lines that the edit removes.
    is_behind: bool,
}

impl Weave {
    /// The number of the first author. Only the base of this author may lack a line break at its end.
    pub const FIRST: usize = 0;

    /// Makes a weave of a text that the first author changed from `base` to `now`. `change` is the number of this change.
    pub fn new(base: &str, now: &str, change: usize) -> Self {
        let base = Ending::of(base);
        let line = |text: &&str| WovenLine {
            text: (*text).to_owned(),
            by: None,
            is_accepted: false,
            gone: None,
        };
        let mut weave = Self {
            lines: lines(&base.text).iter().map(line).collect(),
            ends: base.ends,
            base_ends: base.ends,
        };
        let author = Self::FIRST;
        weave.edit(now, EditBy::Author(Mark { author, change }));
        weave
    }

    /// Returns the text.
    pub fn text(&self) -> String {
        let shown = self.lines.iter().filter(|it| it.is_shown());
        joined(shown, self.ends)
    }

    /// Returns the base of an author: the text without the open changes of this author.
    pub fn base(&self, author: usize) -> String {
        let base = self.lines.iter().filter(|it| it.is_base(author));
        joined(base, author != Self::FIRST || self.base_ends)
    }

    /// Changes the text to `now`.
    ///
    /// - A line that an author removes stays in the base of this author. A line that the owner removes is deleted.
    /// - A removed line comes back if the edit adds the same line at the same place. Other removed lines of this place stay above
    ///   the added lines, or below them if they were below the replaced lines.
    /// - If the owner replaces lines of an author, the lines that the author had replaced are deleted.
    /// - If the owner undoes lines of an author, other lines of this author that were removed at the same place are deleted too.
    pub fn edit(&mut self, now: &str, by: EditBy) {
        let old_last = self.last_of_base().map(str::to_owned);
        if let Some(author) = self.returned_to(now, by) {
            self.lines.retain(|it| !it.is_by(author));
            for line in &mut self.lines {
                line.gone = line.gone.filter(|it| it.author != author);
            }
            return self.set_ends(by, &Ending::of(now), old_last.as_deref());
        }
        let now = Ending::of(now);
        let shown = self.places(WovenLine::is_shown);
        let text = joined(shown.iter().map(|at| &self.lines[*at]), true);
        let mut changes = hunks(&text, &now.text);
        self.prefer_own_lines(&mut changes, &lines(&text), &shown, by);
        if by == EditBy::Owner {
            let replaces = changes.iter().filter(|it| !it.text.is_empty());
            replaces.for_each(|it| self.forget_replaced(it.at.clone()));
        }
        let shown = self.places(WovenLine::is_shown);
        let mut rest = std::mem::take(&mut self.lines)
            .into_iter()
            .enumerate()
            .peekable();
        for change in &changes {
            let start = change.at.start.checked_sub(1).map_or(0, |it| shown[it] + 1);
            let end = shown.get(change.at.end).copied().unwrap_or(usize::MAX);
            let last = change.at.clone().next_back().map(|it| shown[it]);
            while let Some((_, line)) = rest.next_if(|(at, _)| *at < start) {
                self.lines.push(line);
            }
            let mut place = Vec::new();
            while let Some((at, mut line)) = rest.next_if(|(at, _)| *at < end) {
                let was_gone = !line.is_shown();
                if was_gone || line.remove_by(by) {
                    place.push(Candidate {
                        line,
                        was_gone,
                        is_behind: last.is_some_and(|last| at > last),
                    });
                }
            }
            self.put(place, &change.text, by);
        }
        self.lines.extend(rest.map(|(_, line)| line));
        self.set_ends(by, &now, old_last.as_deref());
    }

    /// Turns some changes of an author into changes of the owner. `accepted` is the new base of the author: it includes the
    /// accepted changes, and the owner may have edited their lines. If a line of the text equalled the old base and differs from
    /// the new one, the line is marked as belonging to the change `change`.
    pub fn accept(&mut self, author: usize, accepted: &str, change: usize) {
        let accepted = Ending::of(accepted);
        let has = |it: &WovenLine| it.is_shown() || it.is_base(author);
        let known = self.places(has);
        let text = joined(known.iter().map(|at| &self.lines[*at]), true);
        let mark = Mark { author, change };
        let mut changes = hunks(&text, &accepted.text);
        // Of equal lines, those that are not the author's stay as they are.
        let differs = |it: &WovenLine| it.is_shown() != it.is_base(author);
        let preferred = PreferredLines {
            removed: |at: usize| differs(&self.lines[known[at]]),
            added: |_, _: &str| false,
        };
        slide(&mut changes, &lines(&text), &preferred);
        let mut changes = changes.into_iter().peekable();
        let mut index = 0;
        let mut woven: Vec<WovenLine> = Vec::new();
        // The first line of the lines that differ, and whether changes among them are accepted.
        let mut group = (0, false);
        for mut line in std::mem::take(&mut self.lines) {
            if !has(&line) {
                woven.push(line);
                continue;
            }
            while let Some(added) = changes.next_if(|it| it.at.end <= index) {
                woven.extend(accepted_lines(&added, mark));
            }
            let is_accepted = changes.peek().is_none_or(|it| index < it.at.start);
            index += 1;
            if line.is_shown() && line.is_base(author) {
                settle(&mut woven, author, group);
                if !is_accepted {
                    (line.by, line.is_accepted) = (Some(mark), false);
                }
                woven.push(line);
                group = (woven.len(), false);
            } else if is_accepted {
                group.1 |= line.is_by(author);
                line.is_accepted |= line.is_by(author);
                woven.push(line);
            } else if line.is_shown() {
                woven.push(line);
            } else {
                group.1 = true;
            }
        }
        woven.extend(changes.flat_map(|it| accepted_lines(&it, mark)));
        settle(&mut woven, author, group);
        self.lines = woven;
        if author == Self::FIRST {
            self.base_ends = accepted.ends;
        }
    }

    /// Returns, for each hunk between the base of an author and the text, the changes that the hunk consists of. These may
    /// include changes of other authors. A hunk is a pair of line ranges: one of the base, and one of the text.
    pub fn changes_of(
        &self,
        author: usize,
        hunks: &[(Range<usize>, Range<usize>)],
    ) -> Vec<Vec<Mark>> {
        let of_base = self.places(|it| it.is_base(author));
        let of_text = self.places(WovenLine::is_shown);
        let of_hunk = |(base, now): &(Range<usize>, Range<usize>)| {
            let of_base = of_base.get(base.clone()).unwrap_or_default();
            let of_text = of_text.get(now.clone()).unwrap_or_default();
            let differs = |it: &usize| {
                let line = &self.lines[*it];
                line.is_shown() != line.is_base(author)
            };
            let concerned = of_base.iter().chain(of_text).copied().filter(differs);
            let concerned: Vec<_> = concerned.collect();
            let (Some(first), Some(last)) = (concerned.iter().min(), concerned.iter().max()) else {
                return Vec::new();
            };
            let is_gone = |it: &&WovenLine| !it.is_shown();
            let above = self.lines[..*first].iter().rev().take_while(is_gone);
            let below = self.lines[last + 1..].iter().take_while(is_gone);
            let all = above.chain(&self.lines[*first..=*last]).chain(below);
            sorted(all.flat_map(|it| it.open_mark().into_iter().chain(it.gone)))
        };
        hunks.iter().map(of_hunk).collect()
    }

    /// Returns the changes that added the lines of a range, whether accepted or open. For an empty range, returns the changes
    /// that removed lines at this place.
    pub fn changes_at(&self, now: Range<usize>) -> Vec<Mark> {
        let shown = self.places(WovenLine::is_shown);
        let lines = shown.get(now.clone()).unwrap_or_default();
        let start = now.start.checked_sub(1).map_or(0, |it| shown[it] + 1);
        let is_gone = |it: &&WovenLine| now.is_empty() && !it.is_shown();
        let gone = self.lines[start..].iter().take_while(is_gone);
        let gone = gone.filter_map(|it| it.gone);
        sorted(lines.iter().filter_map(|at| self.lines[*at].by).chain(gone))
    }

    /// Returns the first author whose base equals `now`: then none of this author's changes is left. Returns `None` if an author
    /// makes the edit.
    fn returned_to(&self, now: &str, by: EditBy) -> Option<usize> {
        let authors = match by {
            EditBy::Author(_) => return None,
            EditBy::TakingBack(author) => vec![Mark { author, change: 0 }],
            EditBy::Owner => {
                let all = self.lines.iter();
                sorted(all.flat_map(|it| it.open_mark().into_iter().chain(it.gone)))
            }
        };
        let mut authors: Vec<_> = authors.iter().map(|it| it.author).collect();
        authors.dedup();
        authors.into_iter().find(|author| self.base(*author) == now)
    }

    /// Chooses which of several equal lines an edit removes or brings back: lines of the author of the edit come first. For an
    /// edit of the owner, the lines of any author come first. `shown` has the indices of the lines `old`.
    fn prefer_own_lines(&self, changes: &mut [Hunk], old: &[&str], shown: &[usize], by: EditBy) {
        let is_own = |mark: &Mark| match by {
            EditBy::Owner => true,
            EditBy::Author(own) => mark.author == own.author,
            EditBy::TakingBack(author) => mark.author == author,
        };
        let preferred = PreferredLines {
            removed: |at: usize| {
                self.lines[shown[at]]
                    .open_mark()
                    .is_some_and(|it| is_own(&it))
            },
            added: |at: usize, text: &str| {
                let start = at.checked_sub(1).map_or(0, |it| shown[it] + 1);
                let end = shown.get(at).copied().unwrap_or(self.lines.len());
                let mut gone = self.lines[start..end].iter();
                gone.any(|it| it.text == text && it.gone.as_ref().is_some_and(is_own))
            },
        };
        slide(changes, old, &preferred);
    }

    fn places(&self, is: impl Fn(&WovenLine) -> bool) -> Vec<usize> {
        let places = self.lines.iter().enumerate().filter(|(_, it)| is(it));
        places.map(|(at, _)| at).collect()
    }

    /// Drops the lines that authors had replaced by the lines `removed`, because the owner now replaces the lines `removed`.
    ///
    /// The owner may replace only some lines of an author. If the author put as many lines as there were before, each new line
    /// corresponds to one older line. Otherwise all older lines stay.
    fn forget_replaced(&mut self, removed: Range<usize>) {
        let shown = self.places(WovenLine::is_shown);
        let removed = &shown[removed];
        let mut rest = removed;
        while let Some((at, above)) = rest.split_last() {
            rest = above;
            let Some(Mark { author, .. }) = self.lines[*at].open_mark() else {
                continue;
            };
            let is_new = |it: &WovenLine| it.is_shown() && it.is_by(author);
            let is_old = |it: &WovenLine| it.gone.is_some_and(|it| it.author == author);
            let count =
                |lines: &[WovenLine]| lines.iter().rev().take_while(|it| is_new(it)).count();
            let first = at - count(&self.lines[..*at]);
            let new = self.lines[first..]
                .iter()
                .take_while(|it| is_new(it))
                .count();
            let old = self.lines[..first].iter().rev();
            let old = old.take_while(|it| is_old(it)).count();
            rest = &rest[..rest.partition_point(|it| *it < first)];
            let stays = |it: &usize| removed.binary_search(it).is_err();
            if !(first..first + new).any(|it| stays(&it)) {
                self.lines.drain(first - old..first);
            } else if old == new {
                let start = first - old;
                let mut old: Vec<_> = self.lines.drain(start..first + new).collect();
                let new = old.split_off(new);
                let pairs = old.into_iter().zip(new).zip(first..);
                let paired: Vec<_> = pairs
                    .flat_map(|((old, new), at)| stays(&at).then_some(old).into_iter().chain([new]))
                    .collect();
                self.lines.splice(start..start, paired);
            }
        }
    }

    /// Appends the part of the text that an edit replaces, with the added lines, to the lines of the weave.
    fn put(&mut self, mut place: Vec<Candidate>, added: &str, by: EditBy) {
        if let EditBy::TakingBack(author) = by {
            let is_of_author = |it: &Candidate| it.was_gone && it.line.is_by(author);
            let added: HashSet<_> = lines(added).into_iter().collect();
            place.retain(|it| !is_of_author(it) || added.contains(it.line.text.as_str()));
        }
        let gone: Vec<_> = (place.iter().enumerate())
            .filter(|(_, it)| it.was_gone)
            .map(|(at, _)| at)
            .collect();
        let old = joined(gone.iter().map(|at| &place[*at].line), true);
        let end_of_place = place.len();
        let mut rest = place.into_iter().enumerate().peekable();
        let comes_back = |candidate: Candidate| WovenLine {
            gone: match candidate.was_gone {
                true => None,
                false => candidate.line.gone,
            },
            ..candidate.line
        };
        for change in hunks(&old, added) {
            let [start, end] = [change.at.start, change.at.end]
                .map(|it| gone.get(it).copied().unwrap_or(end_of_place));
            while let Some((_, it)) = rest.next_if(|(at, _)| *at < start) {
                self.lines.push(comes_back(it));
            }
            let mut behind = Vec::new();
            while let Some((_, it)) = rest.next_if(|(at, _)| *at < end) {
                match it.is_behind {
                    true => behind.push(it.line),
                    false => self.lines.push(it.line),
                }
            }
            self.lines
                .extend(lines(&change.text).iter().map(|text| WovenLine {
                    text: (*text).to_owned(),
                    by: by.mark(),
                    is_accepted: false,
                    gone: None,
                }));
            self.lines.append(&mut behind);
        }
        self.lines.extend(rest.map(|(_, it)| comes_back(it)));
    }

    /// Updates whether the text and the base of the first author end with a line break. `now` is the new text. `old` is the last
    /// line of the base before the edit.
    fn set_ends(&mut self, by: EditBy, now: &Ending, old: Option<&str>) {
        let was_ending = std::mem::replace(&mut self.ends, now.ends);
        if by.mark().is_some_and(|it| it.author == Self::FIRST) {
            return;
        }
        let last = self.last_of_base();
        let is_last_of_now = last == lines(&now.text).last().copied();
        self.base_ends = match (is_last_of_now, last == old) {
            (true, true) if now.ends == was_ending => self.base_ends,
            (true, _) => now.ends,
            (false, true) => self.base_ends,
            (false, false) => true,
        };
    }

    fn last_of_base(&self) -> Option<&str> {
        let last = self.lines.iter().rfind(|it| it.is_base(Self::FIRST));
        last.map(|it| it.text.as_str())
    }
}

impl EditBy {
    fn mark(self) -> Option<Mark> {
        match self {
            Self::Author(mark) => Some(mark),
            Self::Owner | Self::TakingBack(_) => None,
        }
    }
}

impl WovenLine {
    fn is_shown(&self) -> bool {
        self.gone.is_none()
    }

    /// Returns the change that added the line, if the owner has not accepted the change.
    fn open_mark(&self) -> Option<Mark> {
        self.by.filter(|_| !self.is_accepted)
    }

    fn is_by(&self, author: usize) -> bool {
        self.open_mark().is_some_and(|it| it.author == author)
    }

    fn is_base(&self, author: usize) -> bool {
        !self.is_by(author) && self.gone.is_none_or(|it| it.author == author)
    }

    /// Marks the line as removed. Returns false if no base contains the line any more, so that it can be deleted.
    fn remove_by(&mut self, by: EditBy) -> bool {
        match by.mark() {
            Some(mark) if !self.is_by(mark.author) => {
                self.gone = Some(mark);
                true
            }
            _ => false,
        }
    }
}

/// A text that ends with a line break. If the original text had no line break at its end, one was added.
struct Ending<'a> {
    text: Cow<'a, str>,
    /// True if the original text ends with a line break or is empty.
    ends: bool,
}

impl<'a> Ending<'a> {
    fn of(text: &'a str) -> Self {
        // The last line break is not a part of a line here: else a line that follows would change the one above.
        let ends = text.is_empty() || text.ends_with('\n');
        let text = match ends {
            true => text.into(),
            false => format!("{text}\n").into(),
        };
        Self { text, ends }
    }
}

fn sorted(marks: impl Iterator<Item = Mark>) -> Vec<Mark> {
    let all: BTreeSet<_> = marks.collect();
    all.into_iter().collect()
}

fn joined<'a>(lines: impl Iterator<Item = &'a WovenLine>, ends: bool) -> String {
    let mut text: String = lines.map(|it| it.text.as_str()).collect();
    if !ends {
        text.pop();
    }
    text
}

/// Accepts the removed lines of `author` from the index `first` on, if `is_accepted` is true: changes around these lines were
/// accepted.
fn settle(woven: &mut [WovenLine], author: usize, (first, is_accepted): (usize, bool)) {
    let gone = woven[first..].iter_mut().filter(|it| !it.is_shown());
    for line in gone.filter(|it| is_accepted && it.is_by(author)) {
        line.is_accepted = true;
    }
}

/// Returns the lines of an accepted change, as lines that the author's base has and the text lacks.
fn accepted_lines(change: &Hunk, mark: Mark) -> Vec<WovenLine> {
    let line = |text: &&str| WovenLine {
        text: (*text).to_owned(),
        by: None,
        is_accepted: false,
        gone: Some(mark),
    };
    lines(&change.text).iter().map(line).collect()
}

#[cfg(test)]
mod tests;
