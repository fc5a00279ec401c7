//! Tests of the pages with the replies of a fake server.

use std::collections::BTreeMap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rocknet_control::api::Done;
use rocknet_control::ban::{BanList, BanListFile, BanSummary, OffenderSummary};
use rocknet_control::config::{Checked, Finding, Saved};
use rocknet_control::logs::LogFilter;
use rocknet_control::site_form::{FieldInput, FieldWord, SiteField, SiteForm};
use rocknet_handler::response::Stream;

use super::*;
use crate::ReplyFuture;
use crate::dashboard::frame::VIEWS;

/// Text that would be markup if it was not escaped.
const HOSTILE: &str = "</td><script>alert('x')</script>\"><img src=x onerror=y>";

/// A server whose replies have hostile values in all texts, or that fails.
#[derive(Clone)]
struct FakeServer {
    /// True if the server replies to every request with an error.
    fails: bool,
}

impl Control for FakeServer {
    fn execute(&self, request: Request) -> ReplyFuture {
        let hostile = || HOSTILE.to_owned();
        let reply = match request {
            _ if self.fails => Err(ApiError {
                details: Some(hostile()),
                ..ApiError::new(500, HOSTILE)
            }),
            Request::Status => Ok(Reply::Status(Box::new(ServerStatus {
                version: hostile(),
                config_file: Some(HOSTILE.into()),
                listeners: vec![hostile()],
                durations: vec![rocknet_control::SiteDurations {
                    site: hostile(),
                    ..Default::default()
                }],
                last_reload_error: Some(hostile()),
                ..ServerStatus::default()
            }))),
            Request::Sites => Ok(Reply::Sites(vec![SiteSummary {
                name: hostile(),
                urls: vec![hostile(), format!("http://{HOSTILE}"), format!("javascript:{HOSTILE}")],
                root: Some(HOSTILE.into()),
                fault: Some(hostile()),
                ..SiteSummary::default()
            }])),
            Request::LogLevel => Ok(Reply::LogLevel(LogLevel {
                level: Level::Info,
                modules: BTreeMap::new(),
            })),
            Request::Upstreams => Ok(Reply::Upstreams(vec![UpstreamSummary {
                address: hostile(),
                ..UpstreamSummary::default()
            }])),
            Request::Bans => Ok(Reply::Bans(Box::new(BanList {
                total: 2,
                bans: vec![BanSummary {
                    address: hostile(),
                    reason: hostile(),
                    until: Some(1),
                    ..BanSummary::default()
                }],
                files: vec![BanListFile {
                    file: hostile(),
                    error: Some(hostile()),
                    ..BanListFile::default()
                }],
            }))),
            Request::Offenders => Ok(Reply::Offenders(vec![OffenderSummary {
                address: hostile(),
                ..OffenderSummary::default()
            }])),
            Request::Certificates => Ok(Reply::Certificates(vec![CertificateSummary {
                site: hostile(),
                names: vec![hostile()],
                issuer: hostile(),
                source: hostile(),
                fault: Some(hostile()),
                ..CertificateSummary::default()
            }])),
            Request::SiteForm(_) => Ok(Reply::SiteForm(Box::new(SiteForm {
                name: hostile(),
                file: HOSTILE.into(),
                line: 1,
                revision: hostile(),
                fields: inputs().map(|(input, other)| field(input, other)).collect(),
            }))),
            Request::CheckEdits(_) => Ok(Reply::Checked(Checked {
                is_valid: false,
                findings: findings(),
            })),
            Request::EditConfig(_) => Ok(Reply::Saved(Saved {
                message: hostile(),
                file: HOSTILE.into(),
                revision: hostile(),
                can_undo: true,
                findings: Vec::new(),
            })),
            Request::Config(_) => Ok(Reply::Config(Box::new(ConfigText {
                file: HOSTILE.into(),
                files: vec![HOSTILE.into(), "/other.toml".into()],
                text: format!("</textarea>{HOSTILE}"),
                revision: hostile(),
                is_loaded: false,
            }))),
            Request::ConfigHistory => Ok(Reply::ConfigHistory(vec![Change {
                id: 1,
                unix_time: 0,
                file: HOSTILE.into(),
                revision: hostile(),
                what: hostile(),
                diff: format!("+{HOSTILE}\n-{HOSTILE}\n"),
            }])),
            Request::PhpPools => Ok(Reply::PhpPools(vec![PhpPoolSummary {
                name: hostile(),
                fault: Some(hostile()),
                ..PhpPoolSummary::default()
            }])),
            Request::Doctor => Ok(Reply::Doctor(vec![DoctorCheck {
                check: hostile(),
                found: hostile(),
                ..DoctorCheck::default()
            }])),
            _ => Ok(Reply::Done(Done::default())),
        };
        Box::pin(std::future::ready(reply))
    }

