//! Stored responses on disk whose keys are made by a template: restarts, changes of resources, purges, and other
//! templates.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rocknet_control::response_purge::ResponsePurge;

use super::super::support::upstream::Upstream;
use super::super::support::{Folder, Running};
use super::disk::{flush, restart, start, text};
use super::{expect, response, status, upstream};

const BY_PAGE: &str = "{ key = \"{host}{path}?{query.page}\" }";

/// Starts an upstream whose responses to GET have the target and the number of changes so far as their body.
fn counting() -> (Upstream, Arc<AtomicU64>) {
    let version = Arc::new(AtomicU64::new(0));
    let current = Arc::clone(&version);
    let upstream = upstream(move |request| {
        let target = request.line.split(' ').nth(1).unwrap_or_default();
        if !request.line.starts_with("GET") {
            current.fetch_add(1, Ordering::SeqCst);
            return response("200 OK", "Location: /list", "");
        }
        let body = format!("{target} {}", current.load(Ordering::SeqCst));
        response("200 OK", "Cache-Control: max-age=600|Cache-Tag: t", &body)
    });
    (upstream, version)
}

/// Drops all responses from memory, so that the next ones come from disk.
fn forget(server: &Running) {
    flush(server);
    server.server().registries().responses.memory.retain(|_, _| false);
}

#[test]
fn responses_under_a_template_survive_a_restart() {
    let (upstream, _) = counting();
    let text = text(&upstream, BY_PAGE);
    let server = start(Folder::with(&[]), &text);
    for page in 1..=3 {
        server.get(&format!("/a?page={page}&utm_source=first"));
    }
    let server = restart(server, &text);
    for page in 1..=3 {
        let response = server.get(&format!("/a?utm_source=second&page={page}"));
        expect(
            &response,
            "hit; detail=disk",
            &format!("/a?page={page}&utm_source=first 0"),
        );
    }
    assert_eq!(status(&server.get("/a?page=4")), "fwd=uri-miss; stored");
    // A request in which the application may read another page bypasses the cache.
    assert_eq!(status(&server.get("/a?page=1&page=2")), "fwd=bypass");
}

#[test]
fn a_change_of_a_url_applies_to_all_its_keys_on_disk() {
    let (upstream, _) = counting();
    let text = text(&upstream, BY_PAGE);
    let server = start(Folder::with(&[]), &text);
    let all = ["/a?page=1", "/a?page=2", "/list?page=1", "/other?page=1"];
    all.iter().for_each(|target| drop(server.get(target)));
    forget(&server);
    server.fetch("POST /a", &["Content-Length: 0"]);
    let check = |server: &Running| {
        for target in all {
            let expected = match target.starts_with("/other") {
                true => "hit; detail=disk",
                false => "fwd=uri-miss; stored",
            };
            assert_eq!(
                status(&server.fetch(&format!("GET {target}"), &[])),
                expected,
                "{target}"
            );
        }
    };
    check(&server);
    // Those that were fetched again are valid.
    forget(&server);
    for target in all {
        assert_eq!(status(&server.get(target)), "hit; detail=disk", "{target}");
    }
    // A change whose responses are only on disk applies after a restart.
    let server = restart(server, &text);
    server.fetch("POST /a", &["Content-Length: 0"]);
    let server = restart(server, &text);
    check(&server);
    // So does a change of a URL that was changed before, without a response in between.
    for _ in 0..3 {
        server.fetch("POST /other", &["Content-Length: 0"]);
    }
    let server = restart(server, &text);
    for target in all {
        let expected = match target.starts_with("/a") {
            true => "hit; detail=disk",
            false => "fwd=uri-miss; stored",
        };
        assert_eq!(status(&server.get(target)), expected, "{target}");
    }
}

#[test]
fn purges_apply_to_responses_under_a_template() {
    let (upstream, _) = counting();
    let text = text(&upstream, BY_PAGE);
    let mut server = start(Folder::with(&[]), &text);
    let all = ["/a?page=1", "/a/b?page=1", "/c?page=1"];
    let by = |edit: fn(&mut ResponsePurge, String), value: &str| {
        let mut purge = ResponsePurge::default();
        edit(&mut purge, value.to_owned());
        purge
    };
    let url = by(|purge, url| purge.url = Some(url), "http://localhost/a?page=2");
    let prefix = by(|purge, url| purge.prefix = Some(url), "http://localhost/a");
    let tag = by(|purge, tag| purge.tag = Some(tag), "t");
    for (purge, dropped) in [(url, 1), (prefix, 2), (tag, 3)] {
        all.iter().for_each(|target| drop(server.get(target)));
        forget(&server);
        server.server().purge_responses(&purge).expect("a purge");
        server = restart(server, &text);
        for (number, target) in all.iter().enumerate() {
            let is_dropped = status(&server.get(target)) != "hit; detail=disk";
            assert_eq!(is_dropped, number < dropped, "{purge:?} {target}");
        }
    }
}

/// Two templates may render the same text for different requests.
#[test]
fn responses_under_another_template_are_not_used() {
    let (upstream, _) = counting();
    let by_page = text(&upstream, BY_PAGE);
    let by_sort = text(&upstream, "{ key = \"{host}{path}?{query.sort}\" }");
    let plain = text(&upstream, "true");
    let server = start(Folder::with(&[]), &by_page);
    let check = |server: &Running, target: &str, body: &str, expected: &str| {
        expect(&server.get(target), expected, body);
    };
    check(&server, "/a?page=1", "/a?page=1 0", "fwd=uri-miss; stored");
    // A reload keeps the responses in memory.
    server.reload(&by_sort).expect("a valid configuration");
    check(&server, "/a?sort=1", "/a?sort=1 0", "fwd=uri-miss; stored");
    let server = restart(server, &by_sort);
    check(&server, "/a?sort=1&page=1", "/a?sort=1 0", "hit; detail=disk");
    let server = restart(server, &plain);
    check(&server, "/a?page=1", "/a?page=1 0", "fwd=uri-miss; stored");
    let server = restart(server, &by_page);
    check(&server, "/a?page=1&sort=1", "/a?page=1 0", "hit; detail=disk");
}

/// While responses are read from disk, their URL changes. No response from before a change is sent after it.
#[test]
fn no_change_of_a_url_is_lost_to_a_read() {
    const ROUNDS: u64 = 60;
    let (upstream, version) = counting();
    let server = start(Folder::with(&[]), &text(&upstream, BY_PAGE));
    for round in 1..=ROUNDS {
        server.get("/a?page=1");
        server.get("/a?page=2");
        forget(&server);
        std::thread::scope(|scope| {
            scope.spawn(|| server.get("/a?page=1"));
            scope.spawn(|| server.get("/a?page=2"));
            server.fetch("POST /a", &["Content-Length: 0"]);
        });
        assert_eq!(version.load(Ordering::SeqCst), round);
        for page in [1, 2] {
            let target = format!("/a?page={page}");
            assert_eq!(server.get(&target).text(), format!("{target} {round}"));
        }
    }
}
