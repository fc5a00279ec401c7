//! The page of the traffic, and its forms.

use rocknet_control::ban::{BanSummary, OffenderSummary};

use super::*;
use crate::act::{FieldId, ServiceSwitch};
use crate::job::{BanReport, Query};
use crate::model::DropSelection;

#[test]
fn bans_and_the_worst_clients_are_listed() {
    let mut model = online(1);
    model.act(Act::Show(PageName::Traffic));
    let words = model.words();
    assert_eq!(message(&model).mark, Mark::Busy);
    model.report(Report::Bans(Err("no".to_owned())));
    assert_eq!(message(&model).text, "no");
    model.report(Report::Bans(Ok(BanReport::default())));
    assert_eq!(message(&model).title, words.no_bans_title);
    model.report(Report::Bans(Ok(BanReport {
        total: 3,
        bans: vec![
            BanSummary {
                address: "192.0.2.7".to_owned(),
                reason: "bad\u{1b}bot".to_owned(),
                until: Some(1_795_000_000),
                ..BanSummary::default()
            },
            BanSummary {
                address: "2001:db8::/32".to_owned(),
                ..BanSummary::default()
            },
        ],
        offenders: vec![OffenderSummary {
            address: "192.0.2.8".to_owned(),
            logins: 2,
            refused: 1_234,
            ..OffenderSummary::default()
        }],
    })));
    let rows = table(&model).rows;
    assert!(rows.iter().all(|row| row.cells.len() == 4));
    let marks: Vec<_> = rows.iter().map(|row| row.cells[1].mark).collect();
    assert_eq!(marks, [Some(Mark::Bad), Some(Mark::Bad), None, Some(Mark::Off)]);
    assert_eq!(rows[0].cells[2].text, "bad?bot");
    assert!(rows[0].cells[3].text.ends_with(" UTC"), "{}", rows[0].cells[3].text);
    assert_eq!(rows[1].cells[3].text, words.until_lifted);
    assert_eq!(rows[2].cells[0].text, "More bans: 1");
    assert_eq!(rows[3].cells[2].text, "failed logins: 2, refused requests: 1,234");
    let forms = [words.ban_address, words.drop_responses, words.check_again];
    assert_eq!(labels(&model), forms);
    for (address, label, effect) in [
        ("192.0.2.7", words.lift_ban, ServiceSwitch::LiftBan),
        ("192.0.2.8", words.ban, ServiceSwitch::Ban),
    ] {
        model.act(Act::Select(address.to_owned()));
        assert_eq!(switch(&model), (label.to_owned(), effect));
    }
    model.report(Report::Denied(Query::Bans));
    assert_eq!(message(&model).title, words.denied_title);
}

#[test]
fn forms_can_be_sent_once_they_are_complete() {
    let mut model = online(1);
    let can_send = |model: &Model| form(model).actions[0].enabled;
    model.act(Act::Show(PageName::AddBan));
    assert!(!can_send(&model));
    model.act(Act::SetField(FieldId::BanAddress, "192.0.2.7".to_owned()));
    assert!(can_send(&model));
    model.act(Act::Show(PageName::DropResponses));
    assert!(!can_send(&model));
    for selection in DropSelection::ALL {
        model.act(Act::SetField(FieldId::DropSelection, selection.word().to_owned()));
        let has_text = form(&model).fields.iter().any(|field| field.id == FieldId::DropText);
        let is_all = selection == DropSelection::All;
        assert_eq!((has_text, can_send(&model)), (!is_all, is_all));
    }
    assert!(
        navigation(&model)
            .iter()
            .any(|entry| entry.is_chosen && entry.page == PageName::Traffic)
    );
}
