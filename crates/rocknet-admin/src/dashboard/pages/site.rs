//! Page with the form of a website, and what a browser sends with it.

use askama::Template;
use rocknet_control::api::{ApiError, Reply, Request};
use rocknet_control::config::{Checked, Edit, Saved};
use rocknet_control::route::SiteName;
use rocknet_control::site_form::{FieldInput, SiteForm};
use rocknet_proto::Status;

use crate::Control;
use crate::dashboard::frame::{Frame, encoded, other_reply, parameter, rendered};
use crate::dashboard::site_form::{FilledField, FilledForm, FormMode, shown_with};

/// A form that a browser has sent.
pub struct SentForm<'s> {
    /// Query of the page.
    pub query: &'s [u8],
    /// Body of the request: the names and texts of the fields.
    pub body: &'s [u8],
    /// Hash of the password of a new user, or the reason why the user cannot be added; `None` if no user is added.
    pub password_hash: Option<Result<String, String>>,
}

/// Result of a form that a browser has sent.
pub enum Submitted {
    /// Page with the form, and with the problems in it.
    Page(Status, String),
    /// Location of the page that reports the change.
    Saved(String),
}

/// Page with the form of a new website.
#[derive(Template)]
#[template(path = "add.html")]
struct AddPage<'a> {
    frame: Frame<'a>,
    form: FilledForm,
}

#[derive(Template)]
#[template(path = "site.html")]
struct SitePage<'a> {
    frame: Frame<'a>,
    form: FilledForm,
    /// Revision of the file after the form was saved; empty if the form was not saved.
    saved: String,
    /// True if the visitor saved a form without changes.
    is_unchanged: bool,
}

/// Renders the form with the values of the file. A form that edits a website also shows the findings about the
/// present file, unless the check of the file fails.
pub async fn view<C: Control>(mode: FormMode, query: &[u8], frame: Frame<'_>, control: &C) -> Result<String, ApiError> {
    if mode == FormMode::Add {
        let form = FilledForm::for_new_website();
        return Ok(rendered(&AddPage { frame, form }));
    }
    let mut form = FilledForm::new(mode, queried(query, control).await?);
    if mode == FormMode::Edit {
        let checked = check(&form, Vec::new(), control).await;
        form.place(checked.map(|checked| checked.findings).unwrap_or_default());
    }
    Ok(rendered(&SitePage {
        frame,
        form,
        saved: parameter(query, "saved").unwrap_or_default(),
        is_unchanged: false,
    }))
}

/// Checks the form that a browser has sent, and saves it unless only a check was requested. If there is a problem,
/// renders the form again with the visitor's input.
pub async fn submit<C: Control>(
    mode: FormMode,
    sent: SentForm<'_>,
    frame: Frame<'_>,
    control: &C,
) -> Result<Submitted, ApiError> {
    let SentForm { query, body, .. } = sent;
    let mut form = match mode {
        FormMode::Add => FilledForm::for_new_website(),
        FormMode::Edit | FormMode::Copy => FilledForm::new(mode, queried(query, control).await?),
    };
    let present_revision = form.revision.clone();
    form.fill(body);
    if let Some(hash) = sent.password_hash {
        form.add_user(hash);
    }
    let is_saving = parameter(body, "do").as_deref() == Some("save");
    let is_complete = form.report_missing();
    if mode == FormMode::Add {
        if !is_saving {
            // A check does not report empty fields, because the visitor has not reached them yet.
            form.forget_missing();
        }
        if is_complete && is_known(&form.name, control).await {
            form.refuse_name();
        }
    }
    let edits = form.edits();
    let is_unchanged = is_saving && edits.is_empty() && !form.has_errors();
    // A new website with a known name is not checked, because the check would report the same error again.
    let is_refused = mode == FormMode::Add && form.has_errors();
    if is_complete && !edits.is_empty() && !is_refused {
        match check(&form, edits.clone(), control).await {
            Ok(checked) => form.place(checked.findings),
            Err(error) => form.refuse(&error, &edits),
        }
    }
    if is_saving && !edits.is_empty() && !form.has_errors() {
        // `true`: the file must still have the revision of the form.
        match control
            .execute(Request::EditConfig(form.request(edits.clone(), true)))
            .await
        {
            Ok(Reply::Saved(Saved { revision, .. })) => {
                let (name, revision) = (encoded(&form.name), encoded(&revision));
                return Ok(Submitted::Saved(format!("/websites/edit?name={name}&saved={revision}")));
            }
            Ok(_) => return Err(other_reply()),
            Err(error) => {
                // The error may be a conflict with another change. The visitor sees the error and decides: the form
                // gets the present revision, so sending the form again replaces that change.
                form.revision.clone_from(&present_revision);
                form.refuse(&error, &edits);
            }
        }
    }
    let status = if is_saving && form.has_errors() {
        Status::UNPROCESSABLE_CONTENT
    } else {
        Status::OK
    };
    let text = match mode {
        FormMode::Add => rendered(&AddPage { frame, form }),
        FormMode::Edit | FormMode::Copy => rendered(&SitePage {
            frame,
            form,
            saved: String::new(),
            is_unchanged,
        }),
    };
    Ok(Submitted::Page(status, text))
}

/// Returns true if the configuration has a website with this name. The result is for the message beside the name only:
/// the website may be added later, and then the edit fails.
async fn is_known<C: Control>(name: &str, control: &C) -> bool {
    let site = SiteName { name: name.to_owned() };
    control.execute(Request::SiteForm(site)).await.is_ok()
}

