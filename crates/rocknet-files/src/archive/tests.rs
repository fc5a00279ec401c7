//! Tests of archives in memory: their content, limits and container.

mod reader;
mod steps;

use std::fs;
use std::future::Future;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use rocknet_blocking::Pool;
use rocknet_config::model::{Browse, Cgi, Php, PhpVersion, Settings, ZipLimits};
use rocknet_handler::client::Client;
use rocknet_handler::response::{Body, Response};
use rocknet_proto::status::Status;

use super::format::{self, ArchiveEntry};
use super::*;
use crate::tree::Tree;
use reader::read;

/// Reaches every path except those that contain a word.
struct Reached(Arc<Tree>, &'static str);

impl PathAccess for Reached {
    fn tree_at(&self, path: &str) -> Option<Arc<Tree>> {
        (self.1.is_empty() || !path.contains(self.1)).then(|| Arc::clone(&self.0))
    }
}

const CLIENT: Client = Client::Local;

/// Returns the request for the archive of a folder.
fn request(root: &Path, path: &str, limits: ZipLimits, change: impl Fn(&mut Settings)) -> ArchiveRequest {
    let mut settings = Settings {
        root: Some(root.to_path_buf()),
        browse: Some(Browse::default()),
        ..Settings::default()
    };
    change(&mut settings);
    ArchiveRequest {
        tree: Arc::new(Tree::standalone(&settings, 0).expect("a tree")),
        path: path.into(),
        relative: match path.trim_matches('/') {
            "" => b".".to_vec(),
            path => path.as_bytes().to_vec(),
        },
        limits,
        client: CLIENT,
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(future)
}

/// Returns the response with the archive of a folder.
fn requested(
    root: &Path,
    path: &str,
    limits: ZipLimits,
    change: impl Fn(&mut Settings),
    except: &'static str,
) -> Response {
    let request = request(root, path, limits, change);
    let access = Reached(Arc::clone(&request.tree), except);
    block_on(respond(request, access, ArchiveLimit::default(), Pool::new(1)))
}

/// Returns the bytes of a response, and the length that it announces. The error is that of the stream.
fn received(response: Response) -> std::io::Result<(Vec<u8>, Option<u64>)> {
    assert_eq!(response.status, Status::OK);
    let Body::Stream(mut stream) = response.body else {
        panic!("no stream");
    };
    let length = stream.length();
    let mut bytes = Vec::new();
    block_on(async {
        while let Some(piece) = stream.next().await {
            let piece = piece?;
            assert!(piece.len() < 256 * 1024, "{} bytes at once", piece.len());
            bytes.extend_from_slice(&piece);
        }
        Ok((bytes, length))
    })
}

/// Returns the names in the archive of the folder `/d/`, without their first folder.
fn names(root: &Path, change: impl Fn(&mut Settings), except: &'static str) -> Vec<String> {
    let response = requested(root, "/d/", ZipLimits::default(), change, except);
    let (bytes, length) = received(response).expect("an archive");
    assert_eq!(length, Some(bytes.len() as u64));
    let entries = read(&bytes).into_iter();
    entries
        .map(|entry| entry.name.strip_prefix("d/").expect("the folder").to_owned())
        .collect()
}

fn write(root: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, content).expect("a file");
}

#[test]
fn files_of_any_size_are_packed_with_and_without_compression() {
    let root = tempfile::tempdir().expect("a folder");
    let pattern = |size: usize| (0..size).map(|at| (at * 7 % 251) as u8).collect::<Vec<_>>();
    let sizes = [0, 1, 65_534, 65_535, 65_536, 131_070, 131_071, 1_000_000];
    for size in sizes {
        write(root.path(), &format!("d/{size:07}.txt"), pattern(size));
        write(root.path(), &format!("d/sub/{size:07}.bin"), pattern(size));
    }
    for number in 0..3000 {
        write(root.path(), &format!("d/many/{number:04}"), number.to_string());
    }
    fs::create_dir_all(root.path().join("d/empty")).expect("a folder");
    for compress in [false, true] {
        let limits = ZipLimits {
            compress,
            ..ZipLimits::default()
        };
        let response = requested(root.path(), "/d/", limits, |_| {}, "");
        assert_eq!(
            response.fields.value("Content-Disposition"),
            Some("attachment; filename=\"d.zip\"")
        );
        let (bytes, length) = received(response).expect("an archive");
        assert_eq!(length, (!compress).then_some(bytes.len() as u64));
        let entries = read(&bytes);
        assert_eq!(entries.len(), sizes.len() * 2 + 3000 + 3);
        let found = |name: &str| entries.iter().find(|entry| entry.name == name).expect(name);
        for size in sizes {
            for name in [format!("d/{size:07}.txt"), format!("d/sub/{size:07}.bin")] {
                assert!(found(&name).content == pattern(size), "{name}");
            }
        }
        let text = found("d/1000000.txt").packed;
        assert_eq!(text < 100_000, compress, "{text}");
        // The type of this file is not text.
        assert!(found("d/sub/1000000.bin").packed >= 1_000_000);
        assert_eq!(found("d/many/2999").content, b"2999");
        assert!(found("d/empty/").content.is_empty());
        // A folder precedes its content.
        let at = |name: &str| entries.iter().position(|entry| entry.name == name).expect(name);
        assert!(at("d/sub/") < at("d/sub/0000000.bin"));
    }
}

#[test]
fn an_archive_has_what_listings_lead_to() {
    let root = tempfile::tempdir().expect("a folder");
    for name in [
        "d/a.txt",
        "d/.hidden",
        "d/.git/config",
        "d/index.phtml",
        "d/run.php",
        "d/uploads/shell.php",
        "d/cgi/program",
        "d/site/index.html",
        "d/site/secret.txt",
        "d/back\\slash",
        "d/co:lon",
        "d/trailing.",
        "d/CON",
        "d/denied/x",
        "d/ü b.txt",
        "other/x",
    ] {
        write(root.path(), name, "content");
    }
    let link = |target: &str, name: &str| symlink(target, root.path().join(name)).expect("a link");
    link("..", "d/up");
    link(".", "d/self");
    link("a.txt", "d/linked.txt");
    link("../other", "d/linked");
    link("/etc/passwd", "d/outside");
    link("/etc", "d/outside_folder");
    link("none", "d/dangling");
    let expected = [
        "CON",
        "a.txt",
        "index.phtml",
        "linked.txt",
        "run.php",
        "ü b.txt",
        "cgi/",
        "cgi/program",
        "denied/",
        "denied/x",
        "linked/",
        "linked/x",
        "site/",
        "site/index.html",
        "uploads/",
        "uploads/shell.php",
    ];
    let without = |left_out: &[&str]| {
        let kept = expected.iter().filter(|name| !left_out.contains(name));
        let mut kept: Vec<String> = kept.map(|name| (*name).to_owned()).collect();
        kept.sort();
        kept
    };
    let up = |mut names: Vec<String>| {
        // The link to the folder above lists that folder again, up to the folder itself.
        names.retain(|name| !name.starts_with("up/"));
        names.sort();
        names
    };
    let names = |change: &dyn Fn(&mut Settings), except| up(names(root.path(), change, except));
    // `CON` is a device name of Windows, which no request reaches.
    assert_eq!(names(&|_| {}, ""), without(&["CON"]));
    assert_eq!(names(&|_| {}, "denied"), without(&["CON", "denied/", "denied/x"]));
    let php = |settings: &mut Settings| {
        settings.php = Some(Php::Managed {
            version: PhpVersion::Newest,
            socket: Default::default(),
            settings: Default::default(),
        });
    };
    assert_eq!(
        names(&php, ""),
        without(&["CON", "index.phtml", "run.php", "uploads/shell.php"])
    );
    let cgi = |settings: &mut Settings| settings.cgi = Some(Cgi::at("/d/cgi".to_owned()));
    assert_eq!(names(&cgi, ""), without(&["CON", "cgi/", "cgi/program"]));
}

#[test]
fn limits_hold_from_both_sides() {
    let root = tempfile::tempdir().expect("a folder");
    for name in ["d/a", "d/b/c", "d/b/d/e"] {
        write(root.path(), name, "12345");
    }
    for name in 0..40 {
        write(root.path(), &format!("hidden/.{name}"), "");
    }
    let usual = ZipLimits::default;
    for (path, limits, expected) in [
        ("/d/", ZipLimits { entries: 5, ..usual() }, 200),
        ("/d/", ZipLimits { entries: 4, ..usual() }, 403),
        ("/d/", ZipLimits { depth: 2, ..usual() }, 200),
        ("/d/", ZipLimits { depth: 1, ..usual() }, 403),
        ("/d/", ZipLimits { size: 15, ..usual() }, 200),
        ("/d/", ZipLimits { size: 14, ..usual() }, 403),
        // Hidden names are read, too.
        ("/hidden/", ZipLimits { entries: 10, ..usual() }, 200),
        ("/hidden/", ZipLimits { entries: 9, ..usual() }, 403),
        ("/none/", usual(), 404),
    ] {
        let response = requested(root.path(), path, limits.clone(), |_| {}, "");
        assert_eq!(response.status.code(), expected, "{path} {limits:?}");
    }
}

#[test]
fn folders_that_are_not_read_yet_count_in_the_memory_of_a_scan() {
    let root = tempfile::tempdir().expect("a folder");
    let long = vec!["f".repeat(250); 14].join("/");
    let parent = root.path().join("d").join(&long);
    fs::create_dir_all(&parent).expect("a folder");
    // All paths of the archive have 3 MiB, and the folders 9 MiB while they wait.
    let count = 900;
    for name in 0..count {
        fs::create_dir(parent.join(name.to_string())).expect("a folder");
    }
    let status = || requested(root.path(), "/d/", ZipLimits::default(), |_| {}, "").status;
    assert_eq!(status(), Status::FORBIDDEN);
    for name in count / 2..count {
        fs::remove_dir(parent.join(name.to_string())).expect("a folder");
    }
    assert_eq!(status(), Status::OK);
}

#[test]
fn concurrent_archives_are_bounded() {
    let root = tempfile::tempdir().expect("a folder");
    write(root.path(), "d/a", "a");
    let (limit, pool) = (ArchiveLimit::default(), Pool::new(1));
    let start_for = |client, per_client| {
        let limits = ZipLimits {
            per_client,
            ..ZipLimits::default()
        };
        let request = ArchiveRequest {
            client,
            ..request(root.path(), "/d/", limits, |_| {})
        };
        let access = Reached(Arc::clone(&request.tree), "");
        block_on(respond(request, access, limit.clone(), pool.clone()))
    };
    let start = || start_for(CLIENT, 1);
    let mut open: Vec<Response> = (0..limit::MAX_ARCHIVES).map(|_| start()).collect();
    assert!(open.iter().all(|response| response.status == Status::OK));
    let refused = start();
    assert_eq!(refused.status, Status::SERVICE_UNAVAILABLE);
    assert_eq!(refused.fields.value("Retry-After"), Some(RETRY_AFTER_S));
    open.pop();
    assert_eq!(start().status, Status::OK);
    // An archive that was sent counts no longer.
    open.pop().map(received).expect("a response").expect("an archive");
    assert_eq!(start().status, Status::OK);
    open.clear();
    let client = Client::Ip {
        address: [192, 0, 2, 1].into(),
        port: 1,
    };
    open.extend((0..2).map(|_| start_for(client, 2)));
    let refused = start_for(client, 2);
    assert_eq!(refused.status, Status::TOO_MANY_REQUESTS);
    assert_eq!(refused.fields.value("Retry-After"), Some(RETRY_AFTER_S));
    assert_eq!(start().status, Status::OK, "another client");
}

#[test]
fn a_file_that_becomes_shorter_cuts_the_archive_and_a_longer_one_is_sent_as_it_was() {
    let root = tempfile::tempdir().expect("a folder");
    write(root.path(), "d/a", [1; 300_000]);
    write(root.path(), "d/b", "b");
    let start = || requested(root.path(), "/d/", ZipLimits::default(), |_| {}, "");
    let response = start();
    write(root.path(), "d/a", [1; 400_000]);
    let (bytes, length) = received(response).expect("an archive");
    assert_eq!(length, Some(bytes.len() as u64));
    assert_eq!(read(&bytes)[0].content.len(), 300_000);
    for change in [(|root: &Path| write(root, "d/a", [1; 299_999])) as fn(&Path), |root| {
        fs::remove_file(root.join("d/a")).expect("a file");
    }] {
        write(root.path(), "d/a", [1; 300_000]);
        let response = start();
        change(root.path());
        assert!(received(response).is_err());
    }
}

#[test]
fn more_than_65534_entries_use_the_64_bit_form() {
    for count in [0, 1, 65_534, 65_535, 70_000] {
        let mut entries: Vec<ArchiveEntry> = (0..count).map(|n| ArchiveEntry::new(format!("d/{n}"), 0, n)).collect();
        let mut length = format::Length::default();
        let mut bytes = Vec::new();
        for entry in &mut entries {
            length.add(entry);
            assert_eq!(entry.offset, bytes.len() as u64);
            entry.push_local_header(&mut bytes);
        }
        let start = bytes.len() as u64;
        entries.iter().for_each(|entry| entry.push_central(&mut bytes));
        let end = bytes.len() as u64;
        format::push_end(&mut bytes, entries.len(), start, end);
        assert_eq!(length.finish(entries.len()), bytes.len() as u64);
        let found = read(&bytes);
        assert_eq!(found.len(), count as usize);
        assert!(found.iter().zip(0..).all(|(entry, n)| entry.modified_unix == Some(n)));
        let has_record = bytes.windows(4).any(|window| window == [0x50, 0x4b, 0x06, 0x06]);
        assert_eq!(has_record, count > 65_534, "{count}");
    }
}

#[test]
fn large_files_and_far_entries_use_the_64_bit_form() {
    const GIB: u64 = 1 << 30;
    let of = |size, offset| ArchiveEntry {
        crc: 0x0102_0304,
        packed: format::blocks_length(size),
        offset,
        ..ArchiveEntry::new("f".to_owned(), size, 0)
    };
    // (size, offset, values of the 64-bit form in the directory)
    for (size, offset, expected) in [
        (1, 0, vec![]),
        (3 * GIB, 0xffff_fffe, vec![]),
        (1, 0xffff_ffff, vec![0xffff_ffff]),
        (5 * GIB, 7, vec![5 * GIB, format::blocks_length(5 * GIB)]),
        (
            u64::from(u32::MAX),
            9 * GIB,
            vec![u64::from(u32::MAX), format::blocks_length(u64::from(u32::MAX)), 9 * GIB],
        ),
    ] {
        let entry = of(size, offset);
        let mut central = Vec::new();
        entry.push_central(&mut central);
        let extra = &central[46 + 1..];
        let values: Vec<u64> = match &extra[..2] {
            [1, 0] => extra[4..4 + usize::from(extra[2])]
                .chunks(8)
                .map(|value| u64::from_le_bytes(value.try_into().unwrap()))
                .collect(),
            _ => Vec::new(),
        };
        assert_eq!(values, expected, "{size} at {offset}");
        assert_eq!(central[6], if expected.is_empty() { 20 } else { 45 });
        let mut descriptor = Vec::new();
        entry.push_descriptor(&mut descriptor);
        assert_eq!(descriptor.len(), if size >= 4 * GIB - (64 << 20) { 24 } else { 16 });
    }
    // The end of an archive of 9 GiB.
    let mut end = Vec::new();
    format::push_end(&mut end, 3, 9 * GIB, 9 * GIB + 100);
    assert_eq!(end.len(), 56 + 20 + 22);
    assert_eq!(end[48..56], (9 * GIB).to_le_bytes());
    assert_eq!(end[56 + 8..56 + 16], (9 * GIB + 100).to_le_bytes());
}
