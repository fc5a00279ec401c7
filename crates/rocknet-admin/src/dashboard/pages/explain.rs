//! View that explains an address of a website: its site, its route, its response, and the settings that apply.

use askama::Template;
use rocknet_control::api::{ApiError, Reply, Request};
use rocknet_control::explanation::{ConfigPosition, ExplainUrl, UrlExplanation};
use rocknet_proto::Status;

use crate::Control;
use crate::content::status;
use crate::dashboard::frame::{Frame, encoded, other_reply, parameter, rendered};

#[derive(Template)]
#[template(path = "explain.html")]
struct ExplainPage<'a> {
    frame: Frame<'a>,
    /// Address in the input field.
    url: String,
    found: Option<UrlExplanation>,
    problem: Option<ApiError>,
}

/// Renders the view, and returns its status. If `query` contains no address, the view has only the form.
pub async fn view<C: Control>(query: &[u8], frame: Frame<'_>, control: &C) -> (Status, String) {
    let url = parameter(query, "url").unwrap_or_default().trim().to_owned();
    let explained = match url.is_empty() {
        true => Ok(None),
        false => explain(&url, control).await.map(Some),
    };
    let (found, problem) = match explained {
        Ok(found) => (found, None),
        Err(error) => (None, Some(error)),
    };
    let code = problem.as_ref().map_or(Status::OK, |problem| status(problem.status));
    let page = ExplainPage {
        frame,
        url,
        found,
        problem,
    };
    (code, rendered(&page))
}

async fn explain<C: Control>(url: &str, control: &C) -> Result<UrlExplanation, ApiError> {
    let url = ExplainUrl { url: url.to_owned() };
    // Uses the parser of the API, which bounds the length of the address.
    let url = ExplainUrl::from_query(url.query().as_bytes()).map_err(|error| ApiError::new(400, error))?;
    match control.execute(Request::Explain(url)).await? {
        Reply::Explanation(found) => Ok(*found),
        _ => Err(other_reply()),
    }
}

/// Returns the URL of the settings page that opens a position of the configuration in its editor.
fn editor(position: &ConfigPosition) -> String {
    let file = position.file.to_string_lossy();
    format!("/settings?file={}#line-{}", encoded(&file), position.line)
}

/// Returns the file name and the line of a position, for display.
fn place(position: &ConfigPosition) -> String {
    let file = position.file.file_name().unwrap_or_default().to_string_lossy();
    format!("{file}, line {}", position.line)
}
