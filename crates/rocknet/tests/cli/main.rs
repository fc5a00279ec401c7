//! The program as people and scripts use it: arguments, exit codes, signals, typed commands.

mod certificates;
mod commands;
mod isolated;
mod php_versions;
mod program;
mod running;
mod trust;
