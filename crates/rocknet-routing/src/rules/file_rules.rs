//! Rules that also apply to the file that a request leads to.

use rocknet_config::model::{self, RuleAction};
use rocknet_proto::request::Request;

use super::facts::{LookupError, RequestFacts};
use super::{Action, Rule, RuleError, RuleOutcome, SERVICE_UNAVAILABLE};

/// The rules of a site with `resolved`, such as `{ path = "/private/*", respond = 403, resolved = true }`. They refuse
/// a file regardless of the path by which it is requested: as the index of a folder, by `try` or `fallback`, or as a
/// script followed by more of the path (`/index.php/more`).
#[derive(Debug)]
pub struct FileRules(Box<[Rule]>);

impl FileRules {
    /// Prepares the rules with `resolved`; `None` if no rule has it.
    ///
    /// # Errors
    /// Returns the first rule whose response is invalid.
    pub fn new(rules: &[model::Rule]) -> Result<Option<FileRules>, RuleError> {
        let resolved = rules.iter().zip(1..).filter(|(rule, _)| FileRules::is_resolved(rule));
        let ready = resolved.map(|(rule, number)| Rule::new(rule).map_err(|error| RuleError { number, error }));
        let rules = ready.collect::<Result<Box<[Rule]>, _>>()?;
        Ok((!rules.is_empty()).then_some(FileRules(rules)))
    }

    /// Returns true for a rule that also applies to files.
    pub fn is_resolved(rule: &model::Rule) -> bool {
        rule.resolved && matches!(rule.action, RuleAction::Respond { .. })
    }

    /// Returns true if a rule may apply to the file at a decoded path: its `path` matches, or it has no `path`. If the
    /// result is false, [`FileRules::apply`] need not be called for this file.
    pub fn concern(&self, path: &str) -> bool {
        self.0.iter().any(|rule| rule.when.has_path(path))
    }

    /// Applies the rules to the file at a decoded path. The other conditions are those of the request. Returns
    /// [`RuleOutcome::Untouched`], [`RuleOutcome::Respond`] or [`RuleOutcome::NeedsLookup`].
    pub fn apply(&self, request: &Request<'_>, path: &str, facts: &dyn RequestFacts) -> RuleOutcome {
        for rule in &self.0 {
            match rule.matches(request, path, request.query, facts) {
                Ok(None) => {}
                Ok(Some(_)) => {
                    if let Action::Respond { status, body } = &rule.action {
                        let (status, body) = (*status, body.clone());
                        return RuleOutcome::Respond { status, body };
                    }
                }
                Err(unknown) if unknown.error == LookupError::WouldBlock => {
                    return RuleOutcome::NeedsLookup(unknown.path);
                }
                Err(_) => {
                    let (status, body) = (SERVICE_UNAVAILABLE, None);
                    return RuleOutcome::Respond { status, body };
                }
            }
        }
        RuleOutcome::Untouched
    }
}
