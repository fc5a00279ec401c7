//! Tests of rules: each condition, and sequences of rules.

use std::net::IpAddr;

use rocknet_config::model::{
    ClientRange, Conditions, Existence, ExistenceCondition, HostPattern, Network, Pattern, RegexPattern, SourceSpan,
    ValuePattern,
};
use rocknet_config::template::NoValues;
use rocknet_proto::fields::KnownField;
use rocknet_proto::request::{OwnedRequest, Version};

use super::*;
use crate::wildcard::Wildcard;

/// Parses a pattern as the configuration does: `/x`, `/x/*`, a star elsewhere, and a regular expression after `~`.
fn pattern(text: &str) -> Pattern {
    if let Some(regex) = RegexPattern::parse(text) {
        return Pattern::Regex(regex.expect("a valid expression"));
    }
    match text.strip_suffix('*') {
        Some(prefix) if prefix.ends_with('/') => Pattern::Prefix(prefix.into()),
        _ if text.contains('*') => Pattern::Glob(text.into()),
        _ => Pattern::Exact(text.into()),
    }
}

/// A request without TLS from 192.0.2.7, to a site with the file `/a.txt` and the folder `/folder`. `/slow` is a path
/// whose lookup has to wait.
struct InClear;

impl RequestFacts for InClear {
    fn is_secure(&self) -> bool {
        false
    }

    fn client(&self) -> Option<IpAddr> {
        Some([192, 0, 2, 7].into())
    }

    fn existence(&self, path: &str) -> Result<Existence, LookupError> {
        match path {
            "/a.txt" => Ok(Existence::File),
            "/folder" | "/folder/" => Ok(Existence::Folder),
            "/slow" => Err(LookupError::WouldBlock),
            "/broken" => Err(LookupError::Failed),
            _ => Ok(Existence::Nothing),
        }
    }
}

fn rule(when: Conditions, action: RuleAction, last: bool) -> model::Rule {
    let span = SourceSpan::default();
    model::Rule {
        when,
        unless: Vec::new(),
        action,
        last,
        resolved: false,
        span,
    }
}

/// Returns a rule that rewrites the requests for a path; with an empty path, all requests.
fn rewrite(path: &str, to: &str) -> model::Rule {
    let paths = if path.is_empty() {
        Vec::new()
    } else {
        vec![pattern(path)]
    };
    let when = Conditions {
        paths,
        ..Conditions::default()
    };
    rule(when, RuleAction::Rewrite(to.into()), false)
}

/// Applies rules to a GET request without TLS for `www.example.com`. Its `User-Agent` is Googlebot.
fn apply(rules: &[model::Rule], target: &str) -> RuleOutcome {
    let rules = Rules::new(rules).expect("valid rules").expect("at least one rule");
    let fields = [(KnownField::UserAgent, &b"Googlebot/2.1"[..])];
    let request = OwnedRequest::synthetic_get(Version::Http11, b"WWW.Example.com:8080", target.as_bytes(), &fields);
    rules.apply(&request.view(), &InClear, &NoValues)
}

