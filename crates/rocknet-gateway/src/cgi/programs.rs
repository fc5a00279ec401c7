//! The programs of one folder.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rocknet_config::model::Cgi;
use tokio::sync::Semaphore;

use super::permits::ProgramPermit;
use super::processes::Processes;
use crate::gateway::error::BackendError;

/// The programs of a folder.
pub struct Programs {
    pub queue_timeout: Duration,
    pub time_limit: Duration,
    pub max_output: u64,
    pub params: Vec<(String, String)>,
    /// Whom they run as, where the site says so.
    pub user: Option<Box<str>>,
    pub(super) permits: Arc<Semaphore>,
    /// Those of the whole server.
    pub(super) processes: Arc<Processes>,
}

impl Programs {
    pub fn new(root: &Path, cgi: &Cgi, user: Option<&str>, processes: &Arc<Processes>) -> Programs {
        Programs {
            queue_timeout: cgi.queue,
            time_limit: cgi.time,
            max_output: cgi.output,
            params: cgi.params.clone().into_iter().collect(),
            user: user.map(Box::from),
            permits: processes.permits.for_folder(root, cgi),
            processes: Arc::clone(processes),
        }
    }

    /// WaitingGuard for a place.
    pub async fn acquire(&self) -> Result<ProgramPermit, BackendError> {
        self.processes.permits.acquire(&self.permits).await
    }
}
