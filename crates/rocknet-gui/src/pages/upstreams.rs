//! Servers that requests are forwarded to.

use rocknet_control::{UpstreamState, text};

use super::{number, states};
use crate::act::{Act, ServiceSwitch};
use crate::model::{Model, Upstream};
use crate::screen::{Body, Button, Cell, Column, Mark, Message, Screen, Table, TableRow};
use crate::words::Words;

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let words = model.words();
    let selected = model.selected.get(&(model.page as u8));
    let chosen = selected.and_then(|key| model.upstream(key));
    let is_drained = chosen.is_some_and(|upstream| upstream.summary.state == UpstreamState::Drained);
    let (label, switch) = match is_drained {
        true => (words.undrain, ServiceSwitch::Enable),
        false => (words.drain, ServiceSwitch::Drain),
    };
    let can_switch = model.link.is_online() && chosen.is_some();
    Screen {
        subtitle: words.upstreams_help.to_owned(),
        actions: vec![
            Button::new(label, Act::SwitchService(switch)).only_if(can_switch),
            Button::new(words.check_again, Act::Refresh).only_if(model.link.is_online()),
        ],
        body: states::of_list(words, &model.services.upstreams, |upstreams| match &upstreams[..] {
            [] => Body::Message(Message {
                title: words.no_upstreams_title.to_owned(),
                text: words.no_upstreams_text.to_owned(),
                actions: vec![Button::new(words.add_website, Act::AddSite).only_if(model.link.is_online())],
                ..Message::default()
            }),
            upstreams => Body::Table(Table {
                columns: vec![
                    Column::new(words.server, 9),
                    Column::new(words.state, 7),
                    Column::new(words.in_progress, 4).number(),
                    Column::new(words.requests_in_all, 4).number(),
                    Column::new(words.response_time, 5).number(),
                ],
                selected: selected.and_then(|key| upstreams.iter().position(|one| one.summary.address == *key)),
                rows: upstreams.iter().map(|upstream| row(model, words, upstream)).collect(),
                empty: String::new(),
            }),
        }),
        ..Screen::default()
    }
}

fn row(model: &Model, words: &Words, upstream: &Upstream) -> TableRow {
    let summary = &upstream.summary;
    let (mark, state) = match summary.state {
        UpstreamState::Up => (Mark::Good, words.upstream_up),
        UpstreamState::Down => (Mark::Bad, words.upstream_down),
        UpstreamState::Paused => (Mark::Fair, words.upstream_paused),
        UpstreamState::Drained => (Mark::Off, words.upstream_drained),
        UpstreamState::Other => (Mark::Off, words.unknown),
    };
    TableRow {
        key: summary.address.clone(),
        cells: vec![
            Cell::new(text::sanitized(&summary.address, 200))
                .detail(model.services.users_of_server(&summary.address).join(", ")),
            Cell::new(state).mark(mark),
            Cell::new(number::count(words, summary.in_flight)),
            Cell::new(number::count(words, upstream.responses)),
            Cell::new(
                upstream
                    .response_us
                    .map_or("–".to_owned(), |us| number::duration(words, us)),
            ),
        ],
    }
}