#[test]
fn paths_are_rewritten() {
    #[track_caller]
    fn check(path: &str, to: &str, request: &str, expected: Option<&str>) {
        let expected = expected.map_or(RuleOutcome::Untouched, |target| RuleOutcome::Rewritten(target.into()));
        assert_eq!(
            apply(&[rewrite(path, to)], request),
            expected,
            "{path} to {to}: {request}"
        );
    }
    for (path, to, request, expected) in [
        ("/a", "/b", "/a", Some("/b")),
        ("/a", "/b", "/a?q=1", Some("/b?q=1")),
        ("/a", "/b?x", "/a?q=1", Some("/b?x&q=1")),
        ("/a", "/b?x", "/a?", Some("/b?x")),
        ("/a", "/b?x", "/a", Some("/b?x")),
        ("/a", "/b?", "/a?q=1", Some("/b")),
        ("/a", "/b?x?", "/a?q=1", Some("/b?x")),
        ("/a", "/b", "/ab", None),
        ("/a/*", "/b/{*}", "/a/c/d?e", Some("/b/c/d?e")),
        (
            "/a/*",
            "/index.php?page={*}",
            "/a/c&d=e",
            Some("/index.php?page=c%26d%3De"),
        ),
        ("/a/*", "/b/{*}", "/a/%E2%82%AC%2fx", Some("/b/%E2%82%AC%2fx")),
        ("/a/*", "/b/{*}", "/a//x", Some("/b/x")),
        ("/a/*", "/b/{*}", "/x/../a/y", Some("/b/y")),
        ("/a/*", "/{*}", "/a//evil.org", Some("/evil.org")),
        ("*.asp", "/old/{*}.html", "/deep/page.asp", Some("/old/page.html")),
        ("", "/site/{*}", "/a/b", Some("/site/a/b")),
        ("", "/site/{*}", "/", Some("/site/")),
        ("~^/(\\d+)/([^/]+)$", "/{2}/{1}", "/2024/a%20b?c", Some("/a%20b/2024?c")),
        (
            "~^/(\\d+)/([^/]+)$",
            "/x?year={1}&{2}&all={0}",
            "/7/a=b",
            Some("/x?year=7&a%3Db&all=/7/a%3Db"),
        ),
        ("~^/(?<year>\\d+)(-\\d+)?$", "/{year}{2}", "/2024", Some("/2024")),
        ("~*^/A", "/b", "/abc", Some("/b")),
        ("~/(.*)$", "/{1}", "/x//..//evil.org", Some("/evil.org")),
        // Invalid paths are refused later, so rules do not rewrite them.
        ("", "/site/{*}", "/%00", None),
        ("", "/site/{*}", "/../a", None),
    ] {
        check(path, to, request, expected);
    }
}

#[test]
fn named_groups_of_every_condition_reach_the_target() {
    let regex = |text: &str| RegexPattern::new(text, false).expect("valid");
    let value = |name: &str, text: &str| vec![(name.to_owned(), ValuePattern::Regex(regex(text)))];
    let when = Conditions {
        paths: vec![pattern("~^/(?<path_part>[a-z]+)")],
        host_regexes: vec![regex("^(?<sub>[a-z]+)\\.example\\.com$")],
        headers: value("User-Agent", "(?<agent>[A-Z]\\w+/[0-9.]+)"),
        query: value("id", "^(?<id>[0-9%A-F]+)$"),
        ..Conditions::default()
    };
    let to = "/{sub}/{agent}/{path_part}?q={id}&twice={id}";
    let rules = [rule(when.clone(), RuleAction::Rewrite(to.into()), false)];
    let expected = b"/www/Googlebot%2F2.1/abc?q=4%32&twice=4%32&id=x&id=4%32".to_vec();
    assert_eq!(apply(&rules, "/abc?id=x&id=4%32"), RuleOutcome::Rewritten(expected));
    assert_eq!(apply(&rules, "/abc?id=x"), RuleOutcome::Untouched);
    // A captured text of a query or a field stays in its segment.
    let any = Conditions {
        query: value("id", "^(?<id>.*)$"),
        ..Conditions::default()
    };
    let to_user = [rule(any, RuleAction::Rewrite("/users/{id}.json".into()), false)];
    for (query, expected) in [
        (
            "id=../private/list",
            "/users/..%2Fprivate%2Flist.json?id=../private/list",
        ),
        ("id=..", "/users/.json?id=.."),
        ("id=%2e.", "/users/.json?id=%2e."),
        ("id=a.b", "/users/a.b.json?id=a.b"),
    ] {
        let rewritten = RuleOutcome::Rewritten(expected.into());
        assert_eq!(apply(&to_user, &format!("/x?{query}")), rewritten, "{query}");
    }
    let other_host = Conditions {
        host_regexes: vec![regex("^example")],
        ..when
    };
    let rules = [rule(other_host, RuleAction::Rewrite("/x".into()), false)];
    assert_eq!(apply(&rules, "/abc?id=4"), RuleOutcome::Untouched);
}

