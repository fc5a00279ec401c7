//! The program as people and scripts use it: arguments, exit codes, signals, typed commands.

mod accounts;
mod certificates;
mod commands;
mod error_log;
mod isolated;
mod php_versions;
mod program;
mod running;
mod trust;
#[allow(dead_code)] // shared with other tests, which use more of it
#[path = "../wire/mod.rs"]
mod wire;
