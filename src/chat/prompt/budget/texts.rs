//! Shortens the long texts of a request: outputs and contexts. An image is removed as a whole.

use std::collections::HashMap;

use super::estimate::item_tokens;
use co_llm::transcript::{Context, Item, LongText, Shortened};
use co_text::{end_of, start_of};

/// The largest size in bytes of a short text. co never replaces a short text by a line that says that the text was left out.
const SHORT_BYTES: usize = 400;

/// The items of a request whose long texts can be shortened.
pub(super) struct LongTexts {
    pub told: Vec<Item>,
    /// The original of each text that is shortened in `told`, and the data of each image that is removed there.
    whole: HashMap<TextPlace, String>,
    pub shortened: Vec<Shortened>,
}

/// The place of a long text: the index of its item, and the index of the context in this item.
type TextPlace = (usize, Option<usize>);

impl LongTexts {
    /// Returns the items to send. Shortens those texts of the items that earlier requests shortened, according to `transcript`.
    pub(super) fn new(told: Vec<Item>, transcript: &[Item]) -> Self {
        let known = recorded(transcript);
        let mut texts = Self {
            told,
            whole: HashMap::new(),
            shortened: Vec::new(),
        };
        let mut later: HashMap<String, usize> = HashMap::new();
        for place in texts.places().into_iter().rev() {
            let Some(name) = texts.name(place) else {
                continue;
            };
            let later = later.entry(short_name(&name).to_owned()).or_default();
            if let Some((bytes, whole)) = known.get(&name)
                && *later >= *whole
            {
                texts.tell(place, *bytes);
            }
            *later += 1;
        }
        texts
    }

    /// Returns the places of the long texts, from the first item to the last.
    fn places(&self) -> Vec<TextPlace> {
        let places = |(at, item): (usize, &Item)| match item {
            Item::Outcome(_) => vec![(at, None)],
            Item::User { context, .. } => (0..context.len()).map(|it| (at, Some(it))).collect(),
            _ => Vec::new(),
        };
        self.told.iter().enumerate().flat_map(places).collect()
    }

    fn context(&self, (at, context): TextPlace) -> Option<&Context> {
        match &self.told[at] {
            Item::User { context: all, .. } => all.get(context?),
            _ => None,
        }
    }

    fn has_image(&self, place: TextPlace) -> bool {
        self.context(place).is_some_and(|it| it.image.is_some())
    }

    fn has_result_image(&self, (at, _): TextPlace) -> bool {
        matches!(&self.told[at], Item::Outcome(outcome) if !outcome.images.is_empty())
    }

    /// Returns the text at a place, or the data of the image there.
    fn text(&self, place: TextPlace) -> Option<&str> {
        match &self.told[place.0] {
            Item::Outcome(outcome) => Some(&outcome.text),
            _ => {
                let context = self.context(place)?;
                let image = context.image.as_ref();
                Some(image.map_or(&context.text, |image| &image.data))
            }
        }
    }

    fn size(&self, place: TextPlace) -> usize {
        self.text(place).map_or(0, str::len)
    }

    /// Returns the name by which the transcript records the text at a place.
    fn name(&self, place: TextPlace) -> Option<LongText> {
        let size = self.whole.get(&place).map_or(self.size(place), String::len);
        match (&self.told[place.0], place.1) {
            (Item::Outcome(outcome), None) => Some(LongText::Output {
                call: outcome.call.clone(),
            }),
            (Item::User { context, .. }, Some(it)) => Some(LongText::Context {
                name: context.get(it)?.name.clone(),
                size,
            }),
            _ => None,
        }
    }

    /// Keeps the first and the last `bytes` of a text. If `bytes` is 0, replaces the text by one line.
    fn tell(&mut self, place: TextPlace, bytes: usize) {
        let Some(now) = self.text(place).map(str::to_owned) else {
            return;
        };
        let image = self.has_image(place);
        let whole = self.whole.entry(place).or_insert(now);
        let text = match bytes {
            _ if image => "[an image, left out to save room]".to_owned(),
            0 => stand_in(&self.told[place.0], whole.len()),
            bytes => halves(whole, bytes),
        };
        match (&mut self.told[place.0], place.1) {
            (Item::Outcome(outcome), None) => {
                outcome.text = text;
                outcome.images.clear();
            }
            (Item::User { context, .. }, Some(it)) => {
                context[it].text = text;
                context[it].image = None;
            }
            _ => {}
        }
    }

    /// Shortens a text and adds it to `shortened`. Returns the number of tokens that this saves.
    fn shorten(&mut self, place: TextPlace, bytes: usize) -> u64 {
        let before = item_tokens(&self.told[place.0]);
        self.tell(place, bytes);
        if let Some(text) = self.name(place) {
            self.shortened.retain(|known| known.text != text);
            self.shortened.push(Shortened { text, bytes });
        }
        before.saturating_sub(item_tokens(&self.told[place.0]))
    }

