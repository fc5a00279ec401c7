//! Properties of the rewriting that hold for all values of the fields.

use proptest::prelude::*;

use super::*;

/// Parts of field values that the rewriting distinguishes, and parts that could mislead it.
const FRAGMENTS: &[&str] = &[
    "http://",
    "HTTPS://",
    "//",
    "/",
    "\\",
    "10.0.0.2:3000",
    "10.0.0.2",
    ":3000",
    "www.example.com",
    ":443",
    "evil.test",
    "@",
    "?",
    "#",
    "/api",
    "/apis",
    "/outer",
    "/two",
    "api",
    "x",
    ".",
    "..",
    "%2F",
    "é",
    "\t",
    " ",
    ";",
    ",",
    "=",
    "\"",
    "'",
    "url=",
    "URL",
    "5",
    "0.5",
    "a=1",
    "Path=",
    "path",
    "Domain=",
    "; Path=/",
    "; Domain=10.0.0.2",
    "__Host-",
];

fn value() -> impl Strategy<Value = String> {
    let fragments = prop::collection::vec(prop::sample::select(FRAGMENTS), 0..10);
    // A field value has no white space around it.
    fragments.prop_map(|fragments| fragments.concat().trim().to_owned())
}

fn rewrites(pairs: &[(&str, &str)]) -> AddressRewrites {
    AddressRewrites {
        pairs: pairs
            .iter()
            .map(|&(from, to)| (from.to_owned(), to.to_owned()))
            .collect(),
        is_automatic: true,
    }
}

/// Rewriting by the addresses of the upstream, and by pairs that add a prefix.
fn all_rewrites() -> [ResponseRewrite; 2] {
    let automatic = || rewrites(&[]);
    [
        ResponseRewrite {
            redirects: automatic(),
            cookie_paths: automatic(),
            cookie_domains: automatic(),
        },
        ResponseRewrite {
            redirects: rewrites(&[("http://evil.test", "http://evil.test/two"), ("", "/two")]),
            cookie_paths: rewrites(&[("", "/two")]),
            cookie_domains: rewrites(&[("evil.test", "")]),
        },
    ]
}

/// Origins with and without a removed prefix, for both schemes.
fn origins() -> [Origin<'static>; 4] {
    let origin = |prefix: Option<&'static str>, announced_prefix, is_secure| Origin {
        upstream: Some("10.0.0.2:3000"),
        // Without a prefix, `evil.test` is a name of the upstream, by its configured `Host`. With a prefix, it is a
        // host that has nothing to do with the upstream.
        configured_host: prefix.is_none().then_some("evil.test"),
        public_hosts: [b"www.example.com", b""],
        is_secure,
        target: (b"/x", None),
        prefix,
        announced_prefix,
    };
    [
        origin(None, "", true),
        origin(None, "", false),
        origin(Some("/api"), "/api", true),
        origin(Some("/api"), "/outer/api", false),
    ]
}

/// Returns an address as browsers read it: without tabs, and with slashes in place of backslashes.
fn as_browsers_read(address: &str) -> String {
    address.replace('\t', "").replace('\\', "/")
}

proptest! {
    #[test]
    fn rewritten_values_are_valid_and_stay(value in value()) {
        for (rewrite, origin) in all_rewrites().iter().flat_map(|rewrite| origins().map(|origin| (rewrite, origin))) {
            for name in ["Location", "Content-Location", "Refresh", "Set-Cookie"] {
                let Some(new) = rewrite.rewritten(name, &value, &origin) else {
                    continue;
                };
                let is_control = |char: char| char.is_control() && char != '\t';
                prop_assert!(!new.contains(is_control), "{name}: {new:?}");
                // A second rewriting changes nothing. Redirects with pairs are an exception: `http://10.0.0.2:3000/x`
                // becomes `/x`, and then the pair for all paths makes it `/two/x`.
                if rewrite.redirects.pairs.is_empty() || name == "Set-Cookie" {
                    let again = rewrite.rewritten(name, &new, &origin).unwrap_or_else(|| new.clone());
                    prop_assert_eq!(&again, &new, "{}: {:?}", name, value);
                }
            }
        }
    }

    #[test]
    fn a_redirect_to_the_upstream_leads_to_no_other_host(path in value()) {
        for origin in origins() {
            for start in ["http://10.0.0.2:3000", "https://10.0.0.2:3000/", "//10.0.0.2:3000/"] {
                let address = format!("{start}{path}");
                if let Some(new) = all_rewrites()[0].address(&address, &origin) {
                    let read = as_browsers_read(&new);
                    prop_assert!(new.starts_with('/') && !read.starts_with("//"), "{address:?}: {new:?}");
                }
            }
        }
    }

    #[test]
    fn a_path_stays_a_path(path in value()) {
        let path = format!("/{path}");
        let is_path = |path: &str| !as_browsers_read(path).starts_with("//");
        prop_assume!(is_path(&path));
        for (rewrite, origin) in all_rewrites().iter().flat_map(|rewrite| origins().map(|origin| (rewrite, origin))) {
            if let Some(new) = rewrite.address(&path, &origin) {
                prop_assert_eq!(rewrite.address(&new, &origin), None);
                prop_assert!(new.starts_with('/') && is_path(&new) && new.ends_with(&path), "{path:?}: {new:?}");
            }
        }
    }

    #[test]
    fn only_paths_and_domains_of_cookies_change(value in value()) {
        let others = |value: &str| -> Vec<String> {
            let mut parts = value.split(';');
            let pair = parts.next().map(str::to_owned);
            let names = ["path", "domain"];
            let is_other = |part: &&str| {
                let name = part.split('=').next().unwrap_or_default().trim();
                !names.iter().any(|rewritten| name.eq_ignore_ascii_case(rewritten))
            };
            pair.into_iter().chain(parts.filter(is_other).map(str::to_owned)).collect()
        };
        for (rewrite, origin) in all_rewrites().iter().flat_map(|rewrite| origins().map(|origin| (rewrite, origin))) {
            if let Some(new) = rewrite.rewritten("Set-Cookie", &value, &origin) {
                prop_assert_eq!(others(&value), others(&new));
            }
        }
    }

    #[test]
    fn the_time_of_refresh_does_not_change(value in value()) {
        for (rewrite, origin) in all_rewrites().iter().flat_map(|rewrite| origins().map(|origin| (rewrite, origin))) {
            if let Some(new) = rewrite.rewritten("Refresh", &value, &origin) {
                let time = |value: &str| value.split([';', ',', ' ', '\t']).next().map(str::to_owned);
                prop_assert_eq!(time(&value), time(&new));
            }
        }
    }
}
