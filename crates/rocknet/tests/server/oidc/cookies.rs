//! Cookies of logins, which only the server gets, and cookies of applications, which pass unchanged.

use super::*;
use crate::support::fastcgi::{self, Peer, SOCKET};
use crate::support::library;

over_http3! {
    upstreams_get_no_cookies_of_logins,
}

/// Returns a browser with a session and two logins in progress, such as those of other windows.
fn busy_browser(server: &Running, provider: &Provider) -> Browser {
    let mut browser = Browser::default();
    browser.log_in(server, provider, "/");
    let mut others = Browser::default();
    others.begin(server, provider, "/");
    others.begin(server, provider, "/");
    browser.0.append(&mut others.0);
    assert_eq!(browser.0.len(), 3);
    browser
}

#[test]
fn upstreams_get_no_cookies_of_logins() {
    let (provider, upstream) = (Provider::start(), Upstream::responding_with(ok("x")));
    let keys = format!("{}\n[site.default.route.\"/open/*\"]\nauth = false", upstream.key());
    let server = start(&provider, "", &keys);
    let browser = busy_browser(&server, &provider);
    let pairs: Vec<_> = browser
        .0
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let (session, first, second) = (&pairs[0], &pairs[1], &pairs[2]);
    let name = &browser.0[0].0;
    let check = |cookies: &[&str], expected: Option<&str>| {
        let fields: Vec<_> = cookies.iter().map(|line| format!("Cookie: {line}")).collect();
        let fields: Vec<_> = fields.iter().map(String::as_str).collect();
        for path in ["/", "/open/x"] {
            let response = server.fetch(&format!("GET {path}"), &fields);
            assert_eq!(response.status, 200, "{path} {cookies:?}");
            assert_eq!(upstream.last().field("Cookie"), expected, "{path} {cookies:?}");
        }
    };
    check(&[session], None);
    check(&[&pairs.join("; ")], None);
    check(&[&format!("a=1; {session}; b=2")], Some("a=1; b=2"));
    check(
        &[&format!("{first};a=\"x y\";  b==/+%20;{session};{second};c")],
        Some("a=\"x y\";  b==/+%20;c"),
    );
    check(&[&format!("a=1; {session}"), first, "b=2; c=3"], Some("a=1; b=2; c=3"));
    // Names that are only similar, such as those of another server behind this one.
    let others = format!("{name}x=1; x{name}=1; rocknet-session-00000000=1; rocknet-a=1; __Host-a=1");
    check(&[&format!("{others}; {session}")], Some(&others));
    // A second part of a session, and the names that are used with and without TLS.
    let other = match name.strip_prefix("__Host-") {
        Some(plain) => plain.to_owned(),
        None => format!("__Host-{name}"),
    };
    check(&[&format!("{session}; {name}-1=x; {other}=1; a=1")], Some("a=1"));
    // These connections are without TLS.
    if name.starts_with("__Host-") {
        return;
    }
    let cookie = format!("Cookie: {session}; a=1");
    for response in fetch(&server, "POST /form", &[&cookie], "the body") {
        assert_eq!(response.status, 200);
        let sent = upstream.last();
        assert_eq!((sent.field("Cookie"), &*sent.content), (Some("a=1"), &b"the body"[..]));
    }
}

#[test]
fn routes_of_scripts_know_the_session_that_scripts_do_not_get() {
    let folder = folder();
    folder.write("www/in/index.php", "<?php");
    folder.write("www/closed/index.php", "<?php");
    let _peer = Peer::start(&folder.path(SOCKET), |request, stream| {
        let values = ["HTTP_COOKIE", "REMOTE_USER"].map(|name| request.variable(name));
        let text = format!("Content-Type: text/plain\r\n\r\n{}", values.join("|"));
        fastcgi::write_to(stream, fastcgi::response(text.as_bytes()));
        fastcgi::Next::Keep
    });
    let provider = Provider::start();
    let auth = auth(&provider.issuer(), "");
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nphp = \"unix:{SOCKET}\"\n{auth}\n\
         [site.default.route.\"/in/index.php\"]\nauth = {{ oidc = true, groups = [\"staff\"] }}\n\
         [site.default.route.\"/closed/index.php\"]\nauth = {{ oidc = true, groups = [\"admins\"] }}\n"
    );
    let server = Running::start(folder, &text);
    let cookie = format!("{}; a=1", busy_browser(&server, &provider).field());
    for (path, status) in [("/in/", 200), ("/in/index.php", 200), ("/closed/", 403)] {
        let response = server.fetch(&format!("GET {path}"), &[&cookie]);
        assert_eq!(response.status, status, "{path}");
        if status == 200 {
            assert_eq!(response.text(), "a=1|user-1", "{path}");
        }
    }
}

#[test]
fn controllers_get_no_cookies_of_logins() {
    let provider = Provider::start();
    let library = library::plain().display();
    let route = |path: &str, more: &str| {
        format!("[site.default.route.\"{path}\"]\ncontroller = \"{library}:mirror\"\n{more}\n")
    };
    let keys = [
        route("/worker", "run_on = \"worker\""),
        route("/network", "run_on = \"network\""),
        route("/isolated", "isolate = true"),
        route("/open", "run_on = \"network\"\nauth = false"),
    ];
    let server = start(&provider, "", &keys.concat());
    let cookie = format!("{}; a=1", busy_browser(&server, &provider).field());
    for path in ["/worker", "/network", "/isolated", "/open"] {
        // The worker cache knows the second path, but not the third cookie.
        for cookie in [&*cookie, &cookie, "Cookie: a=1"] {
            let response = server.fetch(&format!("GET {path}"), &[cookie]);
            if path == "/open" || cookie != "Cookie: a=1" {
                assert_eq!(response.status, 200, "{path}");
                let text = response.text();
                let lines = text.lines().filter(|line| line.starts_with("field Cookie"));
                assert_eq!(lines.collect::<Vec<_>>(), ["field Cookie=a=1"], "{path}: {text}");
            }
        }
    }
}
