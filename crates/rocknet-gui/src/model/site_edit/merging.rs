//! Edits of other programs while a form is open: values that replace those of the form, and contradictions.

use rocknet_control::site_form::{SiteField, SiteForm};

use super::SiteEdit;

impl SiteEdit {
    /// Takes the form of the present file. Values that were edited meanwhile replace those that the user has not
    /// changed. Returns true if the form has changed; a contradiction is kept in `newer`.
    pub fn merge(&mut self, newer: SiteForm) -> bool {
        if self.is_saving {
            return false;
        }
        if newer.revision == self.form.revision {
            // The other edit was taken back.
            return self.newer.take().is_some();
        }
        if newer.fields.iter().any(|new| self.contradicts(new)) {
            self.newer = Some(newer);
        } else {
            self.adopt(newer);
        }
        true
    }

    /// Returns true if the user has changed the value of a field, and its value in the newer file is a third one. A
    /// kind that the user has chosen removes the keys of other kinds, so a new value of such a key contradicts it.
    fn contradicts(&self, new: &SiteField) -> bool {
        let Some((old, text)) = self.of_name(&new.name) else {
            return false;
        };
        let is_theirs = (&old.text, &old.other) != (&new.text, &new.other);
        if self.is_abandoned(new) {
            return is_theirs;
        }
        let is_mine = text.trim() != old.present().trim();
        is_mine && is_theirs && text.trim() != new.present().trim()
    }

    /// Returns the fields whose values contradict the newer file: the label, the value in the file, and the input.
    pub fn contradictions(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let newer = self.newer.iter().flat_map(|newer| &newer.fields);
        let contradicting = newer.filter(|new| self.contradicts(new));
        contradicting.filter_map(|new| {
            let (_, mine) = self.of_name(&new.name)?;
            Some((&*new.label, new.present(), mine))
        })
    }

    /// Continues with the present file, and keeps the texts that the user has changed.
    pub fn keep_input(&mut self) {
        if let Some(newer) = self.newer.take() {
            self.adopt(newer);
        }
    }

    fn adopt(&mut self, newer: SiteForm) {
        let mut merged = SiteEdit::new(newer);
        for (at, new) in merged.form.fields.iter().enumerate() {
            let mine = self
                .of_name(&new.name)
                .filter(|(old, text)| text.trim() != old.present().trim());
            if let Some((_, text)) = mine {
                text.clone_into(&mut merged.texts[at]);
            }
        }
        if self.kind != self.present_kind {
            merged.kind = self.kind;
        }
        merged.name = std::mem::take(&mut self.name);
        merged.left = std::mem::take(&mut self.left);
        *self = merged;
    }
}
