//! co: an agent and a shell for Neovim.
//!
//! The module list is the code map; arrows point down only.

pub mod app;
pub mod audit;
pub mod cli;
pub mod config;
pub mod editor;
pub mod error;
pub mod exec;
pub mod fnv;
pub mod llm;
pub mod logging;
pub mod nvim;
pub mod paths;
pub mod policy;
pub mod protocol;
mod regular;
mod repository;
pub mod secrets;
pub mod session;
mod shared_file;
pub mod shell;
pub mod store;
pub mod tool;
pub mod transcript;
pub mod trust;
