//! The forms about the traffic: a ban of a client or network, and stored responses to drop.

use super::{DropSelection, Effect, Model};
use crate::act::{FieldId, PageName};
use crate::job::{Job, ServiceJob};

impl Model {
    /// Sets a field of the forms. Returns false for another field.
    pub(super) fn set_traffic_field(&mut self, field: FieldId, text: &str) -> bool {
        let (ban, drop) = (&mut self.ban_form, &mut self.drop_form);
        match field {
            FieldId::BanAddress => text.clone_into(&mut ban.address),
            FieldId::BanTime => text.clone_into(&mut ban.time),
            FieldId::BanReason => text.clone_into(&mut ban.reason),
            FieldId::DropSelection => {
                let found = DropSelection::ALL.into_iter().find(|one| one.word() == text);
                drop.selection = found.unwrap_or(drop.selection);
            }
            FieldId::DropText => text.clone_into(&mut drop.text),
            FieldId::DropSite => text.clone_into(&mut drop.site),
            _ => return false,
        }
        true
    }

    /// Returns the job that bans the client of the form.
    pub(super) fn add_ban(&mut self) -> Vec<Effect> {
        let job = self.ban_form.request().map(ServiceJob::Ban);
        job.map_or(Vec::new(), |job| self.while_online(Job::Service(job)))
    }

    /// Returns the job that drops the responses of the form.
    pub(super) fn drop_responses(&mut self) -> Vec<Effect> {
        let job = self.drop_form.request().map(ServiceJob::DropResponses);
        job.map_or(Vec::new(), |job| self.while_online(Job::Service(job)))
    }

