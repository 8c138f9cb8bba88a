#![doc = include_str!("../README.md")]

mod reader;
mod writer;

pub use reader::{BoundedLine, LONGEST_LINE, LineReader};
pub use writer::{LineQueue, LineWriter, SendError};