    fn follow_logs(&self, _: LogFilter) -> Result<Box<dyn Stream>, ApiError> {
        unreachable!("pages do not follow logs")
    }
}

/// Returns every kind of input, and an input with a value that it cannot show.
fn inputs() -> impl Iterator<Item = (FieldInput, Option<String>)> {
    let all = [
        FieldInput::Switch,
        FieldInput::Choice,
        FieldInput::Text,
        FieldInput::List,
        FieldInput::Map,
    ];
    let other = [(FieldInput::Text, Some(HOSTILE.to_owned()))];
    all.into_iter().map(|input| (input, None)).chain(other)
}

/// Returns a field with hostile texts. `other`: value that the input cannot show.
fn field(input: FieldInput, other: Option<String>) -> SiteField {
    SiteField {
        name: "root".to_owned(),
        label: HOSTILE.to_owned(),
        group: HOSTILE.to_owned(),
        input,
        words: vec![FieldWord {
            text: HOSTILE.to_owned(),
            help: HOSTILE.to_owned(),
        }],
        help: format!("{HOSTILE}. `{HOSTILE}`"),
        default: HOSTILE.to_owned(),
        example: HOSTILE.to_owned(),
        text: HOSTILE.to_owned(),
        other,
    }
}

/// Returns findings about the website, about one of its fields, and about another part of the configuration.
fn findings() -> Vec<Finding> {
    [&["site", HOSTILE][..], &["site", HOSTILE, "root"], &["server"]]
        .map(|key| Finding {
            is_error: true,
            code: HOSTILE.to_owned(),
            message: HOSTILE.to_owned(),
            help: Some(HOSTILE.to_owned()),
            file: None,
            line: 0,
            column: 0,
            key: key.iter().map(|part| (*part).to_owned()).collect(),
        })
        .to_vec()
}

/// Renders a page, and returns its status and text. `fails`: true if the server fails.
fn page(page: PageKind, query: &str, permission: Permission, fails: bool) -> (u16, String) {
    let server = FakeServer { fails };
    ready(render(page, query.as_bytes(), permission, "/assets/0", &server, None))
}

/// Renders a page after a refused instruction, and returns its text.
fn page_after(page: PageKind, notice: Notice) -> String {
    let server = FakeServer { fails: false };
    ready(render(page, b"", Permission::Full, "/assets/0", &server, Some(notice))).1
}

/// Returns the status and the text of a page whose replies are ready.
fn ready(rendered: impl Future<Output = (Status, String)>) -> (u16, String) {
    match pin!(rendered).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready((status, text)) => (status.code(), text),
        Poll::Pending => panic!("the replies are ready"),
    }
}

#[test]
fn a_link_does_not_fill_in_instructions() {
    let query = "binary=%2Fevil&module=rocknet_evil";
    let (_, text) = page(PageKind::Maintenance, query, Permission::Full, false);
    assert!(
        text.contains("name=\"binary\" value=\"\"") && !text.contains("evil"),
        "{text}"
    );

    let notice = Notice::refused(ApiError::new(400, "no"), b"binary=%2Ftyped%22&module=rocknet_typed");
    let text = page_after(PageKind::Maintenance, notice);
    for kept in [
        "name=\"binary\" value=\"/typed&#34;\"",
        "name=\"module\" value=\"rocknet_typed\"",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
}

#[test]
fn a_refused_ban_or_purge_keeps_the_input() {
    let form = b"what=tag&text=product%22&site=a.test&address=192.0.2.7&time=1&reason=%3Cb%3E";
    let notice = Notice::refused(ApiError::new(400, "no"), form);
    let text = page_after(PageKind::Traffic, notice);
    for kept in [
        "<option value=\"tag\" selected>",
        "name=\"text\" value=\"product&#34;\"",
        "name=\"site\" value=\"a.test\"",
        "name=\"address\" value=\"192.0.2.7\"",
        "name=\"time\" value=\"1\"",
        "name=\"reason\" value=\"&#60;b&#62;\"",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    // One ban of two is in the page.
    assert!(text.contains("And 1 more"), "{text}");
    let (_, fresh) = page(PageKind::Traffic, "text=evil&what=all", Permission::Full, false);
    assert!(
        fresh.contains("<option value=\"url\" selected>") && !fresh.contains("evil"),
        "{fresh}"
    );
}

/// Returns all views, and the pages that add, edit or copy a website, each with a query that names a website.
fn all() -> Vec<(PageKind, String)> {
    let name = format!("name={}", encoded(HOSTILE));
    let views = VIEWS.iter().map(|(kind, ..)| *kind);
    views
        .chain([PageKind::AddWebsite, PageKind::EditWebsite, PageKind::CopyWebsite])
        .map(|kind| (kind, name.clone()))
        .collect()
}

#[test]
fn values_are_escaped_in_every_page() {
    for (kind, query) in all() {
        for fails in [false, true] {
            let (_, text) = page(kind, &query, Permission::Full, fails);
            for markup in ["<script>", "<img", "</textarea></td>", "href=\"javascript:"] {
                assert!(!text.contains(markup), "{kind:?} {fails}: {markup} in {text}");
            }
            // The page that adds a website shows no data. The page with the logs shows only their level.
            let shows_value = kind != PageKind::AddWebsite && (fails || kind != PageKind::Logs);
            assert_eq!(
                text.contains("alert(&#39;x&#39;)"),
                shows_value,
                "{kind:?} {fails}: {text}"
            );
        }
    }
}

#[test]
fn every_page_that_has_data_shows_its_error() {
    for (kind, query) in all() {
        let (status, text) = page(kind, &query, Permission::Full, true);
        let has_data = kind != PageKind::AddWebsite;
        assert_eq!(status, if has_data { 500 } else { 200 }, "{kind:?}");
        assert_eq!(text.contains("data-state=\"error\""), has_data, "{kind:?}: {text}");
    }
    let (status, text) = page(PageKind::EditWebsite, "", Permission::Full, false);
    assert!(
        status == 404 && text.contains("there is no website with this name"),
        "{text}"
    );
}

/// Sends a form to the page that edits a website. Returns the location after a change, or the status and text of a page
/// with the form or an error. `fails`: true if the server fails.
fn sent(body: &str, permission: Permission, fails: bool) -> Result<String, (u16, String)> {
    let (server, query) = (FakeServer { fails }, format!("name={}", encoded(HOSTILE)));
    let sent = SentForm {
        query: query.as_bytes(),
        body: body.as_bytes(),
        password_hash: None,
    };
    let submitted = pin!(submit(
        PageKind::EditWebsite,
        FormMode::Edit,
        sent,
        permission,
        "/assets/0",
        &server
    ));
    match submitted.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Submitted::Saved(location)) => Ok(location),
        Poll::Ready(Submitted::Page(status, text)) => Err((status.code(), text)),
        Poll::Pending => panic!("the replies are ready"),
    }
}

