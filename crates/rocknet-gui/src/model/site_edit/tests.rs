//! The form as users and other programs change it.

use rocknet_control::site_form::FieldWord;

use super::*;

fn field(name: &str, input: FieldInput, text: &str) -> SiteField {
    SiteField {
        name: name.to_owned(),
        label: name.to_uppercase(),
        input,
        text: text.to_owned(),
        default: match input {
            FieldInput::Switch => "false".to_owned(),
            _ => String::new(),
        },
        words: vec![FieldWord::default()],
        ..SiteField::default()
    }
}

/// Returns the form of a website that serves a folder.
fn form(revision: &str, root: &str, aliases: &str) -> SiteForm {
    SiteForm {
        name: "a.test".to_owned(),
        file: "/r.toml".into(),
        line: 3,
        revision: revision.to_owned(),
        fields: vec![
            field("root", FieldInput::Text, root),
            field("php", FieldInput::Text, ""),
            field("proxy", FieldInput::List, ""),
            field("browse", FieldInput::Switch, ""),
            field("aliases", FieldInput::List, aliases),
            field("tls", FieldInput::Choice, ""),
            field("tls.cert", FieldInput::Text, ""),
        ],
    }
}

fn edit() -> SiteEdit {
    SiteEdit::new(form("r1", "/srv", "b.test"))
}

fn set_field(field: &str, text: &str) -> Edit {
    Edit::SetField {
        site: "a.test".to_owned(),
        field: field.to_owned(),
        text: text.to_owned(),
    }
}

fn names(edit: &SiteEdit) -> Vec<&str> {
    edit.shown().map(|(_, field, _)| field.name.as_str()).collect()
}

#[test]
fn only_changed_fields_are_edited() {
    let mut edit = edit();
    assert!(!edit.has_changes());
    // A choice is complete at once, and text is not.
    assert!(!edit.set(FieldId::Site(4), "b.test\nc.test\n"));
    assert!(edit.set(FieldId::Site(3), "true"));
    assert_eq!(
        edit.edits(),
        [set_field("browse", "true"), set_field("aliases", "b.test\nc.test\n")]
    );
    edit.set(FieldId::Site(3), "false");
    edit.set(FieldId::Site(4), "b.test ");
    assert!(!edit.has_changes());
    edit.set(FieldId::Folder, "/other");
    assert_eq!(edit.edits(), [set_field("root", "/other")]);
    let request = edit.request(edit.edits(), true);
    assert_eq!(
        (request.revision.as_deref(), request.file),
        (Some("r1"), Some("/r.toml".into()))
    );
    assert!(!edit.set(FieldId::Site(99), "x") && !edit.set(FieldId::Theme, "x"));
}

#[test]
fn a_new_name_renames_first() {
    let mut edit = edit();
    edit.set(FieldId::SiteName, " c.test ");
    edit.set(FieldId::Site(3), "true");
    let [Edit::RenameSite { from, to }, Edit::SetField { site, .. }] = &edit.edits()[..] else {
        panic!("{:?}", edit.edits())
    };
    assert_eq!((&**from, &**to, &**site), ("a.test", "c.test", "c.test"));
}

#[test]
fn the_kind_selects_the_fields_and_removes_the_keys_of_another_kind() {
    let mut edit = edit();
    assert_eq!(edit.kind, ContentKind::Files);
    assert_eq!(names(&edit), ["root", "browse", "aliases", "tls"]);
    assert!(edit.set(FieldId::SiteKind, "proxy"));
    assert_eq!(names(&edit), ["proxy", "browse", "aliases", "tls"]);
    assert!(!edit.is_complete() && !edit.lacks(FieldId::Site(2)) && edit.next_check().is_none());
    assert!(!edit.leave_all() && edit.lacks(FieldId::Site(2)));
    edit.set(FieldId::Site(2), "http://127.0.0.1:3000");
    let path = ["site", "a.test", "root"].map(str::to_owned).to_vec();
    assert_eq!(
        edit.edits(),
        [Edit::Remove { path }, set_field("proxy", "http://127.0.0.1:3000")]
    );
    edit.set(FieldId::SiteKind, "php");
    assert_eq!(edit.edits(), [set_field("php", "auto")]);
    edit.set(FieldId::Site(5), "files");
    assert!(names(&edit).contains(&"tls.cert") && !edit.is_complete());
    assert!(edit.kinds().all(|(kind, _)| kind != ContentKind::Other));
}

