//! Charts of the load: CPU, memory, requests, response times and connections.

use rocknet_control::samples::LoadSample;
use rocknet_control::text;

use super::number;
use crate::act::{Act, Span};
use crate::model::Model;
use crate::screen::{Body, Button, Chart, Mark, Message, Screen, Series, Style};
use crate::words::{Words, fill};

/// Maximum number of points of a line. A chart has about as many pixels.
const MAX_POINTS: u64 = 240;

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let words = model.words();
    let samples: Vec<&LoadSample> = model.samples.iter().collect();
    let span_button = |span| {
        let label = match span {
            Span::Minute => words.last_minute,
            Span::TenMinutes => words.last_ten_minutes,
            Span::Hour => words.last_hour,
        };
        let style = if span == model.span {
            Style::Chosen
        } else {
            Style::Plain
        };
        Button::new(label, Act::ShowSpan(span)).style(style)
    };
    let subtitle = model.status.as_ref().map_or(String::new(), |status| {
        fill(words.version_up, &[&status.version, &text::duration(status.uptime_s)])
    });
    Screen {
        subtitle,
        actions: Span::ALL.into_iter().map(span_button).collect(),
        body: match samples.last() {
            Some(last) => Body::Charts(charts(words, &samples, last, model.span)),
            None => Body::Message(Message {
                mark: Mark::Busy,
                title: words.no_figures_title.to_owned(),
                text: words.no_figures_text.to_owned(),
                ..Message::default()
            }),
        },
        ..Screen::default()
    }
}

fn charts(words: &Words, samples: &[&LoadSample], last: &LoadSample, span: Span) -> Vec<Chart> {
    let end = last.at_ms;
    let begin = end.saturating_sub(span.seconds() * 1_000);
    let shown: Vec<&LoadSample> = samples.iter().copied().filter(|sample| sample.at_ms >= begin).collect();
    let ago = fill(words.ago, &[&text::duration(span.seconds())]);
    let time = |microseconds: Option<u64>| microseconds.map_or("–".to_owned(), |us| number::duration(words, us));
    // `least`: minimum of the value at the top of the axis. `label`: text of that value.
    let chart = |title: &str, value: String, lines: &[Line<'_>], least: f64, label: &dyn Fn(f64) -> String| {
        let points: Vec<Vec<Option<(f64, f64)>>> = lines
            .iter()
            .map(|(_, read)| condensed(&shown, end, span, *read))
            .collect();
        let largest = points
            .iter()
            .flatten()
            .flatten()
            .map(|(_, value)| *value)
            .fold(least, f64::max);
        let top = rounded_up(largest);
        let series = lines.iter().zip(&points).map(|((name, _), points)| Series {
            name: (*name).to_owned(),
            points: points
                .iter()
                .map(|point| point.map(|(at, value)| (at as f32, (value / top) as f32)))
                .collect(),
        });
        Chart {
            title: title.to_owned(),
            value,
            top: label(top),
            begin: ago.clone(),
            series: series.collect(),
        }
    };
    let micro = |value: f64| number::duration(words, value as u64);
    vec![
        chart(
            words.requests,
            number::tenths(words, last.requests),
            &[("", &|sample| Some(sample.requests))],
            10.0,
            &|top| format!("{top:.0}"),
        ),
        chart(
            words.response_times,
            format!("50 %: {}, 99 %: {}", time(last.p50_us), time(last.p99_us)),
            &[
                ("50 %", &|sample| sample.p50_us.map(|time| time as f64)),
                ("99 %", &|sample| sample.p99_us.map(|time| time as f64)),
            ],
            1_000.0,
            &micro,
        ),
        chart(
            words.cpu,
            number::tenths(words, last.cpu) + " %",
            &[("", &|sample| Some(sample.cpu))],
            10.0,
            &|top| format!("{top:.0} %"),
        ),
        chart(
            words.memory,
            number::bytes(words, last.memory),
            &[("", &|sample| Some(sample.memory as f64 / MEBIBYTE))],
            16.0,
            &|top| format!("{top:.0} MiB"),
        ),
        chart(
            words.connections,
            number::count(words, last.connections),
            &[("", &|sample| Some(sample.connections as f64))],
            10.0,
            &|top| format!("{top:.0}"),
        ),
    ]
}

