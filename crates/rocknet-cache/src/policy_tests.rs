//! Tests of the rules of caching.

use std::time::Duration;

use super::*;

/// 1994-11-06 08:49:37.
const NOW: u64 = 784_111_777;

const TIMES: Times = Times {
    requested_ms: 1_000_000,
    received_ms: 1_000_000,
    made_unix: NOW,
};

fn fields(lines: &[&str]) -> FieldList {
    let mut fields = FieldList::default();
    for line in lines {
        let (name, value) = line.split_once(": ").expect("a field");
        fields.add(name, value);
    }
    fields
}

fn status(code: u16) -> Status {
    Status::new(code).expect("a status")
}

fn of(code: u16, lines: &[&str]) -> Result<Terms, NotStored> {
    configured(code, lines, &ResponseCache::default())
}

/// Terms of a response with these settings of its route.
fn configured(code: u16, lines: &[&str], settings: &ResponseCache) -> Result<Terms, NotStored> {
    let request = RequestFacts::default();
    terms(&request, status(code), &fields(lines), TIMES, settings)
}

/// Terms of a response with status 200 that was received at these times.
fn received(lines: &[&str], times: Times) -> Result<Terms, NotStored> {
    let (request, settings) = (RequestFacts::default(), ResponseCache::default());
    terms(&request, status(200), &fields(lines), times, &settings)
}

/// Lifetime of a response with status 200, in seconds.
fn lifetime_of(lines: &[&str]) -> Result<u64, NotStored> {
    of(200, lines).map(|terms| terms.lifetime_ms / 1000)
}

#[test]
fn explicit_freshness_has_an_order() {
    for (lines, expected) in [
        (&["Cache-Control: max-age=60"][..], Ok(60)),
        (&["Cache-Control: max-age=60, s-maxage=30"], Ok(30)),
        (
            &["Cache-Control: s-maxage=30", "Expires: Sun, 06 Nov 1994 09:49:37 GMT"],
            Ok(30),
        ),
        (&["Expires: Sun, 06 Nov 1994 08:50:37 GMT"], Ok(60)),
        (
            &["Cache-Control: public", "Expires: Sun, 06 Nov 1994 08:50:37 GMT"],
            Ok(60),
        ),
        (&["CDN-Cache-Control: max-age=10", "Cache-Control: no-store"], Ok(10)),
        (
            &["CDN-Cache-Control: no-store", "Cache-Control: max-age=60"],
            Err(NotStored::NoStore),
        ),
        (&["CDN-Cache-Control: ,,", "Cache-Control: max-age=60"], Ok(60)),
        (
            &["CDN-Cache-Control: public", "Expires: Sun, 06 Nov 1994 08:50:37 GMT"],
            Err(NotStored::NoFreshness),
        ),
        (&["Expires: 0"], Err(NotStored::Stale)),
        (&["Expires: Sun, 06 Nov 1994 08:49:37 GMT"], Err(NotStored::Stale)),
        (&["Cache-Control: max-age=0"], Err(NotStored::Stale)),
        (&["Cache-Control: no-cache"], Err(NotStored::Stale)),
        (&["Cache-Control: max-age=60", "Age: 60"], Err(NotStored::Stale)),
        // A malformed age makes a response stale.
        (&["Cache-Control: max-age=60", "Age: 1.5"], Err(NotStored::Stale)),
        (&["Cache-Control: max-age=60", "Age: -1"], Err(NotStored::Stale)),
        (&["Cache-Control: max-age=60", "Age: 0, 0"], Err(NotStored::Stale)),
        (
            &["Cache-Control: max-age=60", "Age: 0", "Age: 0"],
            Err(NotStored::Stale),
        ),
        (&["Cache-Control: max-age=60", "Age: 59"], Ok(60)),
        // A stale response is stored if it can be validated.
        (&["Cache-Control: max-age=0", "ETag: \"a\""], Ok(0)),
        (
            &[
                "Cache-Control: no-cache",
                "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
            ],
            Ok(0),
        ),
        (&["Cache-Control: max-age=60", "Age: 60", "ETag: \"a\""], Ok(60)),
        // Without explicit freshness nothing is guessed.
        (&[], Err(NotStored::NoFreshness)),
        (
            &["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"],
            Err(NotStored::NoFreshness),
        ),
        (&["Cache-Control: public", "ETag: \"a\""], Err(NotStored::NoFreshness)),
    ] {
        assert_eq!(lifetime_of(lines), expected, "{lines:?}");
    }
}

