//! Finds the folders below a root with `{host}`, each of which is a site for the host with its name: for the root
//! `/srv/{host}/public`, the folder `/srv/example.com/public` is the root of the host `example.com`.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::environment::{Environment, FileKind};
use crate::model::{HostFolders, HostPattern};
use crate::value::host::host_pattern;

/// Maximum number of hosts below one folder. A site uses about 2 KB in each worker.
const MAX_HOSTS: usize = 10_000;

/// Hosts that have a folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundHosts {
    /// The first 10,000 hosts in the order of their names.
    pub hosts: Vec<String>,
    /// Number of further hosts.
    pub omitted: usize,
}

/// Returns the hosts that have a folder now. `pattern`: a root with `{host}`. A folder is left out if its name is not a
/// host name in lower case, or if it lacks the folders that follow `{host}` in the pattern.
///
/// # Errors
///
/// Fails if the folders cannot be listed.
pub fn find(pattern: &Path, environment: &dyn Environment) -> io::Result<FoundHosts> {
    let parts: Vec<_> = pattern.components().collect();
    let at = parts.iter().position(|part| is_host(*part)).unwrap_or(parts.len());
    let (parent, below): (PathBuf, PathBuf) = (
        parts[..at].iter().collect(),
        parts[(at + 1).min(parts.len())..].iter().collect(),
    );
    let mut hosts = environment.folders(&parent)?;
    hosts.retain(|name| {
        let is_name = matches!(host_pattern(name), Ok(HostPattern::Exact(host)) if host == *name);
        let is_complete = || {
            below.as_os_str().is_empty()
                || environment.kind(&parent.join(name).join(&below)) == Some(FileKind::Directory)
        };
        is_name && is_complete()
    });
    hosts.sort();
    let omitted = hosts.len().saturating_sub(MAX_HOSTS);
    hosts.truncate(MAX_HOSTS);
    Ok(FoundHosts { hosts, omitted })
}

/// Returns a path with the host in place of `{host}`. The host is one folder name, so the path remains below the
/// same folder.
pub(crate) fn folder(pattern: &Path, host: &str) -> PathBuf {
    let parts = pattern.components();
    parts
        .map(|part| match is_host(part) {
            true => Component::Normal(host.as_ref()),
            false => part,
        })
        .collect()
}

/// Returns true if a part of the path is `{host}`.
pub(crate) fn is_pattern(path: &Path) -> bool {
    path.components().any(is_host)
}

/// Returns the folder that contains the folders of the hosts.
pub fn parent(pattern: &Path) -> PathBuf {
    pattern.components().take_while(|part| !is_host(*part)).collect()
}

fn is_host(part: Component<'_>) -> bool {
    part.as_os_str() == HostFolders::HOST
}
