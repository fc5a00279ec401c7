//! Columns of the websites, and the logs of one of them.

use super::*;
use crate::act::SortKey;
use crate::job::{Job, Query, SiteUse, Trust, TrustStore};
use crate::model::Effect;

#[test]
fn columns_are_filled_by_the_lists_that_have_them() {
    let mut model = online(3);
    let asked = model.act(Act::Show(PageName::Websites));
    for query in [Query::Certificates, Query::Trust, Query::Uses, Query::PhpPools] {
        assert!(asked.contains(&Effect::Job(Job::Query(query))), "{query:?}");
    }
    let cells = |model: &Model, row: usize| {
        let row = table(model).rows.remove(row);
        row.cells[4..7].iter().map(|cell| cell.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(cells(&model, 1), ["–", "HTTPS", "–"]);
    model.report(Report::Uses(Ok(vec![
        SiteUse {
            site: "site-1.test".to_owned(),
            php: Some("8.2".to_owned()),
            ..SiteUse::default()
        },
        SiteUse {
            site: "site-2.test".to_owned(),
            php: Some("unix:/run/php.sock".to_owned()),
            ..SiteUse::default()
        },
    ])));
    model.report(Report::Certificates(Ok(vec![CertificateSummary {
        site: "site-1.test".to_owned(),
        names: vec!["site-1.test".to_owned()],
        source: "local".to_owned(),
        ..CertificateSummary::default()
    }])));
    model.report(Report::Trust(Ok(vec![TrustStore {
        reader: "Firefox".to_owned(),
        trust: Trust::NotYet,
        ..TrustStore::default()
    }])));
    let words = model.words();
    assert_eq!(cells(&model, 1), ["8.2", "HTTPS", words.not_yet]);
    assert_eq!(cells(&model, 2)[0], words.php_elsewhere);
    // Every column sorts, and every column is filtered.
    for column in table(&model).columns {
        assert!(column.sort.is_some(), "{}", column.label);
        model.act(column.sort.unwrap());
    }
    model.act(Act::Sort(SortKey::Trust));
    assert_eq!(table(&model).rows[0].key, "site-1.test");
    assert_eq!(table(&model).columns[6].order, Some(true));
    model.act(Act::Filter("8.2".to_owned()));
    assert_eq!(table(&model).rows.len(), 1);
    // The filter follows the language.
    model.act(Act::SetField(FieldId::Language, "de".to_owned()));
    model.act(Act::Filter("noch nicht".to_owned()));
    assert_eq!(table(&model).rows.len(), 1);
}

#[test]
fn the_log_of_the_selected_website_is_shown() {
    let mut model = online(2);
    model.act(Act::Select("site-1.test".to_owned()));
    let root = Job::OpenEditor("/srv".into());
    assert_eq!(model.act(Act::OpenEditor), [Effect::Job(root)]);
    model.act(Act::ShowSiteLog);
    assert_eq!(model.page, PageName::Logs);
    let choice = |model: &Model| screen(model).choices.remove(0);
    assert_eq!(
        (&*choice(&model).value, choice(&model).options.len()),
        ("site-1.test", 3)
    );
    let lines = |model: &Model| match screen(model).body {
        Body::Lines(lines) => lines,
        other => panic!("{other:?}"),
    };
    assert_eq!(lines(&model).empty, model.words().no_lines);
    let line = |site: &str| LogEvent {
        kind: LogKind::Error,
        line: format!("2026-11-28T00:00:00 WARN  slow site={site}"),
        site: Some(site.to_owned()),
        lost: 0,
    };
    model.report(Report::Log(vec![line("site-0.test")]));
    assert_eq!(lines(&model).empty, model.words().no_line_of_site);
    model.report(Report::Log(vec![line("site-1.test")]));
    assert_eq!(lines(&model).lines.len(), 1);
    // A second press, on the page itself, keeps the choice.
    model.act(Act::ShowSiteLog);
    assert_eq!(choice(&model).value, "site-1.test");
    model.act(Act::Choose(String::new()));
    assert_eq!(lines(&model).lines.len(), 2);
    // A website that was removed can still be chosen away from.
    model.act(Act::Choose("gone.test".to_owned()));
    assert_eq!(choice(&model).options.len(), 4);
}

#[test]
fn a_part_that_the_server_refuses_is_named_and_the_rest_is_shown() {
    let poll = |sites_error: Option<&str>, traffic_error: Option<&str>| {
        Report::Polled(Box::new(Poll {
            sites_error: sites_error.map(str::to_owned),
            traffic_error: traffic_error.map(str::to_owned),
            ..Poll::default()
        }))
    };
    let mut model = online(2);
    let banner = |model: &Model| screen(model).banner.map(|banner| banner.text);
    model.report(poll(None, Some("busy")));
    assert!(banner(&model).unwrap().ends_with("second could not be loaded: busy"));
    model.report(poll(Some("full\nmore"), Some("busy")));
    assert!(banner(&model).unwrap().ends_with("out of date: full"));
    assert_eq!(table(&model).rows.len(), 2);
    model.report(poll(None, None));
    assert_eq!(banner(&model), None);
    // Without any list, its error takes the place of the page.
    let mut model = Model::new(Settings::default());
    model.report(Report::Connected("/run/s".into()));
    model.report(poll(Some("full"), None));
    assert_eq!(message(&model).text, "full");
}
