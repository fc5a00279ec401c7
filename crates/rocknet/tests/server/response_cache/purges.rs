//! Purges and invalidation of stored responses.

use std::sync::{Arc, Mutex, mpsc};

use rocknet_control::response_purge::ResponsePurge;

use super::super::support::client::request;
use super::super::support::upstream::{Next, Upstream, write_to};
use super::{cached, expect, response, status, upstream};

#[test]
fn unsafe_methods_invalidate() {
    let upstream = upstream(|request| match request.line.starts_with("GET") {
        true => response("200 OK", "Cache-Control: max-age=60", &request.line),
        false => response(request.field("X-Status").unwrap_or("200 OK"), "Location: /list", ""),
    });
    let server = cached(&upstream, "true");
    for path in ["/a", "/list", "/other"] {
        server.get(path);
    }
    let failed = server.fetch("DELETE /a", &["X-Status: 409 Conflict"]);
    assert_eq!(status(&failed), "fwd=method");
    assert_eq!(status(&server.get("/a")), "hit");
    server.fetch("POST /a", &["Content-Length: 0"]);
    for (path, expected) in [
        ("/a", "fwd=uri-miss; stored"),
        ("/list", "fwd=uri-miss; stored"),
        ("/other", "hit"),
    ] {
        assert_eq!(status(&server.get(path)), expected, "{path}");
    }
}

#[test]
fn responses_are_purged_by_url_prefix_tag_and_site() {
    let upstream = upstream(|request| {
        let tag = request.line.split(['/', ' ']).nth(2).unwrap_or_default().to_owned();
        response(
            "200 OK",
            &format!("Cache-Control: max-age=60|Cache-Tag: all, {tag}"),
            "x",
        )
    });
    let server = cached(&upstream, "true");
    let paths = ["/a", "/a?b", "/a/b", "/c"];
    // The purge, and the paths whose responses it drops.
    let url = |url: &str| ResponsePurge {
        url: Some(url.to_owned()),
        ..ResponsePurge::default()
    };
    let prefix = ResponsePurge {
        prefix: Some("http://localhost/a".to_owned()),
        ..ResponsePurge::default()
    };
    let tag = |tag: &str| ResponsePurge {
        tag: Some(tag.to_owned()),
        ..ResponsePurge::default()
    };
    let site = |name: &str| ResponsePurge {
        site: Some(name.to_owned()),
        ..ResponsePurge::default()
    };
    for (purge, expected) in [
        (url("http://localhost/a"), &paths[..1]),
        (url("http://LOCALHOST:80/a?b"), &paths[1..2]),
        (url("https://localhost/a"), &paths[..1]),
        (url("http://localhost/"), &[]),
        (prefix, &paths[..3]),
        (tag("c"), &paths[3..]),
        (tag("all"), &paths[..]),
        (tag("al"), &[]),
        (site("default"), &paths[..]),
        (site("other"), &[]),
        (ResponsePurge::default(), &paths[..]),
    ] {
        paths.iter().for_each(|path| drop(server.get(path)));
        assert_eq!(server.server().purge_responses(&purge), Ok(expected.len()), "{purge:?}");
        for path in paths {
            let is_dropped = status(&server.get(path)) != "hit";
            assert_eq!(is_dropped, expected.contains(&path), "{purge:?} {path}");
        }
    }
    assert!(server.server().purge_responses(&url("localhost/a")).is_err());
    let two = ResponsePurge {
        tag: Some("a".to_owned()),
        ..url("http://localhost/a")
    };
    assert!(server.server().purge_responses(&two).is_err());
}

