//! Tests of the endpoints: each endpoint parses its own request, and wrong bodies are rejected.

use super::super::endpoint::Input;
use super::*;
use crate::ban::{BannedAddress, NewBan};
use crate::config::{Candidate, Edit, Replacement, Undo};
use crate::level::Level;
use crate::php::PhpPoolName;
use crate::response_purge::ResponsePurge;
use crate::upstream::UpstreamAddress;

#[test]
fn every_request_is_parsed_by_its_endpoint() {
    let requests = [
        Request::Status,
        Request::Sites,
        Request::Site(SiteName { name: "a".into() }),
        Request::Routes,
        Request::Reload,
        Request::Stop,
        Request::Upgrade(UpgradeOrder {
            binary: Some("/a".into()),
            timeout: Some(3),
        }),
        Request::Metrics,
        Request::LogLevel,
        Request::SetLogLevel(LogLevelChange::new(Level::Debug)),
        Request::Config(ConfigFileName {
            file: Some("sites/a b.toml".into()),
        }),
        Request::ConfigState,
        Request::ServerForm,
        Request::SiteForm(SiteName { name: "a.test".into() }),
        Request::CheckConfig(Candidate {
            text: "a".into(),
            file: Some("b".into()),
        }),
        Request::ReplaceConfig(Replacement {
            text: "a".into(),
            revision: "b".into(),
            file: None,
        }),
        Request::EditConfig(Edits {
            edits: vec![
                Edit::Set {
                    path: vec!["a".into()],
                    value: "1".into(),
                },
                Edit::Remove { path: vec!["a".into()] },
                Edit::AddSite {
                    name: "a".into(),
                    root: "b".into(),
                },
                Edit::CopySite {
                    from: "a".into(),
                    to: "b".into(),
                },
                Edit::RenameSite {
                    from: "a".into(),
                    to: "b".into(),
                },
                Edit::SetField {
                    site: "a".into(),
                    field: "root".into(),
                    text: "b".into(),
                },
                Edit::SetServerField {
                    field: "server.workers".into(),
                    text: "2".into(),
                },
            ],
            ..Edits::default()
        }),
        Request::ConfigHistory,
        Request::UndoConfig(Undo::default()),
        Request::Certificates,
        Request::Upstreams,
        Request::DrainUpstream(UpstreamAddress { address: "a".into() }),
        Request::EnableUpstream(UpstreamAddress { address: "a".into() }),
        Request::PhpPools,
        Request::RestartPhpPool(PhpPoolName { name: "8.2".into() }),
        Request::StartPhpPool(PhpPoolName { name: "8.2".into() }),
        Request::StopPhpPool(PhpPoolName { name: "8.2".into() }),
        Request::PurgeFileCache,
        Request::Bans,
        Request::AddBan(NewBan {
            address: "192.0.2.7".into(),
            seconds: Some(60),
            reason: "a".into(),
        }),
        Request::LiftBan(BannedAddress {
            address: "192.0.2.7".into(),
        }),
        Request::Offenders,
        Request::PurgeResponses(ResponsePurge {
            tag: Some("a".into()),
            ..ResponsePurge::default()
        }),
        Request::Doctor,
        Request::Explain(ExplainUrl { url: "/".into() }),
        Request::VisitSite(SiteName { name: "a".into() }),
        Request::Permission,
        Request::OpenApi,
        Request::Logs(LogFilter::default()),
        Request::CheckEdits(Edits {
            edits: Vec::new(),
            revision: Some("a".into()),
            file: Some("b".into()),
            create: true,
        }),
        Request::DashboardLink,
    ];
    assert_eq!(requests.len(), ENDPOINTS.len());
    for request in requests {
        let endpoint = request.endpoint();
        let (query, body) = (request.query().unwrap_or_default(), request.body().unwrap_or_default());
        let input = Input {
            query: query.as_bytes(),
            body: body.as_bytes(),
        };
        assert_eq!(endpoint.parse(&input), Ok(request));
        let listed = ENDPOINTS
            .iter()
            .filter(|other| other.path == endpoint.path && other.method == endpoint.method);
        assert_eq!(listed.count(), 1, "{}", endpoint.path);
    }
}

#[test]
fn other_bodies_are_rejected() {
    for (endpoint, body) in [
        (&STATUS, "{}"),
        (&RELOAD, " "),
        (&SET_LOG_LEVEL, ""),
        (&SET_LOG_LEVEL, "{}"),
        (&SET_LOG_LEVEL, r#"{"level": "loud"}"#),
        (&SET_LOG_LEVEL, r#"{"level": "info"} {}"#),
        (&EDIT_CONFIG, r#"{"edits": []}"#),
        // The timeout of an upgrade is 1 to 50 seconds.
        (&UPGRADE, r#"{"timeout": 0}"#),
        (&UPGRADE, r#"{"timeout": 51}"#),
    ] {
        let input = Input {
            body: body.as_bytes(),
            ..Input::default()
        };
        let error = endpoint.parse(&input).unwrap_err();
        assert_eq!(error.status, 400, "{body:?}: {error}");
    }
}
