//! Outcomes of a command: exit codes and errors.

use std::fmt;
use std::process::ExitCode;

use rocknet_config::Report;

use super::output::{print_error, print_report};

/// Exit code of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    Success = 0,
    Failed = 1,
    /// The command line is invalid. clap uses the same code.
    Usage = 2,
    /// `EX_CONFIG` of sysexits.h: a restart fails again until the file is edited.
    Configuration = 78,
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// The reason why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// Any failure without a status of its own, with its message.
    Failed(String),
    /// The command line is invalid, with the message.
    Usage(String),
    /// The configuration is invalid, with its findings.
    Configuration(Report),
    /// The reason has been printed already.
    Reported(ExitStatus),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed(message) | Failure::Usage(message) => f.write_str(message),
            Failure::Configuration(report) => report.fmt(f),
            Failure::Reported(exit) => write!(f, "the program ended with exit code {}", *exit as u8),
        }
    }
}

impl Failure {
    /// Prints the reason on standard error and returns the exit code.
    pub fn report(self) -> ExitStatus {
        match self {
            Failure::Failed(message) => {
                print_error(message);
                ExitStatus::Failed
            }
            Failure::Usage(message) => {
                print_error(message);
                ExitStatus::Usage
            }
            Failure::Configuration(report) => {
                print_report(&report);
                ExitStatus::Configuration
            }
            Failure::Reported(exit) => exit,
        }
    }
}
