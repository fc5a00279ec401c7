//! Cookies of sessions, their renewal, and logouts.

use super::*;

#[test]
fn cookies_of_others_and_falsified_ones_are_refused() {
    let provider = Provider::start();
    let auth = auth(&provider.issuer(), "");
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{auth}\n\
         [site.\"other.test\"]\nlisten = \"127.0.0.1:0\"\ntls = \"off\"\nroot = \"www\"\n{auth}\n"
    );
    let server = Running::start(folder(), &text);
    let mut browser = Browser::default();
    browser.log_in(&server, &provider, "/");
    let (name, value) = browser.0[0].clone();
    assert_eq!(browser.open(&server, "/a.txt").status, 200);
    let (_, text) = value.split_once('.').expect("a number of pieces");
    let other = if text.as_bytes()[40] == b'A' { "B" } else { "A" };
    for falsified in [
        String::new(),
        "1.".to_owned(),
        format!("1.{}", &text[..text.len() - 4]),
        format!("1.{}{other}{}", &text[..40], &text[41..]),
        format!("2.{text}"),
        format!("1.{text}A"),
        format!(
            "1.{}",
            base64url(b"{\"s\":\"1\",\"u\":\"root\",\"g\":[],\"c\":1,\"l\":1}")
        ),
    ] {
        let cookie = format!("Cookie: {name}={falsified}");
        assert_eq!(server.fetch("GET /a.txt", &[&cookie]).status, 401, "{falsified}");
    }
    // The session of one site at another, under its own name and under the name that the other site uses.
    let others = server.fetch("GET /a.txt", &[PAGE, "Host: other.test"]);
    let (_, cookie) = others
        .fields
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("set-cookie"))
        .expect("a cookie");
    let kind = cookie
        .trim_start_matches("rocknet-login-")
        .split('-')
        .next()
        .expect("a name");
    assert!(!name.ends_with(kind), "both sites have the cookie {name}");
    for cookie in [browser.field(), format!("Cookie: rocknet-session-{kind}={value}")] {
        assert_eq!(
            server.fetch("GET /a.txt", &[&cookie, "Host: other.test"]).status,
            401,
            "{cookie}"
        );
    }
    // Without TLS, a cookie for TLS is not read.
    let cookie = format!("Cookie: __Host-{name}={value}");
    assert_eq!(server.fetch("GET /a.txt", &[&cookie]).status, 401);
}

#[test]
fn sessions_of_many_groups_are_split_or_refused() {
    let provider = Provider::start();
    let server = start(&provider, "", "");
    let groups = |count: usize| {
        json!(
            (0..count)
                .map(|number| format!("group-{number:040}"))
                .collect::<Vec<_>>()
        )
    };
    provider.claim("groups", groups(100));
    let mut browser = Browser::default();
    assert_eq!(browser.log_in(&server, &provider, "/").status, 302);
    assert_eq!((browser.0.len(), browser.open(&server, "/a.txt").status), (2, 200));
    provider.claim("groups", groups(250));
    let mut browser = Browser::default();
    assert_eq!(browser.log_in(&server, &provider, "/").status, 500);
    assert_eq!((browser.0.len(), browser.open(&server, "/a.txt").status), (0, 302));
}

#[test]
fn a_logout_is_asked_for_by_the_site_itself() {
    let provider = Provider::start();
    let end = format!("{}/end", provider.issuer());
    provider
        .state()
        .metadata
        .insert("end_session_endpoint".to_owned(), json!(end));
    let server = start(&provider, ", logout = \"/bye\", after_logout = \"https://a.test/\"", "");
    let mut browser = Browser::default();
    browser.log_in(&server, &provider, "/");
    let known = browser.clone();
    let check = |line: &str, fields: &[&str], status: u16, is_over: bool| {
        let mut browser = known.clone();
        let cookie = browser.field();
        let mut fields = fields.to_vec();
        fields.push(&cookie);
        let response = server.fetch(line, &fields);
        browser.store(&response.fields);
        assert_eq!(
            (response.status, browser.0.is_empty()),
            (status, is_over),
            "{line} {fields:?}"
        );
        response
    };
    let (own, page) = (
        "Sec-Fetch-Site: same-origin",
        ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"],
    );
    let response = check("GET /bye", &[own, page[0], page[1]], 303, true);
    let expected = format!("{end}?client_id=app&post_logout_redirect_uri=https%3A%2F%2Fa.test%2F");
    assert_eq!(response.field("Location"), Some(&*expected));
    check("GET /bye", &["Sec-Fetch-Site: none", page[0], page[1]], 303, true);
    // An image, a script, a frame, and a page ahead of time.
    for fields in [
        &[own][..],
        &[own, "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"],
        &[own, "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"],
        &[own, page[0], "Sec-Fetch-Dest: iframe"],
        &[own, page[0], page[1], "Sec-Purpose: prefetch"],
    ] {
        check("GET /bye", fields, 200, false);
    }
    for from in ["cross-site", "same-site"] {
        let field = format!("Sec-Fetch-Site: {from}");
        assert!(
            check("GET /bye", &[&field], 200, false)
                .text()
                .contains("<form method=post>")
        );
        check("POST /bye", &[&field, "Origin: http://localhost"], 403, false);
    }
    check("GET /bye", &[], 200, false);
    check("POST /bye", &[], 403, false);
    check("POST /bye", &["Origin: http://evil.test"], 403, false);
    check("POST /bye", &["Origin: null"], 403, false);
    check("POST /bye", &["Origin: http://localhost"], 303, true);
    check("POST /bye", &["Sec-Fetch-Site: same-origin"], 303, true);
}

#[test]
fn responses_are_not_shared_between_users() {
    let provider = Provider::start();
    let upstream = Upstream::start(|request, stream| {
        let user = request.field("Remote-User").unwrap_or("nobody");
        let length = user.len();
        let head = format!("HTTP/1.1 200 OK\r\nCache-Control: public, max-age=60\r\nContent-Length: {length}\r\n\r\n");
        super::super::support::upstream::write_to(stream, head + user);
        super::super::support::upstream::Next::Keep
    });
    let server = start(&provider, "", &format!("{}\ncache = true", upstream.key()));
    for user in ["user-1", "user-2", "user-1"] {
        provider.claim("sub", json!(user));
        provider.state().userinfo = json!({ "sub": user });
        let mut browser = Browser::default();
        browser.log_in(&server, &provider, "/");
        assert_eq!(browser.open(&server, "/").text, user);
    }
}
