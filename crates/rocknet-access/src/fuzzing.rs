//! One body for the fuzz target and for the test that replays its seeds.

use crate::credentials::{Credentials, MAX_PASSWORD_BYTES};
use rocknet_config::model::{MAX_USER_BYTES, is_user_name};

/// Any bytes as an `Authorization` field: nothing, or a user and a password within their bounds.
pub fn credentials(value: &[u8]) {
    if let Some(credentials) = Credentials::parse(value) {
        assert!(is_user_name(credentials.user()) && credentials.user().len() <= MAX_USER_BYTES);
        assert!(credentials.password().len() <= MAX_PASSWORD_BYTES);
    }
}
