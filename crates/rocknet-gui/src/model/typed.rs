//! Text as it was typed or pasted into a field.

use rocknet_control::site_form::FieldInput;

use super::{Fetched, Model};
use crate::act::FieldId;

impl Model {
    /// Returns the text of a field without control characters, such as the line ends of a pasted path. A field of
    /// several lines keeps these.
    pub(super) fn typed(&self, field: FieldId, text: &str) -> String {
        let has_lines = match (field, &self.site_edit) {
            // Folders that are dropped into the field come one on each line.
            (FieldId::Folder, _) => true,
            (FieldId::Site(at), Fetched::Loaded(edit)) => {
                let input = edit.form.fields.get(usize::from(at)).map(|field| field.input);
                matches!(input, Some(FieldInput::List | FieldInput::Map))
            }
            _ => false,
        };
        without_control(text, has_lines)
    }
}

/// Returns a text without control characters. `keeps_lines`: line ends stay.
pub(super) fn without_control(text: &str, keeps_lines: bool) -> String {
    let is_kept = |letter: &char| !letter.is_control() || keeps_lines && *letter == '\n';
    text.chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_left_out() {
        assert_eq!(without_control("/srv/\u{c}a\r\nb\u{7f}", false), "/srv/ab");
        assert_eq!(without_control("a\r\n\tb\n", true), "a\nb\n");
    }
}
