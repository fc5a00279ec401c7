//! Configuration of RockNet: reads TOML files, checks them against one table of keys, and returns a [`model::Config`].
//!
//! The crate opens no socket, starts no thread and writes no file. [`load`] and [`check`] read files; [`parse`] and
//! [`check_text`] read a text. Errors and warnings are [`Finding`]s with a position, a message and a remedy.
//!
//! ```
//! use rocknet_config::environment::MemoryEnvironment;
//!
//! let text = r#"
//! [site."example.com"]
//! root = "/var/www/example"
//! browse = true
//! "#;
//! // Files and folders in memory; a server uses `rocknet_config::ProcessEnvironment`.
//! let mut environment = MemoryEnvironment::default();
//! environment.directories.insert("/var/www/example".into());
//! let loaded = rocknet_config::parse(text, "/etc/rocknet/rocknet.toml".as_ref(), &environment)?;
//! assert!(loaded.warnings.is_empty());
//!
//! let site = &loaded.config.sites[0];
//! assert_eq!(site.name, "example.com");
//! assert_eq!(site.settings.root.as_deref(), Some("/var/www/example".as_ref()));
//! assert!(site.settings.browse.is_some() && site.tls.is_some());
//! # Ok::<(), rocknet_config::Report>(())
//! ```
//!
//! Each module of this list uses only modules of its own line and of the lines above, and helpers that are not listed:
//!
//! 1. `model`, with the enums of `choice`: the checked configuration and every default.
//! 2. `include`, `variable`, `syntax`: read files into one table and expand its variables.
//! 3. `binding`: kinds of values, and the link between a key and a field of the model.
//! 4. `template`, and `value`: texts with placeholders, and parsers of single values.
//! 5. `keys`: the table of keys, whose entries bind these parsers to the model.
//! 6. `check`: checks a configuration against the table of keys, and against rules that involve several keys.
//! 7. `form`, and `edit`: fields for common keys, and edits that keep the rest of a file.
//! 8. `explain`, `reference`: render settings and documentation by the table of keys.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod captures;
pub mod client_ranges;
pub mod edit;
pub mod environment;
pub mod explain;
pub mod finding;
pub mod form;
#[doc(hidden)]
pub mod fuzzing;
pub mod host_folders;
pub mod htpasswd;
pub mod keys;
pub mod model;
pub mod reference;
pub mod template;
pub mod url_keys;

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
mod state_folder;
mod syntax;
mod units;
mod value;
mod variable;
mod watched_files;

use std::path::{Path, PathBuf};

use context::{Check, Purpose};
use include::Reader;
use source::Sources;

pub use choice::Choice;
pub use environment::{Environment, ProcessEnvironment};
pub use finding::{Code, Finding, Location, Report, Severity};
pub use format::format;
pub use local_name::is_local_name;
pub use model::Config;
pub use source::MAX_FILE_BYTES;
pub use state_folder::{CONTROL_SOCKET, SYSTEM_STATE_FOLDER, user_state_folder};
pub use watched_files::WatchedFiles;

/// Valid configuration, with warnings for the operator.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Warnings. [`load`] and [`parse`] also add the errors that keep a single site from being served.
    pub warnings: Vec<Finding>,
}

/// Reads a file and the files it includes, to start a server. Errors of a single site, such as a missing root or an
/// unusable certificate, are returned among the warnings, so that the other sites are served. The site itself stays in
/// the configuration.
///
/// # Errors
///
/// Returns the report if the configuration has an error that concerns more than a single site.
pub fn load(path: &Path, env: &dyn Environment) -> Result<Loaded, Report> {
    read_configuration(env, Purpose::Start, |reader| reader.file(path))
}

/// Reads a file as [`load`] does, to check the file or to replace the configuration of a running server.
///
/// # Errors
///
/// Returns the report if the configuration has any error.
pub fn check(path: &Path, env: &dyn Environment) -> Result<Loaded, Report> {
    read_configuration(env, Purpose::Check, |reader| reader.file(path))
}

/// Reads a file as [`load`] does, and returns the configuration even if it has errors: a value with an error has its
/// default, or is missing. For callers that need few values of a file that is being edited.
///
/// # Errors
///
/// Returns the report if the file cannot be read, or is too large.
pub fn load_despite_errors(path: &Path, env: &dyn Environment) -> Result<Config, Report> {
    let (config, report, _) = read_all(env, Purpose::Start, |reader| reader.file(path));
    if config.files.is_empty() {
        return Err(report);
    }
    Ok(config)
}

/// Returns the paths of a file and of the files that it includes, in reading order. Errors in these files are
/// ignored; the list is empty if the file at `path` cannot be read.
pub fn files(path: &Path, env: &dyn Environment) -> Vec<PathBuf> {
    let mut reader = Reader {
        env,
        sources: Sources::default(),
        report: Report::default(),
    };
    reader.file(path);
    reader.sources.paths()
}

/// Reads a text as [`load`] reads a file. `name`: absolute path of the file that the text represents. Relative paths in
/// the text are relative to the folder of that file.
///
/// # Errors
///
/// Returns the report if the configuration has an error that concerns more than a single site.
pub fn parse(text: &str, name: &Path, env: &dyn Environment) -> Result<Loaded, Report> {
    read_configuration(env, Purpose::Start, |reader| {
        reader.text(source::normalize(name), text.to_owned(), &mut Vec::new())
    })
}

/// Checks a text as [`check`] checks a file. `name`: absolute path of the file that the text represents.
///
/// # Errors
///
/// Returns the report if the configuration has any error.
pub fn check_text(text: &str, name: &Path, env: &dyn Environment) -> Result<Loaded, Report> {
    read_configuration(env, Purpose::Check, |reader| {
        reader.text(source::normalize(name), text.to_owned(), &mut Vec::new())
    })
}

/// Returns the advice for a keyword of another server, such as `limit_req` of nginx or `RewriteRule` of Apache; `None`
/// if the keyword is not known. A finding about a key with this name contains the same advice.
pub fn advice_for_keyword(word: &str) -> Option<String> {
    check::foreign::advice(word)
}

/// Reads and checks a configuration. `read`: reads the file or text, and the files it includes, into one table.
fn read_configuration(
    env: &dyn Environment,
    purpose: Purpose,
    read: impl FnOnce(&mut Reader<'_>) -> file::Table,
) -> Result<Loaded, Report> {
    let (config, report, is_refused) = read_all(env, purpose, read);
    if is_refused {
        return Err(report);
    }
    Ok(Loaded {
        config,
        warnings: report.findings,
    })
}

/// Returns the configuration, the report, and true if the configuration must not be used.
fn read_all(
    env: &dyn Environment,
    purpose: Purpose,
    read: impl FnOnce(&mut Reader<'_>) -> file::Table,
) -> (Config, Report, bool) {
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
    // At start, errors of a single site are in `site_errors`, so the configuration is not refused because of them.
    let refused = report.errors() > 0;
    report.omitted += site_errors.omitted;
    site_errors
        .findings
        .into_iter()
        .for_each(|finding| report.push(finding));
    // Findings are sorted by file in reading order, then by position. Findings without a position come first.
    report.findings.sort_by_key(|finding| {
        let location = finding.location.as_ref();
        location.map(|l| (sources.order(&l.file), l.line, l.column))
    });
    (config, report, refused)
}
