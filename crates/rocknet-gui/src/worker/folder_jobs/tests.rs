//! Folders that do not reply, in place of which closures wait.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::worker::{Options, Worker};

/// Maximum wait for a report.
const TIMEOUT: Duration = Duration::from_secs(60);

const FOUND: Inspection = Inspection {
    exists: true,
    is_slow: false,
    has_crashed: false,
    is_file: false,
    readable: true,
    has_index_html: false,
    has_php: false,
    is_wordpress: false,
    is_laravel: false,
};

fn found(job: &Job) -> Option<Report> {
    match job {
        Job::Inspect(folder) => Some(Report::Inspected(folder.clone(), FOUND)),
        _ => panic!("{job:?}"),
    }
}

fn inspect(folder: &str) -> Job {
    Job::Inspect(folder.into())
}

/// Lets jobs wait until the returned senders are dropped.
fn hang(jobs: &FolderJobs, late: &Sender<Report>, hung: &[Job]) -> Vec<Sender<()>> {
    let begin = |job: &Job| {
        let (release, released) = channel::<()>();
        let begun = jobs.begin(job, late.clone(), move |job| {
            let _ = released.recv();
            found(job)
        });
        assert_eq!(begun, None);
        release
    };
    hung.iter().map(begin).collect()
}

fn numbered(count: usize) -> Vec<Job> {
    (0..count).map(|number| inspect(&format!("/net/{number}"))).collect()
}

#[test]
fn a_folder_that_does_not_reply_is_reported_later() {
    let jobs = FolderJobs::default();
    let (late, reports) = channel();
    let report = |job: &Job| found(job).unwrap();
    assert_eq!(
        jobs.begin(&inspect("/a"), late.clone(), found),
        Some(report(&inspect("/a")))
    );
    let hung = numbered(MAX_WAITING);
    let releases = hang(&jobs, &late, &hung);
    // Neither a further thread is started, nor a second one for the same job.
    let refused = jobs.begin(&inspect("/a"), late.clone(), |_| panic!("a thread too many"));
    let Some(Report::Inspected(_, inspection)) = refused else {
        panic!("{refused:?}");
    };
    assert!(inspection.is_slow);
    assert_eq!(
        jobs.begin(&hung[0], late.clone(), |_| panic!("a thread too many")),
        None
    );
    assert!(reports.try_recv().is_err());
    drop(releases);
    let mut expected: Vec<Report> = hung.iter().map(report).collect();
    while !expected.is_empty() {
        let report = reports.recv_timeout(TIMEOUT).unwrap();
        let place = expected.iter().position(|other| *other == report);
        expected.remove(place.expect("each report once"));
    }
    assert_eq!(jobs.begin(&inspect("/a"), late, found), Some(report(&inspect("/a"))));
}

#[test]
fn folders_that_hang_do_not_keep_the_worker_from_other_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        search_path: Some(folder.path().into()),
        ..Options::default()
    };
    let (sender, reports): (_, Receiver<Report>) = channel();
    let mut worker = Worker::new(options, move |report| drop(sender.send(report)));
    let folder: PathBuf = folder.path().into();
    let new = folder.join("new");
    let releases = hang(
        &worker.services.folder_jobs,
        &worker.services.ended(),
        &numbered(MAX_WAITING),
    );
    // Each job has an answer, without a look at the folder.
    for job in [
        Job::ListFolder(folder.clone()),
        Job::CreateFolder(new.clone()),
        Job::CreateStartPage(folder.clone()),
        Job::OpenEditor(folder.clone()),
    ] {
        worker.carry_out(job);
    }
    let not_tried = || Report::Failed(Trouble::Folder(folder.clone(), FolderTrouble::NotTried));
    assert_eq!(
        reports.try_iter().collect::<Vec<_>>(),
        [
            Report::Listed(folder.clone(), Err(FolderTrouble::NotTried)),
            Report::FolderCreated(new.clone(), Err(FolderTrouble::NotTried)),
            not_tried(),
            not_tried(),
        ]
    );
    assert!(!new.exists() && !folder.join("index.html").exists());
    drop(releases);
}

#[test]
fn the_page_that_waits_has_an_answer() {
    let jobs = FolderJobs::default();
    let (late, reports) = channel();
    let folder = Path::new("/net/a").to_owned();
    let listed = |result| Report::Listed(folder.clone(), result);
    let job = Job::ListFolder(folder.clone());
    let (release, released) = channel::<()>();
    let result = Err(FolderTrouble::Missing);
    let later = listed(result.clone());
    let begun = jobs.begin(&job, late.clone(), move |_| {
        let _ = released.recv();
        Some(later)
    });
    let waits = Some(listed(Err(FolderTrouble::Waiting)));
    assert_eq!(begun, waits);
    assert_eq!(jobs.begin(&job, late, |_| panic!("a thread too many")), waits);
    drop(release);
    assert_eq!(reports.recv_timeout(TIMEOUT), Ok(listed(result)));
}

#[test]
fn an_editor_that_takes_long_is_no_failure_at_first() {
    let jobs = FolderJobs::default();
    let (late, reports) = channel();
    let folder = PathBuf::from("/srv/a");
    let job = Job::OpenEditor(folder.clone());
    let (release, released) = channel::<()>();
    let failed = Report::Failed(Trouble::NoEditor);
    let later = failed.clone();
    let begun = jobs.begin(&job, late.clone(), move |_| {
        let _ = released.recv();
        Some(later)
    });
    assert_eq!(begun, None);
    let waits = Report::Failed(Trouble::Folder(folder, FolderTrouble::Waiting));
    assert_eq!(jobs.begin(&job, late, |_| panic!("an editor too many")), Some(waits));
    drop(release);
    assert_eq!(reports.recv_timeout(TIMEOUT), Ok(failed));
}

#[test]
fn a_job_that_crashes_is_reported() {
    let jobs = FolderJobs::default();
    let (late, reports) = channel();
    // On a busy machine, the report comes late.
    let report = |begun: Option<Report>| begun.unwrap_or_else(|| reports.recv_timeout(TIMEOUT).unwrap());
    let job = inspect("/srv/a");
    let Report::Inspected(_, inspection) = report(jobs.begin(&job, late.clone(), |_| panic!("on purpose"))) else {
        panic!("another report")
    };
    assert!(inspection.has_crashed && !inspection.exists);
    let again = report(jobs.begin(&job, late, found));
    assert_eq!(Some(again), found(&job), "it can be tried again");
}
