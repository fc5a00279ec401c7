//! Fields of forms.

use crate::act::FieldId;
use crate::screen::{Field, FieldInput};

/// Returns a field without a problem.
pub fn field(id: FieldId, label: &str, help: &str, input: FieldInput, text: &str) -> Field {
    Field {
        id,
        label: label.to_owned(),
        help: help.to_owned(),
        input,
        text: text.to_owned(),
        problem: String::new(),
        fix: None,
    }
}
