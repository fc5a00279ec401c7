//! Default state folders, for servers without `server.state`, and the path of the control socket in a state folder.

use std::path::PathBuf;

/// Default state folder of servers that root starts.
pub const SYSTEM_STATE_FOLDER: &str = "/var/lib/rocknet";

/// Path of the control socket relative to the state folder.
pub const CONTROL_SOCKET: &str = "admin/control.sock";

/// Returns the default state folder of servers that the user of this process starts; `None` if neither `XDG_STATE_HOME`
/// nor `HOME` is set.
pub fn user_state_folder() -> Option<PathBuf> {
    let below = |variable: &str, path: &str| {
        let base = std::env::var_os(variable).filter(|value| !value.is_empty())?;
        Some(PathBuf::from(base).join(path))
    };
    below("XDG_STATE_HOME", "rocknet").or_else(|| below("HOME", ".local/state/rocknet"))
}
