//! Reports unknown keys: mistyped, in the wrong section, or from another server.

use crate::check::foreign::{self, Advice};
use crate::context::Check;
use crate::file::{Entry, Origin, Table};
use crate::finding::{Code, Severity};
use crate::keys::{self, Section};
use crate::message::{nearest, short};
use crate::source::Span;

/// Reports an unknown key with the most likely correction. `header`: name of its table in messages.
pub(super) fn report(check: &mut Check<'_>, section: Section, header: &str, name: &str, entry: &Entry) {
    // If the report is full, the search for a correction is skipped, because it is the most expensive part of the
    // check.
    if check.report.omit(Severity::Error) {
        return;
    }
    let span = entry.key;
    let message = format!("unknown key `{}` in {header}", short(name));
    // An empty span is a missing key, which the parser has already reported.
    if span.start == span.end {
        return;
    }
    let is_name = |known: &&str| known.eq_ignore_ascii_case(name);
    let equivalent = keys::within(section).find(|key| key.foreign_names.iter().any(is_name));
    if takes_foreign_words(section)
        && let Some(advice) = foreign::find(name)
    {
        return foreign_word(check, name, header, advice, span);
    }
    // A name that another server uses is not a mistyped key, even if it resembles one.
    if let Some(meant) = nearest(name, names(section)).filter(|_| equivalent.is_none()) {
        return check.error(Code::UnknownKey, span, message, format!("did you mean `{meant}`?"));
    }
    if let Some(key) = equivalent {
        let help = format!("RockNet calls it `{}`", key.name);
        return check.error(Code::UnknownKey, span, message, help);
    }
    if section == Section::Site && is_rest_of_name(header, entry) {
        let help = "names with dots need quotes: [site.\"example.com\"]";
        return check.error(
            Code::UnknownKey,
            span,
            format!("unknown table `{}` in a site", short(name)),
            help,
        );
    }
    let misplaced = keys::all()
        .find(|key| key.name == name)
        .or_else(|| keys::all().find(|key| key.foreign_names.iter().any(is_name)));
    if let Some(key) = misplaced {
        let owner = key.sections.first().map_or("", |section| section.header());
        let message = format!("`{}` is not a key of {header}", short(name));
        return check.error(
            Code::MisplacedKey,
            span,
            message,
            format!("write `{}` in {owner}", key.name),
        );
    }
    // A prefix such as `proxy_` fits many words, so exact names take precedence.
    if takes_foreign_words(section)
        && let Some(advice) = foreign::find_prefix(name)
    {
        return foreign_word(check, name, header, advice, span);
    }
    if let Some(key) =
        nearest(name, keys::all().map(|key| key.name)).and_then(|near| keys::all().find(|key| key.name == near))
    {
        let owner = key.sections.first().map_or("", |section| section.header());
        return check.error(
            Code::UnknownKey,
            span,
            message,
            format!("did you mean `{}` in {owner}?", key.name),
        );
    }
    check.error(
        Code::UnknownKey,
        span,
        message,
        format!("the keys here are: {}", listed(section)),
    );
}

/// Returns true for sections in which keywords of other servers are expected. In other sections the same words have
/// other meanings: `location` in a redirect is its target.
fn takes_foreign_words(section: Section) -> bool {
    matches!(
        section,
        Section::Top
            | Section::Server
            | Section::Limits
            | Section::Log
            | Section::Cache
            | Section::Site
            | Section::Route
            | Section::Tls
            | Section::SiteTls
    )
}

/// Reports a keyword of another server, with the advice for it as help.
fn foreign_word(check: &mut Check<'_>, name: &str, header: &str, advice: Advice, span: Span) {
    let name = short(name);
    match advice {
        Advice::Equivalent(help) => check.error(
            Code::UnknownKey,
            span,
            format!("unknown key `{name}` in {header}"),
            help,
        ),
        Advice::Later(feature) => check.not_available(&name, feature, span, "remove it until then"),
        Advice::Unsupported(help) => {
            let message = format!("`{name}` is not supported: RockNet has no equivalent");
            check.error(Code::NotAvailable, span, message, help);
        }
    }
}

/// Returns true if a table in a site is most likely the rest of the site's name: without quotes, `[site.example.com]`
/// is a table `com` in the site `example`.
fn is_rest_of_name(header: &str, entry: &Entry) -> bool {
    // `header` is `[site."NAME"]`, so the quotes and the bracket remain. A name with a dot or colon is already
    // complete, and so is `default`.
    let name = header.trim_start_matches("[site.");
    let is_not_inline = |table: &Table| matches!(table.origin, Origin::Header | Origin::Implied | Origin::Dotted);
    entry.node.as_table().is_some_and(is_not_inline) && !name.contains(['.', ':']) && name != "\"default\"]"
}

/// Returns the names of the keys of a section.
fn names(section: Section) -> impl Iterator<Item = &'static str> {
    keys::within(section).map(|key| key.name)
}

/// Returns the names of the keys of a section, separated by commas, for the help.
fn listed(section: Section) -> String {
    names(section).collect::<Vec<_>>().join(", ")
}
