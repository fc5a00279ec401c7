//! The programs of one folder.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rocknet_config::model::Cgi;
use tokio::sync::Semaphore;

use super::places::Permit;
use super::processes::Processes;
use crate::gateway::trouble::Trouble;

/// The programs of a folder.
pub struct Programs {
    pub queue: Duration,
    pub time: Duration,
    pub output: u64,
    pub params: Vec<(String, String)>,
    /// Whom they run as, where the site says so.
    pub user: Option<Box<str>>,
    pub(super) places: Arc<Semaphore>,
    /// Those of the whole server.
    pub(super) processes: Arc<Processes>,
}

impl Programs {
    pub fn new(root: &Path, cgi: &Cgi, user: Option<&str>, processes: &Arc<Processes>) -> Programs {
        Programs {
            queue: cgi.queue,
            time: cgi.time,
            output: cgi.output,
            params: cgi.params.clone().into_iter().collect(),
            user: user.map(Box::from),
            places: processes.places.of(root, cgi),
            processes: Arc::clone(processes),
        }
    }

    /// Waits for a place.
    pub async fn enter(&self) -> Result<Permit, Trouble> {
        self.processes.places.enter(&self.places).await
    }
}
