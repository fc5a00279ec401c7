//! Ends of a command: exit codes, and failures with what is printed of them.

use std::process::ExitCode;

use rocknet_config::Report;

use super::output::{print_error, print_report};

/// Exit code of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Good = 0,
    Failed = 1,
    /// The command line cannot be read; the code is that of clap too.
    Usage = 2,
    /// `EX_CONFIG` of sysexits.h: another start does not help before the file is edited.
    Configuration = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// The reason why a command failed.
#[derive(Debug)]
pub enum Failure {
    Failed(String),
    Usage(String),
    Configuration(Report),
    /// The reason has been printed already.
    Reported(Exit),
}

impl Failure {
    /// Prints the reason on standard error and returns the exit code.
    pub fn report(self) -> Exit {
        match self {
            Failure::Failed(message) => {
                print_error(message);
                Exit::Failed
            }
            Failure::Usage(message) => {
                print_error(message);
                Exit::Usage
            }
            Failure::Configuration(report) => {
                print_report(&report);
                Exit::Configuration
            }
            Failure::Reported(exit) => exit,
        }
    }
}