#[test]
fn plugins_for_litespeed_decide_what_is_stored() {
    let upstream = upstream(|request| {
        assert_eq!(request.field("X-LSCACHE"), Some("on"));
        let fields = match request.line.split(' ').nth(1) {
            Some("/edit") => "X-LiteSpeed-Purge: public,tag=post.1",
            Some("/private") => "X-LiteSpeed-Cache-Control: private,max-age=60",
            _ => "X-LiteSpeed-Cache-Control: public,max-age=60|X-LiteSpeed-Tag: home, post.1|Cache-Control: no-cache",
        };
        response("200 OK", fields, request.field("Cookie").unwrap_or("none"))
    });
    let server = cached(&upstream, "{ litespeed = true }");
    let first = server.get("/");
    expect(&first, "fwd=uri-miss; stored", "none");
    let own = [
        "!X-LiteSpeed-Cache-Control",
        "!X-LiteSpeed-Tag",
        "Cache-Control: no-cache",
    ];
    first.expect("fields for the server", 200, &own);
    expect(&server.fetch("GET /", &["Cookie: a=1"]), "hit", "none");
    // Groups of visitors have a cookie.
    let group = ["Cookie: _lscache_vary=editor"];
    expect(
        &server.fetch("GET /", &group),
        "fwd=vary-miss; stored",
        "_lscache_vary=editor",
    );
    expect(&server.fetch("GET /", &group), "hit", "_lscache_vary=editor");
    for _ in 0..2 {
        expect(&server.get("/private"), "fwd=uri-miss; detail=private", "none");
    }
    let edit = server.fetch("POST /edit", &["Content-Length: 0", "X-LSCACHE: off"]);
    edit.expect(
        "edit",
        200,
        &["!X-LiteSpeed-Purge", "Cache-Status: RockNet; fwd=method"],
    );
    expect(&server.get("/"), "fwd=uri-miss; stored", "none");
    // Without the setting, the fields have no effect.
    let plain = Upstream::responding_with(response("200 OK", "X-LiteSpeed-Cache-Control: public,max-age=60", "x"));
    let server = cached(&plain, "true");
    server.get("/").expect(
        "not enabled",
        200,
        &["Cache-Status: RockNet; fwd=uri-miss; detail=no-freshness"],
    );
    assert_eq!(plain.last().field("X-LSCACHE"), None);
}

/// The fields for the server are not sent to clients, but count again when the response is validated.
#[test]
fn a_validation_keeps_and_renews_the_terms_for_litespeed() {
    let upstream = upstream(|request| {
        if request.field("If-None-Match").is_none() {
            let fields = "ETag: \"1\"|X-LiteSpeed-Tag: old|X-LiteSpeed-Cache-Control: public,max-age=0";
            return response("200 OK", &format!("{fields}|Cache-Control: no-store"), "page");
        }
        let fields = match request.line.contains("renewed") {
            true => "X-LiteSpeed-Cache-Control: public,max-age=60\r\nX-LiteSpeed-Tag: new\r\n",
            false => "",
        };
        format!("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n{fields}\r\n")
    });
    let server = cached(&upstream, "{ litespeed = true }");
    for path in ["/renewed", "/same"] {
        expect(&server.get(path), "fwd=uri-miss; stored", "page");
        let confirmed = server.get(path);
        expect(&confirmed, "fwd=stale; fwd-status=304; stored", "page");
        confirmed.expect(path, 200, &["!X-LiteSpeed-Cache-Control", "!X-LiteSpeed-Tag"]);
    }
    expect(&server.get("/renewed"), "hit", "page");
    expect(&server.get("/same"), "fwd=stale; fwd-status=304; stored", "page");
    let purge = |tag: &str| {
        let purge = ResponsePurge {
            tag: Some(tag.to_owned()),
            ..ResponsePurge::default()
        };
        server.server().purge_responses(&purge)
    };
    assert_eq!(purge("new"), Ok(1));
    assert_eq!(purge("old"), Ok(1));
}

#[test]
fn a_response_under_way_is_not_stored_after_a_purge() {
    let (ask, asked) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    let channels = Arc::new(Mutex::new((ask, answers)));
    let upstream = Upstream::start(move |_, stream| {
        let channels = channels.lock().expect("not poisoned");
        channels.0.send(()).expect("the test waits");
        let number: u32 = channels.1.recv().expect("the test answers");
        write_to(
            stream,
            response("200 OK", "Cache-Control: max-age=60", &number.to_string()),
        );
        Next::Keep
    });
    let server = cached(&upstream, "true");
    let mut client = server.connect();
    client.send(request("GET /", &[]));
    asked.recv().expect("a request");
    assert_eq!(server.server().purge_responses(&ResponsePurge::default()), Ok(0));
    answer.send(1).expect("the upstream waits");
    expect(&client.response(), "fwd=uri-miss; detail=purged", "1");
    answer.send(2).expect("the upstream waits");
    expect(&server.get("/"), "fwd=uri-miss; stored", "2");
    expect(&server.get("/"), "hit", "2");
}
