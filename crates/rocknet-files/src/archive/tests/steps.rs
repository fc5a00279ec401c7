//! Tests of scans and streams in steps, and of files and folders that change meanwhile.

use std::path::Path;

use super::super::scan::Scanned;
use super::*;

/// Runs the steps of a scan. Returns its result, and the number of steps.
fn scanned(request: ArchiveRequest, mut between: impl FnMut()) -> (Result<Box<Scanned>, Status>, usize) {
    let access = Reached(Arc::clone(&request.tree), "");
    let permit = ArchiveLimit::default()
        .acquire(CLIENT, 1)
        .unwrap_or_else(|_| panic!("a permit"));
    let mut scan = match Scan::start(request, "d".to_owned(), access, permit) {
        Ok(scan) => scan,
        Err(status) => return (Err(status), 0),
    };
    for steps in 1.. {
        match scan.step() {
            Ok(Step::More(rest)) => scan = rest,
            Ok(Step::Done(scanned)) => return (Ok(scanned), steps),
            Err(status) => return (Err(status), steps),
        }
        between();
    }
    unreachable!("a scan ends")
}

fn found(scanned: &Scanned) -> Vec<&str> {
    scanned.entries.iter().map(|found| &*found.entry.name).collect()
}

#[test]
fn a_scan_runs_in_short_steps() {
    let root = tempfile::tempdir().expect("a folder");
    for number in 0..3000 {
        write(root.path(), &format!("d/{number:04}"), "");
    }
    let (result, steps) = scanned(request(root.path(), "/d/", ZipLimits::default(), |_| {}), || ());
    let result = result.unwrap_or_else(|status| panic!("{status:?}"));
    let names = found(&result);
    assert_eq!(names.len(), 3000);
    assert!(names.is_sorted());
    // Each name is read once and added once.
    assert!(steps >= 2 * 3000 / 320, "{steps} steps");
}