const MEBIBYTE: f64 = 1_048_576.0;

/// Line of a chart: its name, and how a sample becomes a value.
type Line<'l> = (&'l str, &'l dyn Fn(&LoadSample) -> Option<f64>);

/// Returns the points of a line, at most [`MAX_POINTS`] and one for each gap. The value of a point is the largest of
/// its samples, so that no peak is lost. A time without samples breaks the line.
fn condensed(
    samples: &[&LoadSample],
    end: u64,
    span: Span,
    read: &dyn Fn(&LoadSample) -> Option<f64>,
) -> Vec<Option<(f64, f64)>> {
    /// Time without samples in milliseconds after which the line is broken. The server takes one each second.
    const GAP: u64 = 3_000;
    let length = span.seconds() * 1_000;
    let step = (length / MAX_POINTS).max(1);
    let mut points: Vec<Option<(f64, f64)>> = Vec::new();
    let mut last: Option<(u64, u64)> = None;
    for sample in samples {
        let age = end.saturating_sub(sample.at_ms);
        let at = 1.0 - age as f64 / length as f64;
        let Some(value) = read(sample) else {
            points.push(None);
            last = None;
            continue;
        };
        // Steps are counted from a fixed moment, so that a point does not change when later samples arrive.
        let slot = sample.at_ms / step;
        if let Some((before, _)) = last
            && sample.at_ms.saturating_sub(before) > GAP
        {
            points.push(None);
            last = None;
        }
        match (last, points.last_mut()) {
            (Some((_, previous)), Some(Some(point))) if previous == slot => point.1 = point.1.max(value),
            _ => points.push(Some((at, value))),
        }
        last = Some((sample.at_ms, slot));
    }
    points.dedup_by(|one, two| one.is_none() && two.is_none());
    points
}

/// Rounds up to 1, 2 or 5 times a power of ten, so that the axis rarely changes.
fn rounded_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.max(1.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|rounded| *rounded >= value)
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ms: u64, requests: f64) -> LoadSample {
        LoadSample {
            at_ms,
            requests,
            errors: 0.0,
            bytes: 0.0,
            cpu: 0.0,
            memory: 0,
            connections: 0,
            p50_us: None,
            p99_us: None,
        }
    }

    #[test]
    fn an_hour_has_few_points_and_keeps_its_peak() {
        let samples: Vec<_> = (0..3_600)
            .map(|second| sample(second * 1_000, if second == 1_234 { 99.0 } else { 1.0 }))
            .collect();
        let all: Vec<_> = samples.iter().collect();
        let points = condensed(&all, 3_599_000, Span::Hour, &|sample| Some(sample.requests));
        assert!(points.len() <= MAX_POINTS as usize + 1, "{}", points.len());
        let largest = points.iter().flatten().map(|(_, value)| *value).fold(0.0, f64::max);
        assert!((largest - 99.0).abs() < 1e-9);
        assert!(points.iter().flatten().all(|(at, _)| (0.0..=1.0).contains(at)));
    }

    #[test]
    fn a_pause_breaks_the_line() {
        let samples = [sample(0, 1.0), sample(1_000, 1.0), sample(9_000, 1.0)];
        let all: Vec<_> = samples.iter().collect();
        let points = condensed(&all, 9_000, Span::Minute, &|sample| Some(sample.requests));
        let shape: Vec<bool> = points.iter().map(Option::is_some).collect();
        assert_eq!(shape, [true, true, false, true]);
        let none = condensed(&all, 9_000, Span::Minute, &|_| None);
        assert_eq!(none, [None]);
    }

    #[test]
    fn axes_are_round() {
        for (value, expected) in [
            (0.0, 1.0),
            (1.0, 1.0),
            (1.1, 2.0),
            (34.0, 50.0),
            (51.0, 100.0),
            (1_001.0, 2_000.0),
        ] {
            assert!((rounded_up(value) - expected).abs() < 1e-9, "{value}");
        }
    }
}
