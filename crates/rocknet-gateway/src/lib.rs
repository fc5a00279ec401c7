//! Handlers for applications that speak FastCGI, SCGI, uwsgi or CGI, and the php-fpm processes that RockNet runs
//! itself.
//!
//! ```text
//! handlers  application/ FastCGI, SCGI, uwsgi   fpm/ PHP scripts   cgi/ programs
//!               └───────────────┬───────────────────┴────────────────────┘
//!                           gateway/ variables, exchanges, connections
//!                               │
//!                           php/ php-fpm processes of the server     accounts/ accounts that programs run as
//! ```
#![forbid(unsafe_code)]

pub mod accounts;
pub mod application;
pub mod cgi;
pub mod fpm;
pub mod gateway;
pub mod php;
