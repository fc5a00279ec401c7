//! Worker-cache entries of paths whose controllers run on the worker: another request looks up nothing else.

use std::rc::Rc;

use rocknet::files::cache::front::{Lead, Place};

use crate::library;
use crate::wire;
use crate::world::{Conversation, World};

/// `before`: keys of the route `/hello`. Another controller is at `/missing`.
fn world(before: &str) -> World {
    let library = library::plain().display();
    let routes = format!(
        "[site.\":0\".route.\"/hello\"]\ncontroller = \"{library}:hello\"\n{before}\n\
         [site.\":0\".route.\"/missing\"]\ncontroller = \"{library}:missing\"\nrun_on = \"network\"\n\
         [site.\":0\".route.\"/below/*\"]\ncontroller = \"{library}:hello\"\nrun_on = \"network\"\n"
    );
    World::of(&routes, "[site.\":0\"]\n", &[])
}

/// Cached entry of a path.
fn remembered(world: &World, path: &str) -> Option<Rc<Place>> {
    match world.worker.files.front().find(0, path.as_bytes())? {
        Lead::Place(place) => Some(Rc::clone(place)),
        Lead::Entry(_) => None,
    }
}

/// Response to a request line on a connection of its own.
fn ask(world: &World, line: &str, more: &str) -> String {
    let mut client = world.connect();
    let request = format!("{line} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{more}\r\n");
    client.peer.send(request.as_bytes()).end();
    client.run_to_end();
    client.heard()
}

const HELLO: &str = "\r\n\r\nhello from one";

#[test]
fn a_controller_route_for_one_path_is_cached_by_the_worker() {
    let world = world("run_on = \"network\"");
    assert!(remembered(&world, "/hello").is_none());
    assert!(ask(&world, "GET /hello", "").ends_with(HELLO));
    let place = remembered(&world, "/hello").expect("a place");
    assert_eq!(&*place.path, "/hello");
    // A lookup of the routes would find the other controller, and no path for any at all.
    for path in ["/missing", "/nowhere"] {
        let lead = Lead::Place(Rc::clone(&place));
        world.worker.files.front().keep(0, path.as_bytes(), lead);
        for query in ["", "?a=b"] {
            let answer = ask(&world, &format!("GET {path}{query}"), "");
            assert!(answer.ends_with(HELLO), "{path}{query}: {answer}");
        }
        let mut client = world.connect_http2();
        client.peer.send(&wire::open_beginning()).send(&wire::get(1, path));
        client.run_until(|client| content(client) == b"hello from one");
        // The entry applies to requests without a body and with a method that reads.
        let answer = ask(&world, &format!("POST {path}"), "");
        assert!(!answer.ends_with(HELLO), "{path}: {answer}");
        let answer = ask(&world, &format!("GET {path}"), "Content-Length: 0\r\n");
        assert!(answer.ends_with(HELLO), "{path}: {answer}");
    }
}

fn content(client: &Conversation) -> Vec<u8> {
    wire::content_of(&wire::frames(&client.peer.received()).0, 1)
}

#[test]
fn paths_that_clients_invent_are_not_cached() {
    let world = world("run_on = \"network\"");
    for (line, more) in [
        ("POST /hello", "Content-Length: 0\r\n"),
        ("PUT /hello", ""),
        ("GET /%68ello", ""),
        ("GET //hello", ""),
        ("GET /below/1", ""),
        ("GET /below/", ""),
    ] {
        let answer = ask(&world, line, more);
        assert!(answer.ends_with(HELLO), "{line}: {answer}");
        for path in ["/hello", "/%68ello", "//hello", "/below/1", "/below/"] {
            assert!(remembered(&world, path).is_none(), "{path} behind {line}");
        }
    }
    assert!(ask(&world, "HEAD /hello", "").starts_with("HTTP/1.1 200 "));
    assert!(remembered(&world, "/hello").is_some());
}

#[test]
fn controllers_that_respond_later_are_not_cached() {
    let world = world("run_on = \"worker\"");
    for _ in 0..2 {
        assert!(ask(&world, "GET /hello", "").ends_with(HELLO));
        assert!(remembered(&world, "/hello").is_none());
    }
}