#[test]
fn exceptions_keep_a_rule_from_applying() {
    let mut guarded = rewrite("", "/index.php");
    let path = |text| Conditions {
        paths: vec![pattern(text)],
        ..Conditions::default()
    };
    guarded.unless = vec![
        path("~\\.(?:css|js)$"),
        Conditions {
            methods: vec!["GET".into()],
            ..path("/static/*")
        },
    ];
    for (target, applies) in [("/a", true), ("/a.css", false), ("/static/x", false), ("/b.cssx", true)] {
        let outcome = apply(&[guarded.clone()], target);
        assert_eq!(outcome != RuleOutcome::Untouched, applies, "{target}");
    }
}

#[test]
fn cookies_are_compared_by_name_and_value() {
    let fields = [
        (KnownField::Cookie, &b"beta=on; theme=dark;flag=;  last = x"[..]),
        (KnownField::Cookie, &b"session_id=abc=d"[..]),
    ];
    let request = OwnedRequest::synthetic_get(Version::Http2, b"a.test", b"/x", &fields);
    for (name, value, holds) in [
        ("beta", "on", true),
        ("beta", "of*", false),
        ("bet", "*", false),
        ("Beta", "on", false),
        ("theme", "d*k", true),
        ("flag", "*", true),
        ("none", "*", false),
        ("none", "", true),
        ("beta", "", false),
        // The second field, and a value with an equals sign.
        ("session_id", "abc=d", true),
        // A space before the equals sign belongs to the name.
        ("last", "*", false),
    ] {
        let when = Conditions {
            cookies: vec![(name.into(), ValuePattern::Wildcard(value.into()))],
            ..Conditions::default()
        };
        let action = RuleAction::Respond {
            status: 410,
            body: None,
        };
        let rules = Rules::new(&[rule(when, action, false)])
            .expect("valid rules")
            .expect("a rule");
        let is_untouched = rules.apply(&request.view(), &InClear, &NoValues) == RuleOutcome::Untouched;
        assert_eq!(is_untouched, !holds, "{name}: {value}");
    }
}

#[test]
fn all_conditions_have_to_hold() {
    let hosts = |host: HostPattern| Conditions {
        hosts: vec![host],
        ..Conditions::default()
    };
    let header = |name: &str, value: &str| Conditions {
        headers: vec![(name.into(), ValuePattern::Wildcard(value.into()))],
        ..Conditions::default()
    };
    let query = |name: &str, value: &str| Conditions {
        query: vec![(name.into(), ValuePattern::Wildcard(value.into()))],
        ..Conditions::default()
    };
    let methods = |method: &str| Conditions {
        methods: vec!["POST".into(), method.into()],
        ..Conditions::default()
    };
    let secure = |secure| Conditions {
        secure: Some(secure),
        ..Conditions::default()
    };
    let client = |ip: [u8; 4], length| Conditions {
        clients: vec![
            ClientRange::Network(Network::Unix),
            ClientRange::Network(Network::Ip { ip: ip.into(), length }),
        ],
        ..Conditions::default()
    };
    for (when, holds) in [
        (client([192, 0, 2, 0], 24), true),
        (client([192, 0, 3, 0], 24), false),
        (Conditions::default(), true),
        (hosts(HostPattern::Exact("www.example.com".into())), true),
        (hosts(HostPattern::Exact("example.com".into())), false),
        (hosts(HostPattern::Wildcard("example.com".into())), true),
        (hosts(HostPattern::Wildcard("ample.com".into())), false),
        (hosts(HostPattern::Wildcard("www.example.com".into())), false),
        (methods("GET"), true),
        (methods("PUT"), false),
        (header("user-agent", "*BOT*"), true),
        (header("User-Agent", "bot"), false),
        (header("User-Agent", ""), false),
        (header("Cookie", ""), true),
        (header("Cookie", "*"), false),
        (query("a", "1"), true),
        (query("a", "2"), true),
        (query("a", "3"), false),
        (query("b", "*"), true),
        (query("b", ""), false),
        (query("c", ""), true),
        (query("A", "1"), false),
        (query("", ""), true),
        // The whole query.
        (query("*", "a=1&b&a=2"), true),
        (query("*", "b"), false),
        (query("*", "*"), true),
        (query("*", ""), false),
        (secure(false), true),
        (secure(true), false),
        (
            Conditions {
                methods: vec!["GET".into()],
                ..header("Cookie", "*")
            },
            false,
        ),
    ] {
        let rules = [rule(
            when.clone(),
            RuleAction::Respond {
                status: 410,
                body: None,
            },
            false,
        )];
        let expected = match holds {
            true => RuleOutcome::Respond {
                status: 410,
                body: None,
            },
            false => RuleOutcome::Untouched,
        };
        assert_eq!(apply(&rules, "/x?a=1&b&a=2"), expected, "{when:?}");
    }
    for (target, holds) in [("/x", true), ("/x?", true), ("/x?*", false), ("/x?a", false)] {
        let rules = [rule(query("*", ""), RuleAction::Rewrite("/y".into()), false)];
        let is_untouched = apply(&rules, target) == RuleOutcome::Untouched;
        assert_eq!(!is_untouched, holds, "{target}");
    }
}

