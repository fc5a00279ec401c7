//! Files of `ban.files`, which are read again when they change.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rocknet_config::client_ranges::ClientRanges;
use rocknet_config::model::ClientRange;

use super::address;

/// Maximum number of entries of all files, which bounds their memory.
pub const MAX_ENTRIES: usize = 1_000_000;

/// Maximum size of a file in bytes: enough for the maximum number of entries with a comment each.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum number of lines that a message names.
const MAX_NAMED_LINES: usize = 5;

/// Addresses and networks of one file.
#[derive(Debug)]
pub struct List {
    pub path: PathBuf,
    pub ranges: ClientRanges,
    /// Number of addresses and networks.
    pub entries: usize,
    /// Number of lines that are neither an address nor a network.
    pub bad_lines: usize,
    /// True if further entries of the file were left out, because the maximum number was reached.
    is_cut: bool,
    /// Reason for which the file could not be read.
    pub error: Option<String>,
}

impl List {
    /// Returns the empty list of a file that has not been read.
    fn unread(path: &Path) -> List {
        List {
            path: path.to_owned(),
            ranges: ClientRanges::default(),
            entries: 0,
            bad_lines: 0,
            is_cut: false,
            error: Some("not read".to_owned()),
        }
    }

    /// Returns true if a list with a maximum of `left` entries would be equal.
    fn fits(&self, left: usize) -> bool {
        match self.is_cut {
            true => self.entries == left,
            false => self.entries <= left,
        }
    }
}

/// Files with their lists.
#[derive(Debug, Default)]
pub struct ListFiles {
    files: Vec<WatchedFile>,
    lists: Vec<Arc<List>>,
}

#[derive(Debug)]
struct WatchedFile {
    path: PathBuf,
    stamp: Option<Stamp>,
}