    /// Closes the form whose job has succeeded, unless it was changed in the meantime.
    pub(super) fn end_traffic_form(&mut self, job: &ServiceJob, is_done: bool) -> Vec<Effect> {
        let is_shown = match (self.page, job) {
            (PageName::AddBan, ServiceJob::Ban(ban)) => self.ban_form.request().as_ref() == Some(ban),
            (PageName::DropResponses, ServiceJob::DropResponses(purge)) => {
                self.drop_form.request().as_ref() == Some(purge)
            }
            _ => false,
        };
        match is_shown && is_done {
            true => self.show(PageName::Traffic),
            false => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rocknet_control::ban::{BanSummary, NewBan, OffenderSummary, parse_ban_duration};
    use rocknet_control::response_purge::ResponsePurge;

    use super::*;
    use crate::act::{Act, ServiceSwitch};
    use crate::job::{BanReport, Query, Report};
    use crate::model::{BAN_TIMES, BanForm, Settings};

    fn online() -> Model {
        let mut model = Model::new(Settings::default());
        model.report(Report::Connected("/run/control.sock".into()));
        model.report(Report::Polled(Box::default()));
        model
    }

    fn set(model: &mut Model, field: FieldId, text: &str) {
        assert_eq!(model.act(Act::SetField(field, text.to_owned())), []);
    }

    #[test]
    fn a_client_is_banned_or_freed_whatever_its_state_is_by_then() {
        let mut model = online();
        let effects = model.act(Act::Show(PageName::Traffic));
        assert!(effects.contains(&Effect::Job(Job::Watch(Some(Query::Bans)))));
        let [ban, lift] = [ServiceSwitch::Ban, ServiceSwitch::LiftBan].map(Act::SwitchService);
        assert_eq!(model.act(ban.clone()), [], "no client is selected");
        let address = "192.0.2.7".to_owned();
        model.act(Act::Select(address.clone()));
        let banned = vec![BanSummary {
            address: address.clone(),
            ..BanSummary::default()
        }];
        let offending = vec![OffenderSummary {
            address: address.clone(),
            ..OffenderSummary::default()
        }];
        let bans = ServiceJob::Ban(NewBan {
            address: address.clone(),
            ..NewBan::default()
        });
        let lifts = ServiceJob::LiftBan(address);
        // A ban may begin or end by itself before the press of the button is handled.
        for (bans_now, offenders) in [(banned, Vec::new()), (Vec::new(), offending), (Vec::new(), Vec::new())] {
            model.report(Report::Bans(Ok(BanReport {
                total: bans_now.len() as u64,
                bans: bans_now,
                offenders,
            })));
            let job = |job: &ServiceJob| [Effect::Job(Job::Service(job.clone()))];
            assert_eq!(model.act(ban.clone()), job(&bans));
            assert_eq!(model.act(lift.clone()), job(&lifts));
        }
        assert_eq!(model.report(Report::Served(lifts, Ok(String::new()))), []);
        assert!(
            model
                .notice
                .as_ref()
                .is_some_and(|notice| notice.text.contains("192.0.2.7"))
        );
        // The row that counts further bans is no client.
        model.act(Act::Select(String::new()));
        assert_eq!(model.act(ban), []);
    }

    #[test]
    fn the_form_of_a_ban_closes_when_the_ban_is_in_effect() {
        let mut model = online();
        model.act(Act::Show(PageName::AddBan));
        assert_eq!(model.act(Act::Submit), [], "an address is missing");
        set(&mut model, FieldId::BanAddress, " 192.0.2.0/24 ");
        let ban = |seconds, reason: &str| NewBan {
            address: "192.0.2.0/24".to_owned(),
            seconds,
            reason: reason.to_owned(),
        };
        assert_eq!(model.ban_form.request(), Some(ban(None, "")));
        set(&mut model, FieldId::BanTime, "forever");
        set(&mut model, FieldId::BanReason, "scanner");
        let job = ServiceJob::Ban(ban(Some(0), "scanner"));
        assert_eq!(model.act(Act::Submit), [Effect::Job(Job::Service(job.clone()))]);
        model.report(Report::Served(job.clone(), Err("exempt".to_owned().into())));
        assert_eq!((model.page, &*model.ban_form.reason), (PageName::AddBan, "scanner"));
        model.report(Report::Served(job, Ok(String::new())));
        assert_eq!(model.page, PageName::Traffic);
        model.act(Act::Show(PageName::AddBan));
        assert_eq!(model.ban_form, BanForm::default());
        model.act(Act::Cancel);
        assert_eq!(model.page, PageName::Traffic);
        for time in BAN_TIMES {
            assert_eq!(parse_ban_duration(time).is_err(), time.is_empty(), "{time}");
        }
    }

    #[test]
    fn an_empty_field_does_not_drop_all_responses() {
        let mut model = online();
        model.act(Act::Show(PageName::DropResponses));
        for selection in DropSelection::ALL {
            set(&mut model, FieldId::DropSelection, selection.word());
            set(&mut model, FieldId::DropText, " ");
            assert_eq!(model.drop_form.request().is_some(), selection == DropSelection::All);
            set(&mut model, FieldId::DropText, "x");
            let purge = model.drop_form.request().expect("a complete form");
            let parts = [&purge.url, &purge.prefix, &purge.tag].map(|part| part.as_deref() == Some("x"));
            let wanted = [DropSelection::Url, DropSelection::Prefix, DropSelection::Tag].map(|one| one == selection);
            assert_eq!((parts, &purge.site), (wanted, &None));
        }
        set(&mut model, FieldId::DropSite, "a.test");
        let job = ServiceJob::DropResponses(ResponsePurge {
            site: Some("a.test".to_owned()),
            ..ResponsePurge::default()
        });
        assert_eq!(model.act(Act::Submit), [Effect::Job(Job::Service(job.clone()))]);
        model.report(Report::Served(
            job,
            Ok("stored responses of 2 URLs were dropped".to_owned()),
        ));
        assert_eq!(model.page, PageName::Traffic);
        assert!(
            model
                .notice
                .as_ref()
                .is_some_and(|notice| notice.text.contains("2 URLs"))
        );
    }
}