#[test]
fn fields_name_the_choices_that_show_them() {
    for (kind, query) in [(PageKind::EditWebsite, "name=a"), (PageKind::AddWebsite, "")] {
        let (_, text) = page(kind, query, Permission::Full, false);
        let attributes = r#"data-field="root" data-choice="kind" data-shown="files php other""#;
        assert!(text.contains(attributes), "{text}");
    }
}

#[test]
fn a_form_with_problems_is_shown_as_it_was_filled_in() {
    let body = format!("do=save&revision=1&root={0}&name={0}", encoded("<b>\"typed"));
    let (status, text) = sent(&body, Permission::Full, false).unwrap_err();
    assert_eq!(status, 422);
    assert!(
        text.contains("&#60;b&#62;&#34;typed") && !text.contains("<b>"),
        "{text}"
    );
    let (status, text) = sent(&body.replace("save", "check"), Permission::Full, false).unwrap_err();
    assert_eq!((status, text.contains("&#60;b&#62;&#34;typed")), (200, true));
    assert!(!text.contains("<img"), "{text}");
    // With full permission, the server fails. With read permission, the form is rejected without a request to the
    // server.
    for permission in [Permission::Full, Permission::Read] {
        let (status, _) = sent(&body, permission, permission == Permission::Full).unwrap_err();
        assert_eq!(status, if permission == Permission::Full { 500 } else { 403 });
    }
}

#[test]
fn pages_for_reading_offer_no_changes() {
    for (kind, query) in all() {
        let (status, text) = page(kind, &query, Permission::Read, false);
        assert_eq!(status == 403, kind.needs_full_permission(), "{kind:?}");
        // The attribute `data-do` names the action of a button.
        let offered: Vec<_> = text
            .split("data-do=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let harmless = ["logout", "refresh"];
        assert!(
            offered.iter().all(|name| harmless.contains(name)),
            "{kind:?}: {offered:?}"
        );
        assert_eq!(page(kind, &query, Permission::Full, false).0, 200, "{kind:?}");
    }
}

#[test]
fn every_view_is_marked_in_the_navigation() {
    for (kind, path, name) in VIEWS {
        assert_eq!(PageKind::find(path), Some(kind));
        let (_, text) = page(kind, "", Permission::Full, false);
        assert!(
            text.contains(&format!("<a href=\"{path}\" aria-current=\"page\">{name}</a>")),
            "{text}"
        );
        assert_eq!(text.matches("aria-current=\"page\"").count(), 1);
        assert!(text.contains(&format!("<title>{name} · RockNet</title>")), "{text}");
    }
    for path in ["", "/x", "/login/", "/assets", "/api/status", "/metrics"] {
        assert_eq!(PageKind::find(path), None, "{path}");
    }
}
