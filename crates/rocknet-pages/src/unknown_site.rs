//! The error page for a request whose host matches no site of this server.

use super::error::{ErrorPageParts, render_parts};
use super::text::push_html;

/// A site that the page lists in development mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteLink {
    /// URL of the site.
    pub url: String,
    /// True if a browser can open the URL, so that it is shown as a link; false for wildcards.
    pub is_open: bool,
}

/// Data shown on the page.
#[derive(Debug, Clone, Copy)]
pub struct UnknownSite<'a> {
    /// Host of the request; `None` if the request has no host.
    pub host: Option<&'a str>,
    /// Sites of this server; empty outside of development mode.
    pub sites: &'a [SiteLink],
    /// Number of further sites that are not in `sites`; shown only if `sites` is not empty.
    pub omitted: usize,
}

/// Appends the page for `status` to `out`.
pub fn render(status: u16, reason: &str, page: &UnknownSite<'_>, out: &mut Vec<u8>) {
    let meaning = |out: &mut Vec<u8>| match page.host {
        Some(host) => {
            push(out, "No site here is called <code>");
            push_html(out, host);
            push(
                out,
                "</code>. The address may have a typing mistake, or it leads to the wrong server.",
            );
        }
        None => push(
            out,
            "The request does not say which site it is for, and this server has more than one.",
        ),
    };
    let sites = |out: &mut Vec<u8>| {
        if page.sites.is_empty() {
            return;
        }
        push(out, "<p>Sites of this server:</p><ul>");
        for site in page.sites {
            push(out, "<li>");
            if site.is_open {
                push(out, "<a href=\"");
                push_html(out, &site.url);
                push(out, "\">");
            }
            push_html(out, &site.url);
            push(out, if site.is_open { "</a></li>" } else { "</li>" });
        }
        push(out, "</ul>");
        if page.omitted > 0 {
            push(out, &format!("<p>and {} more</p>", page.omitted));
        }
    };
    let parts = ErrorPageParts {
        meaning: &meaning,
        hint: &sites,
        style: STYLE,
    };
    render_parts(status, reason, &parts, out);
}

/// Appends text that is already HTML.
fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

const STYLE: &str = "ul{margin:.4em 0;padding-left:1.2em;overflow-wrap:anywhere}a{color:var(--a)}\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn page(host: Option<&str>, sites: &[SiteLink], omitted: usize) -> String {
        let mut out = Vec::new();
        render(404, "Not Found", &UnknownSite { host, sites, omitted }, &mut out);
        let page = String::from_utf8(out).unwrap();
        assert!(
            !page.contains("{{") && page.contains("<title>404 Not Found</title>"),
            "{page}"
        );
        page
    }

    #[test]
    fn the_page_names_the_host_and_no_site() {
        let page = page(Some("b.test"), &[], 0);
        assert!(page.contains("No site here is called <code>b.test</code>."), "{page}");
        assert!(!page.contains("<ul>") && !page.contains("<a "), "{page}");
        let page = self::page(None, &[], 0);
        assert!(page.contains("does not say which site"), "{page}");
    }

    #[test]
    fn sites_are_links_and_text_is_escaped() {
        let link = |url: &str, is_open| SiteLink {
            url: url.to_owned(),
            is_open,
        };
        let evil = "http://a\"><script>/";
        let sites = [
            link("http://a.test:8080/", true),
            link("http://*.b.test/", false),
            link(evil, true),
        ];
        let page = page(Some("<script>"), &sites, 7);
        for part in [
            "<li><a href=\"http://a.test:8080/\">http://a.test:8080/</a></li>",
            "<li>http://*.b.test/</li>",
            "<p>and 7 more</p>",
            "<code>&lt;script&gt;</code>",
        ] {
            assert!(page.contains(part), "{part} not in {page}");
        }
        assert!(!page.contains("<script"), "{page}");
    }
}
