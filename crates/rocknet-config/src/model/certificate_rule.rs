//! Rules for client certificates (`auth = { certificate = … }`), and the names that they are compared with.

use std::collections::BTreeMap;

use super::distinguished_name::{COMMON_NAME, DistinguishedName};
use super::password_auth::MAX_USER_BYTES;
use crate::choice::choice;

choice! {
    /// Name of a certificate that becomes the user.
    #[derive(Copy)]
    pub enum CertificateUser {
        CommonName = "cn", "common name of the subject";
        Subject = "subject", "whole subject";
        Dns = "dns", "DNS name";
        Email = "email", "email address";
        Uri = "uri", "URI, such as a SPIFFE ID";
    }
    default CommonName
}

/// Requirements that the certificate of a client has to meet. An empty list requires nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CertificateRule {
    /// Accepted subjects.
    pub subject: Vec<NameRule>,
    /// Accepted issuers.
    pub issuer: Vec<NameRule>,
    /// Accepted DNS names, in lower case; `*.example.com` stands for one more label.
    pub dns: Vec<String>,
    /// Accepted email addresses; `*@example.com` stands for all of a domain.
    pub email: Vec<String>,
    /// Accepted URIs; `/*` at the end stands for all below a path.
    pub uri: Vec<String>,
    /// Accepted certificates, by the SHA-256 of their DER form.
    pub fingerprint: Vec<[u8; 32]>,
    /// Name that becomes the user, which a certificate must have; `None`: the common name, if there is one.
    pub user: Option<CertificateUser>,
    /// Header fields that are set in requests with a certificate: names and templates of the values. Fields of the
    /// client with these names are removed.
    pub headers: BTreeMap<String, String>,
}

/// Condition for the subject or the issuer of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameRule {
    /// The whole name.
    Whole(DistinguishedName),
    /// Accepted values of each attribute, by object identifier. All of these attributes are required.
    Attributes(BTreeMap<String, Vec<String>>),
}

/// Names of a client certificate.
#[derive(Debug, Clone, Default)]
pub struct ClientNames {
    /// Subject.
    pub subject: DistinguishedName,
    /// Issuer.
    pub issuer: DistinguishedName,
    /// DNS names of `subjectAltName`, in lower case.
    pub dns: Vec<String>,
    /// Email addresses of `subjectAltName`.
    pub email: Vec<String>,
    /// URIs of `subjectAltName`.
    pub uri: Vec<String>,
    /// Serial number, in upper-case hexadecimal digits.
    pub serial: String,
    /// SHA-256 of the DER form.
    pub fingerprint: [u8; 32],
}

impl CertificateRule {
    /// Returns true if a certificate meets all requirements.
    pub fn admits(&self, names: &ClientNames) -> bool {
        let is_name = |rules: &[NameRule], name: &DistinguishedName| {
            rules.is_empty() || rules.iter().any(|rule| rule.matches(name))
        };
        let has_any = |rules: &[String], own: &[String], matches: fn(&str, &str) -> bool| {
            rules.is_empty() || own.iter().any(|own| rules.iter().any(|rule| matches(rule, own)))
        };
        is_name(&self.subject, &names.subject)
            && is_name(&self.issuer, &names.issuer)
            && has_any(&self.dns, &names.dns, matches_dns)
            && has_any(&self.email, &names.email, matches_email)
            && has_any(&self.uri, &names.uri, matches_uri)
            && (self.fingerprint.is_empty() || self.fingerprint.contains(&names.fingerprint))
            && (self.user.is_none() || self.user_of(names).is_some())
    }

