//! Notes about directives: not translated, different in RockNet, or not needed.

/// Kind of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// The directive has no effect in the result.
    NotTranslated,
    /// The directive was translated, and the result differs in the way that the message describes.
    Differs,
    /// RockNet does the same without a setting, or the directive has no meaning there.
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
    /// Line of the directive, counted from 1.
    pub line: usize,
    /// The directive on one line, shortened.
    pub directive: String,
    /// Reason, and the action to take.
    pub message: String,
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
