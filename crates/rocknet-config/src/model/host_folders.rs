//! Roots with `{host}`: each folder in the place of `{host}` is a site for the host with its name. For the root
//! `/srv/{host}`, the folder `/srv/example.com` is the site `example.com`.

use std::path::PathBuf;

/// A root with `{host}`, and the hosts that have a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFolders {
    /// Absolute path, with `{host}` as the name of one folder.
    pub pattern: PathBuf,
    /// Hosts with a folder, in lower case and sorted. Each is a site of the configuration, unless another site takes
    /// precedence, or the names of the site with `{host}` do not cover the host.
    pub hosts: Vec<String>,
    /// True if the sites run PHP or CGI programs, which may write in their folders.
    pub runs_programs: bool,
}

impl HostFolders {
    /// Name of a folder that stands for the host.
    pub const HOST: &'static str = "{host}";
}
