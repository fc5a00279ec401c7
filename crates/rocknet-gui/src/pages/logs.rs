//! Lines of the logs.

use rocknet_control::api::Level;
use rocknet_control::logs::LogKind;

use super::states;
use crate::act::{Act, LogChoice};
use crate::model::{KeptLine, Model, severity};
use crate::screen::{Body, Button, Choice, ChoicePurpose, FilterBox, Lines, LogLine, Mark, Screen, Style};
use crate::words::{Words, fill};

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let (words, log) = (model.words(), &model.log);
    let choice = |label, choice| {
        let style = if log.choice == choice {
            Style::Chosen
        } else {
            Style::Plain
        };
        Button::new(label, Act::ShowLog(choice)).style(style)
    };
    let mut actions = vec![
        choice(words.all_logs, LogChoice::All),
        choice(words.errors_only, LogChoice::Errors),
        choice(words.access_only, LogChoice::Access),
        choice(words.problems_only, LogChoice::Problems),
        Button::new(words.follow, Act::FollowLog(!log.follows)).style(match log.follows {
            true => Style::Chosen,
            false => Style::Plain,
        }),
    ];
    let mut choices = vec![choice_of_site(model)];
    if let Some(level) = model.level {
        match model.link.is_online() && model.permits(&Act::SetLevel(level)) {
            true => choices.push(choice_of_level(words, level)),
            false => {
                let label = fill(words.level, &[level.name()]);
                actions.push(Button::new(label, Act::SetLevel(level)).only_if(false));
            }
        }
    }
    let shown = log.shown();
    let count = shown.len();
    let lines: Vec<LogLine> = shown
        .into_iter()
        .flat_map(|(lost, kept)| gap(words, lost, kept.number).into_iter().chain([line(kept)]))
        .collect();
    actions.push(Button::new(words.copy, Act::CopyLines).only_if(!lines.is_empty()));
    if let Some(refusal) = &log.refusal {
        return Screen {
            body: Body::Message(match refusal {
                Some(error) => states::failed(words, error),
                None => states::denied(words),
            }),
            ..Screen::default()
        };
    }
    Screen {
        subtitle: fill(words.lines_counted, &[&count.to_string()]),
        actions,
        choices,
        filter: Some(FilterBox {
            hint: words.filter_lines.to_owned(),
            text: log.filter.clone(),
        }),
        body: Body::Lines(Lines {
            lines,
            follows: log.follows,
            empty: match log.is_empty() {
                true => words.no_lines,
                false if log.site.is_some() && log.choice == LogChoice::All && log.filter.is_empty() => {
                    words.no_line_of_site
                }
                false => words.no_line_matches,
            }
            .to_owned(),
        }),
        ..Screen::default()
    }
}

/// Returns the choice of the website. One that was removed stays in it as long as it is chosen.
fn choice_of_site(model: &Model) -> Choice {
    let chosen = model.log.site.clone().unwrap_or_default();
    let own = |name: &str| (name.to_owned(), name.to_owned());
    let mut options = vec![(String::new(), model.words().all_websites.to_owned())];
    options.extend(model.websites.names().map(own));
    if options.iter().all(|(name, _)| *name != chosen) {
        options.push(own(&chosen));
    }
    Choice {
        value: chosen,
        options,
        purpose: ChoicePurpose::Site,
    }
}

/// Returns the choice of the level of the error log.
fn choice_of_level(words: &Words, level: Level) -> Choice {
    let option = |level: Level| (level.name().to_owned(), fill(words.level, &[level.name()]));
    Choice {
        value: level.name().to_owned(),
        options: Level::ALL.map(option).to_vec(),
        purpose: ChoicePurpose::Level,
    }
}

/// Returns the line that stands for lines that were lost before the line with this number; `None` if none were.
fn gap(words: &Words, lost: u64, number: u64) -> Option<LogLine> {
    (lost > 0).then(|| LogLine {
        number,
        mark: Mark::Busy,
        text: fill(words.lines_left_out, &[&lost.to_string()]),
    })
}

fn line(kept: &KeptLine) -> LogLine {
    let event = &kept.event;
    let mark = match (event.kind, severity(event), &kept.request) {
        (LogKind::Access, _, Some(request)) if request.status >= 500 => Mark::Bad,
        (LogKind::Access, _, Some(request)) if request.status >= 400 => Mark::Fair,
        (LogKind::Access, ..) => Mark::Good,
        (_, Some(Level::Error), _) => Mark::Bad,
        (_, Some(Level::Warn), _) => Mark::Fair,
        _ => Mark::Off,
    };
    let shown = kept.request.as_ref().map(|request| request.shown.clone());
    LogLine {
        number: kept.number,
        mark,
        text: shown.unwrap_or_else(|| with_short_time(&event.line)),
    }
}

/// Returns a message whose time has neither date nor fraction, like that of requests; a line without a time as it is.
fn with_short_time(line: &str) -> String {
    let Some((time, message)) = line.split_once(' ') else {
        return line.to_owned();
    };
    match time.split_once('T') {
        Some((date, clock))
            if date.len() == 10 && clock.is_char_boundary(8) && clock.as_bytes().get(2) == Some(&b':') =>
        {
            format!("{}  {message}", &clock[..8])
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_messages_are_those_of_requests() {
        for (line, expected) in [
            ("2026-11-28T23:18:44.413+00:00 INFO  ready", "23:18:44  INFO  ready"),
            ("2026-11-28T23:18:44 WARN x", "23:18:44  WARN x"),
            ("  second line", "  second line"),
            ("2026-11-28T2: x", "2026-11-28T2: x"),
            ("xxxxxxxxxxTäöü:ß x", "xxxxxxxxxxTäöü:ß x"),
            ("alone", "alone"),
        ] {
            assert_eq!(with_short_time(line), expected);
        }
    }
}
