//! Tests of the form of a website: the edits that a filled-in form makes, and the fields beside which findings are
//! placed.

use super::*;

/// Returns a form with fields of these names, inputs and texts. The default of a switch is on.
fn form(fields: &[(&str, FieldInput, &str)]) -> SiteForm {
    let field = |(name, input, text): &(&str, FieldInput, &str)| SiteField {
        name: (*name).to_owned(),
        input: *input,
        default: if *input == FieldInput::Switch { "true" } else { "" }.to_owned(),
        text: (*text).to_owned(),
        ..SiteField::default()
    };
    SiteForm {
        name: "a.test".to_owned(),
        file: "/r.toml".into(),
        line: 3,
        revision: "r1".to_owned(),
        fields: fields.iter().map(field).collect(),
    }
}

/// Returns the form of a site that serves files.
fn files() -> SiteForm {
    form(&[
        ("enabled", FieldInput::Switch, ""),
        ("aliases", FieldInput::List, "b.test"),
        ("root", FieldInput::Text, "/a"),
        ("php", FieldInput::Text, ""),
        ("proxy", FieldInput::List, ""),
        ("redirects", FieldInput::Map, ""),
        ("tls", FieldInput::Choice, ""),
        ("tls.cert", FieldInput::List, ""),
        ("compress", FieldInput::Switch, "false"),
    ])
}

/// Fills in a form with `body`, and returns the edits as texts. An edit of a field is `field=text`.
fn edits(mode: FormMode, form: SiteForm, body: &str) -> Vec<String> {
    let mut filled = FilledForm::new(mode, form);
    filled.fill(body.as_bytes());
    let text = |edit: &Edit| match edit {
        Edit::SetField { field, text, .. } => format!("{field}={text}"),
        edit => edit.to_string(),
    };
    filled.edits().iter().map(text).collect()
}

/// Body that a browser sends for the form of [`files`] without changes.
const UNCHANGED: &str =
    "name=a.test&kind=files&enabled=on&aliases=b.test&root=%2Fa&php=&proxy=&redirects=&tls=&tls.cert=";

#[test]
fn only_changed_fields_are_edited() {
    assert_eq!(edits(FormMode::Edit, files(), UNCHANGED), [""; 0]);
    let body = UNCHANGED
        .replace("root=%2Fa", "root=%2Fb")
        .replace("aliases=b.test", "aliases=b.test%0D%0Ac.test")
        .replace("enabled=on&", "");
    assert_eq!(
        edits(FormMode::Edit, files(), &(body + "&compress=on")),
        ["enabled=false", "aliases=b.test\nc.test", "root=/b", "compress=true"]
    );
    let renamed = UNCHANGED.replace("name=a.test", "name=+c.test+");
    assert_eq!(
        edits(FormMode::Edit, files(), &renamed),
        ["rename site a.test to c.test"]
    );
    // A form without most of its fields changes nothing about them.
    assert_eq!(edits(FormMode::Edit, files(), "enabled=on&root=/b"), ["root=/b"]);
}

#[test]
fn a_copy_has_no_names_of_the_original() {
    let body = UNCHANGED
        .replace("aliases=b.test", "aliases=")
        .replace("name=a.test", "name=c.test");
    assert_eq!(edits(FormMode::Copy, files(), &body), ["copy site a.test to c.test"]);
    let form = FilledForm::new(FormMode::Copy, files());
    assert_eq!((form.name.as_str(), form.text("aliases")), ("", ""));
}

#[test]
fn another_kind_removes_the_keys_of_the_kind_before() {
    for (kind, php, expected) in [
        ("php", "", &["php=auto"][..]),
        ("php", "8.2", &["php=8.2"]),
        ("proxy", "", &["remove site.a.test.root"]),
        ("redirects", "", &["remove site.a.test.root"]),
        ("nonsense", "", &[]),
    ] {
        let body = UNCHANGED
            .replace("kind=files", &format!("kind={kind}"))
            .replace("php=", &format!("php={php}"));
        assert_eq!(edits(FormMode::Edit, files(), &body), expected, "{kind}");
    }
    // A change of the kind removes the table of the previous kind, even if no field can show the table.
    let mut long = form(&[("root", FieldInput::Text, ""), ("proxy", FieldInput::List, "")]);
    long.fields[1].other = Some("[{ url = \"http://b\" }]".to_owned());
    assert_eq!(
        edits(FormMode::Edit, long, "kind=files&root=/a&proxy="),
        ["root=/a", "remove site.a.test.proxy"]
    );
    // A hidden key stays if the kind does not change.
    let both = form(&[
        ("root", FieldInput::Text, "/a"),
        ("proxy", FieldInput::List, "http://b"),
    ]);
    assert_eq!(
        edits(FormMode::Edit, both, "kind=proxy&root=&proxy=http://c"),
        ["proxy=http://c"]
    );
}

