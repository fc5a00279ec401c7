//! View for maintenance: the file cache, the version, the log levels, and the limits of the process.

use askama::Template;
use rocknet_control::Status;
use rocknet_control::api::{ApiError, Level, LogLevel, Reply, Request};

use crate::Control;
use crate::dashboard::figures::{bytes, count, duration, share};
use crate::dashboard::frame::{Frame, other_reply, rendered};
use crate::dashboard::instruction::DEFAULT_LEVEL;

#[derive(Template)]
#[template(path = "maintenance.html")]
struct MaintenancePage<'a> {
    frame: Frame<'a>,
    status: Status,
    levels: LogLevel,
    /// Input of a rejected form.
    binary: String,
    module: String,
}

/// Renders the view. The notice of `frame` may contain the input of a rejected form.
pub async fn view<C: Control>(frame: Frame<'_>, control: &C) -> Result<String, ApiError> {
    let Reply::Status(status) = control.execute(Request::Status).await? else {
        return Err(other_reply());
    };
    let Reply::LogLevel(levels) = control.execute(Request::LogLevel).await? else {
        return Err(other_reply());
    };
    let (binary, module) = (frame.input("binary"), frame.input("module"));
    Ok(rendered(&MaintenancePage {
        frame,
        status: *status,
        levels,
        binary,
        module,
    }))
}
