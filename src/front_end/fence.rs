//! The fences of code blocks in markdown.

/// The largest number of characters of a line that are checked. A fence is shorter.
const LONGEST: usize = 200;

/// Finds the code block that a text leaves open. The text arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct OpenFence {
    fence: Option<String>,
    /// The first characters of the last line of the text. The rest of this line may not have arrived yet.
    line: String,
}

impl OpenFence {
    pub(super) fn push(&mut self, text: &str) {
        let mut lines = text.split('\n');
        self.extend_line(lines.next().unwrap_or_default());
        for line in lines {
            self.end_line();
            self.extend_line(line);
        }
    }

    /// Ends the text, and returns the fence of the code block that it leaves open. Pieces after this call belong to a new text.
    pub(super) fn take(&mut self) -> Option<String> {
        self.end_line();
        self.fence.take()
    }

    fn extend_line(&mut self, text: &str) {
        let left = LONGEST.saturating_sub(self.line.len());
        self.line.extend(text.chars().take(left));
    }

    fn end_line(&mut self) {
        self.fence = fence_after(self.fence.as_deref(), &self.line).map(str::to_owned);
        self.line.clear();
    }
}

/// Returns the fence of the code block that is open after a line. `open` is the fence that was open before it.
/// `lua/co/chat/fence.lua` follows the same rules.
pub(super) fn fence_after<'a>(open: Option<&'a str>, line: &'a str) -> Option<&'a str> {
    let line = line.trim();
    let mark = ["`", "~"].into_iter().find_map(|sign| {
        let rest = line.trim_start_matches(sign);
        let mark = &line[..line.len() - rest.len()];
        let inline = sign == "`" && rest.contains('`');
        (mark.len() >= 3 && !inline).then_some(mark)
    });
    match (open, mark) {
        (None, mark) => mark,
        (Some(open), Some(mark)) if mark.starts_with(open) && mark == line => None,
        (open, _) => open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_block_is_found() {
        let open = |pieces: &[&str]| {
            let mut open = OpenFence::default();
            pieces.iter().for_each(|piece| open.push(piece));
            open.take()
        };
        assert_eq!(open(&["no code"]), None);
        assert_eq!(
            open(&["one\n``", "`lua\nprint(1)\n"]),
            Some("```".to_owned())
        );
        assert_eq!(open(&["```lua\nprint(1)\n``", "`"]), None);
        assert_eq!(open(&["~~~~\n~~~\n```"]), Some("~~~~".to_owned()));
        assert_eq!(open(&["```one``` is inline"]), None);
        assert_eq!(open(&[&"ä".repeat(300), "\n```"]), Some("```".to_owned()));
    }
}
