//! Import cycles that are tolerated. The lists only shrink: a new member is a violation, and so is a member that is in
//! no cycle any more.

/// Members of one cycle.
pub struct Known {
    /// Folder of the crate.
    pub folder: &'static str,
    /// Names of modules, or paths of files below `src`.
    pub members: &'static [&'static str],
}

/// Cycles of modules at the top of a crate.
pub const KNOWN_MODULES: &[Known] = &[];

/// Cycles of files.
pub const KNOWN_FILES: &[Known] = &[];
