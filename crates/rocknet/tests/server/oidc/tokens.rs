//! Tokens of the provider.

use super::*;

#[test]
fn falsified_tokens_are_refused() {
    let provider = Provider::start();
    let server = start(&provider, "", "");
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a time")
        .as_secs();
    for (name, value, status) in [
        ("nonce", json!("other"), 400),
        ("nonce", Value::Null, 400),
        ("iss", json!("http://other.test"), 502),
        ("aud", json!("other"), 502),
        ("aud", json!(["app", "other"]), 502),
        ("azp", json!("other"), 502),
        ("exp", json!(now - 100), 502),
        ("iat", json!(now + 1000), 502),
        ("sub", Value::Null, 502),
        ("email_verified", json!(false), 302),
    ] {
        provider.claim(name, value);
        let mut browser = Browser::default();
        let response = browser.log_in(&server, &provider, "/");
        assert_eq!(response.status, status, "{name}: {}", response.text);
        assert_eq!(browser.0.len(), usize::from(status == 302), "{name}");
        assert_eq!(
            browser.open(&server, "/a.txt").status,
            if status == 302 { 200 } else { 302 },
            "{name}"
        );
        provider.state().claims.clear();
    }
    for algorithm in ["none", "HS256", "RS256"] {
        provider.state().algorithm = algorithm;
        let mut browser = Browser::default();
        assert_eq!(browser.log_in(&server, &provider, "/").status, 502, "{algorithm}");
        assert_eq!(browser.0.len(), 0, "{algorithm}");
    }
}

#[test]
fn new_keys_of_the_provider_are_found() {
    let provider = Provider::start();
    let server = start(&provider, "", "");
    assert_eq!(Browser::default().log_in(&server, &provider, "/").status, 302);
    // A key with the same identifier does not verify. A signature that fails causes no request.
    provider.state().replace_key(false);
    assert_eq!(Browser::default().log_in(&server, &provider, "/").status, 502);
    assert_eq!(provider.requests("/keys"), 1);
    // An unknown identifier does, but at most one in some seconds, which is why the tokens are tried several times.
    provider.state().replace_key(true);
    let deadline = std::time::Instant::now() + super::super::support::DEADLINE;
    while Browser::default().log_in(&server, &provider, "/").status != 302 {
        assert!(std::time::Instant::now() < deadline, "the new key is never used");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(provider.requests("/keys"), 2);
}

#[test]
fn claims_are_completed_by_the_userinfo_endpoint() {
    let provider = Provider::start();
    let upstream = Upstream::responding_with(ok("x"));
    let server = start(&provider, ", groups_claim = \"realm.roles\"", &upstream.key());
    provider.state().userinfo = json!({ "sub": "user-1", "realm": { "roles": ["r1", "r,2"] } });
    let mut browser = Browser::default();
    assert_eq!(browser.log_in(&server, &provider, "/").status, 302);
    browser.open(&server, "/");
    assert_eq!(upstream.last().field("Remote-Groups"), Some("r1"));
    provider.state().userinfo = json!({ "sub": "user-2", "realm": { "roles": ["admins"] } });
    assert_eq!(Browser::default().log_in(&server, &provider, "/").status, 502);
}

#[test]
fn a_userinfo_endpoint_that_fails_refuses_the_login() {
    let check = |provider: &Provider, server: &Running, what: &str, status: u16| {
        let mut browser = Browser::default();
        let response = browser.log_in(server, provider, "/");
        assert_eq!(response.status, status, "{what}: {}", response.text);
        let is_clear = response.text.contains("its login provider, which does not work");
        assert!(is_clear, "{what}: {}", response.text);
        assert_eq!(response.field("Cache-Control"), Some("no-store"), "{what}");
        assert_eq!((browser.0.len(), response.field("Location")), (0, None), "{what}");
        assert_eq!(browser.open(server, "/a.txt").status, 302, "{what}");
    };
    let provider = Provider::start();
    // The ID token alone would suffice for a session without groups.
    provider.claim("groups", Value::Null);
    let server = start(&provider, "", "");
    for (status, body) in [
        (500, json!({ "sub": "user-1" })),
        (401, json!({ "error": "invalid_token" })),
        (302, Value::Null),
        (201, json!({ "sub": "user-1" })),
        (200, Value::Null),
        (200, json!([{ "sub": "user-1" }])),
        (200, json!({ "groups": ["admins"] })),
        (200, json!({ "sub": "user-2", "groups": ["admins"] })),
    ] {
        provider.state().userinfo_status = status;
        provider.state().userinfo = body.clone();
        check(&provider, &server, &format!("{status} {body}"), 502);
    }
    assert_eq!(provider.requests("/userinfo"), 8);
    provider.state().userinfo = json!({ "sub": "user-1" });
    assert_eq!(Browser::default().log_in(&server, &provider, "/").status, 302);
    // One that is silent, and one that cannot be reached.
    let silent = Upstream::raw(|stream| {
        let mut room = [0; 4096];
        while std::io::Read::read(&mut &stream, &mut room).is_ok_and(|got| got > 0) {}
    });
    let closed = RefusingPort::new();
    for (url, status) in [(silent.url(), 504), (format!("http://{}", closed.address()), 502)] {
        let provider = Provider::start();
        provider.claim("groups", Value::Null);
        let endpoint = ("userinfo_endpoint".to_owned(), json!(format!("{url}/userinfo")));
        provider.state().metadata.extend([endpoint]);
        let server = start(&provider, ", timeout = \"500ms\"", "");
        check(&provider, &server, &url, status);
    }
}