/// Returns the form of the website that the query names.
async fn queried<C: Control>(query: &[u8], control: &C) -> Result<SiteForm, ApiError> {
    let missing = || ApiError::new(404, "there is no website with this name");
    let name = parameter(query, "name").ok_or_else(missing)?;
    match control.execute(Request::SiteForm(SiteName { name })).await? {
        Reply::SiteForm(form) => Ok(*form),
        _ => Err(other_reply()),
    }
}

/// Checks the file with the edits of the form applied, and returns the findings.
async fn check<C: Control>(form: &FilledForm, edits: Vec<Edit>, control: &C) -> Result<Checked, ApiError> {
    // `false`: the file may have another revision than the form.
    match control.execute(Request::CheckEdits(form.request(edits, false))).await? {
        Reply::Checked(checked) => Ok(checked),
        _ => Err(other_reply()),
    }
}

/// Returns the attribute `id` of a field.
fn id(filled: &FilledField) -> String {
    filled.field.name.replace('.', "-")
}

/// Returns the number of rows of a multi-line field, including an empty row for new input: 2 to 9. Longer texts are
/// scrolled.
fn rows(filled: &FilledField) -> usize {
    filled.text.lines().count().clamp(1, 8) + 1
}

/// Returns the placeholder of an empty field: the default, or an example if there is no default.
fn placeholder(filled: &FilledField) -> &str {
    let field = &filled.field;
    let text = if field.default.is_empty() {
        &field.example
    } else {
        &field.default
    };
    match field.input {
        FieldInput::Text => text.lines().next().unwrap_or_default(),
        _ => text,
    }
}

/// Splits the documentation of a key into its first sentence and the text after it.
fn summary(help: &str) -> (&str, &str) {
    let mut is_code = false;
    for (at, c) in help.char_indices() {
        is_code ^= c == '`';
        if c == '.' && !is_code && help[at + 1..].starts_with(' ') {
            return (&help[..=at], help[at + 1..].trim_start());
        }
    }
    (help, "")
}

/// Splits a text at its backquotes. The flag of a piece is true for code.
fn pieces(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let numbered = text.split('`').enumerate();
    numbered.map(|(at, piece)| (at % 2 == 1, piece))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use rocknet_config::edit::Editor;
    use rocknet_control::api::Permission;
    use rocknet_control::logs::LogFilter;
    use rocknet_handler::response::Stream;

    use super::*;
    use crate::ReplyFuture;
    use crate::dashboard::frame::PageKind;

    /// Server to whose configuration another program adds the website `a.test` after the form was checked.
    #[derive(Clone)]
    struct LateWebsite;

    impl Control for LateWebsite {
        fn execute(&self, request: Request) -> ReplyFuture {
            let reply = match request {
                Request::CheckEdits(edits) => applied("", &edits.edits).map(|_| {
                    Reply::Checked(Checked {
                        is_valid: true,
                        findings: Vec::new(),
                    })
                }),
                Request::EditConfig(edits) => {
                    applied("[site.\"a.test\"]\nroot = \"kept\"\n", &edits.edits).map(|revision| {
                        Reply::Saved(Saved {
                            message: String::new(),
                            file: "rocknet.toml".into(),
                            revision,
                            can_undo: true,
                            findings: Vec::new(),
                        })
                    })
                }
                _ => Err(ApiError::new(404, "there is no website with this name")),
            };
            Box::pin(std::future::ready(reply))
        }

        fn follow_logs(&self, _: LogFilter) -> Result<Box<dyn Stream>, ApiError> {
            unreachable!("pages do not follow logs")
        }
    }

    /// Returns a text after edits.
    fn applied(text: &str, edits: &[Edit]) -> Result<String, ApiError> {
        let mut editor = Editor::new(text).expect("a valid text");
        for edit in edits {
            let path = edit.path();
            let result = match edit {
                Edit::Set { value, .. } => editor.set(&path, value),
                Edit::AddSite { name, root } => editor.add_site(name, root),
                Edit::Remove { .. } if editor.remove(&path) => Ok(()),
                _ => panic!("no edit of a new website: {edit:?}"),
            };
            result.map_err(|error| ApiError::new(422, format!("cannot {edit}: {error}")))?;
        }
        Ok(editor.to_string())
    }

    #[test]
    fn a_website_that_exists_is_not_changed_by_a_new_one() {
        let sent = |name: &str, kind: &str| {
            let body = format!("do=save&kind={kind}&name={name}&root=www&proxy=http%3A%2F%2Fx");
            let form = SentForm {
                query: b"",
                body: body.as_bytes(),
                password_hash: None,
            };
            let frame = Frame::new(PageKind::AddWebsite, Permission::Full, "/assets/0");
            let submitted = pin!(submit(FormMode::Add, form, frame, &LateWebsite));
            match submitted.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(submitted) => submitted.expect("a page or a location"),
                Poll::Pending => panic!("the replies are ready"),
            }
        };
        for kind in ["files", "php", "proxy"] {
            let Submitted::Page(status, text) = sent("a.test", kind) else {
                panic!("{kind}: the website is replaced");
            };
            assert_eq!(status, Status::UNPROCESSABLE_CONTENT, "{kind}");
            let (_, beside_name) = text.split_once("id=\"name-problem\"").expect("problems of the name");
            assert!(beside_name.contains("already exists"), "{kind}: {text}");
            assert!(matches!(sent("b.test", kind), Submitted::Saved(_)), "{kind}");
        }
    }

    #[test]
    fn documentation_has_a_summary_and_code() {
        let text = "Runs `a. b`. More of it.";
        assert_eq!(summary(text), ("Runs `a. b`.", "More of it."));
        assert_eq!(summary("One."), ("One.", ""));
        let split: Vec<_> = pieces("Runs `a. b`.").collect();
        assert_eq!(split, [(false, "Runs "), (true, "a. b"), (false, ".")]);
    }
}
