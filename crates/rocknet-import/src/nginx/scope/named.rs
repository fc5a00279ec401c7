//! Access control of the named location to which `try_files` leads, such as `@app`. nginx also applies the
//! access control of the location with `try_files`, so the named location can restrict that location, but not open it.

use super::super::named_access::{NamedAccess, NamedExit};
use super::{ConfigLevel, EffectiveAccess, Scope};
use crate::directive::Directive;
use crate::document::Notes;
use crate::value::Value;

impl<'a> Scope<'a> {
    /// Keeps a directive of a named location for [`Scope::finish`] if it belongs to access control or authentication.
    /// Returns false for other directives, and for an `auth_request` that RockNet cannot express. An `auth_request`
    /// that RockNet can express has several arguments here. The module `forward_auth` has added them, such as the URL
    /// of the authorization service.
    pub fn collect_named(&mut self, directive: &'a Directive) -> bool {
        let is_access = match directive.name.as_str() {
            "allow" | "deny" | "satisfy" | "auth_basic" | "auth_basic_user_file" => directive.arguments.len() == 1,
            "auth_request" => directive.arguments.len() > 1 || directive.argument(0) == "off",
            _ => false,
        };
        if is_access && let Some(named) = &mut self.named {
            named.directives.push(directive);
        }
        is_access
    }

    /// Keeps the way in which nginx leaves the named location for [`Scope::finish`].
    pub fn leave_named(&mut self, exit: NamedExit<'a>) {
        if let Some(named) = &mut self.named {
            named.exit = Some(exit);
        }
    }

    /// Adds the access control of the named location, if there is one. `containing`: the level that contains this one.
    /// For a location, that level is the server, because nested locations have been moved to the server before.
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
        let Some(NamedAccess {
            location,
            directives,
            exit,
        }) = self.named.take()
        else {
            return;
        };
        // Every named location is a level inside the server, and inherits the access control of the server.
        let server = if self.level == ConfigLevel::Server {
            &place
        } else {
            &outer
        };
        let restricts = |access: &EffectiveAccess<'_>| !access.is_open() && !access.is_same(&place);
        // nginx applies access control after `return` and `rewrite`. It therefore sends the response of a `return` to
        // every client, and applies the access control of the target to a rewritten path. If the named location has
        // access directives of its own, they are translated even then, which may restrict more than nginx.
        let has_no_effect = match exit.filter(|_| directives.is_empty()) {
            Some(NamedExit::Response) => true,
            Some(NamedExit::Target(target)) => !restricts(&server.inner(&Vec::from_iter(target))),
            None => false,
        };
        let named = server.inner(&directives);
        if has_no_effect || !restricts(&named) {
            return;
        }
        // True if `deny = "all"` stands for a restriction without a counterpart. No list may replace it.
        let is_locked = self.settings.is_locked() || containing.is_some_and(|outer| outer.settings.is_locked());
        if is_locked || !place.is_open() {
            let first = directives.first().copied().unwrap_or(location);
            // Sets `deny = "all"`, because this access control cannot be combined with the other one.
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
