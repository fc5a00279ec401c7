//! The list of websites while the server is stopped, as the configuration file has it.

use super::states;
use crate::act::Act;
use crate::job::{FileFinding, FileSite};
use crate::model::{Model, kind_label};
use crate::screen::{Banner, Body, Button, Cell, Column, FilterBox, Mark, Screen, Style, Table, TableRow};
use crate::words::{Words, fill};

/// Returns the page with all websites.
pub fn screen(model: &Model) -> Screen {
    let words = model.words();
    let Some(config) = model.stopped_config() else {
        return Screen::default();
    };
    let errors = config.findings.iter().filter(|finding| finding.is_error);
    let wanted = model.websites.filter.trim().to_lowercase();
    let is_wanted = |site: &&FileSite| {
        let root = site
            .root
            .as_ref()
            .map_or(String::new(), |root| root.to_string_lossy().into_owned());
        format!("{}\n{root}", site.name).to_lowercase().contains(&wanted)
    };
    let sites = config.sites.iter().filter(is_wanted).map(|site| site_row(words, site));
    let rows: Vec<TableRow> = errors
        .clone()
        .map(|error| error_row(words, error))
        .chain(sites)
        .collect();
    let mut actions = states::start_buttons(model, words.start_server);
    actions.push(Button::new(words.open_config, Act::OpenConfig).style(Style::Plain));
    actions.push(Button::new(words.close, Act::Cancel));
    Screen {
        subtitle: fill(
            words.offline_list,
            &[&config.sites.len().to_string(), &config.file.to_string_lossy()],
        ),
        actions,
        filter: Some(FilterBox {
            hint: words.filter_websites.to_owned(),
            text: model.websites.filter.clone(),
        }),
        banner: match errors.count() {
            0 => None,
            count => Some(Banner {
                mark: Mark::Bad,
                text: fill(words.offline_errors, &[&count.to_string()]),
                action: None,
            }),
        },
        body: Body::Table(Table {
            columns: vec![
                Column::new(words.website, 16),
                Column::new(words.state, 9),
                Column::new(words.shows, 13).from(560),
                Column::new(words.php, 6).from(700),
            ],
            selected: rows
                .iter()
                .position(|row| Some(&row.key) == model.websites.selected.as_ref()),
            rows,
            empty: fill(words.nothing_matches, &[model.websites.filter.trim()]),
        }),
        ..Screen::default()
    }
}

fn site_row(words: &Words, site: &FileSite) -> TableRow {
    let (mark, state) = match site.is_disabled {
        true => (Mark::Off, words.disabled),
        false => (Mark::Off, words.stopped),
    };
    TableRow {
        key: site.name.clone(),
        cells: vec![
            Cell::new(&*site.name).detail(
                site.root
                    .as_ref()
                    .map_or(String::new(), |root| root.to_string_lossy().into_owned()),
            ),
            Cell::new(state).mark(mark),
            Cell::new(if site.is_disabled {
                "–"
            } else {
                kind_label(words, site.kind)
            }),
            Cell::new(if site.php.is_empty() { "–" } else { &*site.php }),
        ],
    }
}

/// Returns the row of an error of the file: its line and its message, with the remedy.
fn error_row(words: &Words, error: &FileFinding) -> TableRow {
    let detail = match error.help.is_empty() {
        true => error.message.clone(),
        false => format!("{}; {}", error.message, error.help),
    };
    TableRow {
        key: format!("{} {}", error.place, error.message),
        cells: vec![
            Cell::new(&*error.place).detail(detail),
            Cell::new(words.fault).mark(Mark::Bad),
            Cell::new("–"),
            Cell::new("–"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use rocknet_control::SiteKind;

    use super::*;
    use crate::job::{Absence, FileConfig, Job, Report};
    use crate::model::{Effect, Settings};
    use crate::pages;

    fn stopped(config: FileConfig) -> Model {
        let mut model = Model::new(Settings::default());
        model.report(Report::Absent(Absence::Stopped(true)));
        model.report(Report::FileConfig(Box::new(FileConfig {
            file: "/home/ann/rocknet.toml".into(),
            ..config
        })));
        model
    }

    fn site(name: &str) -> FileSite {
        FileSite {
            name: name.to_owned(),
            root: Some(format!("/srv/{name}").into()),
            kind: SiteKind::Files,
            ..FileSite::default()
        }
    }

    fn keys(model: &Model) -> Vec<String> {
        match pages::screen(model).body {
            Body::Table(table) => table.rows.into_iter().map(|row| row.key).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_stopped_server_shows_the_websites_of_its_file() {
        let mut model = stopped(FileConfig {
            sites: vec![site("a.test"), site("b.test")],
            ..FileConfig::default()
        });
        // The first lines are below the message, whose first button starts the server.
        let Body::Message(message) = pages::screen(&model).body else {
            panic!("no message")
        };
        assert_eq!(message.lines, ["a.test  /srv/a.test", "b.test  /srv/b.test"]);
        assert_eq!(message.actions[0].act, Act::StartServer);
        assert_eq!(
            message.actions.last().map(|button| &button.act),
            Some(&Act::ShowFileConfig)
        );
        model.act(Act::ShowFileConfig);
        assert_eq!(keys(&model), ["a.test", "b.test"]);
        let screen = pages::screen(&model);
        assert!(screen.subtitle.contains("/home/ann/rocknet.toml") && screen.banner.is_none());
        assert_eq!(screen.actions[0].act, Act::StartServer);
        model.act(Act::Filter("SRV/B".to_owned()));
        assert_eq!(keys(&model), ["b.test"]);
        let opened = model.act(Act::OpenConfig);
        assert_eq!(opened, [Effect::Job(Job::Open("/home/ann/rocknet.toml".to_owned()))]);
        // Nothing can be changed without the server.
        model.act(Act::Select("b.test".to_owned()));
        for act in [
            Act::RemoveSite,
            Act::EditSite,
            Act::ToggleSite,
            Act::DuplicateSite,
            Act::AddSite,
        ] {
            assert_eq!(model.act(act.clone()), [], "{act:?}");
        }
        model.act(Act::Cancel);
        assert!(matches!(pages::screen(&model).body, Body::Message(_)));
        model.act(Act::ShowFileConfig);
        model.report(Report::Starting);
        assert!(matches!(pages::screen(&model).body, Body::Message(_)));
    }

    #[test]
    fn errors_of_the_file_come_first() {
        let mut model = stopped(FileConfig {
            sites: vec![site("a.test")],
            findings: vec![
                FileFinding::default(),
                FileFinding {
                    is_error: true,
                    place: "rocknet.toml:7".to_owned(),
                    message: "unknown key `rot`".to_owned(),
                    help: "did you mean `root`?".to_owned(),
                },
            ],
            ..FileConfig::default()
        });
        let Body::Message(message) = pages::screen(&model).body else {
            panic!("no message")
        };
        assert_eq!(message.lines[0], "rocknet.toml:7: unknown key `rot`");
        model.act(Act::ShowFileConfig);
        let screen = pages::screen(&model);
        assert!(screen.banner.unwrap().text.contains('1'));
        let Body::Table(table) = screen.body else {
            panic!("no table")
        };
        assert_eq!(table.rows.len(), 2);
        assert_eq!(table.rows[0].cells[0].text, "rocknet.toml:7");
        assert_eq!(table.rows[0].cells[0].detail, "unknown key `rot`; did you mean `root`?");
        // A file without websites and errors leaves the page its message.
        assert!(matches!(
            pages::screen(&stopped(FileConfig::default())).body,
            Body::Message(_)
        ));
    }
}
