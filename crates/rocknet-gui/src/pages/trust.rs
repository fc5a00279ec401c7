//! Trust of browsers in the local CA: a line for each store, with its repair.

use super::states;
use crate::act::{Act, Fix};
use crate::job::{Trust, TrustStore};
use crate::model::{Fetched, Model};
use crate::screen::{Banner, Body, Button, Check, Form, Mark, Message};
use crate::words::{Words, fill};

/// Returns the lines.
pub fn body(model: &Model) -> Body {
    let words = model.words();
    states::of_list(words, &model.services.trust, |stores| match &stores[..] {
        [] if model.is_elsewhere() => Body::Message(Message {
            title: words.stores_elsewhere_title.to_owned(),
            text: words.stores_elsewhere_text.to_owned(),
            ..Message::default()
        }),
        [] => Body::Message(Message {
            title: words.no_stores_title.to_owned(),
            text: words.no_stores_text.to_owned(),
            actions: vec![fix(words, model)],
            ..Message::default()
        }),
        stores => Body::Form(Form {
            checks: stores.iter().map(|store| check(model, store)).collect(),
            ..Form::default()
        }),
    })
}

/// Returns the notice that browsers warn of certificates of the local CA, if they do.
pub fn banner(model: &Model) -> Option<Banner> {
    let words = model.words();
    let Fetched::Loaded(certificates) = &model.certificates else {
        return None;
    };
    let is_local = certificates.iter().any(|certificate| certificate.source == LOCAL);
    (is_local && model.services.browsers_trust() == Some(false)).then(|| Banner {
        mark: Mark::Fair,
        text: words.browsers_warn.to_owned(),
        action: Some(fix(words, model)),
    })
}

/// Source of certificates of the local CA.
pub const LOCAL: &str = "local";

/// Returns the button that installs the certificate of the local CA.
pub fn fix(words: &Words, model: &Model) -> Button {
    Button::new(words.trust, Act::Repair(Fix::TrustCertificates)).only_if(model.link.is_online())
}

/// Returns the line of a store.
pub fn check(model: &Model, store: &TrustStore) -> Check {
    let words = model.words();
    let reader = match store.is_of_system() {
        true => words.store_of_system,
        false => &store.reader,
    };
    let path = store.path.to_string_lossy();
    let (mark, text) = match store.trust {
        Trust::Trusted => (Mark::Good, fill(words.store_trusted, &[reader, &path])),
        Trust::NotYet if store.is_of_system() => (Mark::Fair, fill(words.system_not_yet, &[&model.system_trust()])),
        Trust::NotYet => (Mark::Fair, fill(words.store_not_yet, &[reader, &path])),
        Trust::Unknown => (Mark::Fair, fill(words.store_unknown, &[reader, &store.trouble])),
    };
    let repair = match store.trust {
        Trust::Trusted => None,
        _ if store.is_of_system() => Some(Button::new(words.copy_command, Act::CopyService)),
        Trust::NotYet => Some(fix(words, model)),
        Trust::Unknown => Some(Button::new(words.check_again, Act::Refresh)),
    };
    Check {
        mark,
        text,
        fix: repair,
    }
}
