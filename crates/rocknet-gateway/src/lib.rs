//! Applications behind FastCGI, SCGI, uwsgi and CGI, and the PHP that the server runs itself.
//!
//! ```text
//! handlers  application/ FastCGI, SCGI, uwsgi   fpm/ scripts of PHP   cgi/ programs
//!               └───────────────┬───────────────────┴────────────────────┘
//!                           gateway/ variables, conversation, connections
//!                               │
//!                           php/ the php-fpm that the server runs     accounts/ the accounts that programs run as
//! ```
#![forbid(unsafe_code)]

pub mod accounts;
pub mod application;
pub mod cgi;
pub mod fpm;
pub mod gateway;
pub mod php;
