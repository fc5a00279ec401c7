//! The translated configuration: global tables, sites with routes and rules, and the notes about directives.

use std::collections::{BTreeMap, HashMap};

use crate::directive::Directive;
use crate::note::{Note, NoteKind, RESTRICTS_ACCESS};
use crate::settings::Settings;
use crate::source::SourceMap;
use crate::value::Value;

/// A translated configuration.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// Comments at the top of the file.
    pub remarks: Vec<String>,
    /// Global tables by name: `server`, `log`, `limits`, `tls`.
    pub tables: BTreeMap<&'static str, Settings>,
    pub sites: Vec<Site>,
    /// Notes that belong to no site.
    pub notes: Vec<Note>,
    /// Files of the lines that settings and notes refer to. The lines of all files are numbered one after the other.
    pub sources: SourceMap,
}

impl Document {
    /// Returns a document with comments at its top. `sources`: files of the lines.
    pub fn new(remarks: &[&str], sources: &SourceMap) -> Document {
        Document {
            sources: sources.clone(),
            remarks: remarks.iter().map(|remark| (*remark).to_owned()).collect(),
            ..Document::default()
        }
    }

    /// Returns a global table.
    pub fn table(&mut self, name: &'static str) -> &mut Settings {
        self.tables.entry(name).or_default()
    }
}

/// A translated site.
#[derive(Debug, Default)]
pub(crate) struct Site {
    pub name: String,
    /// Line at which the site begins, counted from 1.
    pub line: usize,
    pub settings: Settings,
    pub routes: Vec<SiteRoute>,
    pub rules: Vec<SiteRule>,
    pub notes: Vec<Note>,
    /// Stage of the rules that [`Site::rule`] adds. A translation sets it before it adds rules.
    pub stage: RuleStage,
    /// True if a rewrite to a script of PHP was not translated.
    pub rewrites_to_script: bool,
    /// Indices of the routes by pattern.
    by_pattern: HashMap<String, usize>,
}

/// Stage of a rule. The other server evaluates its directives in the order of the stages, wherever they stand in its
/// file. RockNet applies rules in the order of its file, so [`Site::order_rules`] sorts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum RuleStage {
    /// Rules of the whole site.
    #[default]
    Site,
    /// Rules of a location of nginx for one path: `location = /a`.
    Exact,
    /// Rules of a location of nginx for a regular expression: `location ~ \.php$`. Refusals of Apache's sections, such
    /// as `<Files>`, also have this stage. Apache applies them after the rules of the host (stage `Site`) and before
    /// those of folders (stage `Rewrite`).
    Expression,
    /// Rules of a location of nginx for a prefix: `location /a/`.
    Prefix,
    /// Rules after which the other server matches a rewritten path again: `rewrite` in a location of nginx, or
    /// `RewriteRule` in a folder of Apache. The rules of Caddy also have this stage.
    Rewrite,
    /// Copies of earlier rules that respond, for rewritten paths. [`Site::order_rules`] adds them.
    Again,
}

/// A route of a site.
#[derive(Debug)]
pub(crate) struct SiteRoute {
    pub pattern: String,
    pub line: usize,
    pub settings: Settings,
}

/// A rule of a site.
#[derive(Debug, Clone)]
pub(crate) struct SiteRule {
    pub line: usize,
    pub keys: Vec<(&'static str, Value)>,
    /// The directive, for a note if the check of the configuration refuses the rule.
    pub directive: String,
    pub stage: RuleStage,
}

impl SiteRule {
    pub fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|(known, _)| *known == key)
    }

    /// Returns true if the rule responds with the status of an error (400 or higher).
    pub fn refuses_requests(&self) -> bool {
        let is_error = |value: &Value| matches!(value, Value::Number(status) if *status >= 400);
        self.keys
            .iter()
            .any(|(key, value)| *key == "respond" && is_error(value))
    }
}

impl Site {
    /// Returns the settings of a route. `/*` stands for the site itself.
    pub fn route(&mut self, pattern: &str, line: usize) -> &mut Settings {
        if pattern == "/*" {
            return &mut self.settings;
        }
        let next = self.routes.len();
        let index = *self.by_pattern.entry(pattern.to_owned()).or_insert(next);
        if index == next {
            self.routes.push(SiteRoute {
                pattern: pattern.to_owned(),
                line,
                settings: Settings::default(),
            });
        }
        &mut self.routes[index].settings
    }

    /// Removes a route. Called after all routes have been added. It changes the indices of routes, so routes are no
    /// longer found by their patterns.
    pub fn remove_route(&mut self, index: usize) -> SiteRoute {
        self.by_pattern.clear();
        self.routes.remove(index)
    }

    pub fn has_route(&self, pattern: &str) -> bool {
        self.by_pattern.contains_key(pattern)
    }