#[test]
fn certificate_files_are_used_with_their_own_choice_only() {
    let with = |tls: &str| UNCHANGED.replace("tls=&tls.cert=", &format!("tls={tls}&tls.cert=c.pem"));
    assert_eq!(edits(FormMode::Edit, files(), &with("auto")), ["tls=auto"]);
    assert_eq!(
        edits(FormMode::Edit, files(), &with("files")),
        ["tls=files", "tls.cert=c.pem"]
    );
}

#[test]
fn needed_fields_are_not_empty() {
    // `wrong`: name of the field with a problem; `None` if the form is complete.
    for (body, wrong) in [
        ("name=a.test&kind=files&root=/a", None),
        ("name=+&root=/a", Some("name")),
        ("kind=files&root=+", Some("root")),
        ("kind=proxy&proxy=", Some("proxy")),
        ("kind=redirects", Some("redirects")),
        ("kind=php&php=", None),
        ("tls=files", Some("tls.cert")),
    ] {
        let mut filled = FilledForm::new(FormMode::Edit, files());
        filled.fill(body.as_bytes());
        assert_eq!(filled.report_missing(), wrong.is_none(), "{body}");
        let field = filled.fields.iter().find(|filled| !filled.problems.is_empty());
        let found = match field {
            Some(filled) => Some(filled.field.name.as_str()),
            None => (!filled.name_problems.is_empty()).then_some("name"),
        };
        assert_eq!(found, wrong, "{body}");
        assert_eq!(filled.has_errors(), wrong.is_some());
    }
}

#[test]
fn problems_of_hidden_fields_are_those_of_the_form() {
    let both = || {
        form(&[
            ("root", FieldInput::Text, "/a"),
            ("proxy", FieldInput::List, "http://b"),
            ("tls", FieldInput::Choice, ""),
            ("tls.cert", FieldInput::List, ""),
        ])
    };
    let mut filled = FilledForm::new(FormMode::Edit, both());
    filled.place(vec![
        finding(&["site", "a.test", "root"], true),
        finding(&["site", "a.test", "tls", "cert"], true),
        finding(&["site", "a.test", "proxy"], true),
    ]);
    let count = |filled: &FilledForm| {
        filled
            .fields
            .iter()
            .map(|field| field.problems.len())
            .collect::<Vec<_>>()
    };
    assert_eq!((count(&filled), filled.problems.len()), (vec![0, 1, 0, 0], 2));
    let mut filled = FilledForm::new(FormMode::Edit, both());
    filled.fill(b"kind=files&proxy=http://b");
    let edits = filled.edits();
    assert_eq!(
        edits.iter().map(Edit::to_string).collect::<Vec<_>>(),
        ["remove site.a.test.proxy"]
    );
    let error = ApiError::new(422, "cannot remove site.a.test.proxy: it is wrong");
    filled.refuse(&error, &edits);
    assert_eq!((count(&filled), filled.problems.len()), (vec![0; 4], 1));
    assert!(
        filled.problems[0].text.ends_with(": it is wrong"),
        "{:?}",
        filled.problems
    );
}

fn finding(key: &[&str], is_error: bool) -> Finding {
    Finding {
        is_error,
        code: "bad-value".to_owned(),
        message: "it is wrong".to_owned(),
        help: Some("correct it".to_owned()),
        file: None,
        line: 1,
        column: 1,
        key: key.iter().map(|part| (*part).to_owned()).collect(),
    }
}

#[test]
fn findings_are_beside_their_fields() {
    let mut filled = FilledForm::new(FormMode::Edit, files());
    filled.place(vec![
        finding(&["site", "a.test"], true),
        finding(&["site", "a.test", "root"], true),
        finding(&["site", "a.test", "tls", "cert"], true),
        finding(&["site", "a.test", "tls", "min"], false),
        finding(&["site", "a.test", "unknown"], false),
        finding(&["site", "b.test", "root"], true),
        finding(&["server"], false),
    ]);
    let count = |name: &str| {
        let found = filled.fields.iter().find(|filled| filled.field.name == name);
        found.unwrap().problems.len()
    };
    assert_eq!(
        (count("root"), count("tls"), count("tls.cert"), count("php")),
        (1, 1, 0, 0)
    );
    // The unknown key and the error of another site do not concern a field. The third finding concerns a hidden
    // field. The warning about `server` is left out.
    assert_eq!((filled.name_problems.len(), filled.problems.len()), (1, 3));
    assert_eq!(filled.name_problems[0].text, "it is wrong: correct it");
}