    /// Returns the user that a certificate names; `None` if the name is missing, ambiguous, too long, or contains a
    /// control character. A colon is allowed, unlike in the user name of a password, because URIs contain colons.
    pub fn user_of(&self, names: &ClientNames) -> Option<String> {
        let only = |all: &[String]| match all {
            [one] => Some(one.clone()),
            _ => None,
        };
        let user = match self.user.unwrap_or_default() {
            CertificateUser::CommonName => names.subject.only_value(COMMON_NAME).map(str::to_owned),
            CertificateUser::Subject => Some(names.subject.to_string()),
            CertificateUser::Dns => only(&names.dns),
            CertificateUser::Email => only(&names.email),
            CertificateUser::Uri => only(&names.uri),
        };
        user.filter(|user| (1..=MAX_USER_BYTES).contains(&user.len()) && !user.contains(char::is_control))
    }
}

impl NameRule {
    fn matches(&self, name: &DistinguishedName) -> bool {
        match self {
            NameRule::Whole(whole) => whole.is_same(name),
            NameRule::Attributes(required) => required.iter().all(|(kind, accepted)| {
                let is_accepted = |value: &str| accepted.iter().any(|accepted| accepted == value);
                // A certificate with two common names would name two users.
                match kind == COMMON_NAME {
                    true => name.only_value(kind).is_some_and(is_accepted),
                    false => name.values(kind).flatten().any(is_accepted),
                }
            }),
        }
    }
}

/// Compares a DNS name of a certificate, `own`, with a rule. A certificate for `*.example.com` matches no rule, because
/// it names no single host.
fn matches_dns(rule: &str, own: &str) -> bool {
    match rule.strip_prefix("*.") {
        _ if own.contains('*') => false,
        Some(parent) => own
            .split_once('.')
            .is_some_and(|(label, rest)| !label.is_empty() && rest == parent),
        None => rule == own,
    }
}

/// Compares an email address of a certificate. The case of letters is ignored in the domain only (RFC 5280 §7.5).
fn matches_email(rule: &str, own: &str) -> bool {
    let (Some((user, domain)), Some((own_user, own_domain))) = (rule.rsplit_once('@'), own.rsplit_once('@')) else {
        return false;
    };
    domain.eq_ignore_ascii_case(own_domain) && !own_user.is_empty() && (user == "*" || user == own_user)
}

