//! Earlier texts of the configuration files, kept in the state folder.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rocknet::certificates::storage::{Access, FileStorage, Storage};
use rocknet_control::config::Change;
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use super::super::config_file::revision;

/// Folder of the history in the state folder.
const FOLDER: &str = "admin/history";

/// Maximum number of changes that are kept. Older ones are removed, because each holds two texts of up to `MAX_TEXT`
/// bytes.
const MAX_CHANGES: usize = 50;

/// Maximum duration of the comparison of all texts. Differences found after it are correct, but may not be the smallest
/// ones: a text of many short lines can take seconds to compare.
const DIFF_TIME: Duration = Duration::from_millis(500);

/// Maximum length of a diff in bytes. The rest is omitted, so that the response with all changes is of bounded size.
const MAX_DIFF: usize = 64 * 1024;

/// Lines around a difference that a diff also shows.
const DIFF_CONTEXT: usize = 2;

/// History of the changes that the control API has made.
pub struct History {
    storage: FileStorage,
}

/// A change, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredChange {
    /// Configuration file.
    pub file: PathBuf,
    /// Time of the change, in seconds since the beginning of 1970.
    pub unix_time: u64,
    /// Description in one line.
    pub what: String,
    /// Text before the change; empty if the file did not exist.
    pub before: String,
    /// True if the change created the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_new: bool,
    /// True if the change removed the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_removed: bool,
    /// Revision of the text after the change.
    pub after: String,
    /// Text after the change; `None` in a record written by an earlier version of RockNet.
    #[serde(default)]
    pub text: Option<String>,
}

/// A change to undo, with the changes after it.
#[derive(Debug)]
pub struct UndoneChanges {
    /// Number of the change.
    pub id: u64,
    /// The change.
    pub change: StoredChange,
    /// Changes after it, the latest first.
    later: Vec<StoredChange>,
}

impl UndoneChanges {
    /// Returns diffs of the edits that are not in the history, because an undo would discard them; `None` if there
    /// are no such edits. `current` is the current text of the file. The diffs are empty if an earlier version of
    /// RockNet wrote the records, because such records lack the text that was edited.
    pub fn unrecorded_edits(&self, current: &str) -> Option<String> {
        let deadline = Instant::now() + DIFF_TIME;
        let mut lost = None;
        // Text before the next later change; for the last change, the current text.
        let mut next = current;
        for change in self.later.iter().chain([&self.change]) {
            if revision(next) != change.after {
                let lost = lost.get_or_insert_with(String::new);
                if let Some(text) = &change.text {
                    lost.push_str(&diff(text, next, deadline));
                }
            }
            next = &change.before;
        }
        lost
    }
}

impl History {
    /// Opens the history of a server. `state`: its state folder.
    pub fn new(state: &Path) -> History {
        History {
            storage: FileStorage::new(state),
        }
    }

