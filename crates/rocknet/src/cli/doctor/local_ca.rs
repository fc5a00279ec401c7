//! Checks that each trust store of this machine trusts the local CA, if there is one.

use std::path::Path;

use rocknet::certificates::{needs_local_ca, state_folder};
use rocknet::trust::TrustState;

use super::super::{Failure, trust};
use super::facts::DoctorFacts;
use super::verdict::Check;

const SUBJECT: &str = "local CA";

pub(super) fn check(facts: &DoctorFacts<'_>) -> Vec<Check> {
    if !needs_local_ca(facts.config) {
        return vec![Check::good(SUBJECT, "no site needs it")];
    }
    let state = state_folder(facts.config);
    match trust::inspect(&state) {
        Ok(None) => vec![Check::good(
            SUBJECT,
            "does not exist yet: the server creates it when it starts",
        )],
        Ok(Some(stores)) if stores.is_empty() => {
            vec![Check::fair(
                SUBJECT,
                "no-trust-store",
                "this machine has no trust store",
            )]
        }
        Ok(Some(stores)) => stores
            .into_iter()
            .map(|(store, found)| of_store(&state, &store, found))
            .collect(),
        Err(Failure::Failed(why)) => vec![match &facts.other_account {
            // The state folder may be closed to this account.
            Some(other) => other.skipped(SUBJECT, "trust in it"),
            None => Check::bad(SUBJECT, "ca-damaged", why),
        }],
        // `inspect` returns no other error.
        Err(_) => Vec::new(),
    }
}

fn of_store(state: &Path, store: &str, found: TrustState) -> Check {
    match found {
        TrustState::Trusted => Check::good(SUBJECT, format!("trusted by {store}")),
        TrustState::NotTrusted => {
            let found = format!("not trusted by {store}: type `rocknet trust`");
            Check::fair(SUBJECT, "ca-not-trusted", found)
                .place(&store)
                .command("rocknet trust")
                .fix(format!("let {store} trust the local CA"), {
                    let (state, store) = (state.to_owned(), store.to_owned());
                    move || trust::install(&state, &store)
                })
        }
        TrustState::Unknown(why) => {
            let found = format!("cannot determine whether {store} trusts it: {why}");
            Check::fair(SUBJECT, "ca-trust-unknown", found).place(&store)
        }
    }
}
