//! Tests of the command line: arguments, exit codes, signals and console commands.

mod accounts;
mod certificates;
mod commands;
mod config;
mod control;
mod error_log;
mod http3;
mod isolated;
mod load;
mod logs;
mod php_versions;
mod program;
mod reload_load;
mod running;
mod service;
mod trust;
mod upgrade;
#[allow(dead_code)] // other tests use the rest of this shared module
#[path = "../wire/mod.rs"]
mod wire;
