//! Tests of signed URLs.

use rocknet_config::url_keys::UrlKey;

use super::*;

const NOW: u64 = 1_764_460_800;

fn keys(ids: &[&str]) -> SigningKeys {
    let key = |id: &&str| UrlKey {
        id: (*id).into(),
        secret: format!("{id:-<40}").into(),
    };
    SigningKeys::new(&ids.iter().map(key).collect::<Vec<_>>())
}

fn request<'a>(method: &'a str, authority: &'a str, target: &'a str, client: Option<&str>) -> SignedRequest<'a> {
    SignedRequest {
        method: method.as_bytes(),
        authority: authority.as_bytes(),
        target: target.as_bytes(),
        client: client.map(|client| client.parse().unwrap()),
    }
}

fn get(target: &str) -> SignedRequest<'_> {
    request("GET", "example.com", target, None)
}

const PLAIN: Terms = Terms {
    expires: NOW + 60,
    is_for_client: false,
    folder_depth: None,
};

/// Returns a target with the parameter for it.
fn signed(target: &str, terms: &Terms) -> String {
    let value = keys(&["main"]).sign(&get(target), terms, None).unwrap();
    join(target, &value)
}

fn join(target: &str, value: &str) -> String {
    let separator = if target.contains('?') { '&' } else { '?' };
    format!("{target}{separator}{PARAMETER}{value}")
}

fn verdict(request: &SignedRequest<'_>) -> Verdict {
    keys(&["main"]).verify(request, std::iter::empty(), NOW)
}

#[test]
fn the_text_has_six_lines() {
    let terms = Terms {
        is_for_client: true,
        ..PLAIN
    };
    let request = request("HEAD", "Example.COM:8080", "/%61/../b%20c", Some("::ffff:192.0.2.1"));
    let text = text(&request, b"/%61/../b%20c", b"x=%41", "1.main.ip", &terms).unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "GET\nexample.com:8080\n/b c\nx=%41\n192.0.2.1\n1.main.ip"
    );
    // HMAC-SHA256 by another implementation (Python's `hmac`).
    let value = keys(&["main"]).sign(&get("/dl/a.zip?x=1"), &PLAIN, None).unwrap();
    assert_eq!(value, KNOWN);
}

/// `hmac.new(b"main" + b"-" * 36, b"GET\nexample.com\n/dl/a.zip\nx=1\n\n1764460860.main", "sha256").hexdigest()`
const KNOWN: &str = "1764460860.main.87f3827641cc390fb1c13b0d2b7f866882ab60f20db6db4ec144c5d76b714dec";

#[test]
fn a_signature_is_valid_for_its_own_request() {
    for target in [
        "/dl/a.zip",
        "/dl/a.zip?x=1&y",
        "/",
        "/a%20b/%C3%A4",
        "/wiki/Special:Search",
    ] {
        let url = signed(target, &PLAIN);
        assert_eq!(verdict(&get(&url)), Verdict::Valid, "{url}");
        assert_eq!(verdict(&request("HEAD", "EXAMPLE.com:443", &url, None)), Verdict::Valid);
        assert_eq!(verdict(&request("POST", "example.com", &url, None)), Verdict::Invalid);
        assert_eq!(verdict(&request("GET", "example.org", &url, None)), Verdict::Invalid);
        assert_eq!(
            verdict(&request("GET", "example.com:8080", &url, None)),
            Verdict::Invalid
        );
        assert_eq!(verdict(&request("GET", "", &url, None)), Verdict::Invalid);
        // The time is over at its end.
        let at = |now| keys(&["main"]).verify(&get(&url), std::iter::empty(), now);
        assert_eq!([at(NOW + 59), at(NOW + 60)], [Verdict::Valid, Verdict::Expired]);
    }
}