#[test]
fn private_responses_are_not_stored() {
    for (lines, expected) in [
        (&["Cache-Control: max-age=60, private"][..], NotStored::Private),
        (&["Cache-Control: max-age=60, private=\"x\""], NotStored::Private),
        (
            &["Cache-Control: max-age=60", "Cache-Control: no-store"],
            NotStored::NoStore,
        ),
        (
            &["Cache-Control: max-age=60, public", "Set-Cookie: a=b"],
            NotStored::SetCookie,
        ),
        (
            &["Cache-Control: max-age=60", "X-Accel-Redirect: /a"],
            NotStored::NamesFile,
        ),
        (&["Cache-Control: max-age=60", "X-Sendfile: /a"], NotStored::NamesFile),
    ] {
        assert_eq!(of(200, lines), Err(expected), "{lines:?}");
    }
    for code in [101, 103, 206, 304] {
        assert_eq!(
            of(code, &["Cache-Control: max-age=60"]),
            Err(NotStored::Status),
            "{code}"
        );
    }
}

#[test]
fn requests_restrict_what_is_stored() {
    let store = |request: RequestFacts, line: &str| {
        terms(
            &request,
            status(200),
            &fields(&[line]),
            TIMES,
            &ResponseCache::default(),
        )
        .err()
    };
    let authorized = RequestFacts {
        has_authorization: true,
        ..RequestFacts::default()
    };
    for (line, expected) in [
        ("Cache-Control: max-age=60", Some(NotStored::Authorization)),
        ("Cache-Control: max-age=60, public", None),
        ("Cache-Control: s-maxage=60", None),
        ("Cache-Control: max-age=60, must-revalidate", None),
        (
            "Cache-Control: max-age=60, proxy-revalidate",
            Some(NotStored::Authorization),
        ),
    ] {
        assert_eq!(store(authorized, line), expected, "{line}");
    }
    let no_store = RequestFacts {
        directives: Directives::parse([&b"no-store"[..]]),
        ..RequestFacts::default()
    };
    assert_eq!(store(no_store, "Cache-Control: max-age=60"), Some(NotStored::NoStore));
}

#[test]
fn must_understand_replaces_no_store() {
    let line = ["Cache-Control: no-store, must-understand, max-age=60"];
    assert!(of(200, &line).is_ok());
    assert_eq!(of(299, &line), Err(NotStored::Status));
    assert!(of(299, &["Cache-Control: max-age=60"]).is_ok());
}

#[test]
fn the_configuration_gives_lifetimes_to_responses_without_one() {
    let settings = ResponseCache {
        ttl: Duration::from_secs(600),
        statuses: [(404, Duration::from_secs(5)), (500, Duration::from_secs(1))].into(),
        ..ResponseCache::default()
    };
    let lifetime = |code, lines: &[&str]| configured(code, lines, &settings).map(|terms| terms.lifetime_ms / 1000);
    assert_eq!(lifetime(200, &[]), Ok(600));
    assert_eq!(lifetime(301, &[]), Ok(600));
    assert_eq!(lifetime(302, &[]), Err(NotStored::NoFreshness));
    assert_eq!(lifetime(404, &[]), Ok(5));
    assert_eq!(lifetime(500, &[]), Ok(1));
    assert_eq!(lifetime(404, &["Cache-Control: max-age=60"]), Ok(60));
    assert_eq!(lifetime(200, &["Cache-Control: private"]), Err(NotStored::Private));
    assert_eq!(lifetime(200, &["Cache-Control: no-cache"]), Err(NotStored::Stale));
    assert_eq!(lifetime(200, &["Pragma: no-cache"]), Err(NotStored::NoFreshness));
    assert_eq!(lifetime(200, &["Set-Cookie: a=b"]), Err(NotStored::SetCookie));
}

