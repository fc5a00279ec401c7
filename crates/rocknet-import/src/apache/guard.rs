//! Exceptions of earlier rules, such as `RewriteRule ^api/ - [L]`, for the rules that follow.

use crate::condition::{Conditions, both};

/// Requests to which rules apply, because no earlier rule has ended the rules for them.
pub(super) struct Guard {
    /// Alternatives under which the rules that follow apply.
    pub alternatives: Vec<Conditions>,
    /// The same for the rules of folders. A rule of the host restricts these only with the flag `END`.
    of_folders: Vec<Conditions>,
    is_in_folder: bool,
    /// True if a rule may have rewritten the path. Conditions of the guard would then test the new path, and not the
    /// one that the earlier rules tested.
    pub is_stale: bool,
}

impl Default for Guard {
    fn default() -> Guard {
        Guard {
            alternatives: vec![Conditions::new()],
            of_folders: vec![Conditions::new()],
            is_in_folder: false,
            is_stale: false,
        }
    }
}

impl Guard {
    /// Begins the rules of a folder, or those of a host.
    pub fn enter(&mut self, is_in_folder: bool) {
        if is_in_folder && !self.is_in_folder {
            self.alternatives = self.of_folders.clone();
        }
        self.is_in_folder = is_in_folder;
    }

    /// Excludes requests from the rules that follow. `excluded`: negated conditions, which all other requests meet.
    /// `ends_all`: true to exclude the requests from the rules of folders, too.
    pub fn exclude(&mut self, excluded: &Conditions, ends_all: bool) {
        let excluded = std::slice::from_ref(excluded);
        self.alternatives = both(&self.alternatives, excluded);
        if ends_all {
            self.of_folders = both(&self.of_folders, excluded);
        }
    }

    /// Returns true if no request is excluded.
    pub fn is_empty(&self) -> bool {
        self.alternatives == [Conditions::new()]
    }
}