/// Compares a URI of a certificate. Below a path, URIs with dot segments, empty segments, percent-encoding, a query, a
/// fragment or a backslash are refused, because applications could take them for URIs outside of the path.
fn matches_uri(rule: &str, own: &str) -> bool {
    let Some(folder) = rule.strip_suffix('*').filter(|folder| folder.ends_with('/')) else {
        return rule == own;
    };
    let is_plain = |segment: &str| !segment.is_empty() && segment != "." && segment != "..";
    own.strip_prefix(folder)
        .is_some_and(|rest| !rest.contains(['%', '?', '#', '\\']) && rest.split('/').all(is_plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(subject: &str) -> ClientNames {
        ClientNames {
            subject: DistinguishedName::parse(subject).expect("a subject"),
            issuer: DistinguishedName::parse("CN=ca").expect("an issuer"),
            dns: vec!["a.ops.test".to_owned()],
            email: vec!["bob@Example.com".to_owned()],
            uri: vec!["spiffe://example.org/ns/prod/sa/web".to_owned()],
            serial: "01".to_owned(),
            fingerprint: [7; 32],
        }
    }

    fn attributes(list: &[(&str, &str)]) -> NameRule {
        let one = |(kind, value): &(&str, &str)| ((*kind).to_owned(), vec![(*value).to_owned()]);
        NameRule::Attributes(list.iter().map(one).collect())
    }

    #[test]
    fn attributes_are_compared_as_a_whole() {
        let rule = CertificateRule {
            subject: vec![attributes(&[(COMMON_NAME, "bob"), ("2.5.4.11", "Ops")])],
            ..CertificateRule::default()
        };
        for (subject, admits) in [
            ("OU=Ops,CN=bob", true),
            ("OU=Europe,OU=Ops,CN=bob", true),
            ("OU=Europe+OU=Ops+CN=bob", true),
            ("CN=bob", false),
            ("OU=Ops,CN=bobby", false),
            ("OU=Ops,CN=Bob", false),
            ("OU=Ops,CN=eve,CN=bob", false),
            ("OU=Ops,CN=bob,CN=bob", false),
            ("CN=bob\\, OU=Ops", false),
            ("OU=Ops\\, CN=bob", false),
        ] {
            assert_eq!(rule.admits(&names(subject)), admits, "{subject}");
        }
    }

    #[test]
    fn patterns_match_whole_parts() {
        for (rule, own, matches) in [
            ("a.test", "a.test", true),
            ("*.test", "a.test", true),
            ("*.test", "a.b.test", false),
            ("*.test", ".test", false),
            ("*.test", "*.test", false),
            ("*.test", "atest", false),
        ] {
            assert_eq!(matches_dns(rule, own), matches, "{rule} {own}");
        }
        for (rule, own, matches) in [
            ("bob@a.test", "bob@A.TEST", true),
            ("bob@a.test", "Bob@a.test", false),
            ("*@a.test", "bob@a.test", true),
            ("*@a.test", "bob@a.test@b.test", false),
            ("*@a.test", "\"x@b.test\"@a.test", true),
            ("*@a.test", "@a.test", false),
            ("*@a.test", "bob@sub.a.test", false),
        ] {
            assert_eq!(matches_email(rule, own), matches, "{rule} {own}");
        }
        for (rule, own, matches) in [
            ("spiffe://a/x", "spiffe://a/x", true),
            ("spiffe://a/x", "spiffe://a/x/y", false),
            ("spiffe://a/x/*", "spiffe://a/x/y/z", true),
            ("spiffe://a/x/*", "spiffe://a/x", false),
            ("spiffe://a/x/*", "spiffe://a/x/", false),
            ("spiffe://a/x/*", "spiffe://a/xy", false),
            ("spiffe://a/x/*", "spiffe://a/x/../y", false),
            ("spiffe://a/x/*", "spiffe://a/x/%2e%2e/y", false),
            ("spiffe://a/x/*", "spiffe://b/x/y", false),
        ] {
            assert_eq!(matches_uri(rule, own), matches, "{rule} {own}");
        }
    }

    #[test]
    fn all_kinds_of_names_have_to_match() {
        let rule = CertificateRule {
            dns: vec!["*.ops.test".to_owned()],
            email: vec!["*@example.com".to_owned()],
            uri: vec!["spiffe://example.org/ns/prod/*".to_owned()],
            fingerprint: vec![[7; 32]],
            ..CertificateRule::default()
        };
        let bob = names("CN=bob");
        assert!(rule.admits(&bob) && CertificateRule::default().admits(&bob));
        let changes: [fn(&mut ClientNames); 4] = [
            |names| names.dns.clear(),
            |names| names.email.clear(),
            |names| names.uri.clear(),
            |names| names.fingerprint[0] = 0,
        ];
        for change in changes {
            let mut names = bob.clone();
            change(&mut names);
            assert!(!rule.admits(&names), "{names:?}");
        }
    }

    #[test]
    fn a_user_is_one_clean_name() {
        let rule = |user| CertificateRule {
            user,
            ..CertificateRule::default()
        };
        let of = |user, names: &ClientNames| rule(user).user_of(names);
        let bob = names("O=x,CN=bob");
        assert_eq!(of(None, &bob).as_deref(), Some("bob"));
        assert_eq!(of(Some(CertificateUser::Subject), &bob).as_deref(), Some("O=x, CN=bob"));
        assert_eq!(
            of(Some(CertificateUser::Email), &bob).as_deref(),
            Some("bob@Example.com")
        );
        // Without a common name, a certificate is admitted without a user, unless the user is required.
        let nameless = names("O=x");
        assert_eq!(of(None, &nameless), None);
        assert!(rule(None).admits(&nameless));
        assert!(!rule(Some(CertificateUser::CommonName)).admits(&nameless));
        let mut two = bob;
        two.email.push("eve@example.com".to_owned());
        assert_eq!(of(Some(CertificateUser::Email), &two), None);
        assert!(!rule(Some(CertificateUser::Email)).admits(&two));
    }
}