    /// Adds a rule for a directive, in the stage of the site.
    pub fn rule(&mut self, directive: &Directive, keys: Vec<(&'static str, Value)>) {
        self.rules.push(SiteRule {
            line: directive.line,
            keys,
            directive: directive.text(),
            stage: self.stage,
        });
    }

    /// Sorts the rules by stage.
    ///
    /// If a rule of the stage `Rewrite` rewrites the path, appends copies of the rules before it that respond. Rules of
    /// the stage `Site` are not copied. The other server applies the copied rules to the rewritten path too.
    ///
    /// Removes `last`, which skips all rules that follow, from a rule in two cases. If rules of a later stage exist,
    /// the other server evaluates them too. If the rule rewrites the path and a refusal follows, the refusal has to
    /// apply to the rewritten path.
    pub fn order_rules(&mut self) {
        self.rules.sort_by_key(|rule| rule.stage);
        let is_rewrite = |rule: &SiteRule| rule.stage == RuleStage::Rewrite && rule.has("rewrite");
        if let Some(last) = self.rules.iter().rposition(is_rewrite) {
            let responses = self.rules[..last].iter().filter(|rule| rule.has("respond"));
            let again = responses
                .filter(|rule| rule.stage > RuleStage::Site)
                .map(|rule| SiteRule {
                    stage: RuleStage::Again,
                    ..rule.clone()
                });
            let again: Vec<SiteRule> = again.collect();
            self.rules.extend(again);
        }
        let last_stage = self.rules.last().map_or(RuleStage::Site, |rule| rule.stage);
        let mut notes = Vec::new();
        for at in 0..self.rules.len() {
            let (rule, later) = self.rules[at..]
                .split_first_mut()
                .map_or((None, &[][..]), |(rule, later)| (Some(rule), &*later));
            // Apache applies the rules of a folder again after a rewrite, with all refusals among them.
            let precedes_refusal =
                |rule: &SiteRule| rule.has("rewrite") && later.iter().any(SiteRule::refuses_requests);
            let Some(rule) =
                rule.filter(|rule| rule.has("last") && (rule.stage < last_stage || precedes_refusal(rule)))
            else {
                continue;
            };
            rule.keys.retain(|(key, _)| *key != "last");
            // `last` is removed so that later rules see the rewritten path: Apache applies the rules of a folder to it
            // again, and nginx searches for its location. The later rules of the same stage then apply too, which a
            // note reports.
            let is_followed = later.iter().any(|other| other.stage == rule.stage);
            if is_followed {
                notes.push((rule.line, rule.directive.clone()));
            }
        }
        for (line, directive) in notes {
            let message = "the rules that follow apply too, so that refusals of rewritten paths keep their effect";
            self.notes.push(Note {
                kind: NoteKind::Differs,
                file: String::new(),
                line,
                directive,
                message: message.to_owned(),
            });
        }
    }

    /// Adds a redirect. 308 is the default status of RockNet, so it is not written.
    pub fn redirect(&mut self, pattern: &str, target: &str, status: u64, line: usize) {
        let value = match status {
            308 => Value::text(target),
            _ => Value::Table(vec![
                ("to".to_owned(), Value::text(target)),
                ("status".to_owned(), Value::Number(status)),
            ]),
        };
        self.settings.set_entry("redirects", pattern, value, line);
    }
}

/// Receiver of notes: a document or a site.
pub(crate) trait Notes {
    fn list(&mut self) -> &mut Vec<Note>;

    fn note(&mut self, kind: NoteKind, directive: &Directive, message: &str) {
        // The writer sets the file, and replaces the line by the line in that file.
        self.list().push(Note {
            kind,
            file: String::new(),
            line: directive.line,
            directive: directive.text(),
            message: message.to_owned(),
        });
    }

    /// Notes that a directive was not translated.
    fn skip(&mut self, directive: &Directive, message: &str) {
        self.note(NoteKind::NotTranslated, directive, message);
    }

    /// Notes that a directive is not known, with the advice for its keyword if there is one.
    fn skip_unknown(&mut self, directive: &Directive) {
        let advice = rocknet_config::advice_for_keyword(&directive.name);
        let message = advice.unwrap_or_else(|| "there is no known counterpart; see docs/configuration.md".to_owned());
        self.note(NoteKind::NotTranslated, directive, &message);
    }

    /// Notes that a restriction was not translated, so the result permits more requests.
    fn skip_restriction(&mut self, directive: &Directive, message: &str) {
        self.note(
            NoteKind::NotTranslated,
            directive,
            &format!("{RESTRICTS_ACCESS}: {message}"),
        );
    }

