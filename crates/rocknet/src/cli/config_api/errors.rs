//! Errors of requests about configuration files.

use std::io;
use std::path::Path;

use rocknet::gateway::accounts;
use rocknet_config::Report;
use rocknet_control::api::ApiError;

use super::super::config_file::{ReplaceError, revision};

pub(super) fn unreadable(file: &Path, error: &io::Error) -> ApiError {
    ApiError::new(500, format!("cannot read {}: {error}", file.display()))
}

pub(super) fn unwritable(file: &Path, error: ReplaceError) -> ApiError {
    let error = match error {
        ReplaceError::Changed => return changed(file),
        ReplaceError::Io(error) if error.kind() == io::ErrorKind::AlreadyExists => return changed(file),
        ReplaceError::Io(error) => error,
    };
    let hint = match error.kind() {
        // The next start reads the configuration as root again, so the user of the server must not be able to write it.
        io::ErrorKind::PermissionDenied if accounts::can_switch_accounts() || accounts::has_dropped_rights() => {
            "; the server was started as root, so only root may change its configuration: edit the file by hand, and \
             load it with `rocknet reload`"
        }
        io::ErrorKind::PermissionDenied => {
            "; give the file and its folder to the user of the server, or edit it by hand"
        }
        _ => "",
    };
    ApiError::new(500, format!("cannot write {}: {error}{hint}", file.display()))
}

/// Checks that a file with the text `text` has the revision `expected`. `None` accepts every revision.
pub(super) fn expect_revision(file: &Path, text: &str, expected: Option<&str>) -> Result<(), ApiError> {
    if expected.is_none_or(|expected| expected == revision(text)) {
        return Ok(());
    }
    Err(changed(file))
}

pub(super) fn changed(file: &Path) -> ApiError {
    let file = file.display();
    ApiError::new(
        409,
        format!("{file} was changed by another program in the meantime, and stays as it is"),
    )
}

/// Error for a file whose present text cannot be edited.
pub(super) fn not_toml(file: &Path, report: &Report) -> ApiError {
    ApiError {
        details: Some(report.to_string()),
        ..ApiError::new(422, format!("{} is not valid TOML", file.display()))
    }
}

/// Error for a new text of a file that the server cannot use.
pub(super) fn invalid(file: &Path, report: &Report) -> ApiError {
    ApiError {
        details: Some(report.to_string()),
        ..ApiError::new(
            422,
            format!("{} is not changed: the new text is not valid", file.display()),
        )
    }
}

pub(super) fn history_failed(error: &io::Error) -> ApiError {
    ApiError::new(500, format!("cannot read the history: {error}"))
}
