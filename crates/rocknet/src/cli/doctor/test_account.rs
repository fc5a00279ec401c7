//! Account for tests of the rights of another account.

use rocknet_io::privileges::{self, User};
use rocknet_testing::{Need, skip};

/// Returns an account that the system does not have; `None`, after the skip was recorded, if the tests do not run as
/// root, who alone can take its rights.
pub(super) fn account() -> Option<User> {
    if !privileges::is_root() {
        skip(Need::Root, "only root can take the rights of another account");
        return None;
    }
    Some(User {
        name: "x".into(),
        uid: 4242,
        gid: 4243,
        groups: vec![4243],
        home: None,
    })
}
