//! Commands that examine the service in the container.

/// Prints the main process of the service.
pub const PROCESS: &str = "systemctl show --property MainPID --value rocknet";

/// Returns a command that requests a page, with attempts until a server that is starting accepts connections.
pub fn page(port: u16, path: &str) -> String {
    format!(
        "curl -sS --fail --max-time 10 --retry 20 --retry-delay 1 --retry-connrefused http://127.0.0.1:{port}{path}"
    )
}
