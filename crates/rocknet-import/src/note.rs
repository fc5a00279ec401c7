//! Notes about directives: not translated, different in RockNet, or not needed.

/// Kind of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// The directive has no effect in the result.
    NotTranslated,
    /// The directive was translated, and the result differs in the way that the message describes.
    Differs,
    /// RockNet does the same without a setting, or the directive has no meaning in RockNet.
    NotNeeded,
}

impl NoteKind {
    /// Returns the kind in words.
    pub fn label(self) -> &'static str {
        match self {
            NoteKind::NotTranslated => "not translated",
            NoteKind::Differs => "differs",
            NoteKind::NotNeeded => "not needed",
        }
    }
}

/// Note about one directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Kind of the note.
    pub kind: NoteKind,
    /// Name of the file with the directive.
    pub file: String,
    /// Line of the directive in its file, counted from 1.
    pub line: usize,
    /// The directive on one line, shortened.
    pub directive: String,
    /// Reason, and the action to take.
    pub message: String,
}

/// Beginning of the message of a note about a restriction that the result lacks, or has in a weaker form.
pub(crate) const RESTRICTS_ACCESS: &str = "THIS RESTRICTS ACCESS";

/// Beginning of the message of a note about files that were not read, and may contain restrictions.
pub(crate) const MAY_RESTRICT_ACCESS: &str = "THIS MAY RESTRICT ACCESS";

impl Note {
    /// Returns true if the directive restricts access, or may do so, and the result permits more requests.
    pub fn weakens_access(&self) -> bool {
        self.message.starts_with(RESTRICTS_ACCESS) || self.message.starts_with(MAY_RESTRICT_ACCESS)
    }
}

/// Maximum length of a directive in a note, in characters.
const MAX_SHOWN: usize = 80;

/// Returns a text on one line, without control characters, and shortened.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_SHOWN)
        .collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
