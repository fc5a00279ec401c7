//! Host tables, which map the host names of one listener to sites: exact names, wildcards, and the default.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::Hash;
use std::net::Ipv6Addr;

use foldhash::fast::RandomState;
use rocknet_config::model::HostPattern;
use rocknet_proto::dns::MAX_NAME;

/// Maps the host names of a listener to values.
///
/// An exact name precedes a wildcard, a longer wildcard precedes a shorter one, and the default comes last. A lookup
/// computes one hash, and one more for each *depth* at which a wildcard exists (`*.example.com` has depth two),
/// regardless of the number of names. Names come from the configuration and never from clients, so clients cannot cause
/// collisions. The hash is randomly keyed nevertheless.
#[derive(Debug, Clone)]
pub struct HostTable<T> {
    exact: HashMap<Box<str>, T, RandomState>,
    /// Keyed by address, because one IPv6 address has many spellings.
    ipv6: HashMap<Ipv6Addr, T, RandomState>,
    /// Keyed by the name after `*.`.
    wildcards: HashMap<Box<str>, T, RandomState>,
    /// Bit n is set if a wildcard with n labels after the star exists.
    wildcard_depths: u128,
    default: Option<T>,
}

/// Error of [`HostTable::insert`]: the name is already in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateHost(pub HostPattern);

impl<T: Copy> HostTable<T> {
    /// Creates an empty table.
    pub fn new() -> HostTable<T> {
        HostTable {
            exact: HashMap::default(),
            ipv6: HashMap::default(),
            wildcards: HashMap::default(),
            wildcard_depths: 0,
            default: None,
        }
    }

    /// Adds a name. Case and one trailing dot are ignored; an IPv6 address may be written with or without brackets.
    ///
    /// # Errors
    /// Returns the name if it is already in the table, which is then unchanged.
    pub fn insert(&mut self, pattern: &HostPattern, value: T) -> Result<(), DuplicateHost> {
        let new = match pattern {
            HostPattern::Exact(name) => match ipv6(name) {
                Some(address) => insert_new(&mut self.ipv6, address, value),
                None => insert_new(&mut self.exact, normalized(name), value),
            },
            HostPattern::Wildcard(suffix) => {
                let suffix = normalized(suffix);
                self.wildcard_depths |= bit(labels(&suffix));
                insert_new(&mut self.wildcards, suffix, value)
            }
        };
        if new {
            Ok(())
        } else {
            Err(DuplicateHost(pattern.clone()))
        }
    }

    /// Sets the value for all names that are not in the table, and returns the previous value.
    pub fn set_default(&mut self, value: T) -> Option<T> {
        self.default.replace(value)
    }

    /// Returns the value for names that are not in the table; `None` if it was not set.
    pub fn default_value(&self) -> Option<T> {
        self.default
    }

    /// Returns the value for `host`, which must be in lower case and without a port; `None` if the name is not in the
    /// table and there is no default.
    pub fn lookup(&self, host: &str) -> Option<T> {
        self.lookup_named(host).or(self.default)
    }

    /// Returns the value for `host` like [`HostTable::lookup`], but without the default.
    pub fn lookup_named(&self, host: &str) -> Option<T> {
        let host = host.strip_suffix('.').unwrap_or(host);
        if host.len() > MAX_NAME {
            return None;
        }
        if let Some(&value) = self.exact.get(host) {
            return Some(value);
        }
        if !self.ipv6.is_empty()
            && let Some(address) = ipv6(host)
        {
            return self.ipv6.get(&address).copied();
        }
        if self.wildcards.is_empty() {
            return None;
        }
        self.wildcard(host)
    }

    /// Looks up the suffixes of a host from the longest to the shortest. A suffix is hashed only if a wildcard with its
    /// depth exists.
    fn wildcard(&self, host: &str) -> Option<T> {
        let bytes = host.as_bytes();
        let mut depth = labels(host);
        for dot in memchr::memchr_iter(b'.', bytes) {
            depth -= 1;
            // The star stands for at least one whole label, and an empty label does not count.
            if dot == 0 || bytes[dot - 1] == b'.' || self.wildcard_depths & bit(depth) == 0 {
                continue;
            }
            if let Some(&value) = self.wildcards.get(&host[dot + 1..]) {
                return Some(value);
            }
        }
        None
    }

