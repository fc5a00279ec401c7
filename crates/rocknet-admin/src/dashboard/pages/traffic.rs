//! View `Traffic`: stored responses, limits, bans, and the clients with the most offences.

use askama::Template;
use rocknet_control::Status;
use rocknet_control::api::{ApiError, Reply, Request};
use rocknet_control::ban::{BanList, OffenderSummary};

use crate::Control;
use crate::dashboard::figures::{bytes, count, date, stored_hits};
use crate::dashboard::frame::{Frame, other_reply, rendered};

/// Maximum number of bans in the page, which is loaded again every few seconds.
const MAX_BANS: usize = 200;

#[derive(Template)]
#[template(path = "traffic.html")]
struct TrafficPage<'a> {
    frame: Frame<'a>,
    status: Status,
    bans: BanList,
    offenders: Vec<OffenderSummary>,
}

impl TrafficPage<'_> {
    /// Returns the number of bans that the page does not show.
    fn more(&self) -> u64 {
        self.bans.total.saturating_sub(self.bans.bans.len() as u64)
    }

    /// Returns [`SELECTIONS`], each with a flag that is true for the selected one: the one in a rejected form, or else
    /// the first.
    fn selections(&self) -> impl Iterator<Item = (bool, &'static str, &'static str)> {
        let selected = self.frame.input("what");
        let is_known = SELECTIONS.iter().any(|(word, _)| *word == selected);
        SELECTIONS.iter().enumerate().map(move |(at, &(word, label))| {
            let is_selected = if is_known { word == selected } else { at == 0 };
            (is_selected, word, label)
        })
    }
}

/// Ways to select the responses that are dropped, each with its word in the form and its label.
const SELECTIONS: [(&str, &str); 4] = [
    ("url", "A URL"),
    ("prefix", "All URLs that begin with"),
    ("tag", "A tag"),
    ("all", "All responses"),
];

/// Renders the view. The notice of `frame` may contain the input of a rejected form.
pub async fn view<C: Control>(frame: Frame<'_>, control: &C) -> Result<String, ApiError> {
    let Reply::Status(status) = control.execute(Request::Status).await? else {
        return Err(other_reply());
    };
    let Reply::Bans(mut bans) = control.execute(Request::Bans).await? else {
        return Err(other_reply());
    };
    let Reply::Offenders(offenders) = control.execute(Request::Offenders).await? else {
        return Err(other_reply());
    };
    bans.bans.truncate(MAX_BANS);
    Ok(rendered(&TrafficPage {
        frame,
        status: *status,
        bans: *bans,
        offenders,
    }))
}
