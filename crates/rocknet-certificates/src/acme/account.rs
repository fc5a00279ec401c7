//! ACME accounts, one for each CA: created when first needed, and stored in the state folder.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use instant_acme::{Account, AccountCredentials, Error, ExternalAccountKey, NewAccount, Problem};
use rocknet_config::model::{Acme, AcmeCa};
use tokio::sync::Mutex;

use super::https_client::HttpsClient;
use crate::storage::{Access, Storage};

/// A CA with an open account and an HTTPS client.
#[derive(Clone)]
pub struct CaSession {
    pub account: Account,
    pub http: HttpsClient,
}

/// All ACME accounts of this server.
pub struct Accounts {
    storage: Arc<dyn Storage>,
    /// PEM file of the root certificates that verify connections to CAs; `None`: the system's root certificates.
    root: Option<PathBuf>,
    /// Contact address of new accounts; `None`: they have none.
    email: Option<String>,
    /// Open accounts by directory URL.
    sessions: Mutex<HashMap<String, CaSession>>,
}

/// The reason why an account cannot be used.
#[derive(Debug)]
pub struct AccountError {
    /// Reason, in one line.
    pub reason: String,
    /// Delay requested by the CA (`Retry-After`), if any.
    pub retry_after: Option<std::time::Duration>,
}

impl Accounts {
    /// Creates an empty collection for the accounts of a configuration. Opens no account.
    pub fn new(storage: Arc<dyn Storage>, settings: &Acme) -> Accounts {
        Accounts {
            storage,
            root: settings.ca_root.clone(),
            email: settings.email.clone(),
            sessions: Mutex::default(),
        }
    }

    /// Opens the account at a CA, or returns the open account. Concurrent calls run one after another.
    ///
    /// # Errors
    /// Returns the reason why the account cannot be opened.
    pub async fn session(&self, ca: &AcmeCa) -> Result<CaSession, AccountError> {
        let mut sessions = self.sessions.lock().await;
        if let Some(session) = sessions.get(&ca.url) {
            return Ok(session.clone());
        }
        let http = HttpsClient::new(self.root.as_deref()).map_err(|reason| AccountError {
            reason,
            retry_after: None,
        })?;
        let account = match self.account(ca, &http).await {
            Ok(account) => account,
            Err(error) => {
                return Err(AccountError {
                    reason: describe(&error),
                    retry_after: http.take_retry_after(),
                });
            }
        };
        let session = CaSession { account, http };
        sessions.insert(ca.url.clone(), session.clone());
        Ok(session)
    }

    /// Discards the account at a CA that reports the account as unknown. The next call of [`Accounts::session`] creates
    /// another account.
    pub async fn forget(&self, ca: &AcmeCa) {
        self.sessions.lock().await.remove(&ca.url);
        // If this fails, the next order reads the same account, and the CA reports it as unknown again.
        let _ = self.storage.remove(&account_item(&ca.url));
    }

    /// Loads the stored account, or creates one if no account is stored or the stored credentials cannot be parsed.
    async fn account(&self, ca: &AcmeCa, http: &HttpsClient) -> Result<Account, Error> {
        let item = account_item(&ca.url);
        let stored = self.storage.read(&item).map_err(|error| Error::Other(error.into()))?;
        if let Some(credentials) = stored.and_then(|bytes| serde_json::from_slice::<AccountCredentials>(&bytes).ok()) {
            return Account::builder_with_http(Box::new(http.clone()))
                .from_credentials(credentials)
                .await;
        }
        let contact = self.email.as_ref().map(|email| format!("mailto:{email}"));
        let contact: Vec<&str> = contact.as_deref().into_iter().collect();
        let new = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let binding = ca
            .binding
            .as_ref()
            .map(|key| ExternalAccountKey::new(key.name.clone(), key.secret.bytes()));
        let builder = Account::builder_with_http(Box::new(http.clone()));
        let (account, credentials) = builder.create(&new, ca.url.clone(), binding.as_ref()).await?;
        let bytes = serde_json::to_vec(&credentials)?;
        self.storage
            .write(&item, &bytes, Access::Owner)
            .map_err(|error| Error::Other(error.into()))?;
        tracing::info!("created an ACME account at {}", ca.url);
        Ok(account)
    }
}

/// Returns true if the CA does not know the account (RFC 8555 §6.7).
pub fn is_unknown_account(error: &Error) -> bool {
    is_problem(error, "accountDoesNotExist")
}

/// Returns true if a rate limit of the CA is exceeded (RFC 8555 §6.6).
pub fn is_rate_limited(error: &Error) -> bool {
    is_problem(error, "rateLimited")
}

/// Returns true if the CA reported a problem of this type. Types are compared without their URN prefix (RFC 8555 §6.7).
fn is_problem(error: &Error, name: &str) -> bool {
    matches!(error, Error::Api(Problem { r#type: Some(kind), .. }) if kind.rsplit(':').next() == Some(name))
}

/// Formats an error of a CA as one line.
pub fn describe(error: &Error) -> String {
    match error {
        Error::Api(problem) => {
            let kind = problem.r#type.as_deref().unwrap_or_default();
            let kind = kind.rsplit(':').next().unwrap_or_default();
            let mut text = problem.detail.clone().unwrap_or_else(|| "no reason given".to_owned());
            for sub in problem.subproblems.iter().filter_map(|sub| sub.detail.as_deref()) {
                text = format!("{text}; {sub}");
            }
            format!("{text} ({kind})")
        }
        other => other.to_string(),
    }
}

/// Returns the item name for the account at a directory URL.
fn account_item(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    format!(
        "acme/accounts/{}.json",
        rest.chars().take(MAX_ITEM_NAME).map(plain).collect::<String>()
    )
}

/// Maximum characters of the URL in an item name, because file names are limited to 255 bytes.
const MAX_ITEM_NAME: usize = 200;