    /// Returns the number of names and wildcards, without the default.
    pub fn len(&self) -> usize {
        self.exact.len() + self.ipv6.len() + self.wildcards.len()
    }

    /// Returns true if there are no names; the default does not count.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Copy> Default for HostTable<T> {
    fn default() -> HostTable<T> {
        HostTable::new()
    }
}

impl fmt::Display for DuplicateHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            HostPattern::Exact(name) => write!(f, "two sites on one listener have the name `{name}`"),
            HostPattern::Wildcard(suffix) => write!(f, "two sites on one listener have the name `*.{suffix}`"),
        }
    }
}

impl std::error::Error for DuplicateHost {}

/// Inserts a value unless the key exists. Returns true if it was inserted.
fn insert_new<K: Hash + Eq, T>(map: &mut HashMap<K, T, RandomState>, key: K, value: T) -> bool {
    match map.entry(key) {
        Entry::Occupied(_) => false,
        Entry::Vacant(entry) => {
            entry.insert(value);
            true
        }
    }
}

/// Returns a name in lower case, without a dot at its end.
fn normalized(name: &str) -> Box<str> {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase().into()
}

/// Returns the number of labels of a name.
fn labels(name: &str) -> usize {
    memchr::memchr_iter(b'.', name.as_bytes()).count() + 1
}

/// Returns the bit for a depth; 0 for a depth of 128 or more. Names within [`MAX_NAME`] reach such a depth only with
/// empty labels.
fn bit(depth: usize) -> u128 {
    u32::try_from(depth)
        .ok()
        .and_then(|depth| 1u128.checked_shl(depth))
        .unwrap_or(0)
}

