//! The lines of a run for an editor, as patches of bounded size, however much the run prints.
//!
//! Normally the screen shows every line. During a flood, each patch shows only the last screenful. After the flood, the screen
//! shows the last lines that are kept. Only lines that are shown are decoded.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::output::capture::Capture;
use crate::output::reader::SharedOutput;
use crate::output::text::{Line, LineDecoder};

/// The most new bytes between two patches. More new bytes are a flood.
const FLOOD_BYTES: u64 = 128 << 10;
/// The most new lines between two patches. More new lines are a flood.
const FLOOD_LINES: u64 = 2_000;
/// The number of lines in a screenful.
const SCREENFUL_LINES: u64 = 100;
/// The most bytes in a screenful. If lines are long, this limits the number of lines.
const SCREENFUL_BYTES: u64 = 64 << 10;
/// Replaces the hidden beginning of a line that is shown partly.
const CUT: &str = "… ";
/// The most bytes of text in one patch of the kept lines. An editor shows that many without a noticeable pause.
const PATCH_BYTES: usize = 64 << 10;
/// The most styles in one patch; text after the last style is plain. An editor needs about 10 ms for so many styles.
const MAX_STYLES: usize = 5_000;
/// The number of bytes to decode at a time for the kept lines.
const DECODE_BYTES: u64 = 64 << 10;

/// A change of the lines that a screen shows: `lines` replaces all lines from index `from` on.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct ScreenPatch {
    /// The number of lines of the run before the first line that the screen shows.
    pub skipped: u64,
    /// The index of the first changed line among the lines that the screen shows.
    pub from: usize,
    pub lines: Vec<String>,
    /// The colours and styles of `lines`.
    pub styles: Vec<Style>,
}

/// A styled part of one line of a [`ScreenPatch`].
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Style {
    /// The index of the line in [`ScreenPatch::lines`].
    pub line: usize,
    /// The byte offset in the line at which the style starts.
    pub start: usize,
    /// The byte offset in the line at which the style ends (exclusive).
    pub end: usize,
    /// The SGR parameters of the style in a normal form, such as `1;31` or `38;5;208`.
    pub sgr: String,
}

/// The lines of a run, for one editor.
#[derive(Debug)]
pub struct Screen {
    shared: Arc<SharedOutput>,
    keep: u64,
    view: Mutex<ScreenState>,
}

/// The state of a screen: its position in the output, and the lines that it shows.
#[derive(Debug)]
struct ScreenState {
    text: LineDecoder,
    /// The position up to which the output is decoded or skipped, in bytes.
    at: u64,
    /// The number of bytes that the line about binary output names, if the screen shows that line.
    summarised: u64,
    skipped: u64,
    /// The number of complete lines that the screen shows.
    shown: usize,
    /// True if the screen skipped a part of a flood. At the end, the screen then shows all kept lines, not only the last
    /// screenful.
    gap: bool,
    /// True if the screen shows an unfinished line.
    open: bool,
    phase: Phase,
}

#[derive(Debug, PartialEq)]
enum Phase {
    Live,
    /// The screen shows the kept lines after a flood. Contains the decoded lines that are not in any patch yet.
    Tail(VecDeque<Line>),
    Done,
}

impl Screen {
    pub(crate) fn new(shared: Arc<SharedOutput>, keep: usize) -> Self {
        let text = decoder(&shared.capture());
        Self {
            shared,
            keep: keep as u64,
            view: Mutex::new(ScreenState {
                text,
                at: 0,
                summarised: 0,
                skipped: 0,
                shown: 0,
                gap: false,
                open: false,
                phase: Phase::Live,
            }),
        }
    }

    /// Waits until [`take`](Self::take) has something to return. Returns false if the run has ended and `take` has returned
    /// everything.
    pub async fn changed(&self) -> bool {
        self.shared.until(|over| self.pending(over)).await
    }

    fn pending(&self, over: bool) -> bool {
        let view = self.view.lock();
        match view.phase {
            Phase::Live => over || self.shared.capture().bytes() > view.at.max(view.summarised),
            Phase::Tail(_) => true,
            Phase::Done => false,
        }
    }

