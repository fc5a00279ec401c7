//! The text as users and other programs change it.

use super::*;
use crate::difference::DiffLine;

fn read(revision: &str, text: &str) -> ConfigText {
    ConfigText {
        file: "/etc/r/rocknet.toml".into(),
        files: vec!["/etc/r/rocknet.toml".into(), "/etc/r/sites/a.toml".into()],
        text: text.to_owned(),
        revision: revision.to_owned(),
        is_loaded: true,
    }
}

fn finding(file: Option<&str>, line: usize) -> Finding {
    Finding {
        is_error: true,
        file: file.map(Into::into),
        line,
        column: 3,
        ..Finding::warning("code", "bad")
    }
}

#[test]
fn a_text_is_checked_and_saved_once() {
    let mut edit = TextEdit::new(read("r1", "a = 1\n"));
    assert!(!edit.has_changes() && edit.save().is_none());
    assert_eq!(edit.next_check().unwrap().text, "a = 1\n");
    edit.checking = Some(1);
    edit.set("a = 2\n".to_owned(), 5);
    // A check is in progress.
    assert!(edit.next_check().is_none());
    edit.checking = None;
    assert_eq!(edit.next_check().unwrap().text, "a = 2\n");
    assert!(edit.next_check().is_none());
    let saved = edit.save().unwrap();
    assert_eq!((saved.revision.as_str(), saved.text.as_str()), ("r1", "a = 2\n"));
    assert!(edit.save().is_none() && edit.is_saving());
    // Text that is typed during a save stays unsaved.
    edit.set("a = 3\n".to_owned(), 5);
    edit.saved("r2".to_owned());
    assert!(edit.has_changes() && !edit.is_saving());
    assert_eq!(edit.save().unwrap().revision, "r2");
    edit.refused(Some("no".to_owned()));
    assert_eq!((edit.text.as_str(), edit.failure.as_deref()), ("a = 3\n", Some("no")));
    edit.discard();
    assert_eq!((edit.text.as_str(), edit.version), ("a = 2\n", 2));
}

#[test]
fn edits_of_other_programs_are_shown_or_asked_about() {
    let mut edit = TextEdit::new(read("r1", "a\n"));
    assert!(!edit.merge(read("r1", "a\n")));
    assert!(edit.merge(read("r2", "b\n")));
    assert_eq!((edit.text.as_str(), edit.version), ("b\n", 2));
    edit.set("mine\n".to_owned(), 0);
    assert!(!edit.merge(read("r3", "theirs\n")) && edit.newer.is_some());
    assert!(edit.save().is_none());
    let (theirs, mine) = (
        DiffLine::Removed("theirs".to_owned()),
        DiffLine::Added("mine".to_owned()),
    );
    assert_eq!(edit.difference.lines, [DiffLine::Place(1), theirs, mine]);
    edit.keep_text();
    let saved = edit.save().unwrap();
    assert_eq!((saved.revision.as_str(), saved.text.as_str()), ("r3", "mine\n"));
    edit.refused(None);
    edit.merge(read("r4", "theirs again\n"));
    edit.take_other();
    assert_eq!((edit.text.as_str(), edit.has_changes()), ("theirs again\n", false));
    // An edit that is taken back is no contradiction.
    edit.set("mine\n".to_owned(), 0);
    edit.merge(read("r5", "x\n"));
    edit.merge(read("r4", "theirs again\n"));
    assert!(edit.newer.is_none());
    // Text of another file is out of date.
    let other = ConfigText {
        file: "/other".into(),
        ..read("r6", "y\n")
    };
    assert!(!edit.merge(other) && edit.newer.is_none());
}

#[test]
fn findings_lead_to_their_lines() {
    let mut edit = TextEdit::new(read("r1", "a\nb\n"));
    let other = "/etc/r/sites/a.toml";
    edit.place_findings(
        false,
        vec![
            finding(None, 0),
            finding(Some("/etc/r/rocknet.toml"), 2),
            finding(Some(other), 1),
        ],
    );
    assert_eq!(edit.marks().count(), 1);
    assert_eq!((edit.select(0, true), edit.place.number), (None, 0));
    assert_eq!(edit.select(1, false), None);
    assert_eq!((edit.place.number, edit.place.line, edit.place.column), (1, 2, 3));
    assert_eq!(edit.select(2, true), Some(PathBuf::from(other)));
    assert_eq!((edit.place.number, edit.select(9, true)), (1, None));
    assert_eq!(edit.label(Path::new(other)), "sites/a.toml");
    edit.set("a\nbc\n".to_owned(), 4);
    assert_eq!(edit.cursor, Some(4));
    edit.select(1, false);
    assert_eq!((edit.cursor, edit.place.number), (None, 2));
    edit.place_findings(true, Vec::new());
    assert_eq!(edit.selected, None);
}

#[test]
fn proposals_follow_the_typing() {
    let mut edit = TextEdit::new(read("r1", "[server]\n"));
    edit.set("[server]\nw".to_owned(), 10);
    assert_eq!(edit.completion, None);
    edit.complete(10);
    let count = edit.completion.as_ref().unwrap().proposals.len();
    edit.set("[server]\nwork".to_owned(), 13);
    assert!(edit.completion.as_ref().unwrap().proposals.len() <= count);
    edit.set("[server]\nworkers = ".to_owned(), 19);
    assert_eq!(edit.completion, None);
}