/// Parses an IPv6 address, with or without brackets. Only a host with a colon is parsed: it must be an IPv6 address,
/// because the port has already been removed.
fn ipv6(host: &str) -> Option<Ipv6Addr> {
    memchr::memchr(b':', host.as_bytes())?;
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    bare.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(name: &str) -> HostPattern {
        HostPattern::Exact(name.into())
    }

    fn wildcard(suffix: &str) -> HostPattern {
        HostPattern::Wildcard(suffix.into())
    }

    fn sample() -> HostTable<&'static str> {
        let mut table = HostTable::new();
        for (pattern, value) in [
            (exact("example.com"), "exact"),
            (exact("www.Example.com"), "www"),
            (exact("10.0.0.1"), "v4"),
            (exact("2001:DB8::1"), "v6"),
            (exact("[::1]"), "loopback"),
            (exact("localhost"), "local"),
            (wildcard("example.com"), "*.example"),
            (wildcard("deep.example.com"), "*.deep"),
            (wildcard("example.org."), "*.org"),
        ] {
            table.insert(&pattern, value).unwrap();
        }
        table
    }

    #[test]
    fn names_are_found() {
        let table = sample();
        let check = |host: &str, expected: Option<&str>| assert_eq!(table.lookup(host), expected, "{host:?}");
        for (host, expected) in [
            ("example.com", Some("exact")),
            ("example.com.", Some("exact")),
            ("www.example.com", Some("www")),
            ("a.example.com", Some("*.example")),
            ("a.b.c.example.com", Some("*.example")),
            ("deep.example.com", Some("*.example")),
            ("a.deep.example.com", Some("*.deep")),
            ("a.b.deep.example.com", Some("*.deep")),
            ("x.example.org", Some("*.org")),
            ("x.example.org.", Some("*.org")),
            ("example.org", None),
            (".example.org", None),
            ("..example.org", None),
            ("aexample.org", None),
            ("com", None),
            ("", None),
            (".", None),
            ("10.0.0.1", Some("v4")),
            ("10.0.0.2", None),
            ("2001:db8::1", Some("v6")),
            ("[2001:db8::1]", Some("v6")),
            ("[2001:db8:0:0::0001]", Some("v6")),
            ("[::1]", Some("loopback")),
            ("::1", Some("loopback")),
            ("[::2]", None),
            ("[::1", None),
            ("localhost", Some("local")),
        ] {
            check(host, expected);
        }
    }

    #[test]
    fn other_names_get_the_default() {
        let mut table = sample();
        assert_eq!(table.default_value(), None);
        assert_eq!(table.set_default("first"), None);
        assert_eq!(table.set_default("second"), Some("first"));
        for (host, expected) in [
            ("example.com", "exact"),
            ("nobody.test", "second"),
            ("", "second"),
            ("[::9]", "second"),
        ] {
            assert_eq!(table.lookup(host), Some(expected), "{host:?}");
        }
        assert_eq!(table.lookup_named("nobody.test"), None);
    }

    #[test]
    fn duplicate_names_are_refused() {
        let mut table = sample();
        let length = table.len();
        for pattern in [
            exact("EXAMPLE.com"),
            exact("example.com."),
            exact("::1"),
            exact("[2001:db8:0::1]"),
            wildcard("Example.COM"),
        ] {
            assert_eq!(table.insert(&pattern, "late"), Err(DuplicateHost(pattern.clone())));
        }
        assert_eq!(table.len(), length);
        assert_eq!(table.lookup("example.com"), Some("exact"));
        assert_eq!(table.lookup("[::1]"), Some("loopback"));
    }

    #[test]
    fn names_longer_than_dns_allows_are_not_found() {
        let mut table = sample();
        let longest = format!("{}.example.com", "a".repeat(MAX_NAME - ".example.com".len()));
        assert_eq!(table.lookup_named(&longest), Some("*.example"));
        assert_eq!(table.lookup_named(&format!("a{longest}")), None);
        // A wildcard that has more labels than a `u128` has bits, all of them empty, matches no name.
        table.insert(&wildcard(&".".repeat(200)), "dots").unwrap();
        assert_eq!(table.lookup_named(&".".repeat(MAX_NAME)), None);
        assert_eq!(table.lookup_named(&"a.".repeat(120)), None);
    }

    #[test]
    fn ten_thousand_sites_are_distinguished() {
        let mut table = HostTable::new();
        for site in 0..10_000u32 {
            table.insert(&exact(&format!("site{site}.example")), site).unwrap();
            table
                .insert(&wildcard(&format!("site{site}.example")), site + 10_000)
                .unwrap();
        }
        assert_eq!(table.len(), 20_000);
        for site in 0..10_000u32 {
            assert_eq!(table.lookup(&format!("site{site}.example")), Some(site));
            assert_eq!(table.lookup(&format!("www.site{site}.example")), Some(site + 10_000));
        }
    }

    /// Looks up a host by a linear search that follows the documentation of the table.
    fn naive(patterns: &[(HostPattern, usize)], host: &str) -> Option<usize> {
        let rank = |pattern: &HostPattern| match pattern {
            HostPattern::Exact(name) => (host == name).then_some(usize::MAX),
            HostPattern::Wildcard(suffix) => host
                .strip_suffix(suffix.as_str())
                .and_then(|front| front.strip_suffix('.'))
                .filter(|front| !front.is_empty())
                .map(|_| suffix.len()),
        };
        patterns
            .iter()
            .filter_map(|(pattern, value)| Some((rank(pattern)?, *value)))
            .max()
            .map(|(_, value)| value)
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_a_list(
            names in proptest::collection::btree_set(("[ab](\\.[ab]){0,3}", proptest::bool::ANY), 0..12),
            hosts in proptest::collection::vec("[ab](\\.[ab]){0,4}", 1..12),
        ) {
            let patterns: Vec<_> = names
                .into_iter()
                .map(|(name, star)| if star { wildcard(&name) } else { exact(&name) })
                .enumerate()
                .map(|(index, pattern)| (pattern, index))
                .collect();
            let mut table = HostTable::new();
            for (pattern, value) in &patterns {
                table.insert(pattern, *value).unwrap();
            }
            for host in hosts {
                proptest::prop_assert_eq!(table.lookup(&host), naive(&patterns, &host), "{}", host);
            }
        }
    }
}
