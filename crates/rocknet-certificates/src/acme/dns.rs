//! DNS-01: a TXT record that comes and goes, by a program of the operator's or by an update of the zone itself.

pub(crate) mod message;
mod update;

use std::time::Duration;

use rocknet_config::model::Dns;

pub use update::Zone;

/// Puts a record up or takes it down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    Present,
    Cleanup,
}

impl Deed {
    pub fn word(self) -> &'static str {
        match self {
            Deed::Present => "present",
            Deed::Cleanup => "cleanup",
        }
    }
}

/// `name`: the domain that is proven, without `*.`.
pub async fn apply(dns: &Dns, deed: Deed, name: &str, value: &str) -> Result<(), String> {
    let record = format!("_acme-challenge.{name}");
    match dns {
        Dns::Hook { program, wait } => {
            let (program, record, value) = (program.clone(), record.clone(), value.to_owned());
            let run = move || hook(&program, deed, &record, &value);
            tokio::task::spawn_blocking(run)
                .await
                .map_err(|error| error.to_string())??;
            settle(deed, *wait).await;
        }
        Dns::Update { zone, wait } => {
            Zone::new(zone).apply(deed, &record, value).await?;
            settle(deed, *wait).await;
        }
    }
    Ok(())
}

/// The CA asks the zone's other servers too, and they are told a moment later.
async fn settle(deed: Deed, wait: Duration) {
    if deed == Deed::Present {
        tokio::time::sleep(wait).await;
    }
}

/// Runs `program present|cleanup NAME VALUE`.
fn hook(program: &std::path::Path, deed: Deed, record: &str, value: &str) -> Result<(), String> {
    use std::process::{Command, Stdio};
    let shown = program.display();
    let child = Command::new(program)
        .args([deed.word(), record, value])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{shown}: {error}"))?;
    let output = rocknet_io::program::wait(child, HOOK_PATIENCE).map_err(|error| format!("{shown}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.trim().lines().next_back().unwrap_or_default();
    // What a program says may be anything; the log escapes it.
    Err(format!("{shown} {} failed ({}): {last}", deed.word(), output.status))
}

/// Interfaces of DNS providers answer in seconds; some wait until the record is out.
const HOOK_PATIENCE: Duration = Duration::from_secs(300);
