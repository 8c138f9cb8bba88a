//! Edits of files in all encodings and with all line breaks, byte for byte.

use std::fmt;

use co_edit::{Edit, FileText, apply, hunks};
use encoding_rs::{BIG5, EUC_JP, EUC_KR, GB18030, GBK, SHIFT_JIS, WINDOWS_1251};
use proptest::prelude::*;

/// A way to store text.
#[derive(Clone, Copy)]
struct Storage {
    name: &'static str,
    encode: fn(&str) -> Vec<u8>,
    /// A text beyond ASCII for files in it.
    sample: &'static str,
    /// A character may be added that is not ASCII.
    is_known: bool,
    /// The 'fileencoding' of its buffer in Neovim. In latin-1, each byte is a character of the buffer.
    fileencoding: &'static str,
}

fn legacy(encoding: &'static encoding_rs::Encoding, text: &str) -> Vec<u8> {
    let (bytes, _, missing) = encoding.encode(text);
    assert!(!missing, "{text:?} in {}", encoding.name());
    bytes.into_owned()
}

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let units = std::iter::once(0xfeff).chain(text.encode_utf16());
    units.flat_map(bytes).collect()
}

/// Encodes a text in UTF-8, apart from `\u{e000}`, which is a stray byte.
fn with_stray_bytes(text: &str) -> Vec<u8> {
    let pieces: Vec<_> = text.split('\u{e000}').map(str::as_bytes).collect();
    pieces.join(&0xff)
}

