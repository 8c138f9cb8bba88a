//! The output of a command: it is read once, kept within bounds, and shown in several forms.
//!
//! [`reader`] reads the output into a [`capture`] and a [`spill`] file. From the capture, [`screen`] makes lines for an editor,
//! [`feed`] makes raw text for a terminal, [`reading`] makes text for a model while the command runs, and [`model`] makes the
//! text of the outcome. This module starts and ends no process.

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