#[test]
fn no_other_url_is_admitted() {
    let url = signed("/dl/a.zip?x=1", &PLAIN);
    let value = url.rsplit_once('=').unwrap().1;
    let (head, digits) = value.rsplit_once('.').unwrap();
    for other in [
        "/dl/a.zip?x=1".to_owned(),
        format!("/dl/b.zip?x=1&signed={value}"),
        format!("/dl/a.zip?signed={value}"),
        format!("/dl/a.zip?x=2&signed={value}"),
        format!("/dl/a.zip?x=1&x=1&signed={value}"),
        format!("/dl/a.zip?x=%31&signed={value}"),
        format!("/dl/a.zip?signed={value}&x=1"),
        format!("/dl/a.zip?x=1&signed={value}&"),
        format!("/dl/a.zip?x=1&signed={value}&signed={value}"),
        format!("/dl/a.zip?x=1&&signed={value}"),
        format!("/dl/a.zip?&x=1&signed={value}"),
        format!("/dl/a.zip?x=1&Signed={value}"),
        format!("/dl/a.zip?x=1&%73igned={value}"),
        format!("/dl/a.zip?x=1;signed={value}"),
        format!("/dl/a.zip/?x=1&signed={value}"),
        format!("/dl%2Fa.zip?x=1&signed={value}"),
        format!("/dl/a.zip%0A?x=1&signed={value}"),
        format!("/DL/a.zip?x=1&signed={value}"),
        // Forged terms.
        format!("/dl/a.zip?x=1&signed=9{head}.{digits}"),
        format!("/dl/a.zip?x=1&signed=0{head}.{digits}"),
        format!("/dl/a.zip?x=1&signed={head}.ip.{digits}"),
        format!("/dl/a.zip?x=1&signed={head}.dir1.{digits}"),
        format!("/dl/a.zip?x=1&signed={head}..{digits}"),
        format!("/dl/a.zip?x=1&signed={}.other.{digits}", NOW + 60),
        format!("/dl/a.zip?x=1&signed={head}.{}", digits.to_uppercase()),
        format!("/dl/a.zip?x=1&signed={head}.{}", &digits[..62]),
        format!("/dl/a.zip?x=1&signed={head}.{digits}00"),
        format!("/dl/a.zip?x=1&signed={head}."),
        "/dl/a.zip?x=1&signed=".to_owned(),
        "/dl/a.zip?x=1&signed".to_owned(),
        format!("/dl/a.zip?x=1&signed=99999999999999999999.main.{digits}"),
    ] {
        assert_eq!(verdict(&get(&other)), Verdict::Invalid, "{other}");
    }
    // Other spellings of the same path are served as the same file.
    for same in ["/dl/./a.zip", "//dl/x/../a.zip", "/%64l/a.zip"] {
        assert_eq!(verdict(&get(&format!("{same}?x=1&signed={value}"))), Verdict::Valid);
    }
}

#[test]
fn ambiguous_paths_are_not_signed() {
    for path in ["/a%2Fb", "/a\\b", "/a%5Cb", "/a%ff", "/a%", "/../a", "a", "/a%0Ab"] {
        let result = keys(&["main"]).sign(&get(path), &PLAIN, None);
        assert_eq!(result, Err(SignError::Path), "{path}");
    }
    let again = signed("/a", &PLAIN);
    assert_eq!(keys(&["main"]).sign(&get(&again), &PLAIN, None), Err(SignError::Signed));
    let nowhere = request("GET", "", "/a", None);
    assert_eq!(keys(&["main"]).sign(&nowhere, &PLAIN, None), Err(SignError::Host));
    assert_eq!(
        keys(&["main"]).sign(&get("/a"), &PLAIN, Some("x")),
        Err(SignError::NoKey)
    );
}

