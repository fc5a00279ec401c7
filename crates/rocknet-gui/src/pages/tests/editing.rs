//! Pages that edit a website and the configuration, and the differences of a change.

use rocknet_control::config::{Change, Checked, ConfigText, Finding};
use rocknet_control::site_form::{FieldInput as KeyInput, FieldWord, SiteField, SiteForm};

use super::*;
use crate::model::Fetched;
use crate::screen::{Editor, Field, FieldInput, Lines};

fn key(name: &str, group: &str, input: KeyInput) -> SiteField {
    SiteField {
        name: name.to_owned(),
        label: name.to_uppercase(),
        group: group.to_owned(),
        input,
        help: "First `sentence`. Second one.".to_owned(),
        default: "auto".to_owned(),
        words: vec![FieldWord {
            text: "off".to_owned(),
            help: "no encryption".to_owned(),
        }],
        ..SiteField::default()
    }
}

/// Returns a model with the form of a website.
fn editing() -> Model {
    let mut model = online(2);
    model.act(Act::Select("site-1.test".to_owned()));
    model.act(Act::EditSite);
    assert_eq!(message(&model).mark, Mark::Busy);
    let form = SiteForm {
        name: "site-1.test".to_owned(),
        file: "/r.toml".into(),
        line: 4,
        revision: "1".to_owned(),
        fields: vec![
            SiteField {
                text: "/srv".to_owned(),
                ..key("root", "Content", KeyInput::Text)
            },
            key("browse", "Files", KeyInput::Switch),
            key("tls", "HTTPS", KeyInput::Choice),
            key("aliases", "Names", KeyInput::List),
            key("fallback", "Names", KeyInput::Text),
            SiteField {
                other: Some("{ a = 1 }".to_owned()),
                ..key("log", "Names", KeyInput::Text)
            },
        ],
    };
    model.report(Report::SiteForm("site-1.test".to_owned(), Ok(Box::new(form))));
    model
}

fn field(model: &Model, label: &str) -> Field {
    let found = form(model).fields.into_iter().find(|field| field.label == label);
    found.unwrap_or_else(|| panic!("no field {label}"))
}

#[test]
fn the_form_has_groups_and_inputs_for_every_kind_of_key() {
    let model = editing();
    let headings: Vec<String> = form(&model)
        .fields
        .into_iter()
        .filter(|field| field.input == FieldInput::Heading)
        .map(|field| field.label)
        .collect();
    assert_eq!(headings, ["Content", "Files", "HTTPS", "Names"]);
    assert_eq!(field(&model, "ROOT").input, FieldInput::Folder);
    assert_eq!(field(&model, "BROWSE").input, FieldInput::Switch);
    assert_eq!(field(&model, "ALIASES").input, FieldInput::Lines);
    let FieldInput::Choice(choices) = field(&model, "TLS").input else {
        panic!("no choice")
    };
    assert_eq!(choices[0], (String::new(), "As usual (auto)".to_owned()));
    assert_eq!(choices[1], ("off".to_owned(), "off: no encryption".to_owned()));
    let help = field(&model, "FALLBACK").help;
    assert_eq!(help, "First sentence. Also: off. If empty: auto.");
    let fixed = field(&model, "LOG");
    assert_eq!(
        (fixed.input, fixed.fix.unwrap().act),
        (FieldInput::Fixed, Act::EditText)
    );
    assert!(screen(&model).subtitle.contains("/r.toml:4"));
    // Fields of a form have identifiers of their own, which the window keeps them by.
    let ids: std::collections::BTreeSet<_> = form(&model).fields.iter().map(|field| field.id).collect();
    assert_eq!(ids.len(), form(&model).fields.len());
}

#[test]
fn the_form_is_saved_only_with_changes() {
    let mut model = editing();
    let can_save = |model: &Model| screen(model).actions[0].enabled;
    assert!(!can_save(&model));
    model.act(Act::SetField(FieldId::SiteName, "new.test".to_owned()));
    assert!(can_save(&model));
    model.act(Act::SetField(FieldId::SiteName, String::new()));
    assert!(field(&model, "Name").problem.is_empty());
    model.act(Act::LeaveField(FieldId::SiteName));
    assert_eq!(field(&model, "Name").problem, model.words().fill_in);
    model.act(Act::Cancel);
    assert_eq!(message(&model).actions[0].act, Act::Stay);
    model.act(Act::Stay);
    model.report(Report::Absent(Absence::Failed("x".to_owned())));
    assert!(!can_save(&model));
}

