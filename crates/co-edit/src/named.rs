//! Encodings by their names in Neovim's option 'fileencoding'.

use std::borrow::Cow;

use crate::error::NotText;
use crate::utf16;

/// An encoding with its name in Neovim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedEncoding {
    name: String,
    codec: Codec,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    Latin1,
    Utf16 {
        little: bool,
        mark: bool,
    },
    Table(&'static encoding_rs::Encoding),
    /// An encoding that only Neovim can read and write.
    Neovim,
}

impl NamedEncoding {
    pub(crate) fn new(name: &str) -> Self {
        let in_order = |little| Codec::Utf16 {
            little,
            mark: false,
        };
        let codec = match name {
            "latin1" => Codec::Latin1,
            "utf-16" | "ucs-2" => in_order(false),
            "utf-16le" | "ucs-2le" => in_order(true),
            _ => table(name).map_or(Codec::Neovim, Codec::Table),
        };
        let name = name.to_owned();
        Self { name, codec }
    }

    pub(crate) fn is_latin1(&self) -> bool {
        self.codec == Codec::Latin1
    }

    /// Returns the text of a file in this encoding. The returned encoding notes whether the file has a byte order mark.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Result<(Self, String), NotText> {
        let mut encoding = self.clone();
        let text = match &mut encoding.codec {
            Codec::Latin1 => Some(bytes.iter().copied().map(char::from).collect()),
            Codec::Utf16 { little, mark } => {
                let rest = bytes.strip_prefix(utf16::mark(*little));
                *mark = rest.is_some();
                utf16::text(rest.unwrap_or(bytes), *little).ok()
            }
            Codec::Table(table) => table
                .decode_without_bom_handling_and_without_replacement(bytes)
                .map(Cow::into_owned),
            Codec::Neovim => return Err(NotText::OnlyNeovim(encoding.name)),
        };
        // Some sequences of bytes are the same character.
        let text = text.filter(|text| encoding.encode(text).is_ok_and(|it| it == bytes));
        match text {
            Some(text) => Ok((encoding, text)),
            None => Err(NotText::Invalid(encoding.name)),
        }
    }

    /// Returns the bytes of a text in this encoding.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<u8>, NotText> {
        let missing = |character| NotText::Missing {
            encoding: self.name.clone(),
            character,
        };
        match self.codec {
            Codec::Latin1 => {
                let byte = |it: char| u8::try_from(it).map_err(|_| missing(it));
                text.chars().map(byte).collect()
            }
            Codec::Utf16 { little, mark } => {
                let mark = if mark { utf16::mark(little) } else { &[] };
                Ok([mark, &utf16::bytes(text, little)].concat())
            }
            Codec::Table(table) => match table.encode(text) {
                (bytes, _, false) => Ok(bytes.into_owned()),
                (_, _, true) => {
                    let is_missing = |it: &char| table.encode(it.encode_utf8(&mut [0; 4])).2;
                    Err(missing(text.chars().find(is_missing).unwrap_or_default()))
                }
            },
            Codec::Neovim => Err(NotText::OnlyNeovim(self.name.clone())),
        }
    }

    /// Checks that a text can be stored in this encoding, as far as co knows. Neovim knows more characters of some encodings.
    pub(crate) fn check(&self, text: &str) -> Result<(), NotText> {
        match self.codec {
            Codec::Latin1 => self.encode(text).map(drop),
            _ => Ok(()),
        }
    }
}

/// Returns the conversion table of the encoding with this Neovim name.
fn table(name: &str) -> Option<&'static encoding_rs::Encoding> {
    let label = match name {
        "cp932" => "shift_jis",
        "cp936" | "euc-cn" => "gbk",
        "cp949" => "euc-kr",
        "cp950" => "big5",
        name => name,
    };
    let table = encoding_rs::Encoding::for_label(label.as_bytes())?;
    // Others are not written as they are read.
    let is_known = table.output_encoding() == table && table != encoding_rs::UTF_8;
    is_known.then_some(table)
}
