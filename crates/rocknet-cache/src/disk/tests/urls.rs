//! Changes of URLs whose responses have keys made by a template.

use super::*;

const URL: &[u8] = b"h\0/a";

fn key_of_page(page: u32) -> Vec<u8> {
    format!("s\0s{{path}}\0/a?{page}\0").into_bytes()
}

fn put(store: &Opened, page: u32, url: &[u8], is_current: bool) {
    let mut response = stored("max-age=600", &page.to_string());
    response.url = Some(url.into());
    store.0.put(&key_of_page(page), &response, moment(), || is_current);
}

/// Returns those pages that can be read.
fn found(store: &Opened) -> Vec<u32> {
    store.flush();
    (0..6)
        .filter(|page| store.body_of(&key_of_page(*page), &request("de")).is_some())
        .collect()
}

fn records(path: &Path) -> u64 {
    fs::metadata(path.join("00000000.log")).expect("a segment").len()
}

#[test]
fn a_change_drops_all_earlier_responses_to_a_url() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    [0, 1, 2].iter().for_each(|page| put(&store, *page, URL, true));
    put(&store, 3, b"h\0/b", true);
    assert_eq!(found(&store), [0, 1, 2, 3]);
    // Another site has changes of its own.
    store.0.change_url("t", URL);
    assert_eq!(found(&store), [0, 1, 2, 3]);
    store.0.change_url("s", URL);
    assert_eq!(found(&store), [3]);
    put(&store, 1, URL, true);
    put(&store, 4, URL, false);
    assert_eq!(found(&store), [1, 3]);
    let killed = folder.path().join("killed");
    copy(&path, &killed);
    store.stop();
    for path in [&path, &killed] {
        let store = Opened::new(path);
        assert_eq!(found(&store), [1, 3]);
        store.0.change_url("s", URL);
        store.stop();
        let store = Opened::new(path);
        assert_eq!(found(&store), [3]);
        store.0.purge(&[Purge::everything()]);
        put(&store, 5, URL, true);
        assert_eq!(found(&store), [5]);
        store.stop();
    }
}

#[test]
fn changes_without_responses_have_no_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    put(&store, 0, URL, true);
    put(&store, 3, b"h\0/b", true);
    store.flush();
    let before = records(&path);
    store.0.change_url("s", URL);
    store.flush();
    let after = records(&path);
    assert!(after > before);
    for number in 0..1000 {
        store.0.change_url("s", URL);
        store.0.change_url("unknown", URL);
        store.0.change_url("s", format!("h\0/{number}").as_bytes());
    }
    store.flush();
    // Another URL may share the place of one of the two responses.
    assert!(records(&path) <= after + 100, "{} {after}", records(&path));
    assert!(!found(&store).contains(&0));
    store.stop();
}

#[test]
fn a_damaged_record_brings_no_response_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    put(&store, 0, URL, true);
    store.0.change_url("s", URL);
    put(&store, 1, b"h\0/b", true);
    store.stop();
    let store = Opened::new(&path);
    put(&store, 2, b"h\0/b", true);
    store.stop();
    let whole = fs::read(path.join("00000000.log")).expect("a segment");
    let damaged = folder.path().join("damaged");
    for at in (0..whole.len()).step_by(7) {
        copy(&path, &damaged);
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(damaged.join("00000000.log"), &bytes).expect("a segment");
        let store = Opened::new(&damaged);
        let found = found(&store);
        assert!(!found.contains(&0) && found.contains(&2), "byte {at}: {found:?}");
        store.stop();
    }
}

/// During an upgrade, the new process applies the changes since its own start.
#[test]
fn a_process_that_waits_for_the_folder_loses_no_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let old = Opened::new(&path);
    put(&old, 0, URL, true);
    put(&old, 3, b"h\0/b", true);
    old.flush();
    let new = DiskStore::start(path.clone(), 16 * MIB as u64, |_| false).expect("a thread");
    new.change_url("s", URL);
    old.0.close();
    until("the new process continues", || new.is_ready());
    let new = Opened(new);
    assert_eq!(found(&new), [3]);
    new.stop();
    assert_eq!(found(&Opened::new(&path)), [3]);
}
