//! Translates access control and authentication of nginx, whose directives depend on each other.

use super::{ConfigLevel, Scope, constant, limit};
use crate::directive::Directive;
use crate::document::Notes;
use crate::value::Value;

impl<'a> Scope<'a> {
    /// Translates access control, authentication and limits, once their directives are collected. `containing`: the
    /// level that contains this one, if there is one.
    pub fn finish(&mut self, containing: Option<&Scope<'a>>) {
        self.finish_named(containing);
        // The level from which this one inherits `allow` and `deny`; `None` if it has such directives of its own.
        let outer = containing.filter(|_| self.access.is_empty());
        // True if `finish_satisfy` has adapted the inherited lists to `satisfy any`.
        self.is_adapted_to_any = outer.is_some_and(|outer| outer.is_adapted_to_any);
        let outer_access = || outer.map(|outer| outer.access.clone()).unwrap_or_default();
        let (inherited_password, inherited_forward) = containing.map_or((false, false), |level| level.authentication);
        let has_password = match self.auth {
            (Some(realm), _) => realm.argument(0) != "off",
            (None, file) => file.is_some() || inherited_password,
        };
        // True if an authorization service, named by `auth_request`, has to admit clients. If RockNet cannot express an
        // `auth_request`, `Scope::read` has set `deny = "all"` instead of `forward`.
        let has_forward = self
            .forward
            .map_or(inherited_forward, |forward| forward.argument(0) != "off");
        self.authentication = (has_password, has_forward);
        self.is_any_enough = match self.settings.get("satisfy") {
            Some(word) => *word == Value::text("any"),
            None => containing.is_some_and(|level| level.is_any_enough),
        };
        let inherits_all = self.access.is_empty()
            && self.auth == (None, None)
            && self.forward.is_none()
            && !self.settings.has("satisfy");
        let is_off = !has_password && !has_forward;
        // Lists that the containing level has changed for `satisfy any` do not fit a level without authentication, or
        // with `satisfy all`. Such a level gets the lists as they are written in the directives.
        if self.is_adapted_to_any && (is_off || self.settings.get("satisfy") == Some(&Value::text("all"))) {
            self.access = outer_access();
            self.is_adapted_to_any = false;
        }
        self.finish_access();
        // `finish_access` must not see inherited lists, because the containing level already writes `allow` and `deny`
        // for them. `finish_satisfy` needs the lists that are in effect.
        if self.access.is_empty() {
            self.access = outer_access();
        }
        limit::finish(&self.limits, &mut self.settings, &mut self.notes);
        self.finish_authentication(inherited_password || inherited_forward);
        if !self.is_adapted_to_any && !inherits_all {
            self.finish_satisfy();
        }
    }

    /// Translates authentication. `inherits_auth`: true if the containing level has authentication.
    fn finish_authentication(&mut self, inherits_auth: bool) {
        let (has_password, has_forward) = self.authentication;
        if self.auth == (None, None) && self.forward.is_none() {
            return;
        }
        let line = [self.auth.0, self.auth.1, self.forward]
            .into_iter()
            .flatten()
            .next()
            .map_or(0, |d| d.line);
        if !has_password && !has_forward {
            // Outside of locations, `off` is RockNet's default, too.
            if self.level == ConfigLevel::Location || inherits_auth {
                self.settings.set("auth", Value::Flag(false), line);
            }
            // `forward` is `auth_request off` here. It does not cancel the `deny = "all"` that the site has if its own
            // `auth_request` cannot be expressed.
            if let (false, Some(forward)) = (inherits_auth, self.forward) {
                let message = "if the site has `deny = \"all\"` in place of its `auth_request`, clients are denied \
                     here too: write `deny = []`";
                self.notes.skip(forward, message);
            }
            return;
        }
        if has_password
            && has_forward
            && let Some(directive) = self.auth.0.or(self.auth.1).or(self.forward)
        {
            self.settings.close(line);
            let message = "`auth` has either passwords or an authorization service, so `deny = \"all\"` denies every \
                 client here: write `auth`";
            return self.notes.skip(directive, message);
        }
        if let Some(auth) = self.forward.and_then(forward_settings) {
            return self.settings.set("auth", auth, line);
        }
        let (realm, file) = self.auth;
        match (realm, file) {
            // The authorization service of the containing level stays in effect.
            (Some(realm), _) if realm.argument(0) == "off" => {}
            (Some(realm), Some(file)) if constant(file.argument(0)).is_some() => {
                let auth = vec![
                    ("realm".to_owned(), Value::text(realm.argument(0))),
                    ("file".to_owned(), Value::text(file.argument(0))),
                ];
                self.settings.set("auth", Value::Table(auth), realm.line);
                let message =
                    "hashes of the file must be bcrypt, SHA-crypt, apr1 or argon2: `rocknet check` reports others";
                self.notes.differs(file, message);
            }
            (Some(directive), _) | (None, Some(directive)) => {
                self.settings.close(directive.line);
                let message = "`auth_basic` and a constant `auth_basic_user_file` must stand together, so \
                     `deny = \"all\"` denies every client here: write `auth`";
                self.notes.skip(directive, message);
            }
            // `auth_request off` beside an inherited password, which stays in effect.
            (None, None) => {}
        }
    }