#[test]
fn a_signature_can_be_bound_to_a_client() {
    let terms = Terms {
        is_for_client: true,
        ..PLAIN
    };
    let from = |target, client| request("GET", "example.com", target, client);
    let value = keys(&["main"])
        .sign(&from("/a", Some("2001:db8::1")), &terms, None)
        .unwrap();
    let url = join("/a", &value);
    for (client, expected) in [
        (Some("2001:db8:0::1"), Verdict::Valid),
        (Some("2001:db8::2"), Verdict::Invalid),
        (None, Verdict::Invalid),
    ] {
        assert_eq!(verdict(&from(&url, client)), expected, "{client:?}");
    }
    assert_eq!(keys(&["main"]).sign(&get("/a"), &terms, None), Err(SignError::Client));
}

#[test]
fn a_signature_can_be_valid_for_a_folder() {
    let terms = Terms {
        folder_depth: Some(2),
        ..PLAIN
    };
    let value = keys(&["main"]).sign(&get("/v/1/index.m3u8"), &terms, None).unwrap();
    for (target, expected) in [
        ("/v/1/seg1.ts", Verdict::Valid),
        ("/v/1/", Verdict::Valid),
        ("/v/1/low/seg1.ts?_HLS_msn=2", Verdict::Valid),
        ("/v/1", Verdict::Invalid),
        ("/v/2/seg1.ts", Verdict::Invalid),
        ("/v/1x/seg1.ts", Verdict::Invalid),
        ("/v/1/../2/seg1.ts", Verdict::Invalid),
        ("/x/v/1/seg1.ts", Verdict::Invalid),
    ] {
        let url = join(target, &value);
        assert_eq!(verdict(&get(&url)), expected, "{url}");
        // A cookie has the same value, and is used if the query has no signature.
        let cookies = [&b"junk"[..], value.as_bytes()];
        let by_cookie = keys(&["main"]).verify(&get(target), cookies.into_iter(), NOW);
        assert_eq!(by_cookie, expected, "{target}");
        let query = format!("{}x", join(target, &value));
        let both = keys(&["main"]).verify(&get(&query), cookies.into_iter(), NOW);
        assert_eq!(both, Verdict::Invalid, "{query}");
    }
    // The signature of one file is no cookie.
    let url = signed("/v/1/seg1.ts", &PLAIN);
    let value = url.rsplit_once('=').unwrap().1;
    let cookies = [value.as_bytes()];
    let by_cookie = keys(&["main"]).verify(&get("/v/1/seg1.ts"), cookies.into_iter(), NOW);
    assert_eq!(by_cookie, Verdict::Invalid);
    assert_eq!(keys(&["main"]).sign(&get("/v/a"), &terms, None), Err(SignError::Depth));
    let root = Terms {
        folder_depth: Some(0),
        ..PLAIN
    };
    let value = keys(&["main"]).sign(&get("/v/a"), &root, None).unwrap();
    assert_eq!(verdict(&get(&join("/w", &value))), Verdict::Valid);
    assert_eq!(depth_of_folder(b"/v/1/index.m3u8"), Some(2));
    assert_eq!(depth_of_folder(b"/"), Some(0));
}

#[test]
fn all_keys_verify_and_the_first_one_signs() {
    let both = keys(&["new", "old"]);
    let by_old = both.sign(&get("/a"), &PLAIN, Some("old")).unwrap();
    let by_new = both.sign(&get("/a"), &PLAIN, None).unwrap();
    assert!(by_new.contains(".new.") && by_old.contains(".old."));
    let verify = |keys: &SigningKeys, value: &str| keys.verify(&get(&join("/a", value)), std::iter::empty(), NOW);
    for value in [&by_old, &by_new] {
        assert_eq!(verify(&both, value), Verdict::Valid);
    }
    assert_eq!(verify(&keys(&["new"]), &by_old), Verdict::Invalid);
    // The identifier is a part of the signature.
    let renamed = by_old.replace(".old.", ".new.");
    assert_eq!(verify(&both, &renamed), Verdict::Invalid);
    assert_eq!(verify(&SigningKeys::new(&[]), &by_new), Verdict::Invalid);
}