#[test]
fn files_are_looked_up_where_a_rule_depends_on_them() {
    let gone = RuleOutcome::Respond {
        status: 410,
        body: None,
    };
    let failed = RuleOutcome::Respond {
        status: 503,
        body: None,
    };
    use Existence::{File, Folder, Nothing};
    for (target, kinds, at, expected) in [
        ("/a.txt", &[File][..], None, Some(&gone)),
        ("/a.txt", &[Folder, Nothing], None, None),
        ("/folder/", &[Folder], None, Some(&gone)),
        ("/none", &[Nothing], None, Some(&gone)),
        ("/none", &[File, Folder], None, None),
        ("/a", &[File], Some("{path}.txt"), Some(&gone)),
        ("/a/", &[File], Some("{path}.txt"), Some(&gone)),
        ("/x", &[File], Some("/a.txt"), Some(&gone)),
        ("/broken", &[Nothing], None, Some(&failed)),
        (
            "/slow",
            &[Nothing],
            None,
            Some(&RuleOutcome::NeedsLookup("/slow".into())),
        ),
    ] {
        let existence = Some(ExistenceCondition {
            kinds: kinds.to_vec(),
            at: at.map(str::to_owned),
        });
        let when = Conditions {
            existence,
            ..Conditions::default()
        };
        let respond = RuleAction::Respond {
            status: 410,
            body: None,
        };
        let expected = expected.unwrap_or(&RuleOutcome::Untouched);
        assert_eq!(
            apply(&[rule(when, respond, false)], target),
            *expected,
            "{target} {kinds:?}"
        );
    }
    // A condition that does not hold needs no lookup.
    let when = Conditions {
        methods: vec!["POST".into()],
        existence: Some(ExistenceCondition {
            kinds: vec![Nothing],
            at: None,
        }),
        ..Conditions::default()
    };
    let pass = rule(when, RuleAction::Pass, true);
    assert_eq!(apply(&[pass], "/slow"), RuleOutcome::Untouched);
}

#[test]
fn rules_apply_in_order_and_once() {
    let chain = [rewrite("/a", "/b"), rewrite("/b", "/c"), rewrite("/a", "/never")];
    assert_eq!(apply(&chain, "/a"), RuleOutcome::Rewritten(b"/c".to_vec()));
    let round = [rewrite("/a", "/b"), rewrite("/b", "/a")];
    assert_eq!(apply(&round, "/a?q"), RuleOutcome::Rewritten(b"/a?q".to_vec()));

    let mut ended = chain;
    ended[0].last = true;
    assert_eq!(apply(&ended, "/a"), RuleOutcome::Rewritten(b"/b".to_vec()));

    let skipped = [
        rule(rewrite("/static/*", "/").when, RuleAction::Pass, true),
        rule(
            Conditions::default(),
            RuleAction::Respond {
                status: 503,
                body: Some("Back soon.".into()),
            },
            false,
        ),
    ];
    assert_eq!(apply(&skipped, "/static/logo.svg"), RuleOutcome::Untouched);
    let body = Some(Template::constant("Back soon."));
    assert_eq!(apply(&skipped, "/"), RuleOutcome::Respond { status: 503, body });

    let moved = [
        rewrite("/a/*", "/b/{*}"),
        rule(
            rewrite("/b/*", "/").when,
            RuleAction::Redirect {
                to: "https://example.org/{*}".into(),
                status: 302,
            },
            false,
        ),
    ];
    let location = b"https://example.org/c%20d?e".to_vec();
    assert_eq!(
        apply(&moved, "/a/c%20d?e"),
        RuleOutcome::Redirect { status: 302, location }
    );
}

