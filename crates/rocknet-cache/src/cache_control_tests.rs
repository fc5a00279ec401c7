//! Tests of the parser of `Cache-Control`.

use super::*;

fn parse(value: &str) -> Directives {
    Directives::parse([value.as_bytes()])
}

#[test]
fn directives_are_parsed() {
    let none = Directives::default();
    let max_age = |seconds| Directives {
        max_age: Some(seconds),
        ..none
    };
    for (value, expected) in [
        ("", none),
        (" , ,", none),
        ("max-age=60", max_age(60)),
        ("MAX-AGE=60 ,foo=bar", max_age(60)),
        ("max-age=\"60\"", max_age(60)),
        ("foo=\"a, max-age=1\", max-age=60", max_age(60)),
        ("foo=\"a\\\", max-age=1\", max-age=60", max_age(60)),
        // Values that cannot be parsed make the response stale.
        ("max-age", max_age(0)),
        ("max-age=", max_age(0)),
        ("max-age=-1", max_age(0)),
        ("max-age=1.5", max_age(0)),
        ("max-age=1x", max_age(0)),
        ("max-age =60", max_age(0)),
        ("max-age= 60", max_age(0)),
        ("max-age=\"60", max_age(0)),
        ("max-age=\"6\\0\"", max_age(0)),
        ("max-age=\"60\"x", max_age(0)),
        ("max-age='60'", max_age(0)),
        ("max-age=99999999999999999999999", max_age(MAX_SECONDS)),
        ("max-age=60, max-age=30", max_age(30)),
        ("max-age=30, max-age=60", max_age(30)),
        (
            "no-store, no-cache=\"Set-Cookie, X\", Private, public, must-revalidate",
            Directives {
                no_store: true,
                no_cache: true,
                private: true,
                public: true,
                must_revalidate: true,
                ..none
            },
        ),
        (
            "s-maxage=1, stale-while-revalidate=2, stale-if-error=3, proxy-revalidate, must-understand",
            Directives {
                s_maxage: Some(1),
                stale_while_revalidate: Some(2),
                stale_if_error: Some(3),
                proxy_revalidate: true,
                must_understand: true,
                ..none
            },
        ),
        (
            "max-stale, min-fresh=4, only-if-cached",
            Directives {
                max_stale: Some(MAX_SECONDS),
                min_fresh: Some(4),
                only_if_cached: true,
                ..none
            },
        ),
        (
            "max-stale=5",
            Directives {
                max_stale: Some(5),
                ..none
            },
        ),
        ("no-storex, xno-store, no_store", none),
    ] {
        assert_eq!(parse(value), expected, "{value:?}");
    }
    assert_eq!(
        Directives::parse([&b"max-age=60"[..], b"no-cache"]),
        Directives {
            no_cache: true,
            ..max_age(60)
        }
    );
}

#[test]
fn a_message_with_too_many_directives_is_not_stored() {
    assert!(!parse(&"a,".repeat(MAX_DIRECTIVES)).no_store);
    assert!(parse(&"a,".repeat(MAX_DIRECTIVES + 1)).no_store);
}

#[test]
fn targeted_fields_are_structured() {
    let none = Directives::default();
    let max_age = |seconds| Directives {
        max_age: Some(seconds),
        ..none
    };
    let parse = |value: &str| Directives::parse_targeted([value.as_bytes()]);
    for (value, expected) in [
        ("max-age=60", Some(max_age(60))),
        (" max-age=60 ", Some(max_age(60))),
        ("max-age=60;a=b;c, x=\"y, z\", q=(1 \"b\";c d);e", Some(max_age(60))),
        ("max-age=60,max-age=70", Some(max_age(70))),
        ("max-age=-60", Some(max_age(0))),
        ("max-age=999999999999999", Some(max_age(MAX_SECONDS))),
        // Values of the wrong type are ignored.
        ("max-age=60.5", Some(none)),
        ("max-age=\"60\"", Some(none)),
        ("max-age=abc", Some(none)),
        ("max-age", Some(none)),
        ("no-store=?0, no-cache=?1", Some(Directives { no_cache: true, ..none })),
        ("private=\"x\"", Some(Directives { private: true, ..none })),
        ("no-store, x=:aGk=:", Some(Directives { no_store: true, ..none })),
        // Malformed or empty fields are ignored as a whole.
        ("", None),
        ("max-age=60,", None),
        ("max-age=60 max-age=70", None),
        ("MAX-AGE=60", None),
        ("max-age=", None),
        ("max-age =60", None),
        ("max-age=1000000000000000", None),
        ("max-age=1.", None),
        ("x=\"a", None),
        ("x=\"\\a\"", None),
        ("x=(1 2", None),
        ("x=(1\"b\")", None),
        ("x=?2", None),
        ("x=:a", None),
        ("x=@1", None),
        ("\u{e9}", None),
    ] {
        assert_eq!(parse(value), expected, "{value:?}");
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_parsed(value: Vec<u8>) {
        let _ = Directives::parse([&value[..]]);
        let _ = Directives::parse_targeted([&value[..]]);
    }
}
