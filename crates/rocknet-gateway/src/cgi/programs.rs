//! Settings and permits of the programs of one folder.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rocknet_config::model::Cgi;
use tokio::sync::Semaphore;

use super::permits::ProgramPermit;
use super::processes::Processes;
use crate::gateway::error::BackendError;

/// The settings and permits of the programs of one folder.
pub struct Programs {
    /// Maximum wait for a permit.
    pub queue_timeout: Duration,
    /// Time after which a program is killed.
    pub time_limit: Duration,
    /// Maximum length of a response in bytes, including its head.
    pub max_output: u64,
    /// True if the programs get the header field `Authorization`. It is not passed if the server has verified the
    /// password itself.
    pub passes_authorization: bool,
    /// Variables that replace variables of the same name. An empty value removes the variable.
    pub params: Vec<(String, String)>,
    /// Account that the programs run as, if the site names one.
    pub user: Option<Box<str>>,
    /// Permits of the folder.
    pub(super) permits: Arc<Semaphore>,
    /// Programs of the whole server.
    pub(super) processes: Arc<Processes>,
}

impl Programs {
    /// Creates the settings of a folder below `root`. `user`: account of the site.
    pub fn new(root: &Path, cgi: &Cgi, user: Option<&str>, processes: &Arc<Processes>) -> Programs {
        Programs {
            queue_timeout: cgi.queue,
            time_limit: cgi.time,
            max_output: cgi.output,
            passes_authorization: cgi.authorization,
            params: cgi.params.clone().into_iter().collect(),
            user: user.map(Box::from),
            permits: processes.permits.for_folder(root, cgi),
            processes: Arc::clone(processes),
        }
    }

    /// Waits for a permit.
    ///
    /// # Errors
    ///
    /// Returns [`BackendError::Full`] if too many requests wait already.
    pub async fn acquire(&self) -> Result<ProgramPermit, BackendError> {
        self.processes.permits.acquire(&self.permits).await
    }
}