#[test]
fn heuristic_lifetimes_follow_the_last_modification() {
    let lifetime = |code, settings: &ResponseCache, lines: &[&str]| {
        configured(code, lines, settings).map(|terms| terms.lifetime_ms / 1000)
    };
    let settings = ResponseCache {
        heuristic: true,
        ..ResponseCache::default()
    };
    // 1000 seconds, and a year, before the date of the response.
    let (recent, old) = (
        "Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT",
        "Last-Modified: Sat, 06 Nov 1993 08:49:37 GMT",
    );
    let none = Err(NotStored::NoFreshness);
    for (lines, expected) in [
        (&[recent][..], Ok(100)),
        (&[old], Ok(86_400)),
        (&["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"], Ok(0)),
        // The lifetime of a modification in the future, or at an unknown time, is not known.
        (&["Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT"], none),
        (&["Last-Modified: yesterday"], none),
        (&["ETag: \"a\""], none),
        // An explicit lifetime precedes it.
        (&[recent, "Cache-Control: max-age=5"], Ok(5)),
        (&[recent, "Expires: Sun, 06 Nov 1994 08:49:47 GMT"], Ok(10)),
        (&[recent, "Expires: 0"], Ok(0)),
        (&[recent, "Cache-Control: no-cache"], Ok(0)),
        (&[recent, "Pragma: no-cache"], none),
        (&[recent, "Cache-Control: private"], Err(NotStored::Private)),
        (&[recent, "Set-Cookie: a=b"], Err(NotStored::SetCookie)),
    ] {
        assert_eq!(lifetime(200, &settings, lines), expected, "{lines:?}");
    }
    for code in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
        assert_eq!(lifetime(code, &settings, &[recent]), Ok(100), "{code}");
    }
    for code in [201, 202, 302, 303, 307, 403, 500, 502, 503, 504, 599] {
        assert_eq!(lifetime(code, &settings, &[recent]), none, "{code}");
        let public = [recent, "Cache-Control: public"];
        assert_eq!(lifetime(code, &settings, &public), Ok(100), "{code}");
    }
    assert_eq!(
        lifetime(200, &ResponseCache::default(), &[recent]),
        none,
        "off by default"
    );
    let with_ttl = ResponseCache {
        ttl: Duration::from_secs(7),
        statuses: [(404, Duration::from_secs(3))].into(),
        ..settings
    };
    assert_eq!(lifetime(200, &with_ttl, &[recent]), Ok(100));
    assert_eq!(lifetime(200, &with_ttl, &[]), Ok(7));
    assert_eq!(lifetime(404, &with_ttl, &[recent]), Ok(3));
}

#[test]
fn age_is_counted_from_the_upstream() {
    let times = Times {
        requested_ms: 998_000,
        ..TIMES
    };
    let terms = received(&["Cache-Control: max-age=60", "Age: 10"], times).expect("it may be stored");
    // The age of the upstream, and the delay of the response.
    assert_eq!(terms.age_ms(1_000_000), 12_000);
    assert_eq!(terms.ttl(1_000_000), 48);
    assert!(terms.is_fresh(1_047_999) && !terms.is_fresh(1_048_000));
    assert_eq!(terms.ttl(1_049_000), -1);
    // A clock that seems to go back does not make a response younger than it was.
    assert_eq!(terms.age_ms(0), 12_000);
}

#[test]
fn stale_responses_are_used_within_their_windows() {
    let terms = |line| of(200, &[line]).expect("it may be stored");
    let windows = terms("Cache-Control: max-age=60, stale-while-revalidate=30, stale-if-error=90");
    for (seconds, expected, on_error) in [
        (59, Use::Fresh, true),
        (60, Use::StaleWhileRevalidate, true),
        (89, Use::StaleWhileRevalidate, true),
        (90, Use::AfterValidation, true),
        (149, Use::AfterValidation, true),
        (150, Use::AfterValidation, false),
    ] {
        let now = TIMES.received_ms + seconds * 1000;
        assert_eq!(windows.permitted(now, None), expected, "{seconds}");
        assert_eq!(windows.serves_errors(now), on_error, "{seconds}");
    }
    let strict = terms("Cache-Control: max-age=60, must-revalidate, stale-while-revalidate=30, stale-if-error=90");
    let later = TIMES.received_ms + 61_000;
    assert_eq!(strict.permitted(later, None), Use::AfterValidation);
    assert!(!strict.serves_errors(later));
}