#[test]
fn a_dropped_request_ends_its_scan() {
    let root = tempfile::tempdir().expect("a folder");
    write(root.path(), "d/a", "a");
    let (limit, pool) = (ArchiveLimit::default(), Pool::new(1));
    // The thread of the pool is busy, so the scan waits.
    let (free, busy) = std::sync::mpsc::channel::<()>();
    let other = pool.spawn(Default::default(), move || busy.recv().is_ok());
    let counted = Arc::new(());
    struct Counted(#[allow(dead_code, reason = "it is counted")] Arc<()>, Reached);
    impl PathAccess for Counted {
        fn tree_at(&self, path: &str) -> Option<Arc<Tree>> {
            self.1.tree_at(path)
        }
    }
    let request = request(root.path(), "/d/", ZipLimits::default(), |_| {});
    let access = Counted(Arc::clone(&counted), Reached(Arc::clone(&request.tree), ""));
    block_on(async {
        let mut response = Box::pin(respond(request, access, limit.clone(), pool.clone()));
        let polled = std::future::poll_fn(|context| std::task::Poll::Ready(response.as_mut().poll(context))).await;
        assert!(polled.is_pending());
        assert_eq!(Arc::strong_count(&counted), 2);
        drop(response);
        assert_eq!(Arc::strong_count(&counted), 1, "the scan was dropped");
        free.send(()).expect("the job waits");
        assert_eq!(other.await, Ok(true));
    });
    // All places are free again.
    let permits: Result<Vec<_>, _> = (0..limit::MAX_ARCHIVES).map(|_| limit.acquire(CLIENT, 1)).collect();
    assert!(permits.is_ok());
    assert!(limit.acquire(CLIENT, 1).is_err(), "each place was taken");
}

#[test]
fn a_folder_that_is_removed_during_the_scan_is_left_out() {
    let root = tempfile::tempdir().expect("a folder");
    for number in 0..400 {
        write(root.path(), &format!("d/{number:03}/x"), "x");
    }
    // The first steps read the 400 names and add them. Later ones read the folders from the first on. A folder that is
    // removed was thus found already or not, but was surely not read.
    let mut removed = (394..400).map(|number| number.to_string());
    let mut left_out = Vec::new();
    let (result, _) = scanned(request(root.path(), "/d/", ZipLimits::default(), |_| {}), || {
        if let Some(name) = removed.next() {
            fs::remove_dir_all(root.path().join("d").join(&name)).expect("a folder");
            left_out.push(name);
        }
    });
    let result = result.unwrap_or_else(|status| panic!("{status:?}"));
    let names = found(&result);
    assert_eq!(names.len(), 2 * (400 - 6), "{left_out:?}");
    assert!(
        names
            .iter()
            .all(|name| !left_out.iter().any(|removed| name.contains(removed)))
    );
}

#[test]
fn the_folder_of_a_site_that_is_replaced_does_not_mix_archives() {
    let parent = tempfile::tempdir().expect("a folder");
    let root = parent.path().join("site");
    let fill = |content: &str| (0..400).for_each(|number| write(&root, &format!("d/{number:03}"), content));
    fill("old");
    let replace = || {
        fs::rename(&root, parent.path().join("old")).expect("renamed");
        fill("new content");
    };
    let mut is_first = true;
    let (result, _) = scanned(request(&root, "/d/", ZipLimits::default(), |_| {}), || {
        if std::mem::take(&mut is_first) {
            replace();
        }
    });
    let result = result.unwrap_or_else(|status| panic!("{status:?}"));
    assert_eq!(result.entries.len(), 400);
    assert!(result.entries.iter().all(|found| found.entry.size == 3));
    let tree = request(&root, "/d/", ZipLimits::default(), |_| {}).tree;
    let stream = ArchiveStream::new(tree, result, false, Pool::new(1));
    let response = Response::new(Status::OK).body(Body::Stream(Box::new(stream)));
    let (bytes, _) = received(response).expect("an archive");
    assert!(read(&bytes).iter().all(|entry| entry.content == b"old"));
}

#[test]
fn a_replaced_or_changed_file_cuts_the_archive() {
    let root = tempfile::tempdir().expect("a folder");
    let replace = |root: &Path| {
        write(root, "other", [2; 300_000]);
        fs::rename(root.join("other"), root.join("d/a")).expect("renamed");
    };
    let change = |root: &Path| {
        let file = fs::File::options().write(true).open(root.join("d/a")).expect("a file");
        std::os::unix::fs::FileExt::write_all_at(&file, b"changed", 7).expect("written");
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(9);
        file.set_modified(later).expect("a time");
    };
    let folder = |root: &Path| {
        fs::rename(root.join("d"), root.join("before")).expect("renamed");
        write(root, "d/a", [2; 300_000]);
    };
    for alter in [&replace as &dyn Fn(&Path), &change, &folder] {
        write(root.path(), "d/a", [1; 300_000]);
        let response = requested(root.path(), "/d/", ZipLimits::default(), |_| {}, "");
        alter(root.path());
        assert!(received(response).is_err());
        let _ = fs::remove_dir_all(root.path().join("d"));
        let _ = fs::remove_dir_all(root.path().join("before"));
    }
    // The change of a file that is being sent is noticed at its end.
    write(root.path(), "d/a", [1; 600_000]);
    let response = requested(root.path(), "/d/", ZipLimits::default(), |_| {}, "");
    let Body::Stream(mut stream) = response.body else {
        panic!("no stream");
    };
    let first = block_on(stream.next()).expect("a piece").expect("a piece");
    assert!(first.len() < 300_000);
    change(root.path());
    let error = block_on(async {
        loop {
            match stream.next().await {
                Some(Ok(_)) => {}
                other => break other,
            }
        }
    });
    assert!(error.is_some_and(|piece| piece.is_err()));
}

#[test]
fn a_job_reads_little_even_if_it_writes_nothing() {
    let root = tempfile::tempdir().expect("a folder");
    let size = 20_000_000;
    write(root.path(), "d/zeros.txt", vec![0; size]);
    for number in 0..100 {
        write(root.path(), &format!("d/{number}"), "x");
    }
    let limits = ZipLimits {
        compress: true,
        ..ZipLimits::default()
    };
    let request = request(root.path(), "/d/", limits, |_| {});
    let tree = Arc::clone(&request.tree);
    let (result, _) = scanned(request, || ());
    let result = result.unwrap_or_else(|status| panic!("{status:?}"));
    let pool = Pool::new(1);
    let before = pool.stats().by_priority[1].done;
    let stream = ArchiveStream::new(tree, result, true, pool.clone());
    let response = Response::new(Status::OK).body(Body::Stream(Box::new(stream)));
    let (bytes, _) = received(response).expect("an archive");
    assert_eq!(read(&bytes).len(), 101);
    let jobs = pool.stats().by_priority[1].done - before;
    assert!(jobs >= (size / (320 * 1024) + 100 / 16) as u64, "{jobs} jobs");
}