    /// Records a change, and removes the oldest changes above the maximum. `None` stands for the text of a missing
    /// file.
    ///
    /// # Errors
    ///
    /// Returns the error of the file system.
    pub fn record<'t>(
        &self,
        file: &Path,
        what: &str,
        before: impl Into<Option<&'t str>>,
        after: impl Into<Option<&'t str>>,
    ) -> io::Result<()> {
        let ids = self.ids()?;
        let (before, after) = (before.into(), after.into());
        let (is_new, is_removed) = (before.is_none(), after.is_none());
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        let change = StoredChange {
            file: file.to_owned(),
            unix_time: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
            what: what.to_owned(),
            before: before.to_owned(),
            is_new,
            is_removed,
            after: revision(after),
            text: Some(after.to_owned()),
        };
        let bytes = serde_json::to_vec(&change).map_err(io::Error::other)?;
        let id = ids.last().map_or(1, |last| last + 1);
        self.storage.write(&name(id), &bytes, Access::Owner)?;
        // `ids` lacks the new change, which is kept, too.
        for old in ids.iter().rev().skip(MAX_CHANGES - 1) {
            self.storage.remove(&name(*old))?;
        }
        Ok(())
    }

    /// Returns the files below a folder that were removed by their last change and still do not exist.
    ///
    /// # Errors
    ///
    /// Returns the error of the file system, or `InvalidData` for a damaged file.
    pub fn removed(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut last: BTreeMap<PathBuf, bool> = BTreeMap::new();
        for id in self.ids()? {
            if let Some(change) = self.read(id)? {
                last.insert(change.file, change.is_removed);
            }
        }
        let gone = |(file, is_removed): (PathBuf, bool)| {
            (is_removed && file.starts_with(folder) && file.symlink_metadata().is_err()).then_some(file)
        };
        Ok(last.into_iter().filter_map(gone).collect())
    }

    /// Returns a change of one of these files by its number, or the last one, with the later changes of the file.
    /// Returns `None` if there is no such change.
    ///
    /// # Errors
    ///
    /// Returns the error of the file system, or `InvalidData` for a damaged file.
    pub fn since(&self, files: &[PathBuf], id: Option<u64>) -> io::Result<Option<UndoneChanges>> {
        let mut later: Vec<StoredChange> = Vec::new();
        for known in self.ids()?.into_iter().rev() {
            let Some(change) = self.read(known)?.filter(|change| files.contains(&change.file)) else {
                continue;
            };
            if id.is_none_or(|id| id == known) {
                later.retain(|later| later.file == change.file);
                return Ok(Some(UndoneChanges {
                    id: known,
                    change,
                    later,
                }));
            }
            later.push(change);
        }
        Ok(None)
    }

    /// Returns the changes of files, the latest first. `present`: returns the present text of a file; `None` for a file
    /// whose changes are left out.
    ///
    /// # Errors
    ///
    /// Returns the error of the file system, or `InvalidData` for a damaged file.
    pub fn changes(&self, present: impl Fn(&Path) -> Option<String>) -> io::Result<Vec<Change>> {
        let mut changes = Vec::new();
        // For each file: the revision of its current text, and its text before the changes visited so far. The
        // changes are visited from the latest to the earliest.
        let mut texts: BTreeMap<PathBuf, Option<(String, String)>> = BTreeMap::new();
        let deadline = Instant::now() + DIFF_TIME;
        for id in self.ids()?.into_iter().rev() {
            let Some(change) = self.read(id)? else { continue };
            let text = texts
                .entry(change.file.clone())
                .or_insert_with(|| present(&change.file).map(|text| (revision(&text), text)));
            let Some((file_revision, next)) = text else { continue };
            // A record written by an earlier version of RockNet lacks the text after the change. That text is known
            // only if no other program edited the file before the next change.
            let after = change
                .text
                .as_deref()
                .or_else(|| (revision(next) == change.after).then_some(next.as_str()));
            let diff = after.map_or_else(String::new, |after| diff(&change.before, after, deadline));
            *next = change.before;
            changes.push(Change {
                id,
                unix_time: change.unix_time,
                revision: file_revision.clone(),
                file: change.file,
                what: change.what,
                diff,
            });
        }
        Ok(changes)
    }

    /// Reads the change with this number; `None` if it does not exist.
    fn read(&self, id: u64) -> io::Result<Option<StoredChange>> {
        let Some(bytes) = self.storage.read(&name(id))? else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            let path = self.storage.path().join(name(id));
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
        })
    }

    /// Returns the numbers of the changes, the oldest first.
    fn ids(&self) -> io::Result<Vec<u64>> {
        let names = self.storage.names(FOLDER)?;
        let mut ids: Vec<u64> = names
            .iter()
            .filter_map(|name| name.strip_suffix(".json")?.parse().ok())
            .collect();
        ids.sort_unstable();
        Ok(ids)
    }
}

/// Returns the path of a change's record, relative to the state folder.
fn name(id: u64) -> String {
    format!("{FOLDER}/{id}.json")
}

