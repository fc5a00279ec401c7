//! Access control of the named location to which `try_files` leads. nginx applies it after that of the place with
//! `try_files`, so it restricts the place, and never opens it.

use super::{ConfigLevel, Scope};
use crate::directive::Directive;
use crate::document::Notes;
use crate::value::Value;

/// Access control in effect at a level, by directives of the level or of outer levels.
#[derive(Clone, Default)]
pub(super) struct EffectiveAccess<'a> {
    /// Directives `allow` and `deny`, in their order.
    lists: Vec<&'a Directive>,
    /// Directives `auth_basic`, `auth_basic_user_file` and `auth_request`.
    auth: [Option<&'a Directive>; 3],
    is_any_enough: bool,
}

impl<'a> EffectiveAccess<'a> {
    /// Returns the access control of a level inside this one, which has `directives`.
    fn inner(&self, directives: &[&'a Directive]) -> EffectiveAccess<'a> {
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
    fn is_open(&self) -> bool {
        let last = self.lists.iter().position(|d| d.argument(0) == "all");
        let applied = &self.lists[..last.map_or(self.lists.len(), |at| at + 1)];
        // With `satisfy any`, a client without an `allow` needs a password.
        let is_auth_optional = self.is_any_enough && last.is_some();
        !applied.iter().any(|d| d.is("deny")) && (!self.has_auth() || is_auth_optional)
    }

    fn is_same(&self, other: &EffectiveAccess<'a>) -> bool {
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

impl<'a> Scope<'a> {
    /// Keeps a directive of a named location for [`Scope::finish`] if it belongs to access control or authentication.
    /// Returns false for other directives, and for an authority without a counterpart.
    pub fn collect_named(&mut self, directive: &'a Directive) -> bool {
        let is_access = match directive.name.as_str() {
            "allow" | "deny" | "satisfy" | "auth_basic" | "auth_basic_user_file" => directive.arguments.len() == 1,
            "auth_request" => directive.arguments.len() > 1 || directive.argument(0) == "off",
            _ => false,
        };
        if is_access && let Some((_, named)) = &mut self.named {
            named.push(directive);
        }
        is_access
    }

    /// Adds the access control of the named location, if there is one. `containing`: the level that contains this one.
    pub(super) fn finish_named(&mut self, containing: Option<&Scope<'a>>) {
        let outer = containing.map(|outer| outer.effective.clone()).unwrap_or_default();
        let own: Vec<&Directive> = [self.auth.0, self.auth.1, self.forward]
            .into_iter()
            .flatten()
            .chain(self.access.iter().copied())
            .collect();
        let mut place = outer.inner(&own);
        if let Some(word) = self.settings.get("satisfy") {
            place.is_any_enough = *word == Value::text("any");
        }
        self.effective = place.clone();
        let Some((location, directives)) = self.named.take() else {
            return;
        };
        // Every named location is a level inside the server.
        let server = if self.level == ConfigLevel::Server {
            &place
        } else {
            &outer
        };
        let named = server.inner(&directives);
        if named.is_open() || named.is_same(&place) {
            return;
        }
        let is_locked = self.settings.is_locked() || containing.is_some_and(|outer| outer.settings.is_locked());
        if is_locked || !place.is_open() {
            let first = directives.first().copied().unwrap_or(location);
            self.settings.close(first.line);
            let message = "it applies in addition to the access control of the place with `try_files`, so \
                 `deny = \"all\"` denies every client here: write `allow` and `auth`";
            return self.notes.skip(first, message);
        }
        if place.is_any_enough != named.is_any_enough {
            let word = if named.is_any_enough { "any" } else { "all" };
            self.settings.set("satisfy", Value::text(word), location.line);
        }
        self.access = named.lists;
        self.auth = (named.auth[0], named.auth[1]);
        self.forward = named.auth[2];
    }
}
