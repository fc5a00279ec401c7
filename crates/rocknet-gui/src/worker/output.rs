//! Output of the server that this program starts, in a file beside its configuration.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Beginning of an error in the output of `rocknet`.
pub const ERROR: &str = "error: ";

/// Size in bytes above which the output is shortened, because a server may run for months.
const MAX_OUTPUT: u64 = 1 << 20;

/// Maximum number of bytes at the end of the output that are read, and that are left of a long output: hundreds of
/// lines.
const MAX_TAIL: u64 = 64 << 10;

/// Returns the first error in the output of `rocknet`, or its last line; `None` without any.
pub fn last_error(output: &[u8]) -> Option<String> {
    let output = String::from_utf8_lossy(output);
    let lines: Vec<&str> = output.lines().collect();
    error_of(&lines).map(str::to_owned)
}

/// Returns the first error in lines of output of `rocknet`, or the last line; `None` without any.
pub fn error_of<'l>(lines: &[&'l str]) -> Option<&'l str> {
    let error = lines.iter().find_map(|line| line.strip_prefix(ERROR));
    error.or(lines.last().copied())
}

/// Shortens the output to its end once it is long. The server appends to it, so its next line follows.
pub fn bound(output: &Path) -> io::Result<()> {
    if fs::metadata(output)?.len() <= MAX_OUTPUT {
        return Ok(());
    }
    let text = tail(output);
    // The first line may be a part of one.
    let whole = text.split_once('\n').map_or("", |(_, whole)| whole);
    let mut file = File::options().append(true).open(output)?;
    file.set_len(0)?;
    file.write_all(whole.as_bytes())
}

/// Returns the file for the output of the server that uses a configuration.
pub fn output_path(config: &Path) -> PathBuf {
    config.with_file_name("server-output.log")
}

/// Returns the end of a file, at most [`MAX_TAIL`] bytes; nothing if it cannot be read.
pub fn tail(file: &Path) -> String {
    let read = || {
        let mut file = File::open(file)?;
        let start = file.metadata()?.len().saturating_sub(MAX_TAIL);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(MAX_TAIL).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    };
    // A line of another program may have bytes that are not UTF-8.
    read().map_or(String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Creates the file for the output of the server, beside its configuration, and returns its path.
pub fn output_file(config: &Path) -> io::Result<(File, PathBuf)> {
    let path = output_path(config);
    // The server appends, so that the file can be shortened while it writes.
    let file = File::options().append(true).create(true).mode(0o600).open(&path)?;
    file.set_len(0)?;
    Ok((file, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_is_shortened_while_the_server_writes() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("rocknet.toml");
        let (mut server, output) = output_file(&config).unwrap();
        let line = format!("{}\n", "x".repeat(99));
        server.write_all(line.as_bytes()).unwrap();
        bound(&output).unwrap();
        assert_eq!(fs::metadata(&output).unwrap().len(), 100);
        for _ in 0..=MAX_OUTPUT / 100 {
            server.write_all(line.as_bytes()).unwrap();
        }
        bound(&output).unwrap();
        server.write_all(b"last\n").unwrap();
        let text = fs::read_to_string(&output).unwrap();
        assert!(
            text.len() as u64 <= MAX_TAIL && text.ends_with("x\nlast\n"),
            "{}",
            text.len()
        );
        assert!(text.lines().all(|line| line.len() == 99 || line == "last"));
    }
}
