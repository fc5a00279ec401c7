//! DNS-01: publishes and removes a TXT record with a program of the operator or a dynamic update (RFC 2136).

mod action;
pub(crate) mod message;
mod update;

use std::time::Duration;

use rocknet_config::model::Dns;

pub use action::Action;
pub use update::Zone;

/// Publishes or removes the TXT record for `name`, the domain to be validated without `*.`. `value` is the text of the
/// record.
///
/// # Errors
/// Describes why the program or the update failed.
pub async fn apply(dns: &Dns, action: Action, name: &str, value: &str) -> Result<(), String> {
    let record = format!("_acme-challenge.{name}");
    match dns {
        Dns::Hook { program, wait } => {
            let (program, record, value) = (program.clone(), record.clone(), value.to_owned());
            let run = move || hook(&program, action, &record, &value);
            tokio::task::spawn_blocking(run)
                .await
                .map_err(|error| error.to_string())??;
            wait_for_propagation(action, *wait).await;
        }
        Dns::Update { zone, wait } => {
            Zone::new(zone).apply(action, &record, value).await?;
            wait_for_propagation(action, *wait).await;
        }
    }
    Ok(())
}

/// Waits after a record was published, because the CA also queries secondary servers, which are updated a moment later.
async fn wait_for_propagation(action: Action, wait: Duration) {
    if action == Action::Present {
        tokio::time::sleep(wait).await;
    }
}

/// Runs `program present|cleanup NAME VALUE`.
fn hook(program: &std::path::Path, action: Action, record: &str, value: &str) -> Result<(), String> {
    use std::process::{Command, Stdio};
    let shown = program.display();
    let child = Command::new(program)
        .args([action.word(), record, value])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{shown}: {error}"))?;
    let output =
        rocknet_io::program::wait_with_output(child, HOOK_TIMEOUT).map_err(|error| format!("{shown}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.trim().lines().next_back().unwrap_or_default();
    // The program may print any bytes; the log escapes them.
    Err(format!("{shown} {} failed ({}): {last}", action.word(), output.status))
}

/// Timeout of the program. APIs of DNS providers respond in seconds, but some programs wait until the record is
/// visible.
const HOOK_TIMEOUT: Duration = Duration::from_secs(300);