#[test]
fn findings_are_placed_beside_their_fields() {
    let finding = |key: &[&str], is_error| Finding {
        is_error,
        key: key.iter().map(|part| (*part).to_owned()).collect(),
        help: Some("write y".to_owned()),
        ..Finding::warning("code", "bad x")
    };
    let mut edit = edit();
    let findings = [
        finding(&["site", "a.test", "root"], true),
        finding(&["site", "a.test", "aliases", "0"], true),
        finding(&["site", "a.test"], true),
        finding(&["site", "a.test", "tls", "cert"], true),
        finding(&["site", "a.test", "proxy"], true),
        finding(&["site", "a.test", "root"], false),
        finding(&["site", "b.test", "root"], true),
        finding(&["site", "b.test", "root"], false),
    ];
    edit.place(&findings);
    for id in [FieldId::Site(0), FieldId::Site(4), FieldId::SiteName, FieldId::Site(5)] {
        assert_eq!(edit.problems(id), ["bad x: write y"], "{id:?}");
    }
    // Those of hidden fields, warnings, and errors elsewhere.
    let kinds: Vec<bool> = edit.others.iter().map(|(is_error, _)| *is_error).collect();
    assert_eq!(kinds, [true, false, true]);
    edit.set(FieldId::Site(0), "/new");
    assert!(edit.problems(FieldId::Site(0)).is_empty());
    let error = |text: &str| ApiError::new(422, text);
    edit.place(&[]);
    edit.refuse(&error("cannot set site.a.test.root: no"));
    assert_eq!(edit.problems(FieldId::Site(0)), ["no"]);
    edit.refuse(&error("broken"));
    assert_eq!(edit.others, [(true, "broken".to_owned())]);
}

#[test]
fn the_same_edits_are_checked_once() {
    let mut edit = edit();
    assert_eq!(edit.next_check().unwrap().edits, []);
    assert!(edit.next_check().is_none());
    edit.set(FieldId::Site(3), "true");
    let request = edit.next_check().unwrap();
    // A check is about any revision, because it changes nothing.
    assert_eq!((request.edits.len(), request.revision), (1, None));
    assert!(edit.next_check().is_none());
}

#[test]
fn edits_of_other_programs_are_merged_or_asked_about() {
    let mut edit = edit();
    assert!(!edit.merge(form("r1", "/srv", "b.test")));
    edit.set(FieldId::Site(4), "mine.test");
    edit.set(FieldId::SiteName, "c.test");
    // Another field of the file has a new value.
    assert!(edit.merge(form("r2", "/new", "b.test")) && edit.newer.is_none());
    assert_eq!(edit.form.revision, "r2");
    let texts: Vec<&str> = edit.shown().map(|(_, _, text)| text).collect();
    assert_eq!(texts, ["/new", "false", "mine.test", ""]);
    assert_eq!((edit.name.as_str(), edit.edits().len()), ("c.test", 2));
    // The same field has another value.
    assert!(edit.merge(form("r3", "/new", "theirs.test")) && edit.newer.is_some());
    assert_eq!(edit.form.revision, "r2");
    let values: Vec<(&str, &str)> = edit.contradictions().map(|(_, theirs, mine)| (theirs, mine)).collect();
    assert_eq!(values, [("theirs.test", "mine.test")]);
    edit.keep_input();
    assert_eq!((edit.form.revision.as_str(), edit.newer.is_none()), ("r3", true));
    assert_eq!(
        edit.edits()[1],
        Edit::SetField {
            site: "c.test".to_owned(),
            field: "aliases".to_owned(),
            text: "mine.test".to_owned(),
        }
    );
    // The same value is no contradiction.
    assert!(edit.merge(form("r4", "/new", "mine.test")) && edit.newer.is_none());
    assert_eq!(edit.edits().len(), 1);
    edit.is_saving = true;
    assert!(!edit.merge(form("r5", "/x", "y")));
}

#[test]
fn a_new_value_of_a_key_that_the_chosen_kind_removes_asks() {
    for (key, text) in [(0, "/other"), (1, "auto")] {
        let mut edit = edit();
        edit.set(FieldId::SiteKind, "proxy");
        edit.set(FieldId::Site(2), "http://127.0.0.1:3000");
        let mut newer = form("r2", "/srv", "b.test");
        newer.fields[key].text = text.to_owned();
        assert!(edit.merge(newer));
        let asked: Vec<&str> = edit.contradictions().map(|(_, theirs, _)| theirs).collect();
        assert_eq!(asked, [text]);
        // The other program takes its edit back, so there is nothing to ask about.
        assert!(edit.merge(form("r1", "/srv", "b.test")));
        assert!(edit.newer.is_none() && edit.contradictions().next().is_none());
        // An edit of something else is adopted, and the chosen kind stays.
        assert!(edit.merge(form("r3", "/srv", "c.test")));
        assert!(edit.newer.is_none() && edit.kind == ContentKind::Proxy);
    }
}