#[test]
fn an_invalid_rule_is_reported_by_its_number() {
    let rules = [rewrite("/a", "/b"), rewrite("/a", "/{*}")];
    let error = Rules::new(&rules).expect_err("has no star").to_string();
    assert!(error.starts_with("rule 2: the target contains `{*}`"), "{error}");
    assert!(Rules::new(&[]).expect("valid rules").is_none());
}

proptest::proptest! {
    /// Every rewritten target is a path of this site, and never another host.
    #[test]
    fn a_rewritten_target_is_a_path(
        request in "/[a-z/.%0-9:?&=\\\\]{0,24}",
        to in "/[a-z/]{0,4}\\{\\*\\}[a-z?=]{0,4}",
    ) {
        // `Rules::new` refuses such a target.
        if to.starts_with("//") { return Ok(()); }
        if let RuleOutcome::Rewritten(target) = apply(&[rewrite("", &to)], &request) {
            proptest::prop_assert!(target.starts_with(b"/") && !target.starts_with(b"//"), "{:?}", target);
            proptest::prop_assert!(target.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'#'));
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_captured_text_leaves_its_segment(text in r"(\.|/|\\|%2e|%2F|%5c|%00|%25|%ff|a|%|\+|;|:){0,12}") {
        let when = Conditions {
            query: vec![("x".into(), ValuePattern::Regex(RegexPattern::new("^(?<x>.*)$", false).expect("valid")))],
            ..Conditions::default()
        };
        let rules = [rule(when, RuleAction::Rewrite("/top/{x}/end?".into()), false)];
        let RuleOutcome::Rewritten(target) = apply(&rules, &format!("/?x={text}")) else {
            panic!("{text} is not rewritten");
        };
        proptest::prop_assert!(target.iter().all(u8::is_ascii_graphic), "{}", String::from_utf8_lossy(&target));
        // The path of a target with NUL or a stray percent sign is refused.
        if let Ok(path) = SafePath::for_rules(&target) {
            let segments: Vec<_> = path.split('/').collect();
            proptest::prop_assert!(segments.len() <= 4, "{path}");
            proptest::prop_assert_eq!((segments[1], segments.last().copied()), ("top", Some("end")));
        }
    }

    #[test]
    fn conditions_on_values_agree_with_lists(
        query in "[a=&b]{0,8}",
        name in "[ab]",
        pattern in "[ab*]{0,3}",
    ) {
        let matching = |value: &str| match pattern.as_str() {
            "" => false,
            pattern => Wildcard::new(pattern, false).matches(value.as_bytes()),
        };
        let mut values = query.split('&').filter(|parameter| !parameter.is_empty()).filter_map(|parameter| {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            (key == name).then_some(value)
        });
        let expected = match pattern.is_empty() {
            true => values.next().is_none(),
            false => values.any(matching),
        };
        let when = Conditions {
            query: vec![(name.clone(), ValuePattern::Wildcard(pattern.clone()))],
            ..Conditions::default()
        };
        let outcome = apply(&[rule(when, RuleAction::Rewrite("/new".into()), false)], &format!("/?{query}"));
        proptest::prop_assert_eq!(outcome != RuleOutcome::Untouched, expected, "{} {}", query, pattern);
    }
}
