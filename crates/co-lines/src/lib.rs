#![doc = include_str!("../README.md")]

mod reader;
mod writer;

pub use reader::{BoundedLine, LARGEST_LINE, LONGEST_LINE, LineReader, json_memory};
pub use writer::{LineQueue, LineWriter, SendError};