#[test]
fn windows_of_the_configuration_do_not_apply_to_responses_that_forbid_them() {
    let settings = ResponseCache {
        stale_while_revalidate: Duration::from_secs(30),
        stale_if_error: Duration::from_secs(30),
        ..ResponseCache::default()
    };
    let later = TIMES.received_ms + 61_000;
    let (none, own) = (Use::AfterValidation, Use::StaleWhileRevalidate);
    for (control, expected, on_error, on_max_stale) in [
        ("max-age=60", own, true, Use::Fresh),
        ("s-maxage=60", none, false, none),
        ("max-age=90, s-maxage=60", none, false, none),
        // The response itself permits what RFC 5861 describes.
        ("s-maxage=60, stale-while-revalidate=9", own, false, own),
        ("s-maxage=60, stale-if-error=9", none, true, none),
        ("s-maxage=60, stale-while-revalidate=1", none, false, none),
        (
            "s-maxage=60, must-revalidate, stale-while-revalidate=9, stale-if-error=9",
            none,
            false,
            none,
        ),
        (
            "max-age=60, proxy-revalidate, stale-while-revalidate=9, stale-if-error=9",
            none,
            false,
            none,
        ),
        ("max-age=60, must-revalidate", none, false, none),
    ] {
        let line = format!("Cache-Control: {control}");
        let terms = configured(200, &[&line], &settings).expect("it may be stored");
        assert_eq!(terms.permitted(later, None), expected, "{control}");
        assert_eq!(terms.serves_errors(later), on_error, "{control}");
        let max_stale = Directives::parse([&b"max-stale"[..]]);
        assert_eq!(terms.permitted(later, Some(&max_stale)), on_max_stale, "{control}");
    }
}

#[test]
fn expires_counts_from_the_date_of_the_response() {
    let expires = "Expires: Sun, 06 Nov 1994 08:50:37 GMT";
    for (made_unix, age, expected) in [
        (NOW, 0, Ok(60)),
        // The clock of the origin is slow or fast.
        (NOW - 300, 0, Ok(360)),
        (NOW + 20, 0, Ok(40)),
        (NOW + 60, 0, Err(NotStored::Stale)),
        (NOW + 90, 0, Err(NotStored::Stale)),
        // The age counts in addition.
        (NOW + 20, 39, Ok(1)),
        (NOW + 20, 40, Err(NotStored::Stale)),
    ] {
        let times = Times { made_unix, ..TIMES };
        let terms = received(&[expires, &format!("Age: {age}")], times);
        assert_eq!(
            terms.map(|terms| terms.ttl(TIMES.received_ms)),
            expected,
            "{made_unix} {age}"
        );
    }
}

#[test]
fn obeyed_requests_change_what_is_fresh() {
    let terms = of(200, &["Cache-Control: max-age=60"]).expect("it may be stored");
    for (request, seconds, expected) in [
        ("", 10, Use::Fresh),
        ("no-cache", 10, Use::AfterValidation),
        ("max-age=10", 9, Use::Fresh),
        ("max-age=10", 10, Use::AfterValidation),
        ("min-fresh=30", 29, Use::Fresh),
        ("min-fresh=30", 30, Use::AfterValidation),
        ("max-stale=30", 89, Use::Fresh),
        ("max-stale=30", 90, Use::AfterValidation),
        ("max-stale", 1_000_000, Use::Fresh),
    ] {
        let directives = Directives::parse([request.as_bytes()]);
        let now = TIMES.received_ms + seconds * 1000;
        assert_eq!(terms.permitted(now, Some(&directives)), expected, "{request} {seconds}");
    }
}

#[test]
fn directives_for_litespeed_precede_the_others_if_they_are_enabled() {
    let lines = [
        "X-LiteSpeed-Cache-Control: public,max-age=30",
        "Cache-Control: no-store",
    ];
    let of = |lines: &[&str], litespeed| {
        let settings = ResponseCache {
            litespeed,
            ..ResponseCache::default()
        };
        configured(200, lines, &settings).map(|terms| terms.lifetime_ms / 1000)
    };
    assert_eq!(of(&lines, true), Ok(30));
    assert_eq!(of(&lines, false), Err(NotStored::NoStore));
    let no_cache = [
        "X-LiteSpeed-Cache-Control: no-cache",
        "Cache-Control: max-age=60",
        "ETag: \"a\"",
    ];
    assert_eq!(of(&no_cache, true), Err(NotStored::NoStore));
    assert_eq!(
        of(&["X-LiteSpeed-Cache-Control: private,max-age=60"], true),
        Err(NotStored::Private)
    );
}
