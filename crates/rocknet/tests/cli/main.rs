//! The program as people and scripts use it: arguments, exit codes, signals, typed commands.

mod accounts;
mod certificates;
mod commands;
mod isolated;
mod php_versions;
mod program;
mod reasons;
mod running;
mod trust;