#[test]
fn refused_edits_are_beside_their_fields() {
    let mut filled = FilledForm::new(FormMode::Edit, files());
    filled.fill(b"name=c.test&redirects=x");
    let edits = filled.edits();
    filled.refuse(
        &ApiError::new(422, "cannot set site.c.test.redirects: it is wrong"),
        &edits,
    );
    filled.refuse(
        &ApiError::new(422, "cannot rename site a.test to c.test: it exists"),
        &edits,
    );
    filled.refuse(&ApiError::new(409, "changed"), &edits);
    let redirects = filled.fields.iter().find(|filled| filled.field.name == "redirects");
    assert_eq!(redirects.unwrap().problems[0].text, "it is wrong");
    assert_eq!(
        (&*filled.name_problems[0].text, &*filled.problems[0].text),
        ("it exists", "changed")
    );
}

#[test]
fn a_new_user_is_added_with_a_hash() {
    let auth = || {
        form(&[
            ("root", FieldInput::Text, "/a"),
            ("auth", FieldInput::Map, "ann = $1\nbob = $2\n"),
        ])
    };
    for (user, hash, expected) in [
        ("eve", Ok("$3"), "ann = $1\nbob = $2\neve = $3"),
        ("ann", Ok("$3"), "bob = $2\nann = $3"),
        ("eve", Err("the password is empty"), "ann = $1\nbob = $2\n"),
    ] {
        let mut filled = FilledForm::new(FormMode::Edit, auth());
        filled.fill(format!("new-user={user}").as_bytes());
        filled.add_user(hash.map(str::to_owned).map_err(str::to_owned));
        assert_eq!(filled.text("auth"), expected, "{user}");
        assert_eq!(
            (filled.has_errors(), filled.new_user.is_empty()),
            (hash.is_err(), hash.is_ok()),
            "{user}"
        );
    }
}

fn filled_new(body: &str) -> FilledForm {
    let mut form = FilledForm::for_new_website();
    form.fill(body.as_bytes());
    form
}

#[test]
fn each_kind_of_a_new_website_has_its_edits() {
    let shown = |form: &FilledForm| {
        let edits = form.edits();
        edits.iter().map(|edit| format!("{edit:?}")).collect::<Vec<_>>()
    };
    let files = filled_new("kind=files&name=a.test&root=+www+&proxy=http%3A%2F%2Fx");
    assert_eq!(shown(&files), [r#"AddSite { name: "a.test", root: "www" }"#]);
    let php = filled_new("kind=php&name=a.test&root=www");
    assert_eq!(
        shown(&php),
        [
            r#"AddSite { name: "a.test", root: "www" }"#,
            r#"Set { path: ["site", "a.test", "php"], value: "\"auto\"" }"#
        ]
    );
    let proxy = filled_new("kind=proxy&name=a.test&root=www&proxy=http%3A%2F%2F%22x%7F");
    assert_eq!(
        shown(&proxy),
        [
            r#"AddSite { name: "a.test", root: "." }"#,
            r#"Set { path: ["site", "a.test", "proxy"], value: "\"http://\\\"x\\u007f\"" }"#,
            r#"Remove { path: ["site", "a.test", "root"] }"#
        ]
    );
    let request = files.request(files.edits(), true);
    assert_eq!((request.file, request.revision), (None, None));
}

#[test]
fn a_new_website_needs_the_fields_of_its_kind_only() {
    let missing = |body: &str| {
        let mut form = filled_new(body);
        let is_complete = form.report_missing();
        let mut names: Vec<String> = form
            .fields
            .iter()
            .filter(|filled| !filled.problems.is_empty())
            .map(|filled| filled.field.name.clone())
            .collect();
        names.extend((!form.name_problems.is_empty()).then(|| "name".to_owned()));
        assert_eq!(is_complete, names.is_empty(), "{body}");
        form.forget_missing();
        assert!(!form.has_errors(), "{body}");
        names
    };
    assert_eq!(missing("kind=files&name=a"), ["root"]);
    assert_eq!(missing("kind=php&name=a&root=+"), ["root"]);
    assert_eq!(missing("kind=proxy&root=x"), ["proxy", "name"]);
    assert_eq!(missing("kind=proxy&proxy=x&name=a"), Vec::<String>::new());
    // A kind that the form does not offer counts as files.
    let words: Vec<_> = filled_new("").kinds().map(|(_, word, _)| word).collect();
    assert_eq!(words, ["files", "php", "proxy"]);
}
