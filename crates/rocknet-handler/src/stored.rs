//! Responses that are sent several times, with the coded forms of their bodies.

use std::fmt::Debug;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use rocknet_proto::semantics::negotiation::Coding;

/// A response that is stored and sent several times. [`Response::stored`](crate::response::Response::stored) refers to
/// it.
pub trait Stored: Debug + Send + Sync {
    /// Returns the coded forms of the body.
    fn coded_forms(&self) -> &CodedForms;

    /// Returns the body.
    fn body(&self) -> &Bytes;

    /// Returns true if the response keeps these bytes in memory, as its body or as a coded form of it.
    fn keeps(&self, bytes: &Bytes) -> bool {
        let is_same = |kept: &Bytes| kept.as_ptr() == bytes.as_ptr() && kept.len() == bytes.len();
        let mut forms = self.coded_forms().forms.iter().filter_map(|form| form.get()?.as_ref());
        is_same(self.body()) || forms.any(is_same)
    }
}

/// Maximum size in bytes of a body whose coded forms are kept. Longer bodies are encoded while they are sent.
pub const MAX_CODED: usize = 1024 * 1024;

/// Codings of the forms. The first one is preferred by the server.
const CODINGS: [Coding; 3] = [Coding::Br, Coding::Zstd, Coding::Gzip];

/// Coded forms of a body, each encoded once.
#[derive(Debug, Default)]
pub struct CodedForms {
    /// Form in each of `CODINGS`. `None` in a cell means that the form is not shorter than the body.
    forms: [OnceLock<Option<Bytes>>; CODINGS.len()],
    /// Maximum size of all forms together, in bytes.
    max_size: usize,
    /// Memory that is left for further forms, in bytes.
    room: AtomicUsize,
}

impl CodedForms {
    /// Creates an empty set. `room`: maximum size of all forms together, in bytes.
    pub fn new(room: usize) -> CodedForms {
        CodedForms {
            forms: Default::default(),
            max_size: room,
            room: AtomicUsize::new(room),
        }
    }

    /// Returns the form in a coding; `None` if the body was not encoded in it yet. `Some(None)`: the body is sent
    /// without a coding, because its form is not shorter.
    pub fn get(&self, coding: Coding) -> Option<Option<&Bytes>> {
        let form = self.forms[position(coding)?].get()?;
        Some(form.as_ref())
    }

    /// Keeps a form, unless there is no room for it or there is one already. Half of the maximum size is left for the
    /// first coding, which most clients get. `None`: the form is not shorter than the body.
    pub fn set(&self, coding: Coding, form: Option<&Bytes>) {
        let size = form.map_or(0, Bytes::len);
        let Some(position) = position(coding) else { return };
        let is_first_missing = position > 0 && self.forms[0].get().is_none();
        let reserved = if is_first_missing { self.max_size / 2 } else { 0 };
        let take = |room: usize| room.checked_sub(size).filter(|left| size == 0 || *left >= reserved);
        if self.forms[position].get().is_some()
            || self
                .room
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                .is_err()
        {
            return;
        }
        if self.forms[position].set(form.cloned()).is_err() {
            self.room.fetch_add(size, Ordering::Relaxed);
        }
    }
}

fn position(coding: Coding) -> Option<usize> {
    CODINGS.iter().position(|other| *other == coding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_kept_while_there_is_room() {
        let forms = CodedForms::new(10);
        let form = |size: usize| Bytes::from(vec![0; size]);
        forms.set(Coding::Br, Some(&form(6)));
        // Another form of the same coding takes no room.
        forms.set(Coding::Br, Some(&form(3)));
        forms.set(Coding::Gzip, Some(&form(5)));
        forms.set(Coding::Zstd, Some(&form(4)));
        let size = |coding| forms.get(coding).map(|form| form.map(Bytes::len));
        assert_eq!(size(Coding::Br), Some(Some(6)));
        assert_eq!(size(Coding::Gzip), None);
        assert_eq!(size(Coding::Zstd), Some(Some(4)));
        assert_eq!(size(Coding::Identity), None);
        // That a form is not shorter needs no room.
        forms.set(Coding::Gzip, None);
        assert_eq!(size(Coding::Gzip), Some(None));
    }

    #[test]
    fn other_codings_leave_room_for_the_preferred_one() {
        let forms = CodedForms::new(750);
        let form = |size: usize| Bytes::from(vec![0; size]);
        let is_kept = |coding, size| {
            forms.set(coding, Some(&form(size)));
            forms.get(coding).is_some()
        };
        // Forms of text, in an order in which the first two once took all room.
        assert!(is_kept(Coding::Gzip, 290) && !is_kept(Coding::Zstd, 280));
        assert!(is_kept(Coding::Br, 240) && !is_kept(Coding::Zstd, 280));
        assert!(is_kept(Coding::Zstd, 220));
        // A form that would leave too little room is not kept, whatever the order.
        let forms = CodedForms::new(750);
        forms.set(Coding::Gzip, Some(&form(400)));
        assert!(forms.get(Coding::Gzip).is_none());
    }
}
