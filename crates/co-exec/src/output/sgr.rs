//! Tracks the colours and styles that escape sequences set (SGR, Select Graphic Rendition).

use std::fmt::Write;

/// A colour: an entry of the terminal's palette of 16 or 256 colours, or an RGB value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Colour {
    #[default]
    Default,
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// The current colours and styles, in a form small enough to store with every character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sgr {
    /// A bit set: bit n is set if SGR parameter n is on (1 is bold, 9 is struck out).
    flags: u16,
    front: Colour,
    back: Colour,
}

impl Sgr {
    /// Returns true if all attributes have their default.
    pub(crate) fn is_plain(self) -> bool {
        self == Self::default()
    }

    /// Applies the parameters of one sequence `CSI … m`.
    pub(crate) fn apply(&mut self, parameters: &[u8]) {
        let text = String::from_utf8_lossy(parameters);
        let mut numbers = text
            .split([';', ':'])
            .map(|number| number.parse::<u16>().unwrap_or(0));
        while let Some(number) = numbers.next() {
            self.one(number, &mut numbers);
        }
    }

    fn one(&mut self, number: u16, rest: &mut impl Iterator<Item = u16>) {
        match number {
            0 => *self = Self::default(),
            1..=9 => self.flags |= 1 << number,
            21 | 22 => self.flags &= !(1 << 1 | 1 << 2),
            23..=29 => self.flags &= !(1 << (number - 20)),
            30..=37 => self.front = Colour::Indexed(low(number - 30)),
            38 => self.front = extended(rest),
            39 => self.front = Colour::Default,
            40..=47 => self.back = Colour::Indexed(low(number - 40)),
            48 => self.back = extended(rest),
            49 => self.back = Colour::Default,
            90..=97 => self.front = Colour::Indexed(low(number - 90 + 8)),
            100..=107 => self.back = Colour::Indexed(low(number - 100 + 8)),
            _ => {}
        }
    }

    /// Returns the SGR parameters that set these attributes, in a fixed order.
    pub(crate) fn parameters(self) -> String {
        let mut text = String::new();
        for flag in (1..=9).filter(|flag| self.flags & 1 << flag != 0) {
            let _ = write!(text, "{flag};");
        }
        for (colour, base) in [(self.front, 30), (self.back, 40)] {
            let _ = match colour {
                Colour::Default => Ok(()),
                Colour::Indexed(n @ 0..=7) => write!(text, "{};", base + u16::from(n)),
                Colour::Indexed(n @ 8..=15) => write!(text, "{};", base + 60 + u16::from(n) - 8),
                Colour::Indexed(n) => write!(text, "{};5;{n};", base + 8),
                Colour::Rgb(r, g, b) => write!(text, "{};2;{r};{g};{b};", base + 8),
            };
        }
        text.pop();
        text
    }
}

fn extended(rest: &mut impl Iterator<Item = u16>) -> Colour {
    match rest.next() {
        Some(5) => rest
            .next()
            .map_or(Colour::Default, |n| Colour::Indexed(low(n))),
        Some(2) => {
            let mut next = || rest.next().map_or(0, low);
            Colour::Rgb(next(), next(), next())
        }
        _ => Colour::Default,
    }
}

fn low(number: u16) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sequences: &[&str], expected: &str) {
        let mut sgr = Sgr::default();
        for sequence in sequences {
            sgr.apply(sequence.as_bytes());
        }
        assert_eq!(sgr.parameters(), expected, "{sequences:?}");
    }

    #[test]
    fn normalises() {
        check(&["1", "31"], "1;31");
        check(&["31;1"], "1;31");
        check(&["1;31", ""], "");
        check(&["1;31", "0"], "");
        check(&["38;5;208"], "38;5;208");
        check(&["38;5;1"], "31");
        check(&["38;2;1;2;3;4"], "4;38;2;1;2;3");
        check(&["97;44"], "97;44");
        check(&["1;2;3", "22"], "3");
        check(&["4;7", "24;27"], "");
        check(&["999;x"], "");
    }
}
