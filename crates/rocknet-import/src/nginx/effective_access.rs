//! Access control in effect at a level of nginx. A level inherits each directive that it does not have itself. `allow`
//! and `deny` count as one directive: a level with either of them inherits no list.

use crate::directive::Directive;

/// Access control in effect at a level, by directives of the level or of outer levels.
#[derive(Clone, Default)]
pub(super) struct EffectiveAccess<'a> {
    /// Directives `allow` and `deny`, in their order.
    pub lists: Vec<&'a Directive>,
    /// Directives `auth_basic`, `auth_basic_user_file` and `auth_request`.
    pub auth: [Option<&'a Directive>; 3],
    /// True if `satisfy any` is in effect.
    pub is_any_enough: bool,
}

impl<'a> EffectiveAccess<'a> {
    /// Returns the access control of a level inside this one, which has `directives`.
    pub fn inner(&self, directives: &[&'a Directive]) -> EffectiveAccess<'a> {
        let last = |name: &str| directives.iter().rfind(|d| d.is(name)).copied();
        let is_list = |d: &&Directive| d.is("allow") || d.is("deny");
        let lists: Vec<&Directive> = directives.iter().copied().filter(is_list).collect();
        EffectiveAccess {
            lists: if lists.is_empty() { self.lists.clone() } else { lists },
            auth: [
                last("auth_basic").or(self.auth[0]),
                last("auth_basic_user_file").or(self.auth[1]),
                last("auth_request").or(self.auth[2]),
            ],
            is_any_enough: last("satisfy").map_or(self.is_any_enough, |d| d.argument(0) == "any"),
        }
    }

    fn has_auth(&self) -> bool {
        let [realm, file, forward] = self.auth;
        let is_on = |directive: &Directive| directive.argument(0) != "off";
        realm.or(file).is_some_and(is_on) || forward.is_some_and(is_on)
    }

    /// Returns true if every client is admitted.
    pub fn is_open(&self) -> bool {
        // The first entry that matches a client applies, so entries after one for `all` have no effect.
        let all = self.lists.iter().position(|d| d.argument(0) == "all");
        let applied = &self.lists[..all.map_or(self.lists.len(), |at| at + 1)];
        // With `satisfy any`, a client without an `allow` needs authentication.
        let is_auth_optional = self.is_any_enough && all.is_some();
        !applied.iter().any(|d| d.is("deny")) && (!self.has_auth() || is_auth_optional)
    }

    /// Returns true if the directives are the same, wherever they stand.
    pub fn is_same(&self, other: &EffectiveAccess<'a>) -> bool {
        let is_equal = |a: &&Directive, b: &&Directive| a.name == b.name && a.arguments == b.arguments;
        let is_equal_auth = |(a, b): (&Option<&Directive>, &Option<&Directive>)| match (a, b) {
            (Some(a), Some(b)) => is_equal(a, b),
            _ => a.is_none() && b.is_none(),
        };
        let are_lists_equal =
            self.lists.len() == other.lists.len() && self.lists.iter().zip(&other.lists).all(|(a, b)| is_equal(a, b));
        self.is_any_enough == other.is_any_enough
            && are_lists_equal
            && self.auth.iter().zip(&other.auth).all(is_equal_auth)
    }
}