    /// Replaces texts by a line until at most `aim` tokens are used, beginning with the oldest text. The last `spare` texts and
    /// the contexts of the last prompt stay.
    pub(super) fn leave_out(&mut self, used: &mut u64, aim: u64, spare: usize) {
        let is_prompt = |item: &Item| matches!(item, Item::User { .. });
        let last_prompt = self.told.iter().rposition(is_prompt);
        let mut places = self.places();
        places.truncate(places.len().saturating_sub(spare));
        places.retain(|(at, _)| Some(*at) != last_prompt);
        for place in places {
            if *used <= aim {
                break;
            }
            if self.size(place) > SHORT_BYTES || self.has_result_image(place) {
                *used -= self.shorten(place, 0);
            }
        }
    }

    /// Cuts the largest texts in their middle until the request fits, or until they are small.
    pub(super) fn shorten_largest(&mut self, used: &mut u64, limit: u64) {
        while *used > limit {
            let largest = self
                .places()
                .into_iter()
                .filter(|place| !self.has_image(*place))
                .max_by_key(|place| self.size(*place));
            let Some(place) = largest.filter(|place| self.size(*place) > SHORT_BYTES * 4) else {
                return;
            };
            let bytes = self.size(place) / 3;
            *used -= self.shorten(place, bytes);
        }
    }
}

/// Returns how each text was shortened last. The first number is the number of bytes that the text keeps at each end. The second
/// number counts the texts with the same name that were added to the transcript after that.
///
/// Such later texts are not shortened. A later text has the same name if a server uses the id of a call again after a summary, or
/// if the person attaches a file again.
fn recorded(transcript: &[Item]) -> HashMap<&LongText, (usize, usize)> {
    let mut found = HashMap::new();
    let mut later: HashMap<&str, usize> = HashMap::new();
    for item in transcript.iter().rev() {
        match item {
            Item::Outcome(outcome) => *later.entry(&outcome.call).or_default() += 1,
            Item::User { context, .. } => {
                for piece in context {
                    *later.entry(&piece.name).or_default() += 1;
                }
            }
            Item::Shortened { texts } => {
                for known in texts {
                    let count = later.get(short_name(&known.text)).copied();
                    let place = (known.bytes, count.unwrap_or_default());
                    found.entry(&known.text).or_insert(place);
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns the id of the call or the name of the context that a text belongs to.
fn short_name(text: &LongText) -> &str {
    match text {
        LongText::Output { call } => call,
        LongText::Context { name, .. } => name,
    }
}

/// Cuts each long text of an item in its middle. The first and the last `each` bytes of the text remain.
pub(super) fn cut(item: &mut Item, each: usize) {
    let shorten = |text: &mut String| {
        if text.len() > 2 * each + SHORT_BYTES {
            *text = halves(text, each);
        }
    };
    match item {
        Item::User { text, context, .. } => {
            shorten(text);
            context
                .iter_mut()
                .for_each(|piece| shorten(&mut piece.text));
        }
        Item::Text { text }
        | Item::Note { text, .. }
        | Item::Summary { text, .. }
        | Item::JobEnded { text, .. } => shorten(text),
        Item::Outcome(outcome) => shorten(&mut outcome.text),
        Item::Call(call) => {
            let mut arguments = call.arguments.to_string();
            if arguments.len() > 2 * each + SHORT_BYTES {
                shorten(&mut arguments);
                call.arguments = serde_json::json!({ "cut": arguments });
            }
        }
        _ => {}
    }
}

/// Returns the line that replaces a text of `size` bytes in an item.
fn stand_in(item: &Item, size: usize) -> String {
    let Item::Outcome(outcome) = item else {
        return format!("[{size} bytes, left out to save room; read it again if you need it]");
    };
    let ended = if outcome.ok {
        ""
    } else {
        " of a call that failed"
    };
    match &outcome.spill {
        Some(path) => format!(
            "[{size} bytes of output{ended}, left out to save room; kept in {}]",
            path.display()
        ),
        None => format!(
            "[{size} bytes of output{ended}, left out to save room; call again if you need it]"
        ),
    }
}

/// Returns the first and the last bytes of a text, cut between characters, and a line about the omitted bytes. This line comes
/// last: in the middle, it could look like a line of the output.
fn halves(text: &str, each: usize) -> String {
    let (head, tail) = (start_of(text, each), end_of(text, each));
    let left_out = text.len().saturating_sub(head.len() + tail.len());
    format!("{head}\n[... left out]\n{tail}\n[co left out {left_out} bytes in the middle]")
}
