//! `rocknet fmt`: formats a configuration, and replaces the file atomically.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rocknet_config::MAX_FILE_BYTES;
use rocknet_config::environment::{Environment, ProcessEnvironment};
use serde::Serialize;

use super::config_file::{self, ReplaceError};
use super::remote::print_json;
use super::{ExitStatus, Failure, print, search};

/// Format a configuration; comments and order are kept
///
/// The file is replaced atomically: after a crash, either the old or the new file exists. Included files are not
/// changed. With - as FILE, standard input is formatted to standard output.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub file: search::ConfigFile,
    /// Change nothing; fail if the file is not formatted
    #[arg(long)]
    pub check: bool,
    /// Print the result as JSON: `file`, and `changed`, which is true if formatting changes the file
    #[arg(long)]
    pub json: bool,
}

/// Output with `--json`.
#[derive(Serialize)]
struct FormatResult {
    file: PathBuf,
    /// True if formatting changes the text of the file.
    changed: bool,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    if options.file.named() == Some(Path::new("-")) {
        if options.json {
            let message = "standard input is formatted to standard output, which leaves no room for --json";
            return Err(Failure::Usage(message.to_owned()));
        }
        return format_stdin(options.check);
    }
    let file = options.file.named_or_found()?;
    let with_path = |error: io::Error| Failure::Failed(format!("{}: {error}", file.display()));
    let text = ProcessEnvironment.read(&file).map_err(with_path)?;
    let formatted = format(&text, &file)?;
    let changed = formatted != text;
    if changed && !options.check {
        replace(&file, &text, &formatted).map_err(|error| match error {
            ReplaceError::Io(error) => with_path(error),
            ReplaceError::Changed => with_path(io::Error::other("it was changed meanwhile; run `rocknet fmt` again")),
        })?;
    }
    let file = search::absolute(&file);
    let is_unformatted = changed && options.check;
    if options.json {
        print_json(&FormatResult { file, changed })?;
    } else if is_unformatted {
        print(format_args!("{} is not formatted; run `rocknet fmt`\n", file.display()));
    }
    match is_unformatted {
        true => Err(Failure::Reported(ExitStatus::Failed)),
        false => Ok(()),
    }
}

/// Formats standard input to standard output. With `check`, prints nothing and fails if the input is not formatted.
fn format_stdin(check: bool) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Failed(format!("standard input: {error}"));
    let mut text = String::new();
    io::stdin()
        .lock()
        .take(READ_LIMIT)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if text.len() > MAX_FILE_BYTES {
        return Err(Failure::Failed(format!(
            "standard input: larger than {} MiB",
            MAX_FILE_BYTES >> 20
        )));
    }
    let formatted = format(&text, Path::new("standard input"))?;
    match check {
        true if formatted == text => Ok(()),
        true => Err(Failure::Failed("standard input is not formatted".to_owned())),
        false => io::stdout()
            .lock()
            .write_all(formatted.as_bytes())
            .map_err(|error| Failure::Failed(error.to_string())),
    }
}

/// Formats a text. Errors name `name` as the file.
fn format(text: &str, name: &Path) -> Result<String, Failure> {
    rocknet_config::format(text).map_err(|mut report| {
        for finding in &mut report.findings {
            let related = finding.related.iter_mut().map(|related| &mut related.location);
            for location in finding.location.iter_mut().chain(related) {
                location.file = name.to_path_buf();
            }
        }
        Failure::Configuration(report)
    })
}

/// Replaces the text `old` of a file. Unlike `config_file::replace`, it also accepts files that are too large for the
/// control API.
fn replace(file: &Path, old: &str, formatted: &str) -> Result<(), ReplaceError> {
    config_file::replace_if(file, formatted, |file| Ok(ProcessEnvironment.read(file)? == old))
}

/// Maximum number of bytes read from standard input: one more than a configuration may have, so that a larger input is
/// detected.
const READ_LIMIT: u64 = MAX_FILE_BYTES as u64 + 1;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn large_files_are_replaced_unless_they_have_changed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.toml");
        // The control API edits only smaller files.
        let old = "#".repeat(2 * rocknet_control::config::MAX_TEXT);
        fs::write(&file, &old).unwrap();
        assert!(matches!(replace(&file, "other", "new"), Err(ReplaceError::Changed)));
        assert_eq!(fs::read_to_string(&file).unwrap(), old);
        replace(&file, &old, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
    }
}
