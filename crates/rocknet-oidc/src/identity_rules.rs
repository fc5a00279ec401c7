//! Rules about the users who may enter a route.

use crate::session::LoginSession;

/// Users who may enter a route. A user has to be in each of the lists. An empty list admits every user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdentityRules {
    /// Names of users.
    pub users: Vec<String>,
    /// Email addresses. `@example.com` stands for all addresses of a domain.
    pub emails: Vec<String>,
    /// Groups, of which a user has to have one.
    pub groups: Vec<String>,
}

impl IdentityRules {
    /// Returns true if the user of a session may enter.
    pub fn admit(&self, session: &LoginSession) -> bool {
        let has_name = self.users.is_empty() || self.users.contains(&session.user);
        let has_group = self.groups.is_empty() || self.groups.iter().any(|group| session.groups.contains(group));
        let has_email = self.emails.is_empty()
            || session
                .email
                .as_deref()
                .is_some_and(|email| self.emails.iter().any(|own| is_address(own, email)));
        has_name && has_group && has_email
    }
}

/// Returns true if an address is that of a rule, or in the domain of a rule. Upper and lower case count as equal.
fn is_address(rule: &str, email: &str) -> bool {
    match (rule.strip_prefix('@'), email.rsplit_once('@')) {
        (Some(domain), Some((_, own))) => own.eq_ignore_ascii_case(domain),
        (Some(_), None) => false,
        (None, _) => rule.eq_ignore_ascii_case(email),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_to_be_in_each_list() {
        let session = LoginSession {
            subject: "1".to_owned(),
            user: "ann".to_owned(),
            name: None,
            email: Some("Ann@a.test".to_owned()),
            groups: vec!["staff".to_owned(), "admins".to_owned()],
            created: 0,
            seen: 0,
        };
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for (users, emails, groups, is_admitted) in [
            ("", "", "", true),
            ("ann", "", "", true),
            ("Ann bob", "", "", false),
            ("", "ann@A.test", "", true),
            ("", "@a.test", "", true),
            ("", "@test", "", false),
            ("", "@b.a.test", "", false),
            ("", "a.test", "", false),
            ("", "", "admins", true),
            ("", "", "admin root", false),
            ("ann", "@a.test", "staff", true),
            ("ann", "@a.test", "none", false),
            ("bob", "@a.test", "staff", false),
        ] {
            let rules = IdentityRules {
                users: list(users),
                emails: list(emails),
                groups: list(groups),
            };
            assert_eq!(rules.admit(&session), is_admitted, "{rules:?}");
        }
        let rules = IdentityRules {
            emails: list("@a.test"),
            ..IdentityRules::default()
        };
        let nameless = LoginSession { email: None, ..session };
        assert!(!rules.admit(&nameless));
    }
}
