//! The RockNet configuration: one table of keys, checked whole, with errors that teach.
//!
//! A file is read as written (`file`), checked against the table of keys (`keys`, `check`), and becomes a
//! [`model::Config`], the only thing the server sees. Nothing here opens a socket, starts a thread or writes a file.
//!
//! The modules build on each other in one direction:
//!
//! 1. `model`, with the words of `choice`: the configuration as meant, and every default.
//! 2. `include`, `variable`, `syntax`: files to one table, with every variable filled in.
//! 3. `binding`: kinds of values, and the link between a key and a field of the model.
//! 4. `value`: parsers of single values.
//! 5. `keys`: the table of keys, whose entries bind these parsers to the model.
//! 6. `check`: the whole tree against the table of keys, and the rules that concern several keys.
//! 7. `explain`, `reference`: what is generated from the table of keys.
#![forbid(unsafe_code)]

pub mod edit;
pub mod environment;
pub mod explain;
pub mod finding;
#[doc(hidden)]
pub mod fuzzing;
pub mod htpasswd;
pub mod keys;
pub mod model;
pub mod reference;

mod binding;
mod check;
mod choice;
mod context;
mod file;
mod format;
mod glob;
mod include;
mod local_name;
mod source;
mod syntax;
mod units;
mod value;
mod variable;
mod words;

use std::path::Path;

use context::{Check, Purpose};
use include::Reading;
use source::Sources;

pub use choice::Choice;
pub use environment::{Environment, System};
pub use finding::{Code, Finding, Location, Report, Severity};
pub use format::format;
pub use local_name::is_local_name;
pub use model::Config;

/// A configuration that may act, and what its writer should know all the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub config: Config,
    /// Warnings, and from [`load`] and [`parse`] also errors that keep one site from being served and the others not.
    pub warnings: Vec<Finding>,
}

/// Reads a file and all it includes, to start a server. Errors that concern one site alone, such as a missing root or an
/// unusable certificate, are returned among the warnings so that the other sites are served.
pub fn load(path: &Path, env: &dyn Environment) -> Result<Loaded, Report> {
    whole(env, Purpose::Start, |reading| reading.file(path))
}

/// Reads a file as [`load`] does, to check it or to replace the configuration of a running server: every error refuses
/// the whole file.
pub fn check(path: &Path, env: &dyn Environment) -> Result<Loaded, Report> {
    whole(env, Purpose::Check, |reading| reading.file(path))
}

/// Reads a text that is not on disk (yet); `name` is the file it stands for, which relative paths begin at.
pub fn parse(text: &str, name: &Path, env: &dyn Environment) -> Result<Loaded, Report> {
    whole(env, Purpose::Start, |reading| {
        reading.text(source::clean(name), text.to_owned(), &mut Vec::new())
    })
}

/// Checks a text that is not on disk (yet), as [`check`] does a file.
pub fn check_text(text: &str, name: &Path, env: &dyn Environment) -> Result<Loaded, Report> {
    whole(env, Purpose::Check, |reading| {
        reading.text(source::clean(name), text.to_owned(), &mut Vec::new())
    })
}

fn whole(
    env: &dyn Environment,
    purpose: Purpose,
    read: impl FnOnce(&mut Reading<'_>) -> file::Table,
) -> Result<Loaded, Report> {
    let mut reading = Reading {
        env,
        sources: Sources::default(),
        report: Report::default(),
    };
    let root = read(&mut reading);
    let Reading {
        sources, mut report, ..
    } = reading;
    let mut check = Check {
        sources: &sources,
        env,
        report: &mut report,
        dark: Report::default(),
        dark_errors: 0,
        purpose,
    };
    let unreadable = check.sources.paths().is_empty();
    let config = if unreadable {
        Config::default()
    } else {
        check::check(&root, &mut check)
    };
    let dark = std::mem::take(&mut check.dark);
    let refused = report.errors() > 0;
    report.omitted += dark.omitted;
    dark.findings.into_iter().for_each(|finding| report.push(finding));
    // By file in reading order, then by place; what has no place comes first.
    report.findings.sort_by_key(|finding| {
        let location = finding.location.as_ref();
        location.map(|l| (sources.order(&l.file), l.line, l.column))
    });
    if refused {
        return Err(report);
    }
    Ok(Loaded {
        config,
        warnings: report.findings,
    })
}
