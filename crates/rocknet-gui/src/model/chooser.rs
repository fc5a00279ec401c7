//! The chooser of folders: a path that is typed, and the folders that begin with its last part.

use std::path::{Path, PathBuf};

use crate::job::{FolderTrouble, Job, Listing};

/// Key of the row that leads to the folder above.
pub const PARENT: &str = "..";

/// Maximum number of folders that are shown. The user finds the others by typing the beginning of a name.
const MAX_SHOWN: usize = 500;

/// State of the chooser.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FolderChooser {
    /// Text of the path. The part after the last `/` is the beginning of a name, or the name of a new folder.
    pub path: String,
    /// Number of times that the path was replaced other than by typing.
    pub version: u64,
    /// Number of times that the path was given the focus.
    pub focus: u64,
    pub shows_hidden: bool,
    /// Name in the selected row.
    pub selected: Option<String>,
    /// Folders of the folder in the path; `None` while they are being listed.
    pub listed: Option<Result<Listing, FolderTrouble>>,
    /// Reason why the new folder was not created.
    pub failure: Option<FolderTrouble>,
    /// Folder that is listed. It is empty for the home folder.
    folder: PathBuf,
    /// True until a folder was found. A missing folder at the beginning is replaced by the one above it.
    is_beginning: bool,
}

impl FolderChooser {
    /// Creates a chooser that begins in a folder, and returns it with the job that lists the folder.
    pub(super) fn begin(folder: &Path) -> (FolderChooser, Job) {
        let mut chooser = FolderChooser {
            focus: 1,
            is_beginning: true,
            ..FolderChooser::default()
        };
        let job = chooser.go_to(folder);
        (chooser, job)
    }

    /// Shows a folder.
    pub(super) fn go_to(&mut self, folder: &Path) -> Job {
        self.path = with_slash(folder);
        self.version += 1;
        self.selected = None;
        self.failure = None;
        self.folder = folder.to_owned();
        self.listed = None;
        Job::ListFolder(folder.to_owned())
    }

    /// Takes a typed path. Returns the job that lists its folder, if that is another one.
    pub(super) fn set_path(&mut self, path: &str) -> Option<Job> {
        path.clone_into(&mut self.path);
        self.failure = None;
        self.selected = None;
        self.is_beginning = false;
        let folder = PathBuf::from(self.parts().0);
        // A folder that was not looked at is tried again.
        let is_tried = !matches!(self.listed, Some(Err(FolderTrouble::NotTried | FolderTrouble::Crashed)));
        if folder == self.folder && is_tried || !folder.is_absolute() {
            return None;
        }
        self.folder.clone_from(&folder);
        self.listed = None;
        Some(Job::ListFolder(folder))
    }

    /// Returns the folder of the path, with a `/` at its end, and the beginning of a name after it.
    fn parts(&self) -> (&str, &str) {
        self.path.split_at(self.path.rfind('/').map_or(0, |at| at + 1))
    }

    /// Returns the text after the last `/`.
    pub fn beginning(&self) -> &str {
        self.parts().1
    }

    fn listing(&self) -> Option<&Listing> {
        let is_listed = self.path.starts_with('/');
        self.listed.as_ref().filter(|_| is_listed)?.as_ref().ok()
    }

    /// Returns the folders that begin with the last part of the path, without regard to case. Names that begin with a
    /// dot are hidden until they are wished for.
    pub fn matching(&self) -> Vec<&str> {
        let beginning = self.beginning().to_lowercase();
        let shows_hidden = self.shows_hidden || beginning.starts_with('.');
        let folders = self.listing().map_or(&[][..], |listing| &listing.folders);
        let matching = folders
            .iter()
            .filter(|name| shows_hidden || !name.starts_with('.'))
            .filter(|name| name.to_lowercase().starts_with(&beginning));
        matching.map(String::as_str).collect()
    }

    /// Returns the folders that are shown, and the number of those that are not.
    pub fn shown(&self) -> (Vec<&str>, usize) {
        let mut shown = self.matching();
        let left_out = self.listing().map_or(0, |listing| listing.left_out);
        let more = shown.len().saturating_sub(MAX_SHOWN);
        shown.truncate(MAX_SHOWN);
        (shown, more + left_out)
    }

    /// Returns the folder that the path names, if it exists.
    pub fn chosen(&self) -> Option<String> {
        let listing = self.listing()?;
        let is_there = |name: &str| name.is_empty() || listing.folders.iter().any(|folder| folder == name);
        let path = match self.path.trim_end_matches('/') {
            "" => "/",
            path => path,
        };
        is_there(self.beginning()).then(|| path.to_owned())
    }

    /// Returns true if the path names a folder that can be created.
    pub fn is_new(&self) -> bool {
        self.listing().is_some() && self.chosen().is_none() && ![".", ".."].contains(&self.beginning())
    }

    /// Opens a row.
    pub(super) fn open(&mut self, name: &str) -> Option<Job> {
        let folder = PathBuf::from(self.parts().0);
        let folder = match name {
            PARENT => folder.parent().map(Path::to_owned)?,
            name => folder.join(name),
        };
        Some(self.go_to(&folder))
    }

    /// Extends the path by the letters that all matching folders share, and opens a single one.
    pub(super) fn complete(&mut self) -> Option<Job> {
        let matching = self.matching();
        let first = (*matching.first()?).to_owned();
        if matching.len() == 1 {
            return self.open(&first);
        }
        let is_shared = |end: &usize| matching.iter().all(|name| name.get(..*end) == first.get(..*end));
        let ends = first.char_indices().map(|(at, letter)| at + letter.len_utf8());
        let shared = ends.take_while(is_shared).last().unwrap_or(0);
        if shared > self.beginning().len() {
            self.path = format!("{}{}", self.parts().0, &first[..shared]);
            self.version += 1;
        }
        None
    }

    /// Takes a list of folders. If the folder at the beginning is missing, returns the job that lists the one above it.
    pub(super) fn take(&mut self, folder: &Path, result: Result<Listing, FolderTrouble>) -> Option<Job> {
        if folder != self.folder {
            return None;
        }
        match (&result, folder.parent()) {
            (Err(FolderTrouble::Missing), Some(parent)) if self.is_beginning => {
                let parent = parent.to_owned();
                return Some(self.go_to(&parent));
            }
            (Ok(listing), _) if self.folder.as_os_str().is_empty() => {
                self.folder.clone_from(&listing.path);
                self.path = with_slash(&listing.path);
                self.version += 1;
            }
            _ => {}
        }
        // The folder at the beginning may turn out to be missing.
        self.is_beginning &= result == Err(FolderTrouble::Waiting);
        self.listed = Some(result);
        None
    }
}

/// Returns a path with a `/` at its end.
pub(super) fn with_slash(folder: &Path) -> String {
    let path = folder.to_string_lossy();
    match path.ends_with('/') || path.is_empty() {
        true => path.into_owned(),
        false => format!("{path}/"),
    }
}

#[cfg(test)]
mod tests;