    /// Returns the next patch. Returns `None` if the shown lines have not changed.
    pub fn take(&self) -> Option<ScreenPatch> {
        // Read first, because output may still come before the end is marked.
        let over = self.shared.is_over();
        let mut view = self.view.lock();
        if view.phase == Phase::Done {
            return None;
        }
        if matches!(view.phase, Phase::Tail(_)) {
            return Some(self.tail(&mut view));
        }
        let (bytes, lines) = {
            let capture = self.shared.capture();
            // Text that is shown stays.
            if view.at == 0 && capture.is_unreadable() {
                return summarise(&mut view, capture.bytes(), over);
            }
            if view.at == 0 {
                view.text = decoder(&capture);
            }
            let lines = capture.newlines() - view.skipped - view.shown as u64;
            (capture.bytes() - view.at, lines)
        };
        let full = view.shown as u64 + lines > self.keep;
        let flood = bytes > FLOOD_BYTES || lines > FLOOD_LINES || full;
        if over && (flood || view.gap) {
            self.restart(&mut view, self.keep, u64::MAX);
            view.phase = Phase::Tail(VecDeque::new());
            return Some(self.tail(&mut view));
        }
        if flood {
            self.restart(&mut view, SCREENFUL_LINES, SCREENFUL_BYTES);
            view.gap = true;
        }
        self.live(&mut view, over)
    }

    /// Replaces all shown lines by the last lines of the output.
    fn restart(&self, view: &mut ScreenState, lines: u64, bytes: u64) {
        let capture = self.shared.capture();
        (view.at, view.skipped) = capture.last_lines(lines, bytes);
        view.text = decoder(&capture);
        if capture.is_inside_line(view.at) {
            view.text.feed(CUT.as_bytes());
        }
        view.shown = 0;
        view.open = true;
    }

    fn live(&self, view: &mut ScreenState, over: bool) -> Option<ScreenPatch> {
        let fresh = {
            let capture = self.shared.capture();
            capture.range(view.at, capture.bytes())
        };
        view.at += fresh.len() as u64;
        view.text.feed(&fresh);
        let last = over && self.shared.capture().bytes() == view.at;
        if last {
            view.text.finish();
            view.phase = Phase::Done;
        }
        let from = view.shown;
        let mut lines = view.text.take();
        view.shown += lines.len();
        let rest = view.text.rest();
        let changed = !fresh.is_empty() && (!lines.is_empty() || rest.is_some() || view.open);
        view.open = rest.is_some();
        lines.extend(rest);
        (changed || last && view.open).then(|| patch(view.skipped, from, lines))
    }

    /// Returns the next patch of the kept lines after a flood.
    fn tail(&self, view: &mut ScreenState) -> ScreenPatch {
        let mut size = 0;
        let mut piece = Vec::new();
        let Phase::Tail(mut ready) = std::mem::replace(&mut view.phase, Phase::Done) else {
            unreachable!("only called while the tail is handed out");
        };
        loop {
            while let Some(line) = ready.pop_front() {
                size += line.text.len() + 1;
                if size > PATCH_BYTES && !piece.is_empty() {
                    ready.push_front(line);
                    view.phase = Phase::Tail(ready);
                    return self.piece(view, piece);
                }
                piece.push(line);
            }
            let fresh = self.shared.capture().range(view.at, view.at + DECODE_BYTES);
            if fresh.is_empty() {
                return self.piece(view, piece);
            }
            view.at += fresh.len() as u64;
            view.text.feed(&fresh);
            ready.extend(view.text.take());
            if self.shared.capture().bytes() == view.at {
                view.text.finish();
                ready.extend(view.text.rest());
            }
        }
    }

    fn piece(&self, view: &mut ScreenState, lines: Vec<Line>) -> ScreenPatch {
        let from = view.shown;
        view.shown += lines.len();
        patch(view.skipped, from, lines)
    }
}

fn decoder(capture: &Capture) -> LineDecoder {
    LineDecoder::new(capture.encoding()).with_nul()
}

/// Returns a patch with one line that stands for binary output.
fn summarise(view: &mut ScreenState, bytes: u64, over: bool) -> Option<ScreenPatch> {
    let changed = view.summarised != bytes;
    view.summarised = bytes;
    if over {
        view.phase = Phase::Done;
    }
    changed.then(|| ScreenPatch {
        lines: vec![format!("binary output, {bytes} bytes")],
        ..ScreenPatch::default()
    })
}

fn patch(skipped: u64, from: usize, lines: Vec<Line>) -> ScreenPatch {
    let mut patch = ScreenPatch {
        skipped,
        from,
        ..ScreenPatch::default()
    };
    for (index, line) in lines.into_iter().enumerate() {
        let room = MAX_STYLES - patch.styles.len();
        let spans = line.spans.into_iter().take(room);
        patch.styles.extend(spans.map(|span| Style {
            line: index,
            start: span.start,
            end: span.end,
            sgr: span.sgr.parameters(),
        }));
        patch.lines.push(line.text);
    }
    patch
}