/// Returns the difference between two texts as a unified diff of at most about [`MAX_DIFF`] bytes.
fn diff(before: &str, after: &str, deadline: Instant) -> String {
    let diff = TextDiff::configure().deadline(deadline).diff_lines(before, after);
    let mut text = diff.unified_diff().context_radius(DIFF_CONTEXT).to_string();
    if text.len() > MAX_DIFF {
        let end = text.as_bytes()[..MAX_DIFF].iter().rposition(|byte| *byte == b'\n');
        text.truncate(end.map_or(0, |end| end + 1));
        text.push_str("(the rest of the difference is omitted)\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_recorded_with_their_differences() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::new(folder.path());
        let (file, other) = (Path::new("/etc/r.toml"), Path::new("/etc/sites/a.toml"));
        let changes = |text: &str, other_text: &str| {
            let texts = [(file, text), (other, other_text)];
            let present = |wanted: &Path| {
                let found = texts.iter().find(|(file, _)| *file == wanted);
                found.map(|(_, text)| (*text).to_owned())
            };
            history.changes(present).unwrap()
        };
        assert_eq!(changes("a\n", ""), []);
        history.record(file, "first", "a\n", "b\n").unwrap();
        history.record(other, "included", "x\n", "y\n").unwrap();
        // This file is not part of the configuration, so its change is left out.
        history.record(Path::new("/other.toml"), "other", "x\n", "y\n").unwrap();
        history.record(file, "second", "b\n", "c\n").unwrap();
        let all = changes("c\n", "y\n");
        let shown: Vec<_> = all
            .iter()
            .map(|change| {
                (
                    change.id,
                    change.file.as_path(),
                    change.what.as_str(),
                    change.diff.as_str(),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                (4, file, "second", "@@ -1 +1 @@\n-b\n+c\n"),
                (2, other, "included", "@@ -1 +1 @@\n-x\n+y\n"),
                (1, file, "first", "@@ -1 +1 @@\n-a\n+b\n")
            ]
        );
        // Each change has the revision of the current text of its file.
        assert_eq!(
            (&all[0].revision, &all[1].revision),
            (&revision("c\n"), &revision("y\n"))
        );
        assert_eq!(all[2].revision, revision("c\n"));
        // An edit by hand after the last change alters no difference.
        let after_edit = changes("d\n", "y\n");
        assert_eq!(after_edit[0].diff, all[0].diff);
        assert_eq!(after_edit[0].revision, revision("d\n"));
        let files = [file.to_owned(), other.to_owned()];
        let last = history.since(&files, None).unwrap().unwrap();
        assert_eq!((last.id, last.change.before.as_str(), last.later.len()), (4, "b\n", 0));
        let first = history.since(&files, Some(1)).unwrap().unwrap();
        assert_eq!((first.change.before.as_str(), first.later.len()), ("a\n", 1));
        let included = history.since(&files, Some(2)).unwrap().unwrap();
        assert_eq!((included.change.file.as_path(), included.later.len()), (other, 0));
        assert!(history.since(&files, Some(3)).unwrap().is_none());
    }

    #[test]
    fn edits_without_a_record_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::new(folder.path());
        let file = Path::new("/etc/r.toml");
        history.record(file, "first", "a\n", "b\n").unwrap();
        // By hand: b becomes c.
        history.record(file, "second", "c\n", "d\n").unwrap();
        let lost = |id, current: &str| {
            history
                .since(&[file.to_owned()], id)
                .unwrap()
                .unwrap()
                .unrecorded_edits(current)
        };
        assert_eq!(lost(None, "d\n"), None);
        assert_eq!(lost(Some(1), "d\n").unwrap(), "@@ -1 +1 @@\n-b\n+c\n");
        assert_eq!(lost(None, "e\n").unwrap(), "@@ -1 +1 @@\n-d\n+e\n");
        let both = lost(Some(1), "e\n").unwrap();
        assert!(both.contains("-d\n+e\n") && both.contains("-b\n+c\n"), "{both}");
        // A record written by an earlier version of RockNet lacks the text after the change.
        let old = StoredChange {
            text: None,
            ..history.read(2).unwrap().unwrap()
        };
        let bytes = serde_json::to_vec(&old).unwrap();
        history.storage.write(&name(2), &bytes, Access::Owner).unwrap();
        assert_eq!(lost(None, "d\n"), None);
        assert_eq!(lost(None, "e\n").unwrap(), "");
        let is_last_diff_empty = |current: &str| {
            history.changes(|_| Some(current.to_owned())).unwrap()[0]
                .diff
                .is_empty()
        };
        assert_eq!((is_last_diff_empty("d\n"), is_last_diff_empty("e\n")), (false, true));
    }

    #[test]
    fn long_differences_are_cut_and_take_a_bounded_time() {
        // No line of one text is in the other.
        let lines = |offset: u32| {
            (0..60_000)
                .map(|line| format!("{}\n", line * 2 + offset))
                .collect::<String>()
        };
        let began = Instant::now();
        let text = diff(&lines(0), &lines(1), began + Duration::from_millis(50));
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert!(text.len() < MAX_DIFF + 100, "{}", text.len());
        assert!(text.ends_with("\n(the rest of the difference is omitted)\n"));
    }

    #[test]
    fn old_changes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::new(folder.path());
        let file = Path::new("/r.toml");
        for number in 0..MAX_CHANGES + 3 {
            history.record(file, &number.to_string(), "a", "b").unwrap();
        }
        let ids = history.ids().unwrap();
        assert_eq!((ids.len(), ids[0]), (MAX_CHANGES, 4));
    }

    #[test]
    fn a_damaged_file_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::new(folder.path());
        history.storage.write(&name(1), b"{", Access::Owner).unwrap();
        let error = history.changes(|_| None).unwrap_err();
        assert!(error.to_string().contains("admin/history/1.json: "), "{error}");
    }

    #[test]
    fn created_and_removed_files_are_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::new(&folder.path().join("state"));
        let file = folder.path().join("a.toml");
        history.record(&file, "add", None, "a\n").unwrap();
        assert_eq!(history.removed(folder.path()).unwrap(), Vec::<PathBuf>::new());
        let added = history.since(std::slice::from_ref(&file), None).unwrap().unwrap();
        assert!(added.change.is_new && !added.change.is_removed);
        assert_eq!(added.unrecorded_edits("a\n"), None);
        history.record(&file, "undo", "a\n", None).unwrap();
        assert_eq!(history.removed(folder.path()).unwrap(), std::slice::from_ref(&file));
        assert_eq!(history.removed(Path::new("/other")).unwrap(), Vec::<PathBuf>::new());
        let undone = history.since(std::slice::from_ref(&file), None).unwrap().unwrap();
        assert_eq!((undone.change.before.as_str(), undone.change.is_removed), ("a\n", true));
        assert_eq!(undone.unrecorded_edits(""), None);
        // Another program has created the file again.
        std::fs::write(&file, "").unwrap();
        assert_eq!(history.removed(folder.path()).unwrap(), Vec::<PathBuf>::new());
    }
}
