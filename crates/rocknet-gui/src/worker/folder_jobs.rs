//! Jobs about folders, each in a thread, because a folder of a network can take minutes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::{editor, folder_list, folders};
use crate::job::{FolderTrouble, Inspection, Job, Report, Trouble};
use crate::words::Language;

/// Time for which the worker waits for the result. A folder of this computer takes milliseconds.
const SOON: Duration = Duration::from_millis(300);

/// Maximum number of jobs whose folder does not reply. Each keeps a thread. A path that is typed has a job for each
/// letter.
const MAX_WAITING: usize = 16;

/// Stack size of a thread in bytes. No job is recursive.
const STACK_SIZE: usize = 256 << 10;

/// Jobs about folders that are carried out.
#[derive(Debug, Default)]
pub struct FolderJobs {
    /// Jobs that have not ended.
    waiting: Arc<Mutex<Vec<Job>>>,
}

impl FolderJobs {
    /// Begins a job. Returns its report if the folder replies soon. Otherwise, returns an answer for the page that
    /// waits, and the thread sends the report to `late`.
    pub fn begin(
        &self,
        job: &Job,
        late: Sender<Report>,
        run: impl FnOnce(&Job) -> Option<Report> + Send + 'static,
    ) -> Option<Report> {
        {
            let mut waiting = lock(&self.waiting);
            if waiting.contains(job) {
                return answer(job, FolderTrouble::Waiting);
            }
            if waiting.len() >= MAX_WAITING {
                return answer(job, FolderTrouble::NotTried);
            }
            waiting.push(job.clone());
        }
        let (sender, receiver) = sync_channel(0);
        let (own, waiting) = (job.clone(), Arc::clone(&self.waiting));
        let spawned = thread::Builder::new().stack_size(STACK_SIZE).spawn(move || {
            // The page would wait without limit for a job that has ended without a report.
            let report = catch_unwind(AssertUnwindSafe(|| run(&own)));
            let report = report.unwrap_or_else(|_| answer(&own, FolderTrouble::Crashed));
            end(&waiting, &own);
            // The channel has no room, so a report is either received or returned.
            if let Err(returned) = sender.send(report)
                && let Some(report) = returned.0
            {
                let _ = late.send(report);
            }
        });
        if spawned.is_err() {
            end(&self.waiting, job);
            return answer(job, FolderTrouble::NotTried);
        }
        match receiver.recv_timeout(SOON) {
            Ok(report) => report,
            // The search for the editor can take longer in any folder. Only a repeated job reports that it waits.
            Err(_) if matches!(job, Job::OpenEditor(_)) => None,
            Err(_) => answer(job, FolderTrouble::Waiting),
        }
    }
}

/// Carries out a job about a folder, and returns its report. `language`: language of start pages. `late`: receives
/// the report of an editor that fails after its start.
pub fn run(job: &Job, language: Language, late: Sender<Report>) -> Option<Report> {
    Some(match job {
        Job::Inspect(folder) => Report::Inspected(folder.clone(), folders::inspect(folder)),
        Job::ListFolder(folder) => Report::Listed(folder.clone(), folder_list::list(folder)),
        Job::CreateFolder(folder) => Report::FolderCreated(folder.clone(), folder_list::create(folder)),
        Job::CreateStartPage(folder) => match folders::create_start_page(folder, language) {
            Ok(()) => Report::Inspected(folder.clone(), folders::inspect(folder)),
            Err(error) => Report::Failed(error),
        },
        Job::OpenEditor(folder) => Report::Failed(editor::open(folder, late).err()?),
        _ => return None,
    })
}

/// Returns the answer to a job that has no result; `None` if the page shows already that it waits.
fn answer(job: &Job, trouble: FolderTrouble) -> Option<Report> {
    Some(match job {
        Job::Inspect(_) if trouble == FolderTrouble::Waiting => return None,
        Job::Inspect(folder) => {
            let inspection = Inspection {
                is_slow: trouble == FolderTrouble::NotTried,
                has_crashed: trouble == FolderTrouble::Crashed,
                ..Inspection::default()
            };
            Report::Inspected(folder.clone(), inspection)
        }
        Job::ListFolder(folder) => Report::Listed(folder.clone(), Err(trouble)),
        Job::CreateFolder(folder) => Report::FolderCreated(folder.clone(), Err(trouble)),
        Job::CreateStartPage(folder) | Job::OpenEditor(folder) => {
            Report::Failed(Trouble::Folder(folder.clone(), trouble))
        }
        _ => return None,
    })
}

fn end(waiting: &Mutex<Vec<Job>>, job: &Job) {
    lock(waiting).retain(|other| other != job);
}

/// Locks the list, which no panic can leave in disorder.
fn lock(waiting: &Mutex<Vec<Job>>) -> MutexGuard<'_, Vec<Job>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
