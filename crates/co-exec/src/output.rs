//! The output of a command: read once, kept within bounds, and shown in several forms.
//!
//! [`reader`] reads it into a [`capture`] and a [`spill`] file. From the capture, [`screen`] makes lines for an editor,
//! [`feed`] raw text for a terminal, [`reading`] text for a model while the command runs, and [`model`] the text of its
//! outcome. Nothing here starts or ends a process.

mod binary;
pub(crate) mod capture;
pub(crate) mod feed;
pub(crate) mod model;
pub(crate) mod reader;
pub(crate) mod reading;
pub(crate) mod screen;
mod sgr;
pub(crate) mod spill;
pub(crate) mod status;
mod text;