const STORAGES: [Storage; 12] = [
    Storage {
        name: "utf-8",
        encode: |text| text.as_bytes().to_owned(),
        sample: "\u{e9}\u{2713}",
        is_known: true,
        fileencoding: "utf-8",
    },
    Storage {
        name: "utf-8 with a mark",
        encode: |text| [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        sample: "\u{e9}\u{2713}",
        is_known: true,
        fileencoding: "utf-8",
    },
    Storage {
        name: "utf-8 but for some bytes",
        encode: with_stray_bytes,
        sample: "\u{e9}\u{2713} \u{e000}9\u{e000}",
        is_known: true,
        fileencoding: "latin1",
    },
    Storage {
        name: "utf-16le",
        encode: |text| utf16(text, u16::to_le_bytes),
        sample: "\u{e9}\u{1f600}",
        is_known: true,
        fileencoding: "utf-16le",
    },
    Storage {
        name: "utf-16be",
        encode: |text| utf16(text, u16::to_be_bytes),
        sample: "\u{e9}\u{1f600}",
        is_known: true,
        fileencoding: "utf-16",
    },
    Storage {
        name: "latin1",
        encode: |text| {
            text.chars()
                .map(|it| u8::try_from(it).expect("a character of latin-1"))
                .collect()
        },
        sample: "\u{fc}ber \u{c3}\u{a9}t\u{e9}, cat\u{e9}",
        is_known: false,
        fileencoding: "latin1",
    },
    Storage {
        name: "cp1251",
        encode: |text| legacy(WINDOWS_1251, text),
        sample: "\u{43f}\u{440}\u{438}\u{432}\u{435}\u{442} \u{ab}\u{41c}\u{418}\u{420}\u{bb}",
        is_known: false,
        fileencoding: "cp1251",
    },
    Storage {
        name: "gbk",
        encode: |text| legacy(GBK, text),
        sample: "\u{4f60}\u{597d}\u{4e02}|\u{8054}\u{901a}",
        is_known: false,
        fileencoding: "cp936",
    },
    Storage {
        name: "sjis",
        encode: |text| legacy(SHIFT_JIS, text),
        sample: "\u{8868}\\\u{30bd}one\u{ff71}",
        is_known: false,
        fileencoding: "sjis",
    },
    Storage {
        name: "gb18030",
        encode: |text| legacy(GB18030, text),
        sample: "\u{153}\u{1f600}1\u{4f60}",
        is_known: false,
        fileencoding: "gb18030",
    },
    Storage {
        name: "big5",
        encode: |text| legacy(BIG5, text),
        sample: "\u{529f}\u{80fd}\u{4e00}x",
        is_known: false,
        fileencoding: "big5",
    },
    Storage {
        name: "euc-kr",
        encode: |text| legacy(EUC_KR, text),
        sample: "\u{d55c}\u{ad6d}\u{c5b4}",
        is_known: false,
        fileencoding: "euc-kr",
    },
];

impl Storage {
    /// Returns the lines of a buffer of Neovim with a text.
    fn buffer(&self, text: &str) -> Vec<u8> {
        match self.fileencoding {
            "latin1" => {
                let bytes = (self.encode)(text).into_iter();
                bytes.map(char::from).collect::<String>().into_bytes()
            }
            _ => text.as_bytes().to_owned(),
        }
    }

    /// Returns whether a buffer may have a text.
    fn has(&self, text: &str) -> bool {
        let table = encoding_rs::Encoding::for_label(self.name.as_bytes());
        self.is_known || table.is_none_or(|it| !it.encode(text).2)
    }
}

/// A change of the lines "one", the sample, "three".
#[derive(Debug, Clone, Copy)]
enum Change {
    Insert,
    Replace,
    Delete,
    Append,
    Prepend,
    Empty,
    Rewrite,
}

const CHANGES: [Change; 7] = [
    Change::Insert,
    Change::Replace,
    Change::Delete,
    Change::Append,
    Change::Prepend,
    Change::Empty,
    Change::Rewrite,
];

impl Change {
    /// Returns the changed file. Text that stays is copied from the text of the file.
    fn of(self, file: &FileText, added: &str) -> Result<FileText, String> {
        let (old, new) = match self {
            Self::Insert => ("three", format!("{added}\nthree")),
            Self::Replace => ("three", added.to_owned()),
            Self::Delete => ("one\n", String::new()),
            Self::Append => ("three", format!("three\n{added}")),
            Self::Prepend => ("one\n", format!("{added}\none\n")),
            Self::Empty | Self::Rewrite => {
                let mut file = file.clone();
                let text = file.as_str().replace("one\n", &format!("{added}\n"));
                file.rewrite(if matches!(self, Self::Empty) {
                    ""
                } else {
                    &text
                });
                return Ok(file);
            }
        };
        let edit = Edit {
            old: old.to_owned(),
            new,
            all: false,
        };
        let edited = apply(file, &[edit]).map_err(|error| error.to_string())?;
        Ok(edited.file)
    }

    /// Returns the lines after the change, each with its break. A new line has the break of its place.
    fn expected(
        self,
        lines: &[(String, &'static str)],
        added: &str,
    ) -> Vec<(String, &'static str)> {
        let [one, sample, three] = lines else {
            panic!("{lines:?}");
        };
        // The last line may have no break.
        let last = if three.1.is_empty() {
            sample.1
        } else {
            three.1
        };
        let line = |like: &'static str| (added.to_owned(), like);
        let copy = |all: &[&(String, &'static str)]| {
            all.iter().map(|it| (*it).clone()).collect::<Vec<_>>()
        };
        match self {
            Self::Insert => [copy(&[one, sample]), vec![line(last)], copy(&[three])].concat(),
            Self::Replace => [copy(&[one, sample]), vec![line(three.1)]].concat(),
            Self::Delete => copy(&[sample, three]),
            Self::Append => {
                let third = ("three".to_owned(), last);
                [copy(&[one, sample]), vec![third, line(three.1)]].concat()
            }
            Self::Prepend => [vec![line(one.1)], copy(&[one, sample, three])].concat(),
            Self::Empty => Vec::new(),
            Self::Rewrite => [vec![line(one.1)], copy(&[sample, three])].concat(),
        }
    }
}

/// A file with three lines, and a change of it.
struct Case {
    storage: Storage,
    breaks: [&'static str; 3],
    change: Change,
    added: &'static str,
}

impl Case {
    /// Returns the text before and after the change.
    fn texts(&self) -> [String; 2] {
        let lone = self.breaks.contains(&"\r");
        let breaks = self.breaks.map(|it| if it == "\r" { "\n" } else { it });
        let sample = match lone {
            true => format!("{}\rx", self.storage.sample),
            false => self.storage.sample.to_owned(),
        };
        let texts = ["one".to_owned(), sample, "three".to_owned()];
        let lines: Vec<_> = texts.into_iter().zip(breaks).collect();
        [self.change.expected(&lines, self.added), lines].map(|lines| {
            let lines = lines.iter().map(|(text, end)| format!("{text}{end}"));
            lines.collect()
        })
    }

    fn check_file(&self) {
        let storage = self.storage;
        let [after, before] = self.texts();
        let file = FileText::decode(&(storage.encode)(&before)).expect("it is text");
        let found = self.change.of(&file, self.added);
        let found = found.and_then(|new| new.encode().map_err(|error| error.to_string()));
        let adds = !matches!(self.change, Change::Delete | Change::Empty);
        if !storage.is_known && !self.added.is_ascii() && adds {
            let why = found.expect_err("the change should be refused");
            assert!(
                why.contains("co does not know its encoding"),
                "{self}: {why}"
            );
            return;
        }
        let expected = (storage.encode)(&after);
        let found = found.map(|it| it.escape_ascii().to_string());
        assert_eq!(found, Ok(expected.escape_ascii().to_string()), "{self}");
    }

    fn check_buffer(&self) {
        let storage = self.storage;
        if !storage.has(self.added) {
            return;
        }
        let [after, before] = self.texts();
        let buffer = FileText::of_buffer(&storage.buffer(&before), storage.fileencoding);
        let buffer = buffer.expect("it is text");
        let changed = self
            .change
            .of(&buffer, self.added)
            .expect("it can be changed");
        let found = changed.encode_buffer().expect("it can be stored");
        let expected = storage.buffer(&after);
        assert_eq!(
            found.escape_ascii().to_string(),
            expected.escape_ascii().to_string(),
            "{self}"
        );
        // The file gets the same change.
        let file = buffer
            .decode_like(&(storage.encode)(&before))
            .expect("it is text");
        let [mut file, changed] = FileText::alike([file, changed]);
        file.apply_hunks(&hunks(file.as_str(), changed.as_str()));
        let found = file.encode().expect("it can be stored");
        let expected = (storage.encode)(&after);
        assert_eq!(
            found.escape_ascii().to_string(),
            expected.escape_ascii().to_string(),
            "{self}"
        );
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            storage,
            breaks,
            change,
            added,
        } = self;
        write!(f, "{} {breaks:?} {change:?} {added:?}", storage.name)
    }
}

#[test]
fn a_change_is_exact_in_every_encoding_with_every_kind_of_line_break() {
    for storage in STORAGES {
        for breaks in [
            ["\n", "\n"],
            ["\r\n", "\r\n"],
            ["\r\n", "\n"],
            ["\n", "\r\n"],
            ["\r", "\n"],
        ] {
            for end in ["\n", "\r\n", ""] {
                for change in CHANGES {
                    for added in ["new", "\u{e8}", "\u{416}"] {
                        let breaks = [breaks[0], breaks[1], end];
                        let case = Case {
                            storage,
                            breaks,
                            change,
                            added,
                        };
                        case.check_file();
                        case.check_buffer();
                    }
                }
            }
        }
    }
}

/// Encodings in which a byte of a character may be ASCII, or in which most bytes are not.
const LEGACY: [&encoding_rs::Encoding; 7] =
    [BIG5, EUC_JP, EUC_KR, GB18030, GBK, SHIFT_JIS, WINDOWS_1251];

/// Characters with second bytes in the range of ASCII, in some of the encodings.
const CHARACTERS: [char; 20] = [
    '\u{8868}',
    '\u{30bd}',
    '\u{80fd}',
    '\u{4e00}',
    '\u{4e02}',
    '\u{529f}',
    '\u{4f60}',
    '\u{597d}',
    '\u{3042}',
    '\u{ff71}',
    '\u{d55c}',
    '\u{ac02}',
    '\u{153}',
    '\u{1f600}',
    '\u{416}',
    '\u{44f}',
    '\u{ab}',
    '\u{bb}',
    '\u{4e04}',
    '\u{4ea3}',
];

proptest! {
    #[test]
    fn no_edit_breaks_a_character_of_an_unknown_encoding(
        encoding in proptest::sample::select(&LEGACY[..]),
        characters in proptest::collection::vec(prop_oneof![
            proptest::sample::select(&CHARACTERS[..]),
            proptest::sample::select(&['0', '1', 'A', 'B', '\\', '|', '@', ' ', '\n'][..])
        ], 1..24),
        old in "[01AB\\\\|@ \n]{1,3}", new in "[01AB\\\\|@ \n]{0,3}", all in any::<bool>()
    ) {
        let is_known = |it: &&char| !encoding.encode(&it.to_string()).2;
        let text: String = characters.iter().filter(is_known).collect();
        let bytes = legacy(encoding, &text);
        let Ok(file) = FileText::decode(&bytes) else {
            return Ok(());
        };
        // A few characters may look like UTF-8.
        if !file.encoding_note().is_some_and(|it| it.contains("not known")) {
            return Ok(());
        }
        let Ok(edited) = apply(&file, &[Edit { old, new, all }]) else {
            return Ok(());
        };
        let Ok(after) = edited.file.encode() else {
            return Ok(());
        };
        let (after, broken) = encoding.decode_without_bom_handling(&after);
        prop_assert!(!broken, "{:?} {:?}", text, after);
        let beyond = |text: &str| text.chars().filter(|it| !it.is_ascii()).collect::<String>();
        prop_assert_eq!(beyond(&after), beyond(&text), "{:?} {:?}", text, after);
    }
}