    /// Adapts access control to `satisfy any` with authentication: an allowed address needs none, and every other
    /// client needs it, also a denied one.
    fn finish_satisfy(&mut self) {
        let is_authenticated = self.authentication != (false, false) && !self.settings.is_locked();
        let Some(first) = self.access.first().filter(|_| self.is_any_enough && is_authenticated) else {
            return;
        };
        let line = first.line;
        self.is_adapted_to_any = true;
        let specific = || self.access.iter().take_while(|d| d.argument(0) != "all");
        let denied: Vec<String> = specific().filter(|d| d.is("deny")).map(address).collect();
        let allowed: Vec<String> = match admits_others(&self.access) {
            // RockNet ignores `satisfy` beside `allow = "all"`, so the ranges of all addresses are written instead.
            true => EVERY_CLIENT.map(str::to_owned).to_vec(),
            false => specific().filter(|d| d.is("allow")).map(address).collect(),
        };
        self.settings.remove("deny");
        if allowed.is_empty() {
            // `allow = "all"` cancels an inherited list. RockNet then ignores `satisfy`, and every client needs
            // authentication.
            return self.settings.set("allow", Value::text("all"), line);
        }
        self.settings.set("allow", Value::texts(allowed), line);
        if !denied.is_empty() {
            self.settings.set("deny", Value::texts(denied), line);
        }
    }

    /// Translates `allow` and `deny`. nginx applies the first match; RockNet applies every `deny` first.
    fn finish_access(&mut self) {
        // `is_locked`: `deny = "all"` stands for a restriction without a counterpart. A list would replace it.
        let Some(first) = self.access.first().filter(|_| !self.settings.is_locked()) else {
            return;
        };
        let line = first.line;
        // nginx never reaches the directives after one for `all`.
        let last = self.access.iter().position(|d| d.argument(0) == "all");
        let (specific, all) = match last {
            Some(at) => (&self.access[..at], Some(self.access[at])),
            None => (&self.access[..], None),
        };
        let allow: Vec<String> = specific.iter().filter(|d| d.is("allow")).map(address).collect();
        let deny: Vec<String> = specific.iter().filter(|d| d.is("deny")).map(address).collect();
        let is_closed = all.is_some_and(|all| all.is("deny"));
        let denies_first = specific.iter().skip_while(|d| d.is("deny")).all(|d| d.is("allow"));
        // The three flags mean that all other clients are denied, that no address is allowed, and that no address is
        // denied.
        match (is_closed, allow.is_empty(), deny.is_empty()) {
            (true, true, _) => self.settings.deny_all(line),
            (true, false, true) => self.settings.set("allow", Value::texts(allow), line),
            (true, false, false) if denies_first => {
                self.settings.set("allow", Value::texts(allow), line);
                self.settings.set("deny", Value::texts(deny), line);
            }
            (false, true, false) => self.settings.set("deny", Value::texts(deny), line),
            (false, _, true) => self.settings.set("allow", Value::text("all"), line),
            (false, false, false) if denies_first => self.settings.set("deny", Value::texts(deny), line),
            _ => {
                self.settings.close(line);
                let message = "an `allow` before a `deny` is an exception, which RockNet does not have, so \
                     `deny = \"all\"` denies every client here";
                self.notes.skip(first, message);
            }
        }
    }
}

/// Returns the value of `auth` for an `auth_request` to which `forward_auth` has appended arguments, such as the URL of
/// the authorization service; `None` for `auth_request off`.
fn forward_settings(directive: &Directive) -> Option<Value> {
    let [_, forward, sign_in, user, fields @ ..] = &directive.words()[..] else {
        return None;
    };
    let mut auth = vec![
        ("forward".to_owned(), Value::text(*forward)),
        (
            "headers".to_owned(),
            Value::List(fields.iter().map(|name| Value::text(*name)).collect()),
        ),
    ];
    for (key, text) in [("user_field", user), ("sign_in", sign_in)] {
        if !text.is_empty() {
            auth.push((key.to_owned(), Value::text(*text)));
        }
    }
    Some(Value::Table(auth))
}

/// Ranges that contain every client.
const EVERY_CLIENT: [&str; 3] = ["0.0.0.0/0", "::/0", "unix"];

/// Returns true if the directives up to the first for `all` end with `allow all`, and no `deny` among them follows an
/// `allow`. They then admit every client except those that a `deny` names.
fn admits_others(access: &[&Directive]) -> bool {
    let Some(at) = access.iter().position(|d| d.argument(0) == "all") else {
        return false;
    };
    let mut others = access[..at].iter().skip_while(|d| d.is("deny"));
    access[at].is("allow") && others.all(|d| d.is("allow"))
}

/// Returns the address of an `allow` or `deny`.
fn address(directive: &&Directive) -> String {
    match directive.argument(0) {
        "unix:" => "unix".to_owned(),
        address => address.to_owned(),
    }
}
