//! The output of a command as text for a model: bounded, without escape sequences, and with marks where parts are missing.

use crate::output::capture::HeadAndTail;
use crate::output::text::{Encoding, Line, LineDecoder, MAX_LINE_CHARS};
use co_text::{end_of, start_of};

/// The least number of consecutive similar lines that are folded.
const MIN_SIMILAR_LINES: usize = 16;
/// The number of lines that stay visible at each end of the folded lines.
const SIMILAR_LINES_AT_EACH_END: usize = 2;

/// The text of an output for the model, and a line about the parts that this text leaves out.
///
/// The line is separate because a program can print anything into the text. Only the line has the amounts, and the name of the
/// file with the whole output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ModelText {
    pub(crate) text: String,
    pub(crate) left_out: Option<String>,
}

/// A line of the output, or a mark that replaces lines.
#[derive(Debug, Default)]
struct Fragment {
    text: String,
    bytes: u64,
    lines: u64,
    is_mark: bool,
}

/// Returns a text of at most `max` bytes: a fifth of it from the beginning of the output, the rest from the end.
///
/// `place` is a sentence about the file with the whole output, if such a file exists.
pub(crate) fn view(ends: &HeadAndTail, max: usize, place: Option<&str>) -> ModelText {
    if ends.binary {
        return ModelText {
            text: String::new(),
            left_out: Some(with_place(
                format!("binary output, {} bytes", ends.bytes),
                place,
            )),
        };
    }
    let encoding = ends.encoding;
    let (front, back) = if ends.is_whole() {
        let (all, folded) = fold(pieces(&[&ends.head, &ends.tail], encoding, true));
        let size: usize = all.iter().map(|piece| piece.text.len()).sum();
        if size <= max {
            return ModelText {
                text: all.iter().map(|piece| piece.text.as_str()).collect(),
                left_out: folded.then(|| left_out(ends, &all, place)),
            };
        }
        (all, Vec::new())
    } else {
        let (front, _) = fold(pieces(&[&ends.head], encoding, false));
        let (back, _) = fold(pieces(&[&ends.tail], encoding, true));
        (front, back)
    };
    let shown = cut(ends, front, back, max);
    ModelText {
        text: shown.iter().map(|piece| piece.text.as_str()).collect(),
        left_out: Some(left_out(ends, &shown, place)),
    }
}

/// Returns the line about all parts of the output that are missing in the shown fragments.
fn left_out(ends: &HeadAndTail, shown: &[Fragment], place: Option<&str>) -> String {
    let (lines, bytes) = missing(ends, shown.iter().filter(|piece| !piece.is_mark));
    with_place(format!("co left out {lines} lines, {bytes} bytes"), place)
}

fn with_place(text: String, place: Option<&str>) -> String {
    match place {
        Some(place) => format!("{text}; {place}"),
        None => text,
    }
}

/// Returns how much of the output the shown fragments leave out: the number of lines, and the number of bytes.
fn missing<'a>(ends: &HeadAndTail, shown: impl Iterator<Item = &'a Fragment>) -> (u64, u64) {
    shown.fold((ends.lines, ends.bytes), |(lines, bytes), piece| {
        (
            lines.saturating_sub(piece.lines),
            bytes.saturating_sub(piece.bytes),
        )
    })
}

/// Returns the lines of a part of the output. Omits an unfinished last line, unless the part reaches the end of the output or
/// consists of this line only.
fn pieces(stretches: &[&[u8]], encoding: Encoding, to_end: bool) -> Vec<Fragment> {
    // A line cannot be longer than the whole text.
    let longest = stretches.iter().map(|stretch| stretch.len()).sum::<usize>();
    let mut text = LineDecoder::roomy(encoding, longest.max(MAX_LINE_CHARS));
    for stretch in stretches {
        text.feed(stretch);
    }
    if to_end {
        text.finish();
    }
    let whole = |line: Line| Fragment {
        text: line.text + "\n",
        bytes: line.raw,
        lines: 1,
        is_mark: false,
    };
    let mut found: Vec<Fragment> = text.take().into_iter().map(whole).collect();
    if to_end || found.is_empty() {
        found.extend(text.rest().map(|line| Fragment {
            text: line.text,
            bytes: line.raw,
            lines: u64::from(to_end),
            is_mark: false,
        }));
    }
    found
}