/// Properties that change when a file changes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    size: u64,
    /// Inode number, and time of the last change of the inode in seconds and nanoseconds.
    inode: (u64, i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        use std::os::unix::fs::MetadataExt;
        Stamp {
            modified: metadata.modified().ok(),
            size: metadata.len(),
            inode: (metadata.ino(), metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl ListFiles {
    /// Sets the files, and reads those that are new or have changed. The lists of the others stay in use.
    pub fn set_paths(&mut self, paths: &[PathBuf]) {
        let is_same = self.files.iter().map(|file| &file.path).eq(paths);
        if !is_same {
            let files = std::mem::take(&mut self.files);
            let mut known: Vec<_> = files.into_iter().zip(std::mem::take(&mut self.lists)).collect();
            for path in paths {
                let (file, list) = match known.iter().position(|(file, _)| file.path == *path) {
                    Some(at) => known.swap_remove(at),
                    None => (
                        WatchedFile {
                            path: path.clone(),
                            stamp: None,
                        },
                        Arc::new(List::unread(path)),
                    ),
                };
                self.files.push(file);
                self.lists.push(list);
            }
            self.read_all();
        } else {
            self.read_changed();
        }
    }

    /// Returns true if there are no files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the lists, in the order of the files.
    pub fn lists(&self) -> &[Arc<List>] {
        &self.lists
    }

    /// Reads the files that have changed. Returns true if there were some.
    pub fn read_changed(&mut self) -> bool {
        let has_changed = |file: &WatchedFile| stamp(&file.path) != file.stamp;
        let has_changed = self.files.iter().any(has_changed);
        if has_changed {
            self.read_all();
        }
        has_changed
    }

    fn read_all(&mut self) {
        self.read_up_to(MAX_ENTRIES);
    }

    /// Reads the files that are new or have changed, and those whose lists would have other entries now, because
    /// another file has shrunk or grown. `left`: maximum number of entries of all files.
    fn read_up_to(&mut self, mut left: usize) {
        let mut lists = Vec::with_capacity(self.files.len());
        for (at, file) in self.files.iter_mut().enumerate() {
            // The stamp is read before the file, so that the next call finds a change that is made meanwhile.
            let now = stamp(&file.path);
            let earlier = self.lists.get(at);
            let list = match earlier {
                Some(list) if now == file.stamp && list.error.is_none() && list.fits(left) => Arc::clone(list),
                _ => Arc::new(read(&file.path, left, earlier.map(|list| &**list))),
            };
            file.stamp = now;
            left = left.saturating_sub(list.entries);
            lists.push(list);
        }
        self.lists = lists;
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    std::fs::metadata(path).ok().map(|metadata| Stamp::of(&metadata))
}

/// Returns the number of entries of a file, and that of its lines that are skipped.
///
/// # Errors
///
/// Returns the reason for which the file cannot be used.
pub fn inspect(path: &Path) -> Result<(usize, usize), String> {
    let parsed = read_parsed(path, MAX_ENTRIES).map_err(|error| error.to_string())?;
    Ok((parsed.ranges.len(), parsed.bad_lines))
}

/// Reads a file. If it cannot be read, its earlier list stays in use. Problems are logged.
fn read(path: &Path, max_entries: usize, earlier: Option<&List>) -> List {
    let shown = path.display();
    let parsed = match read_parsed(path, max_entries) {
        Ok(parsed) => parsed,
        Err(error) => {
            tracing::warn!("the ban list {shown} cannot be read: {error}; its earlier entries stay in use");
            return List {
                path: path.to_owned(),
                ranges: earlier.map(|list| list.ranges.clone()).unwrap_or_default(),
                entries: earlier.map_or(0, |list| list.entries),
                bad_lines: earlier.map_or(0, |list| list.bad_lines),
                is_cut: earlier.is_some_and(|list| list.is_cut),
                error: Some(error.to_string()),
            };
        }
    };
    let Parsed {
        ranges,
        bad,
        bad_lines,
        first_error,
        is_cut,
    } = parsed;
    if bad_lines > 0 {
        let lines: Vec<_> = bad.iter().map(usize::to_string).collect();
        let more = if bad_lines > bad.len() { ", …" } else { "" };
        tracing::warn!(
            "the ban list {shown}: lines {}{more} are skipped: {first_error}",
            lines.join(", ")
        );
    }
    if is_cut {
        tracing::warn!(
            "the ban list {shown}: all files together have more than {MAX_ENTRIES} entries; the rest is skipped"
        );
    }
    tracing::info!("the ban list {shown} has {} entries", ranges.len());
    List {
        path: path.to_owned(),
        entries: ranges.len(),
        bad_lines,
        ranges: ClientRanges::new(&ranges),
        is_cut,
        error: None,
    }
}

fn read_parsed(path: &Path, max_entries: usize) -> io::Result<Parsed> {
    let parsed = parse(&read_text(path)?, max_entries);
    // A download may have written an error page to the file.
    match parsed.ranges.is_empty() && parsed.bad_lines > 0 {
        true => Err(io::Error::other("it has no address or network")),
        false => Ok(parsed),
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    // A pipe would block the thread, so only regular files are opened.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("it is larger than 64 MiB"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Contents of a file.
struct Parsed {
    ranges: Vec<ClientRange>,
    /// Numbers of the first lines that are skipped.
    bad: Vec<usize>,
    /// Number of lines that are skipped.
    bad_lines: usize,
    /// Reason why the first of them is skipped.
    first_error: String,
    /// True if further lines were left out, because the maximum number of entries was reached.
    is_cut: bool,
}

/// Parses a list: one address or network in each line. The text after `#` or `;`, and after the first word, is ignored,
/// because many published lists have a name or a count there.
fn parse(text: &str, max_entries: usize) -> Parsed {
    let mut parsed = Parsed {
        ranges: Vec::new(),
        bad: Vec::new(),
        bad_lines: 0,
        first_error: String::new(),
        is_cut: false,
    };
    for (at, line) in text.lines().enumerate() {
        let entry = line.split(['#', ';']).next().unwrap_or_default();
        let Some(word) = entry.trim_start_matches('\u{feff}').split_whitespace().next() else {
            continue;
        };
        if parsed.ranges.len() >= max_entries {
            parsed.is_cut = true;
            break;
        }
        match address::parse(word) {
            Ok(network) => parsed.ranges.push(ClientRange::Network(network)),
            Err(error) => {
                if parsed.bad_lines == 0 {
                    parsed.first_error = error;
                }
                if parsed.bad.len() < MAX_NAMED_LINES {
                    parsed.bad.push(at + 1);
                }
                parsed.bad_lines += 1;
            }
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_addresses_networks_and_comments() {
        let text = "# list\n192.0.2.7\n 198.51.100.0/24 ; SBL1\n\nnonsense\n2001:db8::/32 # v6\r\n0.0.0.0/0\n203.0.113.9\t17\n";
        let parsed = parse(text, 10);
        assert_eq!(
            (parsed.ranges.len(), &parsed.bad[..], parsed.is_cut),
            (4, &[5, 7][..], false)
        );
        let bad = parse(&"x\n".repeat(100), 10);
        assert_eq!((bad.bad.len(), bad.bad_lines), (MAX_NAMED_LINES, 100));
        let ranges = ClientRanges::new(&parsed.ranges);
        for (address, expected) in [
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("198.51.100.200", true),
            ("2001:db8:5::1", true),
            ("203.0.113.9", true),
            ("127.0.0.1", false),
        ] {
            assert_eq!(ranges.contain(Some(address.parse().unwrap())), expected, "{address}");
        }
        let cut = parse(text, 2);
        assert_eq!((cut.ranges.len(), cut.is_cut), (2, true));
    }

    #[test]
    fn a_changed_file_is_read_again_and_a_missing_one_keeps_its_entries() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bans.txt");
        let mut files = ListFiles::default();
        files.set_paths(std::slice::from_ref(&path));
        assert!(files.lists()[0].error.is_some() && !files.read_changed());
        std::fs::write(&path, "192.0.2.7\n").unwrap();
        assert!(files.read_changed() && files.lists()[0].entries == 1 && files.lists()[0].error.is_none());
        assert!(!files.read_changed());
        std::fs::write(&path, "192.0.2.7\n192.0.2.8\n").unwrap();
        assert!(files.read_changed() && files.lists()[0].entries == 2);
        std::fs::write(&path, "<html>\nnot found\n").unwrap();
        assert!(files.read_changed() && files.lists()[0].entries == 2 && files.lists()[0].error.is_some());
        std::fs::remove_file(&path).unwrap();
        assert!(files.read_changed() && files.lists()[0].entries == 2 && files.lists()[0].error.is_some());
        let other = folder.path().join("more.txt");
        std::fs::write(&other, "198.51.100.0/24\n").unwrap();
        files.set_paths(&[other.clone(), path.clone()]);
        let entries: Vec<_> = files.lists().iter().map(|list| (&list.path, list.entries)).collect();
        assert_eq!(entries, [(&other, 1), (&path, 2)], "the missing file keeps its entries");
        files.set_paths(&[]);
        assert!(files.is_empty() && files.lists().is_empty());
    }

    #[test]
    fn the_maximum_number_of_entries_is_distributed_again_if_a_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        let mut files = ListFiles::default();
        std::fs::write(&paths[1], "198.51.100.1\n198.51.100.2\n").unwrap();
        files.set_paths(&paths);
        let mut read = |first: &str| {
            std::fs::write(&paths[0], first).unwrap();
            files.read_up_to(3);
            [files.lists[0].entries, files.lists[1].entries]
        };
        let (one, three) = ("192.0.2.1\n", "192.0.2.1\n192.0.2.2\n192.0.2.3\n");
        for (first, expected) in [
            (one, [1, 2]),
            (three, [3, 0]),
            ("192.0.2.1\n192.0.2.2\n", [2, 1]),
            (one, [1, 2]),
        ] {
            assert_eq!(read(first), expected, "{first:?}");
        }
    }
}
