//! Looks into folders by threads, because a folder of a network can take minutes.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::job::{Inspection, Report};

/// Time for which the worker waits for the result. A folder of this computer takes milliseconds.
const SOON: Duration = Duration::from_millis(300);

/// Maximum number of folders that do not reply. Each keeps a thread.
const MAX_WAITING: usize = 4;

/// Folders that are being looked into.
#[derive(Debug, Default)]
pub struct Inspections {
    /// Has a second owner for each thread.
    waiting: Arc<()>,
}

impl Inspections {
    /// Looks into a folder. Returns the result if it is there soon; `None` if the thread sends it to `late`.
    pub fn begin(
        &self,
        folder: &Path,
        late: Sender<Report>,
        look: impl FnOnce(&Path) -> Inspection + Send + 'static,
    ) -> Option<Inspection> {
        if Arc::strong_count(&self.waiting) > MAX_WAITING {
            return Some(Inspection {
                is_slow: true,
                ..Inspection::default()
            });
        }
        let (sender, receiver) = sync_channel(0);
        let (folder, waiting) = (folder.to_owned(), Arc::clone(&self.waiting));
        thread::spawn(move || {
            let found = look(&folder);
            drop(waiting);
            // The channel has no room, so a result is either received or returned.
            if let Err(returned) = sender.send(found) {
                let _ = late.send(Report::Inspected(folder, returned.0));
            }
        });
        receiver.recv_timeout(SOON).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_folder_that_does_not_reply_is_reported_later() {
        let inspections = Inspections::default();
        let (late, reports) = channel();
        let found = Inspection {
            exists: true,
            ..Inspection::default()
        };
        let folder = Path::new("/net/a");
        assert_eq!(inspections.begin(folder, late.clone(), move |_| found), Some(found));
        let releases: Vec<Sender<()>> = (0..MAX_WAITING)
            .map(|_| {
                let (release, released) = channel::<()>();
                let begun = inspections.begin(folder, late.clone(), move |_| {
                    let _ = released.recv();
                    found
                });
                assert_eq!(begun, None);
                release
            })
            .collect();
        // No further thread is started.
        let refused = inspections.begin(folder, late.clone(), |_| panic!("a thread too many"));
        assert!(refused.is_some_and(|inspection| inspection.is_slow));
        assert!(reports.try_recv().is_err());
        drop(releases);
        for _ in 0..MAX_WAITING {
            let report = reports.recv_timeout(Duration::from_secs(60)).unwrap();
            assert_eq!(report, Report::Inspected(folder.to_owned(), found));
        }
        assert_eq!(inspections.begin(folder, late, move |_| found), Some(found));
    }
}
