//! Tests with a page of invented results: measured lanes, missing lanes, and goals that are met or missed.

use super::super::group::h1;
use super::super::table::{Picture, TableLine};
use super::*;

fn lane(name: &str, us: f64, ratio: f64) -> Measured {
    let whole = Measured::absent(name, String::new());
    Measured {
        absent: None,
        us,
        ratio,
        ratio_min: ratio,
        ratio_max: ratio,
        rate: 1e6 / us,
        busy: 1.0,
        ..whole
    }
}

fn results() -> Results {
    let mut results = Results {
        group: &h1::GROUP,
        date: "2026-01-02".into(),
        rounds: 3,
        quick: false,
        machine: Machine::read(),
        tools: vec!["wrk".into()],
        servers: Vec::new(),
        missing: vec!["lighttpd"],
        rows: Vec::new(),
    };
    let row = |name| h1::GROUP.rows.iter().find(|row| row.name == name).expect("a row");
    let absent = Measured::absent("nginx-stock", "its settings | admit few\nconnections".into());
    results.add_timed(
        row("keepalive"),
        vec![lane("floor", 4.0, 1.0), lane("rocknet", 4.1, 1.025), absent],
    );
    let again = Measured {
        retried: Some("`ab` failed (exit status: 119): Total of 9 requests completed".into()),
        ..lane("rocknet", 0.8, 2.0)
    };
    results.add_timed(row("pipelined"), vec![lane("floor", 0.4, 1.0), again]);
    let line = TableLine {
        name: "rocknet".into(),
        figures: vec![12.0, 9.0],
        absent: None,
    };
    let columns = vec!["first response, ms".into(), "resident, MiB".into()];
    results.add_counted(
        row("start"),
        Table {
            columns,
            lines: vec![line],
            note: "A note.",
            pictures: vec![Picture {
                name: "starts".into(),
                title: "Starts".into(),
                svg: "<svg/>".into(),
            }],
        },
    );
    results.add_failure(row("idle"), "no descriptors");
    results
}

#[test]
fn figures_are_found_by_row_and_server() {
    let results = results();
    assert_eq!(results.ratio("keepalive", "rocknet"), Some(1.025));
    assert_eq!(results.us("keepalive", "nginx-stock"), None);
    assert_eq!(results.rate("file-1m", "rocknet"), None);
    assert_eq!(results.figure("start", "rocknet", 1), Some(9.0));
    assert_eq!(results.figure("idle", "rocknet", 0), None);
}

#[test]
fn the_page_shows_goals_and_missing_lanes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = results().write(folder.path()).expect("written");
    let page = fs::read_to_string(path).expect("a page");
    let rows = [
        "| lighttpd | not installed here, so not measured | |",
        "| keep-alive, × floor | 1.05 | 1.02 | met |",
        "| pipelined, × floor | 1.3 | 2.00 | **missed** |",
        "| first response, ms | 50 | 12.0 | met |",
        "| resident after it, MiB | 8 | 9.00 | **missed** |",
        "| nginx-stock | its settings / admit few | | | | | | | |",
        "| rocknet | 12.0 | 9.00 |",
        "a round of rocknet was repeated: `ab` failed (exit status: 119): Total of 9 requests completed",
        "Not measured: no descriptors",
        "![Small responses](2026-01-02-h1-small-responses.svg)",
        "![Starts](2026-01-02-h1-starts.svg)",
    ];
    for row in rows {
        assert!(page.contains(row), "{row} is not in:\n{page}");
    }
    assert!(
        !page.contains("10,000 sites, × one site"),
        "a goal without its row is left out"
    );
    assert!(folder.path().join("2026-01-02-h1-small-responses.svg").exists());
    let json = fs::read_to_string(folder.path().join("2026-01-02-h1.json")).expect("JSON");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["rows"][0]["timed"][1]["us"], 4.1);
    assert_eq!(json["group"], "h1");
}

#[test]
fn pages_are_written_to_the_requested_path() {
    let folder = tempfile::tempdir().expect("a folder");
    for (place, page, plot) in [
        ("pages", "pages/2026-01-02-h1.md", "pages/2026-01-02-h1-counted.svg"),
        ("one/before.md", "one/before.md", "one/before-counted.svg"),
    ] {
        let written = results().write(&folder.path().join(place)).expect("written");
        assert_eq!(written, folder.path().join(page));
        assert!(folder.path().join(plot).exists(), "{plot}");
    }
    assert_eq!(file_name("Small responses: HTTP/1.1"), "small-responses-http-1-1");
}

#[test]
fn a_failed_row_or_a_failed_request_of_rocknet_fails_the_run() {
    assert!(
        results()
            .verdict()
            .unwrap_err()
            .to_string()
            .contains("idle: no descriptors")
    );
    let mut sound = results();
    sound.rows.retain(|row| !matches!(row.outcome, Outcome::Failed(_)));
    assert!(sound.verdict().is_ok());
    let Outcome::Timed(lanes) = &mut sound.rows[0].outcome else {
        panic!("the first row is timed")
    };
    lanes[1].failures = 2;
    let verdict = sound.verdict().unwrap_err().to_string();
    assert_eq!(verdict, "keepalive: rocknet failed 2 requests");
    sound.rows[0].outcome = Outcome::Timed(vec![Measured::absent("rocknet", "did not start\nat all".into())]);
    let verdict = sound.verdict().unwrap_err().to_string();
    assert_eq!(verdict, "keepalive: rocknet: did not start");
}
