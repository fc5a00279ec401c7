//! `rocknet fmt`: formats a configuration, and replaces the file atomically.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use rocknet_config::MAX_FILE_BYTES;
use rocknet_config::environment::{Environment, ProcessEnvironment};
use serde::Serialize;

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
        replace(&file, formatted.as_bytes()).map_err(with_path)?;
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

/// Writes a temporary file and renames it once it is on disk. Keeps the mode and, where permitted, the owner.
fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    // A link stays a link: its target is replaced.
    let file = fs::canonicalize(file)?;
    let temporary = temporary(&file)?;
    let written = write(&temporary, &file, content).and_then(|()| fs::rename(&temporary, &file));
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    // The rename is durable once the folder is synced. An error is ignored, because some file systems cannot sync a
    // folder.
    if let Some(folder) = file.parent() {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

/// Returns the path of the temporary file that replaces `file`.
fn temporary(file: &Path) -> io::Result<PathBuf> {
    let name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    // The leading dot keeps the temporary file out of `include = ["sites/*.toml"]` if this process dies before the
    // rename.
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.new", std::process::id()));
    Ok(file.with_file_name(hidden))
}

/// Writes `content` to the temporary file, and gives it the mode and, where permitted, the owner of `file`.
fn write(temporary: &Path, file: &Path, content: &[u8]) -> io::Result<()> {
    let old = fs::metadata(file)?;
    // Removes the file that an earlier process with the same ID has left, because that process died before its rename.
    let _ = fs::remove_file(temporary);
    // The new file is private until it gets the mode of the old one.
    let mut new = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(temporary)?;
    new.write_all(content)?;
    // The owner is set before the mode, because a change of owner clears mode bits.
    let _ = fchown(&new, Some(old.uid()), Some(old.gid()));
    new.set_permissions(old.permissions())?;
    new.sync_all()
}

/// Maximum number of bytes read from standard input: one more than a configuration may have, so that a larger input is
/// detected.
const READ_LIMIT: u64 = MAX_FILE_BYTES as u64 + 1;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_mode_and_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("r.toml"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("r.toml", &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left over");
    }

    #[test]
    fn a_failure_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.toml");
        // The file does not exist, and then it is a folder.
        assert!(replace(&file, b"new").is_err());
        fs::create_dir(&file).unwrap();
        assert!(replace(&file, b"new").is_err());
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "only the folder is there"
        );
    }
}
