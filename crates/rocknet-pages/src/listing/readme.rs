//! Readme file of a folder, rendered below its listing.
//!
//! The author of the file need not be the operator. Raw HTML is therefore shown as text, and links and pictures are
//! limited to schemes that run no script.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::{Readme, push};
use crate::text::{push_html, push_html_lines};

/// Maximum number of bytes of a readme file that are shown.
pub const MAX_README: usize = 64 * 1024;

/// Names of readme files in lower case, in order of preference.
const NAMES: [&str; 4] = ["readme.md", "readme.markdown", "readme.txt", "readme"];

/// Returns the rank of a file name among the names of readme files: 0 is the preferred one. `None` for other names.
pub fn rank(name: &str) -> Option<usize> {
    NAMES.iter().position(|known| known.eq_ignore_ascii_case(name))
}

/// Appends the readme file as a section.
pub(super) fn push_readme(out: &mut Vec<u8>, readme: &Readme) {
    push(
        out,
        "<section class=\"readme\" aria-labelledby=\"readme\"><h2 id=\"readme\"><bdi>",
    );
    push_html(out, &readme.name);
    push(out, "</bdi></h2>\n");
    let lowered = readme.name.to_ascii_lowercase();
    if lowered.ends_with(".md") || lowered.ends_with(".markdown") {
        out.extend_from_slice(markdown(&readme.text).as_bytes());
    } else {
        push(out, "<pre>");
        push_html_lines(out, &readme.text);
        push(out, "</pre>\n");
    }
    if readme.is_cut {
        push(out, "<p class=\"note\">The text stops here. The file is longer.</p>\n");
    }
    push(out, "</section>\n");
}

/// Renders Markdown.
fn markdown(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    // For each open picture: true if it is written as a link.
    let mut linked = Vec::new();
    let events = Parser::new_ext(text, options).map(|event| match event {
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        Event::Start(Tag::Heading { level, .. }) => Event::Start(Tag::Heading {
            level: below_title(level),
            id: None,
            classes: Vec::new(),
            attrs: Vec::new(),
        }),
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(below_title(level))),
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => Event::Start(Tag::Link {
            link_type,
            dest_url: harmless(dest_url),
            title,
            id,
        }),
        Event::Start(Tag::Image {
            link_type,
            dest_url,
            title,
            id,
        }) => {
            // The content security policy blocks pictures from other servers, because those servers would learn of each
            // visit. Such a picture becomes a link.
            let is_local = scheme(&dest_url).is_none() && !dest_url.starts_with("//");
            linked.push(!is_local);
            match is_local {
                true => Event::Start(Tag::Image {
                    link_type,
                    dest_url,
                    title,
                    id,
                }),
                false => Event::Start(Tag::Link {
                    link_type,
                    dest_url: harmless(dest_url),
                    title,
                    id,
                }),
            }
        }
        Event::End(TagEnd::Image) if linked.pop() == Some(true) => Event::End(TagEnd::Link),
        event => event,
    });
    let mut rendered = String::with_capacity(text.len() + text.len() / 2);
    html::push_html(&mut rendered, events);
    rendered
}

/// Returns the level of a heading below the heading of the section.
fn below_title(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => HeadingLevel::H6,
    }
}

/// Returns the target of a link; `#` for a scheme that may run a script.
fn harmless(target: CowStr<'_>) -> CowStr<'_> {
    let is_known = |scheme: &str| {
        ["http", "https", "mailto", "ftp", "tel"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(scheme))
    };
    match scheme(&target) {
        Some(found) if !is_known(found) => "#".into(),
        _ => target,
    }
}

/// Returns the part before the first colon, unless the target is a path, query or fragment. Browsers ignore white space
/// and control characters in front of a scheme and in it. Any other text before a colon therefore counts as a scheme.
fn scheme(target: &str) -> Option<&str> {
    let (before, _) = target.split_once(':')?;
    (!before.contains(['/', '?', '#'])).then_some(before)
}
