//! Body shared by the fuzz target and the test that replays its seeds.

use crate::credentials::{Credentials, MAX_PASSWORD_BYTES};
use rocknet_config::model::{MAX_USER_BYTES, is_user_name};

/// Parses any bytes as an `Authorization` header field, and checks that user and password are within their limits.
pub fn credentials(value: &[u8]) {
    if let Some(credentials) = Credentials::parse(value) {
        assert!(is_user_name(credentials.user()) && credentials.user().len() <= MAX_USER_BYTES);
        assert!(credentials.password().len() <= MAX_PASSWORD_BYTES);
    }
}