    /// Notes that a restriction applies to fewer requests than before.
    fn weakens(&mut self, directive: &Directive, message: &str) {
        self.note(NoteKind::Differs, directive, &format!("{RESTRICTS_ACCESS}: {message}"));
    }

    /// Notes that the translation of a directive works differently.
    fn differs(&mut self, directive: &Directive, message: &str) {
        self.note(NoteKind::Differs, directive, message);
    }

    /// Notes that a directive is not needed.
    fn unneeded(&mut self, directive: &Directive, message: &str) {
        self.note(NoteKind::NotNeeded, directive, message);
    }
}

impl Notes for Document {
    fn list(&mut self) -> &mut Vec<Note> {
        &mut self.notes
    }
}

impl Notes for Site {
    fn list(&mut self) -> &mut Vec<Note> {
        &mut self.notes
    }
}

impl Notes for Vec<Note> {
    fn list(&mut self) -> &mut Vec<Note> {
        self
    }
}

/// Cancels settings that a route inherits from the site, but that its `location` or `handle` block does not have. For
/// `location / { autoindex on; }`, the site gets `browse = true`. The route of another `location /a/` would inherit it,
/// so it gets `browse = false`.
///
/// `root`: settings of the block for all other paths, such as `location /`, which become settings of the site. `base`:
/// settings outside of all blocks. Every block inherits these, so the route gets their values where they exist.
pub(crate) fn restore(route: &mut Settings, root: &Settings, base: &Settings) {
    const HANDLERS: [&str; 4] = ["proxy", "fastcgi", "uwsgi", "scgi"];
    const FILES: [&str; 3] = ["try", "fallback", "browse"];
    let has_handler = HANDLERS.iter().any(|key| route.has(key));
    let has_root = route.has("root") || route.has("alias");
    let has_alias = route.has("alias");
    for (key, setting) in root.in_order() {
        // A route has either a root or an alias.
        if key == "root" && has_alias {
            continue;
        }
        // `deny = "all"` of the site removes its `allow`, so the route gets it back. If the route has `deny = "all"`
        // itself, `set_default` ignores the `allow`.
        if key == "deny"
            && root.is_closed()
            && let Some(allow) = base.get("allow")
        {
            route.set_default("allow", allow.clone(), setting.line);
        }
        // A handler of the route replaces that of the site, and sends no files. A `root` or `alias` turns the handler
        // of the site off.
        let has_no_effect = HANDLERS.contains(&key) && (has_handler || has_root) || FILES.contains(&key) && has_handler;
        if route.has(key) || has_no_effect {
            continue;
        }
        let value = base.get(key).cloned().or_else(|| cancelling(key));
        if let Some(value) = value.filter(|value| *value != setting.value) {
            route.set(key, value, setting.line);
        }
    }
}

/// Notes each response field that the block for all other paths adds, as in `location / { add_header X-A 1; }`. It
/// becomes a field of the site, which the routes of other blocks inherit. `name`: directive that adds a field. `root`
/// and `base`: as in [`restore`]. `routes`: settings of the routes of other blocks.
pub(crate) fn note_inherited_fields<'s>(
    name: &str,
    (root, base): (&Settings, &Settings),
    routes: &(impl Iterator<Item = &'s Settings> + Clone),
    site: &mut Site,
) {
    for (key, setting) in root.in_order() {
        let is_inherited = base.get(key) != Some(&setting.value) && routes.clone().any(|route| !route.has(key));
        if let (Some(field), true) = (key.strip_prefix("headers."), is_inherited) {
            let directive = Directive::new(name, vec![field.trim_matches('"').to_owned()], setting.line);
            site.differs(&directive, "the field is added in the routes of other blocks too");
        }
    }
}

/// Values that cancel a setting of the site in a route.
const CANCELLED: [(&str, Value); 11] = [
    ("cache", Value::Flag(false)),
    ("compress", Value::Flag(true)),
    ("proxy", Value::Flag(false)),
    ("fastcgi", Value::Flag(false)),
    ("uwsgi", Value::Flag(false)),
    ("scgi", Value::Flag(false)),
    ("auth", Value::Flag(false)),
    ("browse", Value::Flag(false)),
    ("fallback", Value::Flag(false)),
    ("limit", Value::Flag(false)),
    ("try", Value::List(Vec::new())),
];

/// Returns the value that cancels a setting of the site in a route; `None` if the setting has no such value.
fn cancelling(key: &str) -> Option<Value> {
    match key {
        "allow" => Some(Value::text("all")),
        "deny" => Some(Value::List(Vec::new())),
        "satisfy" => Some(Value::text("all")),
        // The default of nginx, and the first of the two defaults of Caddy.
        "index" => Some(Value::text("index.html")),
        _ => CANCELLED
            .iter()
            .find(|(known, _)| *known == key)
            .map(|(_, value)| value.clone()),
    }
}
