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
mod message;
mod source;
mod syntax;
mod units;
mod value;
mod variable;

use std::path::Path;

use context::{Check, Purpose};
use include::Reader;
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
    read_configuration(env, Purpose::Start, |reader| reader.file(path))
}

/// Reads a file as [`load`] does, to check it or to replace the configuration of a running server: every error refuses
/// the whole file.
pub fn check(path: &Path, env: &dyn Environment) -> Result<Loaded, Report> {
    read_configuration(env, Purpose::Check, |reader| reader.file(path))
}

/// Reads a text that is not on disk (yet); `name` is the file it stands for, which relative paths begin at.
pub fn parse(text: &str, name: &Path, env: &dyn Environment) -> Result<Loaded, Report> {
    read_configuration(env, Purpose::Start, |reader| {
        reader.text(source::normalize(name), text.to_owned(), &mut Vec::new())
    })
}

/// Checks a text that is not on disk (yet), as [`check`] does a file.
pub fn check_text(text: &str, name: &Path, env: &dyn Environment) -> Result<Loaded, Report> {
    read_configuration(env, Purpose::Check, |reader| {
        reader.text(source::normalize(name), text.to_owned(), &mut Vec::new())
    })
}

fn read_configuration(
    env: &dyn Environment,
    purpose: Purpose,
    read: impl FnOnce(&mut Reader<'_>) -> file::Table,
) -> Result<Loaded, Report> {
    let mut reader = Reader {
        env,
        sources: Sources::default(),
        report: Report::default(),
    };
    let root = read(&mut reader);
    let Reader {
        sources, mut report, ..
    } = reader;
    let mut check = Check {
        sources: &sources,
        env,
        report: &mut report,
        site_errors: Report::default(),
        site_error_count: 0,
        purpose,
    };
    let unreadable = check.sources.paths().is_empty();
    let config = if unreadable {
        Config::default()
    } else {
        check::check(&root, &mut check)
    };
    let site_errors = std::mem::take(&mut check.site_errors);
    let refused = report.errors() > 0;
    report.omitted += site_errors.omitted;
    site_errors
        .findings
        .into_iter()
        .for_each(|finding| report.push(finding));
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
