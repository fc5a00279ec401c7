//! `rocknet hash-password`: prints the hash of a password, for `auth` or an htpasswd file.

use std::io::{self, Write};

use aws_lc_rs::rand;
use rocknet_access::credentials::MAX_PASSWORD_BYTES;
use rocknet_access::password::{SALT_BYTES, hash};
use rocknet_config::model::{MAX_USER_BYTES, is_user_name};
use rocknet_io::terminal::{StandardStream, is_terminal, read_line, read_without_echo};
use serde::Serialize;
use zeroize::Zeroizing;

use super::remote::print_json;
use super::{Failure, print};

/// Print the hash of a password, for `auth` or an htpasswd file
///
/// At a terminal the password is typed twice and not shown. Otherwise it is one line of standard input. The hash
/// is an argon2id hash.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Print NAME:HASH, a line of an htpasswd file
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Output with `--json`.
#[derive(Serialize)]
struct HashedPassword<'a> {
    user: Option<&'a str>,
    hash: &'a str,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    if let Some(user) = options.user.as_deref().filter(|user| !is_user_name(user)) {
        return Err(Failure::Usage(format!(
            "{user:?} is not a valid user name: write 1 to {MAX_USER_BYTES} bytes without a colon or a control character"
        )));
    }
    let failed = |error: io::Error| Failure::Failed(format!("cannot read the password: {error}"));
    let password = if is_terminal(StandardStream::Input) {
        let first = prompt_password("Password: ").map_err(failed)?;
        validate(&first)?;
        if first != prompt_password("Repeat the password: ").map_err(failed)? {
            return Err(Failure::Failed("the two passwords differ".to_owned()));
        }
        first
    } else {
        Zeroizing::new(read_line(&mut io::stdin().lock(), MAX_PASSWORD_BYTES).map_err(failed)?)
    };
    let password = validate(&password)?;
    let mut salt = [0; SALT_BYTES];
    rand::fill(&mut salt).map_err(|_| Failure::Failed("the system provides no random numbers".to_owned()))?;
    let hash = hash(password, salt).map_err(|error| Failure::Failed(format!("cannot compute the hash: {error}")))?;
    if options.json {
        return print_json(&HashedPassword {
            user: options.user.as_deref(),
            hash: &hash,
        });
    }
    match &options.user {
        Some(user) => print(format_args!("{user}:{hash}\n")),
        None => print(format_args!("{hash}\n")),
    }
    Ok(())
}

/// Reads a password from the terminal. Prompts on standard error, because standard output is reserved for the hash.
fn prompt_password(prompt: &str) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut output = io::stderr().lock();
    write!(output, "{prompt}").and_then(|()| output.flush())?;
    read_without_echo(MAX_PASSWORD_BYTES).map(Zeroizing::new)
}

/// Returns the password as text. Rejects an empty password, and one that the server would never accept: too long, not
/// UTF-8, or with a control character.
fn validate(password: &[u8]) -> Result<&str, Failure> {
    let rejected = |why: &str| Err(Failure::Failed(format!("the password {why}")));
    match std::str::from_utf8(password) {
        Ok("") => rejected("is empty"),
        _ if password.len() > MAX_PASSWORD_BYTES => rejected(&format!("is longer than {MAX_PASSWORD_BYTES} bytes")),
        Err(_) => rejected("is not UTF-8"),
        Ok(password) if password.contains(|c: char| c.is_control()) => rejected("contains a control character"),
        Ok(password) => Ok(password),
    }
}
