//! Integration tests: real processes, a real Neovim, a real model.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod cli;
mod container;
mod editor;
mod exec;
mod llm;
mod policy;
mod sandbox;
mod store;
mod support;