fn editor(model: &Model) -> Editor {
    match screen(model).body {
        Body::Editor(editor) => *editor,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_editor_lists_findings_and_marks_their_lines() {
    let mut model = online(1);
    model.act(Act::EditText);
    assert_eq!(message(&model).mark, Mark::Busy);
    let text = ConfigText {
        file: "/etc/r.toml".into(),
        files: vec!["/etc/r.toml".into(), "/etc/sites/a.toml".into()],
        text: "a = 1\n".to_owned(),
        revision: "1".to_owned(),
        is_loaded: false,
    };
    model.report(Report::ConfigText(None, Ok(Box::new(text))));
    assert_eq!(screen(&model).subtitle, model.words().text_not_loaded);
    assert!(editor(&model).findings.rows.is_empty() && editor(&model).marks.is_empty());
    assert_eq!(editor(&model).files[1].1, "sites/a.toml");
    let finding = |file: &str, line, is_error| Finding {
        file: Some(file.into()),
        line,
        is_error,
        ..Finding::warning("code", "text")
    };
    let checked = Checked {
        is_valid: false,
        findings: vec![
            finding("/etc/r.toml", 1, true),
            finding("/etc/sites/a.toml", 9, false),
            finding("/etc/r.toml", 0, false),
        ],
    };
    model.report(Report::Checked(1, Ok(checked)));
    assert_eq!(screen(&model).subtitle, "Errors: 1");
    let places: Vec<String> = editor(&model)
        .findings
        .rows
        .iter()
        .map(|row| row.cells[0].text.clone())
        .collect();
    assert_eq!(places, ["1", "sites/a.toml:9", ""]);
    let marks: Vec<_> = editor(&model)
        .marks
        .iter()
        .map(|mark| (mark.line, mark.is_error))
        .collect();
    assert_eq!(marks, [(1, true)]);
}

#[test]
fn a_conflict_shows_the_differences_and_has_its_answers_in_the_heading() {
    let mut model = editing();
    model.act(Act::SetField(FieldId::Site(4), "/mine".to_owned()));
    let Fetched::Loaded(edit) = &model.site_edit else {
        panic!("no form")
    };
    let mut theirs = edit.form.clone();
    theirs.revision = "2".to_owned();
    theirs.fields[4].text = "/theirs".to_owned();
    model.report(Report::SiteForm("site-1.test".to_owned(), Ok(Box::new(theirs))));
    let question = screen(&model);
    let acts: Vec<&Act> = question.actions.iter().map(|button| &button.act).collect();
    assert_eq!(acts, [&Act::KeepInput, &Act::TakeOther]);
    let Body::Diff(lines) = question.body else {
        panic!("{:?}", question.body)
    };
    let texts: Vec<(Mark, &str)> = lines.lines.iter().map(|line| (line.mark, &*line.text)).collect();
    let expected = [
        (Mark::Busy, "FALLBACK"),
        (Mark::Bad, "− /theirs"),
        (Mark::Good, "+ /mine"),
    ];
    assert_eq!(texts, expected);
    model.act(Act::KeepInput);
    assert_eq!(field(&model, "FALLBACK").text, "/mine");
}

#[test]
fn a_change_shows_its_lines() {
    let mut model = online(1);
    model.act(Act::Show(PageName::History));
    let change = |id| Change {
        id,
        unix_time: 1_793_000_000,
        file: "/r.toml".into(),
        revision: String::new(),
        what: format!("change {id}"),
        diff: "--- a\n+++ b\n@@ -1 +1,2 @@\n-x\n+y\n+z\n same\n".to_owned(),
    };
    model.report(Report::History(Ok(vec![change(2), change(1)])));
    assert!(!screen(&model).actions[0].enabled);
    model.act(Act::Select("1".to_owned()));
    assert!(screen(&model).actions[0].enabled);
    model.act(Act::OpenRow);
    let Body::Diff(Lines { lines, .. }) = screen(&model).body else {
        panic!("no diff")
    };
    let marks: Vec<Mark> = lines.iter().map(|line| line.mark).collect();
    use Mark::{Bad, Busy, Good, Off};
    assert_eq!(marks, [Off, Off, Busy, Bad, Good, Good, Off]);
    // An earlier change is taken back with the later ones.
    let undo = screen(&model).actions.remove(1);
    assert_eq!((screen(&model).title.as_str(), undo.act), ("change 1", Act::GoBack));
    model.act(Act::Cancel);
    model.act(Act::Select("2".to_owned()));
    model.act(Act::OpenRow);
    assert!(screen(&model).actions[1].enabled && screen(&model).subtitle.contains("+2 −1"));
    let subtitle = screen(&model).subtitle;
    assert!(subtitle.contains("2026-10-26 07:33 UTC"), "{subtitle}");
}
