//! Without Linux's calls the rights are not given up here, and the operator is told to start without them.

use std::io;

use super::{RightsError, User};

pub(super) fn drop_to(user: &User) -> Result<(), RightsError> {
    let advice = format!("not built for this system; start the server as `{}` instead", user.name);
    Err(RightsError::System(
        "setuid",
        io::Error::new(io::ErrorKind::Unsupported, advice),
    ))
}

pub(super) fn keep_starting_programs() -> Result<(), RightsError> {
    Err(RightsError::System("capset", io::ErrorKind::Unsupported.into()))
}
