//! co: an agent and a shell for Neovim.
//!
//! The module list is the code map; arrows point down only.

pub mod app;
pub mod audit;
pub mod chat;
pub mod cli;
pub mod config;
pub mod editor;
pub mod error;
pub mod logging;
pub mod nvim;
pub mod paths;
pub mod protocol;
pub mod run;
mod shared_file;
pub mod store;
pub mod tool;
pub mod trust;