/// Folds consecutive lines that differ only in numbers. Also returns true if any lines were folded.
fn fold(pieces: Vec<Fragment>) -> (Vec<Fragment>, bool) {
    let mut folded = Vec::with_capacity(pieces.len());
    let mut any = false;
    let mut run: Vec<Fragment> = Vec::new();
    for piece in pieces {
        if run
            .first()
            .is_some_and(|first| !alike(&first.text, &piece.text))
        {
            any |= close(&mut run, &mut folded);
        }
        run.push(piece);
    }
    any |= close(&mut run, &mut folded);
    (folded, any)
}

fn close(run: &mut Vec<Fragment>, folded: &mut Vec<Fragment>) -> bool {
    let long = run.len() >= MIN_SIMILAR_LINES;
    if long {
        let last = run.split_off(run.len() - SIMILAR_LINES_AT_EACH_END);
        let middle = run.split_off(SIMILAR_LINES_AT_EACH_END);
        folded.append(run);
        folded.push(Fragment {
            text: format!(
                "[{} more lines alike but for digits left out]\n",
                middle.len()
            ),
            bytes: middle.iter().map(|piece| piece.bytes).sum(),
            lines: middle.len() as u64,
            is_mark: true,
        });
        folded.extend(last);
    } else {
        folded.append(run);
    }
    long
}

/// Returns true if two lines are equal or differ only in numbers. Lines without letters are data, so they must be equal.
fn alike(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    one.contains(char::is_alphabetic) && without_digits(one).eq(without_digits(other))
}

fn without_digits(text: &str) -> impl Iterator<Item = char> {
    let mut digits = false;
    text.chars().filter_map(move |c| {
        let repeated = digits && c.is_ascii_digit();
        digits = c.is_ascii_digit();
        (!repeated).then_some(if digits { '0' } else { c })
    })
}

/// Returns the beginning of `front`, a mark for the missing part, and the end of `back`. If `back` is empty, takes the end of
/// `front` instead.
fn cut(
    ends: &HeadAndTail,
    mut front: Vec<Fragment>,
    mut back: Vec<Fragment>,
    max: usize,
) -> Vec<Fragment> {
    let mark = |(lines, bytes)| Fragment {
        text: format!("[{lines} lines, {bytes} bytes left out]\n"),
        is_mark: true,
        ..Fragment::default()
    };
    // The longest possible mark; a cut line needs one more newline.
    let room = max.saturating_sub(mark((ends.lines, ends.bytes)).text.len() + 1);
    let mut taken = 0;
    let fits = front
        .iter()
        .take_while(|piece| {
            taken += piece.text.len();
            taken <= room / 5
        })
        .count();
    let rest = front.split_off(fits);
    if back.is_empty() {
        back = rest;
    } else if fits == 0 {
        front.extend(rest.into_iter().next().map(|piece| start(piece, room / 5)));
    }
    if front.is_empty() && !back.is_empty() {
        front.push(start(std::mem::take(&mut back[0]), room / 5));
    }
    let left = room - front.iter().map(|piece| piece.text.len()).sum::<usize>();
    taken = 0;
    let fits = back
        .iter()
        .rev()
        .take_while(|piece| {
            taken += piece.text.len();
            taken <= left
        })
        .count();
    let mut kept = back.split_off(back.len() - fits);
    if let (true, Some(piece)) = (kept.is_empty(), back.pop()) {
        kept.push(end(piece, left));
    }
    let mark = mark(missing(ends, front.iter().chain(&kept)));
    if let Some(last) = front.last_mut()
        && !last.text.is_empty()
        && !last.text.ends_with('\n')
    {
        last.text.push('\n');
    }
    front.push(mark);
    front.append(&mut kept);
    front
}

/// Returns a fragment with the first `most` bytes of a line that is too long.
fn start(piece: Fragment, most: usize) -> Fragment {
    part(start_of(&piece.text, most))
}

/// Returns a fragment with the last `most` bytes of a line that is too long.
fn end(piece: Fragment, most: usize) -> Fragment {
    part(end_of(&piece.text, most))
}

fn part(text: &str) -> Fragment {
    Fragment {
        bytes: text.len() as u64,
        lines: 0,
        text: text.to_owned(),
        is_mark: false,
    }
}

#[cfg(test)]
mod tests;
